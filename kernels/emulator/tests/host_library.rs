//! Tests of the C++ library's parts for host code.

use crate::output;

#[test]
fn strings_are_values() {
    let text = r#"#include <iostream>
#include <string>
using namespace std;
string twice(string s) { s += s; return s; }
void say(const std::string &what, const std::string &colour = "red") { cout << what << ' ' << colour << '\n'; }
int main() {
    string s = "abc", e, u = s;
    s += "def";
    s += 'g';
    u[0] = 'X';
    cout << s << ' ' << u << ' ' << s.size() << ' ' << s.substr(2, 3) << ' ' << s.find("ef") << '\n';
    cout << (s.find('z') == string::npos) << (s == "abcdefg") << (u < s) << e.empty() << '\n';
    cout << twice(u) + "!" << "n" + to_string(-15) + to_string(0u) << stoi("42") + stof("0.5") << '\n';
    cout << to_string(-9223372036854775807ll - 1) << ' ' << string(3, '-') << '\n';
    string names[2] = {"one", "two"};
    for (char c : names[1]) cout << c << '.';
    say("hello");
    say(names[0], "blue");
    printf("%g %g %d\n", atof(" 1.5e1x"), stod("-.5 m"), (int)stoll("7up"));
    s.clear();
    printf("[%s] [%s]\n", s.c_str(), u.append("YZ").c_str());
}"#;
    let expected = "abcdefg Xbc 7 cde 4\n1111\nXbcXbc!n-15042.5\n-9223372036854775808 ---\nt.w.o.hello red\none blue\n15 -0.5 7\n[] [XbcYZ]\n";
    assert_eq!(output(text), expected);
    let (_, run) =
        crate::run("#include <string>\nint main() { return std::stoi(\"x\"); }", cuda_emulator::Checks::ALL);
    assert_eq!(run.findings.all[0].title, "The program called `abort`");
    let float = "#include <string>\nint main() { std::string s = std::to_string(1.5); }";
    assert!(cuda_emulator::Program::compile("my.cu", float, &|_| None).is_err());
}

/// The expected numbers are those of GCC's library.
#[test]
fn random_numbers_are_those_of_gcc() {
    let text = r#"#include <cstdio>
#include <random>
int main() {
    std::mt19937 first;
    for (int i = 0; i < 9999; i++) first();
    printf("%u\n", first());
    std::mt19937 gen(42);
    std::uniform_real_distribution<float> near(-1.0f, 1.0f);
    std::uniform_real_distribution<> wide(0.0, 5.0);
    std::uniform_int_distribution<> die(0, 99);
    std::normal_distribution<double> bell(5, 2);
    for (int i = 0; i < 2; i++) {
        printf("%.9g ", near(gen));
        printf("%.17g ", wide(gen));
        printf("%d ", die(gen));
        printf("%.12g\n", bell(gen));
    }
    std::default_random_engine engine(7);
    printf("%u ", engine());
    printf("%d ", die(engine));
    printf("%.9g ", near(engine));
    printf("%.17g\n", wide(engine));
    std::uniform_int_distribution<unsigned long long> wide_die(0, 1ull << 40);
    printf("%llu ", wide_die(gen));
    printf("%llu\n", wide_die(engine));
    std::random_device device;
    printf("%d\n", device() == std::random_device()());
}"#;
    let expected = "4123659995\n-0.250919759 4.7535715587396909 18 5.94772171133\n-0.687962711 0.77997261943043295 9 7.73690024443\n117649 92 -0.421525478 3.6468533092860418\n62102001098 586970228165\n1\n";
    assert_eq!(output(text), expected);
}

#[test]
fn time_points_have_a_type() {
    let text = r#"#include <chrono>
#include <cstdio>
struct Timer {
    std::chrono::time_point<std::chrono::high_resolution_clock> start, end;
    std::chrono::duration<float> took;
};
int main() {
    Timer timer;
    timer.start = std::chrono::high_resolution_clock::now();
    timer.end = std::chrono::high_resolution_clock::now();
    timer.took = timer.end - timer.start;
    std::chrono::steady_clock::time_point again = timer.start;
    auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - again).count();
    unsigned seed = std::chrono::system_clock::now().time_since_epoch().count();
    printf("%g %d %u\n", timer.took.count(), (int)ms, seed);
}"#;
    assert_eq!(output(text), "0 0 908722176\n");
}

#[test]
fn algorithms_on_arrays() {
    let text = r#"#include <algorithm>
#include <cstdio>
#include <vector>
using namespace std;
int main() {
    vector<int> v = {5, 3, 9, 1, 3};
    printf("%d ", is_sorted(v.begin(), v.end()));
    printf("%d ", (int)count(v.begin(), v.end(), 3));
    printf("%d ", (int)(find(v.begin(), v.end(), 9) - v.begin()));
    sort(v.begin(), v.end(), [](int a, int b) { return a > b; });
    printf("%d%d%d%d%d ", v[0], v[1], v[2], v[3], v[4]);
    sort(v.begin(), v.end());
    printf("%d %d ", is_sorted(v.begin(), v.end()), (int)(lower_bound(v.begin(), v.end(), 4) - v.begin()));
    printf("%d%d ", binary_search(v.begin(), v.end(), 9), binary_search(v.begin(), v.end(), 4));
    printf("%d\n", all_of(v.begin(), v.end(), [](int x) { return x > 0; }));
    vector<int> w = {8, 2, 7, 1, 9, 3};
    partial_sort(w.begin(), w.begin() + 3, w.end());
    printf("%d%d%d %d\n", w[0], w[1], w[2], w[3] + w[4] + w[5]);
    // `using namespace std` hides none of CUDA's functions.
    unsigned n = 3;
    printf("%u %d %g\n", min(n, 5), max(-1, 3), max(1.5f, 2.0f));
}"#;
    assert_eq!(output(text), "0 2 2 95331 1 3 10 1\n123 24\n3 3 2\n");
}

#[test]
fn queues_and_stacks_order_their_elements() {
    let text = r#"#include <cstdio>
#include <queue>
#include <stack>
int main() {
    std::queue<int> q;
    std::stack<float> s;
    for (int i = 0; i < 6; i++) q.push(i * i), s.push(i / 2.0f);
    q.pop();
    s.pop();
    while (!q.empty()) printf("%d ", q.front()), q.pop();
    printf("%g %d %d\n", s.top(), (int)s.size(), (int)q.size());
}"#;
    assert_eq!(output(text), "1 4 9 16 25 2 5 0\n");
}

#[test]
fn members_and_elements_are_constructed() {
    let text = r#"#include <cstdio>
#include <string>
#include <vector>
struct D { int k = 3; };
struct G { std::vector<int> v; int n; D d; };
struct H { int m; H() { m = 2; } };
struct I { H h[2]; int z; };
struct J { I i; G g; J() : g() {} };
int main() {
    G g, all[2], *p = new G;
    I i;
    J j;
    H h[3];
    D d[2][2];
    std::string names[2];
    g.v.push_back(4);
    all[1].v.push_back(8);
    p->v.push_back(1);
    names[1] += "a";
    j.g.v.push_back(5);
    printf("%d%d%d%d ", g.v[0], all[1].v[0], p->v[0], j.g.v[0]);
    printf("%d%d%d%d%d ", g.d.k, all[1].d.k, p->d.k, j.g.d.k, d[1][1].k);
    printf("%d%d%d %s\n", i.h[1].m, j.i.h[0].m, h[2].m, names[1].c_str());
    delete p;
}"#;
    assert_eq!(output(text), "4815 33333 222 a\n");
}

#[test]
fn new_takes_the_values_of_an_array() {
    let text = r#"#include <cstdio>
struct P { int x, y; };
int main() {
    int n = 5;
    unsigned *p = new unsigned[n]{1, 2, 3};
    float *q = new float[3]{1.5f, 2, (float)p[1]};
    P *r = new P[2]{P{1, 2}, P{3, 4}};
    printf("%u %u %g %d\n", p[2], p[4], q[2], r[1].x);
    delete[] p;
    delete[] q;
    delete[] r;
}"#;
    assert_eq!(output(text), "3 0 2 3\n");
}

#[test]
fn global_objects_have_the_values_of_their_constructors() {
    let text = r#"#include <cstdio>
#include <vector>
struct A { int x = 5; float y; };
struct B { int n; double d; B(int n_, double d_ = 2.5) : n(n_), d(d_) {} };
A a, all[3] = {{1}, {2, 3.f}};
__device__ A on_device;
dim3 none, one(7), three(1, 2, 3);
const dim3 assigned = dim3(4, 5);
B b(3), braces{4, 1};
int zeros[2][3] = {0}, flat[2][2][2] = {1, 2, 3, 4, {{5}}};
std::vector<int> v;
__global__ void k() { printf("%d\n", on_device.x); }
int main() {
    k<<<1, 1>>>();
    cudaDeviceSynchronize();
    printf("%d %g %d %d %g %d\n", a.x, a.y, all[0].x, all[1].x, all[1].y, all[2].x);
    printf("%u %u %u %u %u %u\n", none.y, one.x, one.y, three.z, assigned.y, assigned.z);
    printf("%d %g %d %g\n", b.n, b.d, braces.n, braces.d);
    int local[2][3] = {1, 2, 3, 4}, rows[3][2] = {{1}, {2, 3}};
    printf("%d %d %d %d\n", zeros[1][2], flat[0][1][0], flat[1][0][0], flat[1][1][0]);
    printf("%d %d %d %d\n", local[1][0], local[1][2], rows[0][1], rows[1][1]);
    v.push_back(6);
    std::vector<dim3> many(2);
    printf("%d %u\n", v[0], many[1].y);
}"#;
    assert_eq!(output(text), "5\n5 0 1 2 3 5\n1 7 1 3 5 1\n3 2.5 4 1\n0 3 5 0\n4 0 0 3\n6 1\n");
}
