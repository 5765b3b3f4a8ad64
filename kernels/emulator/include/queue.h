// The supported part of <queue> and <stack>.
namespace std {

template <typename T> struct queue {
    vector<T> __all;
    size_t __first;

    queue() : __all(), __first(0) {}
    void push(const T &value) { __all.push_back(value); }
    void pop() { __first++; }
    T &front() { return __all[__first]; }
    T &back() { return __all.back(); }
    size_t size() const { return __all.size() - __first; }
    bool empty() const { return size() == 0; }
};

template <typename T> struct stack {
    vector<T> __all;

    void push(const T &value) { __all.push_back(value); }
    void pop() { __all.pop_back(); }
    T &top() { return __all.back(); }
    size_t size() const { return __all.size(); }
    bool empty() const { return size() == 0; }
};

} // namespace std
