// The supported part of <algorithm>, <utility>, <limits>, <type_traits> and <cmath>.
namespace std {

using ::size_t;
using ::ptrdiff_t;

template <typename T> __host__ __device__ constexpr T min(const T &a, const T &b) { return b < a ? b : a; }
template <typename T> __host__ __device__ constexpr T max(const T &a, const T &b) { return a < b ? b : a; }
template <typename T> __host__ __device__ constexpr T clamp(const T &x, const T &low, const T &high) {
    return x < low ? low : high < x ? high : x;
}
template <typename T> __host__ __device__ T &move(T &x) { return x; }
template <typename T> __host__ __device__ T &forward(T &x) { return x; }
template <typename T> __host__ __device__ void swap(T &a, T &b) {
    T c = a;
    a = b;
    b = c;
}

#define __EMULATOR_MATH(f) \
    inline __host__ __device__ float f(float x) { return ::f(x); } \
    inline __host__ __device__ double f(double x) { return ::f(x); } \
    inline __host__ __device__ double f(int x) { return ::f((double)x); }

__EMULATOR_MATH(sqrt)
__EMULATOR_MATH(exp)
__EMULATOR_MATH(log)
__EMULATOR_MATH(sin)
__EMULATOR_MATH(cos)
__EMULATOR_MATH(tanh)
__EMULATOR_MATH(floor)
__EMULATOR_MATH(ceil)
__EMULATOR_MATH(round)
__EMULATOR_MATH(fabs)
inline __host__ __device__ bool isnan(float x) { return x != x; }
inline __host__ __device__ bool isnan(double x) { return x != x; }
inline __host__ __device__ bool isinf(float x) { return x - x != 0 && x == x; }
inline __host__ __device__ bool isfinite(float x) { return x - x == 0; }
inline __host__ __device__ bool isfinite(double x) { return x - x == 0; }
inline __host__ __device__ int abs(int x) { return x < 0 ? -x : x; }
inline __host__ __device__ long long abs(long long x) { return x < 0 ? -x : x; }
inline __host__ __device__ float abs(float x) { return ::fabsf(x); }
inline __host__ __device__ double abs(double x) { return ::fabs(x); }
inline __host__ __device__ float pow(float x, float y) { return ::powf(x, y); }
inline __host__ __device__ double pow(double x, double y) { return ::pow(x, y); }

template <typename A, typename B> struct pair {
    A first;
    B second;
};
template <typename A, typename B> __host__ __device__ pair<A, B> make_pair(A a, B b) { return {a, b}; }

template <typename T> struct numeric_limits;
template <> struct numeric_limits<float> {
    static constexpr __host__ __device__ float max() { return 3.402823466e+38f; }
    static constexpr __host__ __device__ float min() { return 1.175494351e-38f; }
    static constexpr __host__ __device__ float lowest() { return -3.402823466e+38f; }
    static constexpr __host__ __device__ float infinity() { return __int_as_float(0x7f800000); }
    static constexpr __host__ __device__ float epsilon() { return 1.192092896e-07f; }
};
template <> struct numeric_limits<double> {
    static constexpr __host__ __device__ double max() { return 1.7976931348623157e+308; }
    static constexpr __host__ __device__ double lowest() { return -1.7976931348623157e+308; }
    static constexpr __host__ __device__ double infinity() { return __longlong_as_double(0x7ff0000000000000ll); }
};
template <> struct numeric_limits<int> {
    static constexpr __host__ __device__ int max() { return 2147483647; }
    static constexpr __host__ __device__ int min() { return -2147483647 - 1; }
    static constexpr __host__ __device__ int lowest() { return -2147483647 - 1; }
};
template <> struct numeric_limits<unsigned int> {
    static constexpr __host__ __device__ unsigned int max() { return 4294967295u; }
    static constexpr __host__ __device__ unsigned int min() { return 0; }
};
template <> struct numeric_limits<long long> {
    static constexpr __host__ __device__ long long max() { return 9223372036854775807ll; }
    static constexpr __host__ __device__ long long min() { return -9223372036854775807ll - 1; }
};

template <typename A, typename B> struct is_same { static constexpr bool value = false; };
template <typename A> struct is_same<A, A> { static constexpr bool value = true; };
template <typename A, typename B> constexpr bool is_same_v = is_same<A, B>::value;
template <bool C, typename A, typename B> struct conditional { using type = A; };
template <typename A, typename B> struct conditional<false, A, B> { using type = B; };
template <bool C, typename A, typename B> using conditional_t = typename conditional<C, A, B>::type;

template <typename T, typename V> void fill(T *first, T *last, V value) {
    for (; first != last; ++first) *first = value;
}
template <typename T, typename V> V accumulate(T *first, T *last, V value) {
    for (; first != last; ++first) value = value + *first;
    return value;
}
template <typename T, typename V> void iota(T *first, T *last, V value) {
    for (; first != last; ++first) *first = value++;
}
template <typename T, typename F> void generate(T *first, T *last, F f) {
    for (; first != last; ++first) *first = f();
}
template <typename T, typename F> void generate_n(T *first, size_t n, F f) {
    for (size_t i = 0; i < n; i++) first[i] = f();
}
template <typename T, typename V> T *fill_n(T *first, size_t n, V value) {
    for (size_t i = 0; i < n; i++) first[i] = value;
    return first + n;
}
template <typename T, typename U> U *copy(const T *first, const T *last, U *to) {
    for (; first != last; ++first) *to++ = *first;
    return to;
}
template <typename T> bool equal(const T *first, const T *last, const T *other) {
    for (; first != last; ++first) if (!(*first == *other++)) return false;
    return true;
}
template <typename T, typename F> void for_each(T *first, T *last, F f) {
    for (; first != last; ++first) f(*first);
}
template <typename T, typename U, typename F> U *transform(const T *first, const T *last, U *to, F f) {
    for (; first != last; ++first) *to++ = f(*first);
    return to;
}
template <typename T> T *max_element(T *first, T *last) {
    T *best = first;
    for (; first != last; ++first) if (*best < *first) best = first;
    return best;
}
template <typename T> T *min_element(T *first, T *last) {
    T *best = first;
    for (; first != last; ++first) if (*first < *best) best = first;
    return best;
}
template <typename T> void reverse(T *first, T *last) {
    while (first < last) swap(*first++, *--last);
}
template <typename T, size_t N> T *begin(T (&a)[N]) { return a; }
template <typename T, size_t N> T *end(T (&a)[N]) { return a + N; }
template <typename C> auto begin(C &c) { return c.begin(); }
template <typename C> auto end(C &c) { return c.end(); }
struct __less { template <typename T> bool operator()(const T &a, const T &b) const { return a < b; } };
template <typename T, typename F> void sort(T *first, T *last, F less) {
    // Shell sort.
    long long n = last - first;
    for (long long gap = n / 2; gap > 0; gap /= 2)
        for (long long i = gap; i < n; i++) {
            T x = first[i];
            long long j = i;
            for (; j >= gap && less(x, first[j - gap]); j -= gap) first[j] = first[j - gap];
            first[j] = x;
        }
}
template <typename T> void sort(T *first, T *last) { sort(first, last, __less()); }
template <typename T, typename F> void partial_sort(T *first, T *middle, T *last, F less) {
    if (first == middle) return;
    sort(first, middle, less);
    for (T *at = middle; at != last; ++at) {
        if (!less(*at, middle[-1])) continue;
        T x = *at, *to = middle - 1;
        *at = *to;
        for (; to != first && less(x, to[-1]); --to) *to = to[-1];
        *to = x;
    }
}
template <typename T> void partial_sort(T *first, T *middle, T *last) { partial_sort(first, middle, last, __less()); }
template <typename T> bool is_sorted(T *first, T *last) {
    for (; first + 1 < last; ++first) if (first[1] < first[0]) return false;
    return true;
}
template <typename T, typename V> T *find(T *first, T *last, V value) {
    for (; first != last; ++first) if (*first == value) break;
    return first;
}
template <typename T, typename V> ptrdiff_t count(const T *first, const T *last, V value) {
    ptrdiff_t n = 0;
    for (; first != last; ++first) n += *first == value;
    return n;
}
template <typename T, typename F> bool all_of(const T *first, const T *last, F f) {
    for (; first != last; ++first) if (!f(*first)) return false;
    return true;
}
template <typename T, typename V> T *lower_bound(T *first, T *last, V value) {
    while (first < last) {
        T *middle = first + (last - first) / 2;
        if (*middle < value) first = middle + 1;
        else last = middle;
    }
    return first;
}
template <typename T, typename V> bool binary_search(T *first, T *last, V value) {
    T *at = lower_bound(first, last, value);
    return at != last && !(value < *at);
}

} // namespace std
