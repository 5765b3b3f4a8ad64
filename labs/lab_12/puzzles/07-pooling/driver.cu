// The host half of the puzzle: blocks of 16 x 16 threads over the columns (x) and rows (y) of the output.
#include "host.h"

int main() {
    const std::vector<float> a = values(ROWS * COLUMNS, 1);
    const int rows = ROWS / 2, columns = COLUMNS / 2;
    std::vector<float> wanted(rows * columns);
    for (int i = 0; i < rows * columns; i++) {
        const int corner = i / columns * 2 * COLUMNS + i % columns * 2;
        wanted[i] = a[corner];
        if (a[corner + 1] > wanted[i]) wanted[i] = a[corner + 1];
        if (a[corner + COLUMNS] > wanted[i]) wanted[i] = a[corner + COLUMNS];
        if (a[corner + COLUMNS + 1] > wanted[i]) wanted[i] = a[corner + COLUMNS + 1];
    }
    const dim3 block(16, 16), grid((columns + 15) / 16, (rows + 15) / 16);
    float *out = output<float>(rows * columns);
    max_pool<<<grid, block>>>(to_device(a), out, ROWS, COLUMNS);
    return compare(out, wanted, columns);
}
