// The supported part of <string>.
namespace std {

struct string {
    static constexpr size_t npos = 18446744073709551615ull;
    char *__data;
    size_t __size, __room;

    string() { __set("", 0); }
    string(const char *text) { __set(text, strlen(text)); }
    string(const char *text, size_t n) { __set(text, n); }
    string(size_t n, char c) {
        __data = (char *)malloc(n + 1);
        memset(__data, c, n);
        __data[n] = 0;
        __size = __room = n;
    }
    string(const string &other) { __set(other.__data, other.__size); }
    string &operator=(const string &other) {
        __set(other.__data, other.__size);
        return *this;
    }
    void __set(const char *text, size_t n) {
        char *made = (char *)malloc(n + 1);
        memcpy(made, text, n);
        made[n] = 0;
        __data = made;
        __size = __room = n;
    }
    string &append(const char *text, size_t n) {
        if (__size + n > __room) {
            size_t room = 2 * (__size + n);
            char *made = (char *)malloc(room + 1);
            memcpy(made, __data, __size);
            memcpy(made + __size, text, n);
            __data = made;
            __room = room;
        } else {
            memmove(__data + __size, text, n);
        }
        __size += n;
        __data[__size] = 0;
        return *this;
    }
    string &append(const string &other) { return append(other.__data, other.__size); }
    string &operator+=(const string &other) { return append(other.__data, other.__size); }
    string &operator+=(const char *text) { return append(text, strlen(text)); }
    string &operator+=(char c) { return append(&c, 1); }
    void push_back(char c) { append(&c, 1); }
    void pop_back() {
        __size--;
        __data[__size] = 0;
    }
    void clear() { __set("", 0); }
    size_t size() const { return __size; }
    size_t length() const { return __size; }
    bool empty() const { return __size == 0; }
    const char *c_str() const { return __data; }
    const char *data() const { return __data; }
    char *begin() { return __data; }
    char *end() { return __data + __size; }
    const char *begin() const { return __data; }
    const char *end() const { return __data + __size; }
    char &operator[](size_t i) { return __data[i]; }
    const char &operator[](size_t i) const { return __data[i]; }
    char &at(size_t i) {
        if (i >= __size) __emulator_out_of_range(i, __size);
        return __data[i];
    }
    char &front() { return __data[0]; }
    char &back() { return __data[__size - 1]; }
    string substr(size_t from, size_t n = npos) const {
        if (from > __size) __emulator_out_of_range(from, __size);
        return string(__data + from, n < __size - from ? n : __size - from);
    }
    size_t find(const string &text, size_t from = 0) const {
        for (size_t at = from; at + text.__size <= __size; at++) {
            size_t same = 0;
            while (same < text.__size && __data[at + same] == text.__data[same]) same++;
            if (same == text.__size) return at;
        }
        return npos;
    }
    size_t find(char c, size_t from = 0) const {
        for (size_t at = from; at < __size; at++) if (__data[at] == c) return at;
        return npos;
    }
    int compare(const string &other) const {
        for (size_t i = 0; i < __size && i < other.__size; i++) {
            unsigned char a = __data[i], b = other.__data[i];
            if (a != b) return a < b ? -1 : 1;
        }
        return __size < other.__size ? -1 : __size > other.__size ? 1 : 0;
    }
};

inline bool operator==(const string &a, const string &b) { return a.compare(b) == 0; }
inline bool operator!=(const string &a, const string &b) { return a.compare(b) != 0; }
inline bool operator<(const string &a, const string &b) { return a.compare(b) < 0; }
inline bool operator>(const string &a, const string &b) { return a.compare(b) > 0; }
inline string operator+(const string &a, const string &b) {
    string sum = a;
    sum += b;
    return sum;
}
inline string operator+(const string &a, const char *b) {
    string sum = a;
    sum += b;
    return sum;
}
inline string operator+(const char *a, const string &b) {
    string sum = a;
    sum += b;
    return sum;
}
inline string operator+(const string &a, char b) {
    string sum = a;
    sum += b;
    return sum;
}
inline string operator+(char a, const string &b) {
    string sum(1, a);
    sum += b;
    return sum;
}

inline string to_string(unsigned long long n) {
    char digits[20];
    int at = 20;
    do digits[--at] = '0' + n % 10;
    while ((n /= 10) != 0);
    return string(digits + at, 20 - at);
}
inline string to_string(long long n) {
    if (n < 0) return '-' + to_string(0 - (unsigned long long)n);
    return to_string((unsigned long long)n);
}
inline string to_string(int n) { return to_string((long long)n); }
inline string to_string(unsigned int n) { return to_string((unsigned long long)n); }
// A text without a number ends the program, as an exception that nothing catches.
inline const char *__number(const string &text) {
    const char *at = text.c_str();
    while (*at == ' ' || *at == '\t' || *at == '\n') at++;
    const char *digits = at;
    if (*digits == '-' || *digits == '+') digits++;
    if (*digits == '.') digits++;
    if (*digits < '0' || *digits > '9') abort();
    return at;
}
inline int stoi(const string &text) { return atoi(__number(text)); }
inline long long stoll(const string &text) { return atoll(__number(text)); }
inline double stod(const string &text) { return atof(__number(text)); }
inline float stof(const string &text) { return (float)stod(text); }

} // namespace std
