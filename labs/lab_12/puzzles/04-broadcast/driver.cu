// The host half of the puzzle: blocks of 16 x 16 threads over all columns (x) and rows (y).
#include "host.h"

int main() {
    const std::vector<float> left = values(ROWS, 1), top = values(COLUMNS, 2);
    std::vector<float> wanted(ROWS * COLUMNS);
    for (int i = 0; i < ROWS * COLUMNS; i++) wanted[i] = left[i / COLUMNS] + top[i % COLUMNS];
    const dim3 block(16, 16), grid((COLUMNS + 15) / 16, (ROWS + 15) / 16);
    float *out = output<float>(ROWS * COLUMNS);
    table_of_sums<<<grid, block>>>(to_device(left), to_device(top), out, ROWS, COLUMNS);
    return compare(out, wanted, COLUMNS);
}
