// The host half of the puzzle: a block for each tile.
#include "host.h"

int main() {
    const std::vector<float> a = values(ROWS * COLUMNS, 1);
    std::vector<float> wanted(ROWS * COLUMNS);
    for (int i = 0; i < ROWS * COLUMNS; i++) wanted[i % COLUMNS * ROWS + i / COLUMNS] = a[i];
    const dim3 block(TILE, ROWS_AT_ONCE);
    const dim3 grid((COLUMNS + TILE - 1) / TILE, (ROWS + TILE - 1) / TILE);
    float *out = output<float>(ROWS * COLUMNS);
    transpose<<<grid, block>>>(to_device(a), out, ROWS, COLUMNS);
    return compare(out, wanted, ROWS);
}
