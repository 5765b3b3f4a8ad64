// The supported part of <chrono>. The clock stands still: every measured duration is 0.
namespace std {

template <long long N, long long D = 1> struct ratio { static constexpr long long num = N, den = D; };
typedef ratio<1, 1000> milli;
typedef ratio<1, 1000000> micro;
typedef ratio<1, 1000000000> nano;

namespace chrono {

template <typename R, typename P = ratio<1>> struct duration {
    R __count;
    duration() : __count(0) {}
    explicit duration(R count) : __count(count) {}
    template <typename R2, typename P2> duration(const duration<R2, P2> &other)
        : __count((R)((double)other.count() * P2::num / P2::den * P::den / P::num)) {}
    R count() const { return __count; }
};
typedef duration<long long, nano> nanoseconds;
typedef duration<long long, micro> microseconds;
typedef duration<long long, milli> milliseconds;
typedef duration<long long> seconds;

template <typename C, typename D = nanoseconds> struct time_point {
    long long __at;
    D time_since_epoch() const { return D(nanoseconds(__at)); }
};
template <typename C, typename D> D operator-(time_point<C, D> a, time_point<C, D> b) { return D(a.__at - b.__at); }
template <typename R, typename P> duration<R, P> operator-(duration<R, P> a, duration<R, P> b) { return duration<R, P>(a.count() - b.count()); }
template <typename R, typename P> duration<R, P> operator+(duration<R, P> a, duration<R, P> b) { return duration<R, P>(a.count() + b.count()); }

struct steady_clock {
    typedef chrono::time_point<steady_clock> time_point;
    static chrono::time_point<steady_clock> now() { return {1700000000000000000}; }
};
typedef steady_clock high_resolution_clock;
typedef steady_clock system_clock;

template <typename To, typename R, typename P> To duration_cast(const duration<R, P> &from) { return To(from); }

} // namespace chrono
} // namespace std
