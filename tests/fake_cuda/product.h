// A product of matrices for the stand-ins of cuBLAS and cuDNN: quick enough that whole labs run on them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

// An operand: element (row, column) is at `row * down + column * right`.
template <typename Number>
struct Matrix {
    const Number *at;
    long long down, right;
};

// A product sums up so many elements, and adds that to what there is; then the next ones. So does the CPU's, and with
// fused multiply-adds in order both come to the same bits. (Those of cuBLAS are others.)
constexpr int PART = 256;

// A piece of the result whose sums stay in registers: two vectors of 64 bytes by eight.
template <typename Number>
constexpr int TALL = 128 / sizeof(Number);
constexpr int WIDE = 8;

// The rows of a matrix in strips of `height`: of each strip the first column, then the second. The last strip is filled
// up with zeros.
template <typename Number>
static std::vector<Number> strips(Matrix<Number> matrix, int rows, int columns, int height) {
    std::vector<Number> packed((size_t)(rows + height - 1) / height * height * columns);
    for (int top = 0; top < rows; top += height) {
        Number *strip = packed.data() + (size_t)top * columns;
        for (int row = top; row < std::min(rows, top + height); row++) {
            const Number *from = matrix.at + row * matrix.down;
            for (int column = 0; column < columns; column++) {
                strip[(size_t)column * height + row - top] = from[column * matrix.right];
            }
        }
    }
    return packed;
}

// C = A·B + beta·C of m by k and k by n elements; a column of C is contiguous, the next one is `ldc` further.
template <typename Number>
static void product(int m, int n, int k, Matrix<Number> a, Matrix<Number> b, Number beta, Number *c, long long ldc) {
    constexpr int tall = TALL<Number>;
    const std::vector<Number> left = strips(a, m, k, tall);
    const std::vector<Number> right = strips(Matrix<Number>{b.at, b.right, b.down}, n, k, WIDE);
    for (int column = 0; column < n; column += WIDE) {
        for (int row = 0; row < m; row += tall) {
            for (int begin = 0; begin == 0 || begin < k; begin += PART) {
                const Number *x = left.data() + (size_t)row * k + (size_t)begin * tall;
                const Number *y = right.data() + (size_t)column * k + (size_t)begin * WIDE;
                Number sums[WIDE][tall] = {};
                for (int i = begin; i < std::min(k, begin + PART); i++, x += tall, y += WIDE) {
#pragma GCC unroll 8
                    for (int w = 0; w < WIDE; w++) {
#pragma GCC unroll 32
                        for (int t = 0; t < tall; t++) sums[w][t] = std::fma(x[t], y[w], sums[w][t]);
                    }
                }
                for (int w = 0; w < std::min(WIDE, n - column); w++) {
                    for (int t = 0; t < std::min(tall, m - row); t++) {
                        Number &out = c[row + t + (column + w) * ldc];
                        out = begin == 0 && beta == 0 ? sums[w][t] : out + sums[w][t];
                    }
                }
            }
        }
    }
}
