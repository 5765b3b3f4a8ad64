namespace std {

template <typename T> struct vector {
    T *__data;
    size_t __size, __room;

    vector() : __data(nullptr), __size(0), __room(0) {}
    explicit vector(size_t n) : __data(__emulator_new_zeros<T>(n)), __size(n), __room(n) {}
    vector(size_t n, const T &value) : __data((T *)malloc(n * sizeof(T))), __size(n), __room(n) {
        for (size_t i = 0; i < n; i++) __data[i] = value;
    }
    vector(const T *first, const T *last) : __data((T *)malloc((last - first) * sizeof(T))), __size(last - first), __room(last - first) {
        for (size_t i = 0; i < __size; i++) __data[i] = first[i];
    }
    vector(const vector<T> &other) : __data((T *)malloc(other.__size * sizeof(T))), __size(other.__size), __room(other.__size) {
        for (size_t i = 0; i < __size; i++) __data[i] = other.__data[i];
    }
    vector<T> &operator=(const vector<T> &other) {
        T *made = (T *)malloc(other.__size * sizeof(T));
        for (size_t i = 0; i < other.__size; i++) made[i] = other.__data[i];
        __data = made;
        __size = other.__size;
        __room = other.__size;
        return *this;
    }
    void reserve(size_t room) {
        if (room > __room) {
            T *made = (T *)malloc(room * sizeof(T));
            for (size_t i = 0; i < __size; i++) made[i] = __data[i];
            __data = made;
            __room = room;
        }
    }
    void push_back(const T &value) {
        T kept = value;
        if (__size == __room) reserve(__room == 0 ? 4 : 2 * __room);
        __data[__size] = kept;
        __size++;
    }
    void emplace_back(const T &value) { push_back(value); }
    void pop_back() { __size--; }
    void clear() { __size = 0; }
    void resize(size_t n) {
        reserve(n);
        for (size_t i = __size; i < n; i++) __data[i] = T{};
        __size = n;
    }
    void resize(size_t n, const T &value) {
        reserve(n);
        for (size_t i = __size; i < n; i++) __data[i] = value;
        __size = n;
    }
    void assign(size_t n, const T &value) {
        __size = 0;
        resize(n, value);
    }
    size_t size() const { return __size; }
    bool empty() const { return __size == 0; }
    T *data() { return __data; }
    const T *data() const { return __data; }
    T *begin() { return __data; }
    T *end() { return __data + __size; }
    const T *begin() const { return __data; }
    const T *end() const { return __data + __size; }
    T &operator[](size_t i) { return __data[i]; }
    const T &operator[](size_t i) const { return __data[i]; }
    T &at(size_t i) {
        if (i >= __size) __emulator_out_of_range(i, __size);
        return __data[i];
    }
    T &front() { return __data[0]; }
    T &back() { return __data[__size - 1]; }
};

} // namespace std
