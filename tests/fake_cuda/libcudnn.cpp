// A stand-in for cuDNN: convolutions by their definition, with descriptors and arguments checked as cuDNN does. Each
// pass has three algorithms, which differ in their workspace, in what the search finds of their time, and in whether
// they claim to be deterministic.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "halves.h"
#include "product.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

enum { SUCCESS = 0, BAD_PARAM = 2000, NOT_SUPPORTED = 3000 };
enum { FLOAT = 0, DOUBLE = 1, HALF = 2, BFLOAT16 = 9 };
enum { NCHW = 0, CROSS_CORRELATION = 1 };
enum { DEFAULT_MATH = 0, TENSOR_OP_MATH = 1, FMA_MATH = 3 };

struct Handle {
    void *stream;
};
struct Tensor {
    int type, n, c, h, w;
};
struct Filter {
    int type, k, c, r, s;
};
struct Convolution {
    int padding[2], stride[2], dilation[2], compute, groups, math;
};
// cudnnConvolutionFwdAlgoPerf_t, and those of the other passes.
struct Performance {
    int algorithm, status;
    float time;
    size_t memory;
    int determinism, math, reserved[3];
};

EXPORTED size_t cudnnGetVersion() { return 91900; }

EXPORTED const char *cudnnGetErrorString(int status) {
    return status == BAD_PARAM ? "CUDNN_STATUS_BAD_PARAM" : "CUDNN_STATUS_NOT_SUPPORTED";
}

EXPORTED int cudnnCreate(Handle **handle) {
    *handle = new Handle{};
    return SUCCESS;
}
EXPORTED int cudnnDestroy(Handle *handle) {
    delete handle;
    return SUCCESS;
}
EXPORTED int cudnnSetStream(Handle *handle, void *stream) {
    handle->stream = stream;
    return SUCCESS;
}

EXPORTED int cudnnCreateTensorDescriptor(Tensor **tensor) {
    *tensor = new Tensor{};
    return SUCCESS;
}
EXPORTED int cudnnDestroyTensorDescriptor(Tensor *tensor) {
    delete tensor;
    return SUCCESS;
}
static bool known(int type) { return type == FLOAT || type == DOUBLE || type == HALF || type == BFLOAT16; }

EXPORTED int cudnnSetTensor4dDescriptor(Tensor *tensor, int format, int type, int n, int c, int h, int w) {
    if (format != NCHW || !known(type) || n < 1 || c < 1 || h < 1 || w < 1) return BAD_PARAM;
    *tensor = Tensor{type, n, c, h, w};
    return SUCCESS;
}

EXPORTED int cudnnCreateFilterDescriptor(Filter **filter) {
    *filter = new Filter{};
    return SUCCESS;
}
EXPORTED int cudnnDestroyFilterDescriptor(Filter *filter) {
    delete filter;
    return SUCCESS;
}
EXPORTED int cudnnSetFilter4dDescriptor(Filter *filter, int type, int format, int k, int c, int r, int s) {
    if (format != NCHW || !known(type) || k < 1 || c < 1 || r < 1 || s < 1) return BAD_PARAM;
    *filter = Filter{type, k, c, r, s};
    return SUCCESS;
}

EXPORTED int cudnnCreateConvolutionDescriptor(Convolution **convolution) {
    *convolution = new Convolution{};
    (*convolution)->groups = 1;
    return SUCCESS;
}
EXPORTED int cudnnDestroyConvolutionDescriptor(Convolution *convolution) {
    delete convolution;
    return SUCCESS;
}
EXPORTED int cudnnSetConvolution2dDescriptor(Convolution *convolution, int pad_h, int pad_w, int stride_h,
                                             int stride_w, int dilation_h, int dilation_w, int mode, int compute) {
    if (pad_h < 0 || pad_w < 0 || stride_h < 1 || stride_w < 1 || dilation_h < 1 || dilation_w < 1) return BAD_PARAM;
    if (mode != CROSS_CORRELATION || (compute != FLOAT && compute != DOUBLE)) return NOT_SUPPORTED;
    *convolution = {{pad_h, pad_w}, {stride_h, stride_w}, {dilation_h, dilation_w}, compute, 1, DEFAULT_MATH};
    return SUCCESS;
}
EXPORTED int cudnnSetConvolutionGroupCount(Convolution *convolution, int groups) {
    if (groups < 1) return BAD_PARAM;
    convolution->groups = groups;
    return SUCCESS;
}
EXPORTED int cudnnSetConvolutionMathType(Convolution *convolution, int math) {
    if (math != DEFAULT_MATH && math != TENSOR_OP_MATH && math != FMA_MATH) return BAD_PARAM;
    convolution->math = math;
    return SUCCESS;
}

enum Pass { FORWARD, DATA, FILTER };

// The three sizes of a convolution, which have to fit together.
static bool fits(const Tensor &x, const Filter &w, const Convolution &c, const Tensor &y) {
    auto out = [&](int size, int kernel, int i) {
        return (size + 2 * c.padding[i] - c.dilation[i] * (kernel - 1) - 1) / c.stride[i] + 1;
    };
    return x.type == w.type && x.type == y.type && (x.type == DOUBLE) == (c.compute == DOUBLE) &&
           x.c == w.c * c.groups && w.k % c.groups == 0 && y.n == x.n && y.c == w.k && y.h == out(x.h, w.r, 0) &&
           y.w == out(x.w, w.s, 1);
}

static double read(const void *memory, int type, long long i) {
    switch (type) {
    case DOUBLE: return ((const double *)memory)[i];
    case FLOAT: return ((const float *)memory)[i];
    case HALF: return float_of_f16(((const unsigned short *)memory)[i]);
    default: return halves::widen(((const unsigned short *)memory)[i], 8, 7);
    }
}

static void write(void *memory, int type, long long i, double value) {
    switch (type) {
    case DOUBLE: ((double *)memory)[i] = value; break;
    case FLOAT: ((float *)memory)[i] = (float)value; break;
    case HALF: ((unsigned short *)memory)[i] = f16_of_float((float)value); break;
    default: ((unsigned short *)memory)[i] = halves::narrow((float)value, 8, 7);
    }
}

// Queues work with the stand-in for the driver.
extern "C" void fake_cuda_queue(void *stream, void (*run)(void *), void *argument);

// All of a tensor in double precision.
static std::vector<double> widened(const void *memory, int type, long long count) {
    std::vector<double> values(count);
    for (long long i = 0; i < count; i++) values[i] = read(memory, type, i);
    return values;
}

// By its definition, in double precision: for each image, what every output sees of it is a column of a matrix, and the
// rest is a product.
static void queue(void *stream, Pass pass, Tensor x, Filter w, Convolution c, Tensor y, const void *a, const void *b,
                  void *out) {
    auto *work = new std::function<void()>([=] {
        const int type = x.type, k_group = w.k / c.groups, seen = w.c * w.r * w.s, places = y.h * y.w;
        const long long of_x = (long long)x.n * x.c * x.h * x.w, of_w = (long long)w.k * seen,
                        of_y = (long long)y.n * y.c * places;
        // Of the three, two are given, and the third is the sum of all products of an element of each.
        std::vector<double> xs = pass == DATA ? std::vector<double>(of_x) : widened(a, type, of_x);
        std::vector<double> ws = pass == FILTER ? std::vector<double>(of_w) : widened(b, type, of_w);
        std::vector<double> ys = pass == FORWARD ? std::vector<double>(of_y)
                                                 : widened(pass == DATA ? a : b, type, of_y);
        std::vector<double> columns((size_t)seen * places);
        // Goes through what the outputs see of the channels of an image from `image` on.
        const auto each_seen = [&](double *image, auto act) {
            double *column = columns.data();
            for (int channel = 0; channel < w.c; channel++)
                for (int r = 0; r < w.r; r++)
                    for (int s = 0; s < w.s; s++)
                        for (int p = 0; p < y.h; p++)
                            for (int q = 0; q < y.w; q++, column++) {
                                const int row = p * c.stride[0] + r * c.dilation[0] - c.padding[0];
                                const int at = q * c.stride[1] + s * c.dilation[1] - c.padding[1];
                                const bool inside = row >= 0 && row < x.h && at >= 0 && at < x.w;
                                act(inside ? image + ((long long)channel * x.h + row) * x.w + at : nullptr, *column);
                            }
        };
        for (int n = 0; n < y.n; n++)
            for (int group = 0; group < c.groups; group++) {
                double *image = xs.data() + ((long long)n * x.c + group * w.c) * x.h * x.w;
                double *weights = ws.data() + (long long)group * k_group * seen;
                double *result = ys.data() + ((long long)n * y.c + group * k_group) * places;
                // By rows, as they lie: of the transposed product, by columns.
                switch (pass) {
                case FORWARD:
                    each_seen(image, [](double *from, double &column) { column = from ? *from : 0; });
                    product<double>(places, k_group, seen, {columns.data(), 1, places}, {weights, 1, seen}, 0, result,
                                    places);
                    break;
                case DATA:
                    product<double>(places, seen, k_group, {result, 1, places}, {weights, seen, 1}, 0, columns.data(),
                                    places);
                    each_seen(image, [](double *to, double &column) {
                        if (to) *to += column;
                    });
                    break;
                case FILTER:
                    each_seen(image, [](double *from, double &column) { column = from ? *from : 0; });
                    product<double>(seen, k_group, places, {columns.data(), places, 1}, {result, 1, places}, 1,
                                    weights, seen);
                }
            }
        const std::vector<double> &sums = pass == FORWARD ? ys : pass == DATA ? xs : ws;
        for (size_t i = 0; i < sums.size(); i++) write(out, type, i, sums[i]);
    });
    fake_cuda_queue(
        stream,
        [](void *argument) {
            auto *work = (std::function<void()> *)argument;
            (*work)();
            delete work;
        },
        work);
}

// The algorithms in the order of the rule of thumb: not that of their times.
static const Performance ALGORITHMS[] = {
    {1, SUCCESS, 0.3f, 4096, 1, DEFAULT_MATH, {}},
    {0, SUCCESS, 0.2f, 0, 0, DEFAULT_MATH, {}},
    {2, SUCCESS, 0.4f, 1 << 20, 1, DEFAULT_MATH, {}},
    {3, NOT_SUPPORTED, -1, 0, 0, DEFAULT_MATH, {}},
};

static int answer(const Convolution &c, int room, int *count, Performance *out, bool by_time, size_t workspace) {
    static const int ORDER[] = {1, 0, 2, 3};
    *count = 0;
    for (int i = 0; i < 4 && *count < room; i++) {
        Performance performance = ALGORITHMS[by_time ? ORDER[i] : i];
        if (performance.memory > workspace) continue;
        performance.math = c.math;
        out[(*count)++] = performance;
    }
    return SUCCESS;
}

static int run(Handle *handle, Pass pass, const Tensor &x, const Filter &w, const Convolution &c, const Tensor &y,
               const void *a, const void *b, int algorithm, const void *workspace, size_t bytes, const void *alpha,
               const void *beta, void *out) {
    if (!fits(x, w, c, y) || !a || !b || !out) return BAD_PARAM;
    const double one = c.compute == DOUBLE ? *(const double *)alpha : *(const float *)alpha;
    const double zero = c.compute == DOUBLE ? *(const double *)beta : *(const float *)beta;
    if (one != 1 || zero != 0) return NOT_SUPPORTED;
    for (const Performance &performance : ALGORITHMS) {
        if (performance.algorithm != algorithm) continue;
        if (performance.status != SUCCESS) return performance.status;
        if (bytes < performance.memory || (performance.memory && !workspace)) return BAD_PARAM;
        queue(handle->stream, pass, x, w, c, y, a, b, out);
        return SUCCESS;
    }
    return BAD_PARAM;
}

#define GET(name, First, first, Second, second, Out, out, x, w, y)                                                   \
    EXPORTED int cudnnGetConvolution##name##Algorithm_v7(Handle *, First *first, Second *second, Convolution *c,     \
                                                         Out *out, int room, int *count, Performance *answers) {     \
        return fits(*x, *w, *c, *y) ? answer(*c, room, count, answers, false, SIZE_MAX) : BAD_PARAM;                 \
    }
GET(Forward, Tensor, x, Filter, w, Tensor, y, x, w, y)
GET(BackwardData, Filter, w, Tensor, y, Tensor, x, x, w, y)
GET(BackwardFilter, Tensor, x, Tensor, y, Filter, w, x, w, y)

// Tries one of them out, and tells of all.
#define FIND(name, pass, First, first, Second, second, Out, out, x, w, y, a, b)                                      \
    EXPORTED int cudnnFindConvolution##name##AlgorithmEx(                                                            \
        Handle *handle, First *first, const void *of_first, Second *second, const void *of_second, Convolution *c,   \
        Out *out, void *of_out, int room, int *count, Performance *answers, void *workspace, size_t bytes) {         \
        const double one = 1, zero = 0;                                                                              \
        const float one_f = 1, zero_f = 0;                                                                           \
        const bool wide = c->compute == DOUBLE;                                                                      \
        const int status = run(handle, pass, *x, *w, *c, *y, a, b, 0, workspace, bytes,                              \
                               wide ? (const void *)&one : &one_f, wide ? (const void *)&zero : &zero_f, of_out);    \
        return status != SUCCESS ? status : answer(*c, room, count, answers, true, bytes);                           \
    }
FIND(Forward, FORWARD, Tensor, x, Filter, w, Tensor, y, x, w, y, of_first, of_second)
FIND(BackwardData, DATA, Filter, w, Tensor, y, Tensor, x, x, w, y, of_second, of_first)
FIND(BackwardFilter, FILTER, Tensor, x, Tensor, y, Filter, w, x, w, y, of_first, of_second)

#define RUN(name, pass, First, first, Second, second, Out, out, x, w, y, a, b)                                       \
    EXPORTED int cudnnConvolution##name(Handle *handle, const void *alpha, First *first, const void *of_first,       \
                                        Second *second, const void *of_second, Convolution *c, int algorithm,        \
                                        void *workspace, size_t bytes, const void *beta, Out *out, void *of_out) {   \
        return run(handle, pass, *x, *w, *c, *y, a, b, algorithm, workspace, bytes, alpha, beta, of_out);            \
    }
RUN(Forward, FORWARD, Tensor, x, Filter, w, Tensor, y, x, w, y, of_first, of_second)
RUN(BackwardData, DATA, Filter, w, Tensor, y, Tensor, x, x, w, y, of_second, of_first)
RUN(BackwardFilter, FILTER, Tensor, x, Tensor, y, Filter, w, x, w, y, of_first, of_second)
