// Random numbers: Philox-4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).
//
// A Philox number is a function of a key (the seed) and a counter, so every thread calculates its own numbers
// independently. The numbers of a seed form one sequence, counted from 0, and an element of a tensor takes the
// two at its own position. So the result does not depend on the launch configuration.
#pragma once

struct Draws {
    unsigned int a, b;
};

struct Four {
    unsigned int x[4];
};

// The four numbers of a counter.
__device__ inline Four philox(unsigned long long seed, unsigned long long counter) {
    unsigned int x0 = (unsigned int)counter, x1 = (unsigned int)(counter >> 32), x2 = 0, x3 = 0;
    unsigned int key0 = (unsigned int)seed, key1 = (unsigned int)(seed >> 32);
#pragma unroll
    for (int round = 0; round < 10; round++) {
        const unsigned long long a = x0 * 0xD2511F53ULL, b = x2 * 0xCD9E8D57ULL;
        x0 = (unsigned int)(b >> 32) ^ x1 ^ key0;
        x1 = (unsigned int)b;
        x2 = (unsigned int)(a >> 32) ^ x3 ^ key1;
        x3 = (unsigned int)a;
        key0 += 0x9E3779B9;
        key1 += 0xBB67AE85;
    }
    return {x0, x1, x2, x3};
}

// The two numbers of an element, for a tensor whose numbers begin at `first`.
__device__ inline Draws draw(long long seed, long long first, long long element) {
    const unsigned long long position = (unsigned long long)first + 2 * (unsigned long long)element;
    const Four four = philox((unsigned long long)seed, position / 4);
    switch (position % 4) {
    case 0: return {four.x[0], four.x[1]};
    case 1: return {four.x[1], four.x[2]};
    case 2: return {four.x[2], four.x[3]};
    default: return {four.x[3], philox((unsigned long long)seed, position / 4 + 1).x[0]};
    }
}
