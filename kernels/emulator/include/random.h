// The supported part of <random>, with the numbers of GCC's library.
namespace std {

struct mt19937 {
    unsigned int __state[624];
    int __at;

    mt19937() { seed(5489); }
    explicit mt19937(unsigned int value) { seed(value); }
    void seed(unsigned int value) {
        __state[0] = value;
        for (int i = 1; i < 624; i++) {
            value = 1812433253u * (value ^ value >> 30) + i;
            __state[i] = value;
        }
        __at = 624;
    }
    unsigned int operator()() {
        if (__at == 624) {
            for (int i = 0; i < 624; i++) {
                unsigned int y = (__state[i] & 0x80000000u) | (__state[(i + 1) % 624] & 0x7fffffffu);
                __state[i] = __state[(i + 397) % 624] ^ y >> 1 ^ (y & 1 ? 0x9908b0dfu : 0u);
            }
            __at = 0;
        }
        unsigned int y = __state[__at++];
        y ^= y >> 11;
        y ^= y << 7 & 0x9d2c5680u;
        y ^= y << 15 & 0xefc60000u;
        return y ^ y >> 18;
    }
    static constexpr unsigned int min() { return 0; }
    static constexpr unsigned int max() { return 4294967295u; }
};

struct minstd_rand0 {
    unsigned int __state;

    minstd_rand0() { seed(1); }
    explicit minstd_rand0(unsigned long long value) { seed(value); }
    void seed(unsigned long long value) {
        __state = value % 2147483647;
        if (__state == 0) __state = 1;
    }
    unsigned int operator()() {
        __state = __state * 16807ull % 2147483647;
        return __state;
    }
    static constexpr unsigned int min() { return 1; }
    static constexpr unsigned int max() { return 2147483646; }
};
typedef minstd_rand0 default_random_engine;

// Every run gets the same seed, so that it gives the same result.
struct random_device {
    unsigned int operator()() { return 2463534242u; }
};

template <typename R, typename G> R __canonical(G &g) {
    R range = (double)g.max() - g.min() + 1, x = g() - g.min();
    if constexpr (is_same<R, float>::value) {
        x = x / range;
        return x >= 1 ? 0.99999994f : x;
    } else {
        x = (x + (g() - g.min()) * range) / (range * range);
        return x >= 1 ? 0.99999999999999989 : x;
    }
}

template <typename R = double> struct uniform_real_distribution {
    R __from, __to;
    explicit uniform_real_distribution(R from = 0, R to = 1) : __from(from), __to(to) {}
    template <typename G> R operator()(G &g) { return __canonical<R>(g) * (__to - __from) + __from; }
};

// A number up to `most`.
template <typename G> unsigned long long __draw(G &g, unsigned long long most) {
    unsigned long long of_g = g.max() - g.min(), range = most + 1, x;
    if (most == of_g) return g() - g.min();
    if (most > of_g) {
        unsigned long long high;
        do {
            high = (of_g + 1) * __draw(g, most / (of_g + 1));
            x = high + (g() - g.min());
        } while (x > most || x < high);
        return x;
    }
    if (of_g == 4294967295ull) {
        x = g() * range;
        if ((unsigned int)x < range) {
            unsigned int least = (0u - (unsigned int)range) % (unsigned int)range;
            while ((unsigned int)x < least) x = g() * range;
        }
        return x >> 32;
    }
    unsigned long long each = of_g / range;
    do x = g() - g.min();
    while (x >= each * range);
    return x / each;
}

template <typename I = int> struct uniform_int_distribution {
    I __from, __to;
    explicit uniform_int_distribution(I from = 0, I to = numeric_limits<I>::max()) : __from(from), __to(to) {}
    template <typename G> I operator()(G &g) {
        unsigned long long from = (unsigned long long)__from;
        return (I)(__draw(g, (unsigned long long)__to - from) + from);
    }
};

template <typename R = double> struct normal_distribution {
    R __mean, __deviation, __kept;
    bool __has_kept;
    explicit normal_distribution(R mean = 0, R deviation = 1)
        : __mean(mean), __deviation(deviation), __kept(0), __has_kept(false) {}
    template <typename G> R operator()(G &g) {
        R value = __kept;
        if (!__has_kept) {
            R x, y, square;
            do {
                x = 2 * __canonical<R>(g) - 1;
                y = 2 * __canonical<R>(g) - 1;
                square = x * x + y * y;
            } while (square > 1 || square == 0);
            R scale = std::sqrt(-2 * std::log(square) / square);
            __kept = x * scale;
            value = y * scale;
        }
        __has_kept = !__has_kept;
        return value * __deviation + __mean;
    }
};

} // namespace std
