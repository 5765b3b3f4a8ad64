// A stand-in for cuBLAS: products of matrices, with their arguments checked as cuBLAS does. With FAKE_CUBLAS_BACKWARDS in the
// environment it begins each sum at its end, so that results are rounded differently from the CPU's, as those of cuBLAS are;
// and if that says `short`, it leaves out the first product of each, which is wrong.
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <vector>

#include "halves.h"
#include "product.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

enum { SUCCESS = 0, INVALID_VALUE = 7, NOT_SUPPORTED = 15 };
enum { N = 0, T = 1 };
enum { R_32F = 0, R_64F = 1, R_16F = 2, R_16BF = 14, COMPUTE_32F = 68, COMPUTE_64F = 70 };
// With operands that may be rounded to TF32. This card has no tensor cores for that.
enum { COMPUTE_32F_FAST_TF32 = 77 };

struct Handle {
    void *stream, *workspace;
    size_t workspace_bytes;
};

EXPORTED int cublasCreate_v2(Handle **handle) {
    *handle = new Handle{};
    return SUCCESS;
}

EXPORTED int cublasDestroy_v2(Handle *handle) {
    delete handle;
    return SUCCESS;
}

EXPORTED const char *cublasGetStatusString(int status) {
    return status == INVALID_VALUE ? "an unsupported value or parameter was passed to the function"
                                   : "the functionality requested is not supported";
}

EXPORTED int cublasSetStream_v2(Handle *handle, void *stream) {
    *handle = Handle{stream, nullptr, 0}; // A new stream takes the workspace away.
    return SUCCESS;
}

EXPORTED int cublasSetWorkspace_v2(Handle *handle, void *workspace, size_t bytes) {
    if ((size_t)workspace % 256) return INVALID_VALUE;
    handle->workspace = workspace;
    handle->workspace_bytes = bytes;
    return SUCCESS;
}

// C = A·B + beta·C by columns, with A and B as they are or transposed.
template <typename Number>
static void product(int transpose_a, int transpose_b, int m, int n, int k, const Number *a, int lda, const Number *b,
                    int ldb, Number beta, Number *c, int ldc) {
    const auto matrix = [](const Number *at, int leading, int transpose) {
        return transpose ? Matrix<Number>{at, leading, 1} : Matrix<Number>{at, 1, leading};
    };
    Matrix<Number> left = matrix(a, lda, transpose_a), right = matrix(b, ldb, transpose_b);
    static const char *const backwards = getenv("FAKE_CUBLAS_BACKWARDS");
    if (backwards && k > 0) {
        left = {left.at + (k - 1) * left.right, left.down, -left.right};
        right = {right.at + (k - 1) * right.down, -right.down, right.right};
        if (*backwards == 's') k--;
    }
    product(m, n, k, left, right, beta, c, ldc);
}

// A matrix of halves, by columns, in floats.
static std::vector<float> widened(const void *matrix, long long first, int type, int rows, int columns, int leading) {
    const unsigned short *bits = (const unsigned short *)matrix + first;
    std::vector<float> floats(rows && columns ? (size_t)leading * (columns - 1) + rows : 0);
    for (size_t i = 0; i < floats.size(); i++) {
        floats[i] = type == R_16F ? float_of_f16(bits[i]) : halves::widen(bits[i], 8, 7);
    }
    return floats;
}

// The same of halves: calculated in floats, with what is added, and rounded once.
static void product_of_halves(int type, int transpose_a, int transpose_b, int m, int n, int k, const void *a,
                              long long first_a, int lda, const void *b, long long first_b, int ldb, float beta, void *c,
                              long long first_c, int ldc) {
    const auto a_floats = widened(a, first_a, type, transpose_a ? k : m, transpose_a ? m : k, lda);
    const auto b_floats = widened(b, first_b, type, transpose_b ? n : k, transpose_b ? k : n, ldb);
    auto sums = widened(c, first_c, type, m, n, ldc);
    product(transpose_a, transpose_b, m, n, k, a_floats.data(), lda, b_floats.data(), ldb, beta, sums.data(), ldc);
    unsigned short *out = (unsigned short *)c + first_c;
    for (int column = 0; column < n; column++) {
        for (size_t i = (size_t)column * ldc; i < (size_t)column * ldc + m; i++) {
            out[i] = type == R_16F ? f16_of_float(sums[i]) : halves::narrow(sums[i], 8, 7);
        }
    }
}

// Queues work with the stand-in for the driver.
extern "C" void fake_cuda_queue(void *stream, void (*run)(void *), void *argument);

EXPORTED int cublasGemmStridedBatchedEx(Handle *handle, int transpose_a, int transpose_b, int m, int n, int k,
                                        const void *alpha, const void *a, int type_a, int lda, long long step_a,
                                        const void *b, int type_b, int ldb, long long step_b, const void *beta,
                                        void *c, int type_c, int ldc, long long step_c, int batch, int compute,
                                        int) {
    const bool sizes = m >= 0 && n >= 0 && k >= 0 && batch >= 0;
    const bool leading = lda >= (transpose_a ? k : m) && lda >= 1 && ldb >= (transpose_b ? n : k) && ldb >= 1 &&
                         ldc >= m && ldc >= 1;
    if (!sizes || !leading || !handle->workspace) return INVALID_VALUE;
    if (type_a != type_b || type_a != type_c) return NOT_SUPPORTED;
    const bool halves = type_a == R_16F || type_a == R_16BF;
    const bool single = ((halves || type_a == R_32F) && compute == COMPUTE_32F) ||
                        (type_a == R_32F && compute == COMPUTE_32F_FAST_TF32);
    if (!single && !(type_a == R_64F && compute == COMPUTE_64F)) return NOT_SUPPORTED;
    // The factors are read now, as cuBLAS reads them from the host. Nobody here asks for another than 1.
    const double factor = single ? *(const float *)alpha : *(const double *)alpha;
    const double kept = single ? *(const float *)beta : *(const double *)beta;
    if (factor != 1) return NOT_SUPPORTED;
    auto *work = new std::function<void()>([=] {
        for (long long i = 0; i < batch; i++) {
            if (halves) {
                product_of_halves(type_a, transpose_a, transpose_b, m, n, k, a, i * step_a, lda, b, i * step_b, ldb,
                                  (float)kept, c, i * step_c, ldc);
            } else if (single) {
                product(transpose_a, transpose_b, m, n, k, (const float *)a + i * step_a, lda,
                        (const float *)b + i * step_b, ldb, (float)kept, (float *)c + i * step_c, ldc);
            } else {
                product(transpose_a, transpose_b, m, n, k, (const double *)a + i * step_a, lda,
                        (const double *)b + i * step_b, ldb, kept, (double *)c + i * step_c, ldc);
            }
        }
    });
    fake_cuda_queue(
        handle->stream,
        [](void *argument) {
            auto *work = (std::function<void()> *)argument;
            (*work)();
            delete work;
        },
        work);
    return SUCCESS;
}
