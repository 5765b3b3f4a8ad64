// The supported part of <memory>. Nothing is freed at the end of a scope.

// The array type of `unique_ptr<T[]>`.
template <typename T> struct __emulator_array { T *first; };
namespace std {

template <typename T> struct unique_ptr {
    T *__p;
    unique_ptr() : __p(nullptr) {}
    unique_ptr(T *p) : __p(p) {}
    T *get() const { return __p; }
    T &operator*() const { return *__p; }
    T *operator->() const { return __p; }
    explicit operator bool() const { return __p != nullptr; }
};
template <typename T> struct unique_ptr<__emulator_array<T>> {
    T *__p;
    unique_ptr() : __p(nullptr) {}
    unique_ptr(T *p) : __p(p) {}
    T *get() const { return __p; }
    T &operator[](size_t i) const { return __p[i]; }
    explicit operator bool() const { return __p != nullptr; }
};
template <typename T> struct __emulator_make {
    template <typename... A> static unique_ptr<T> make(A... arguments) { return unique_ptr<T>(__emulator_new<T>(T(arguments...))); }
};
template <typename T> struct __emulator_make<__emulator_array<T>> {
    static unique_ptr<__emulator_array<T>> make(size_t n) { return unique_ptr<__emulator_array<T>>(__emulator_new_zeros<T>(n)); }
};
template <typename T, typename... A> auto make_unique(A... arguments) { return __emulator_make<T>::make(arguments...); }

} // namespace std
