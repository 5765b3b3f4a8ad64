// The supported part of <iostream> and <iomanip>: output to `cout` and `cerr`.
namespace std {

struct ios_base {
    static constexpr int fixed = 1, scientific = 2, hex = 4, oct = 8, dec = 0, boolalpha = 16, left = 32, right = 0, showpos = 64, uppercase = 128, floatfield = 3, basefield = 12, adjustfield = 32, showpoint = 256, internal = 512;
};
typedef ios_base ios;

struct ostream {
    int __flags, __precision, __width, __fill;
    int precision(int n) {
        int old = __precision;
        __precision = n;
        return old;
    }
    int precision() const { return __precision; }
    int width(int n) {
        int old = __width;
        __width = n;
        return old;
    }
    int setf(int set) {
        int old = __flags;
        __flags = __flags | set;
        return old;
    }
    int setf(int set, int mask) {
        int old = __flags;
        __flags = (__flags & ~mask) | set;
        return old;
    }
    void unsetf(int mask) { __flags = __flags & ~mask; }
    ostream &flush() { return *this; }
    ostream &put(char c) {
        putchar(c);
        return *this;
    }
};
ostream cout = {0, 6, 0, 32};
ostream cerr = {0, 6, 0, 32};
ostream clog = {0, 6, 0, 32};

inline ostream &operator<<(ostream &o, const char *text) {
    __emulator_put_text(text, o.__flags, o.__width, o.__fill);
    o.__width = 0;
    return o;
}
inline ostream &operator<<(ostream &o, const string &text) { return o << text.c_str(); }
inline ostream &operator<<(ostream &o, char c) {
    __emulator_put_char(c, o.__flags, o.__width, o.__fill);
    o.__width = 0;
    return o;
}
inline ostream &operator<<(ostream &o, unsigned char c) { return o << (char)c; }
inline ostream &operator<<(ostream &o, long long x) {
    __emulator_put_int(x, o.__flags, o.__width, o.__fill);
    o.__width = 0;
    return o;
}
inline ostream &operator<<(ostream &o, unsigned long long x) {
    __emulator_put_uint(x, o.__flags, o.__width, o.__fill);
    o.__width = 0;
    return o;
}
// In hexadecimal and octal, a negative number prints its bits.
inline ostream &operator<<(ostream &o, int x) {
    if (o.__flags & ios_base::basefield) return o << (unsigned long long)(unsigned int)x;
    return o << (long long)x;
}
inline ostream &operator<<(ostream &o, short x) {
    if (o.__flags & ios_base::basefield) return o << (unsigned long long)(unsigned short)x;
    return o << (long long)x;
}
inline ostream &operator<<(ostream &o, unsigned int x) { return o << (unsigned long long)x; }
inline ostream &operator<<(ostream &o, unsigned short x) { return o << (unsigned long long)x; }
inline ostream &operator<<(ostream &o, bool x) {
    if (o.__flags & ios_base::boolalpha) return o << (x ? "true" : "false");
    return o << (unsigned long long)x;
}
inline ostream &operator<<(ostream &o, double x) {
    __emulator_put_float(x, o.__precision, o.__flags, o.__width, o.__fill);
    o.__width = 0;
    return o;
}
inline ostream &operator<<(ostream &o, float x) { return o << (double)x; }
inline ostream &operator<<(ostream &o, const void *p) {
    __emulator_put_pointer(p, o.__flags, o.__width, o.__fill);
    o.__width = 0;
    return o;
}

struct __manipulator { int set, clear, text; };
constexpr __manipulator endl = {0, 0, 10}, ends = {0, 0, 0}, flush = {0, 0, -1};
constexpr __manipulator fixed = {1, 3, -1}, scientific = {2, 3, -1}, defaultfloat = {0, 3, -1};
constexpr __manipulator hex = {4, 12, -1}, oct = {8, 12, -1}, dec = {0, 12, -1};
constexpr __manipulator boolalpha = {16, 16, -1}, noboolalpha = {0, 16, -1}, left = {32, 32, -1}, right = {0, 32, -1};
constexpr __manipulator showpos = {64, 64, -1}, noshowpos = {0, 64, -1}, uppercase = {128, 128, -1}, nouppercase = {0, 128, -1};
inline ostream &operator<<(ostream &o, __manipulator m) {
    if (m.text >= 0) putchar(m.text);
    o.__flags = (o.__flags & ~m.clear) | m.set;
    return o;
}

struct __setprecision { int n; };
struct __setw { int n; };
struct __setfill { int c; };
inline __setprecision setprecision(int n) { return {n}; }
inline __setw setw(int n) { return {n}; }
inline __setfill setfill(char c) { return {c}; }
inline ostream &operator<<(ostream &o, __setprecision m) {
    o.__precision = m.n;
    return o;
}
inline ostream &operator<<(ostream &o, __setw m) {
    o.__width = m.n;
    return o;
}
inline ostream &operator<<(ostream &o, __setfill m) {
    o.__fill = m.c;
    return o;
}

} // namespace std
