// The host half of the puzzle: blocks of 16 x 16 threads over all columns (x) and rows (y).
#include "host.h"

int main() {
    const std::vector<float> a = values(ROWS * COLUMNS, 1);
    std::vector<float> wanted(ROWS * COLUMNS);
    for (int i = 0; i < ROWS * COLUMNS; i++) wanted[i] = i / COLUMNS * a[i];
    const dim3 block(16, 16), grid((COLUMNS + 15) / 16, (ROWS + 15) / 16);
    float *out = output<float>(ROWS * COLUMNS);
    scale_rows<<<grid, block>>>(to_device(a), out, ROWS, COLUMNS);
    return compare(out, wanted, COLUMNS);
}
