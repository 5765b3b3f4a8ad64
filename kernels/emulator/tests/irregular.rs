//! Tests of kernels on a graph, each with and without a planted bug: the classes of the Indigo and HiRace suites.
//!
//! A bug is a missing atomic operation, a guard that reads without one, a missing barrier, a read of data that others
//! write, or an out-of-bounds access. Threads, warps or blocks take one vertex each.

use crate::run;
use cuda_emulator::Checks;

struct Case {
    name: &'static str,
    kernel: &'static str,
    /// The faulty and the correct code for `BUG`.
    bug: &'static str,
    right: &'static str,
    finds: &'static str,
}

const RACES: &str = "racecheck";
const BOUNDS: &str = "memcheck";

const CASES: &[Case] = &[
    Case {
        name: "the largest value, a thread for each vertex",
        kernel: "if (i < n) BUG;",
        bug: "out[0] = max(out[0], value[i])",
        right: "atomicMax(&out[0], value[i])",
        finds: RACES,
    },
    Case {
        name: "a guard that reads what others write",
        kernel: "if (i < n && BUG < value[i]) atomicMax(&out[0], value[i]);",
        bug: "out[0]",
        right: "atomicOr(&out[0], 0)",
        finds: RACES,
    },
    Case {
        name: "the largest value of a neighbour, a warp for each vertex",
        kernel: "int w = i / 32, most = 0; if (w >= n) return;
            for (int j = first[w] + i % 32; j < first[w + 1]; j += 32) most = max(most, value[next[j]]);
            for (int by = 16; by > 0; by /= 2) most = max(most, __shfl_xor_sync(~0u, most, by));
            if (i % 32 == 0) { BUG; }",
        bug: "if (out[0] < most) out[0] = most",
        right: "atomicMax(&out[0], most)",
        finds: RACES,
    },
    Case {
        name: "partial results of warps, a block for each vertex",
        kernel: "__shared__ int part[2]; int b = blockIdx.x, most = 0;
            for (int j = first[b] + threadIdx.x; j < first[b + 1]; j += blockDim.x) most = max(most, value[next[j]]);
            for (int by = 16; by > 0; by /= 2) most = max(most, __shfl_xor_sync(~0u, most, by));
            if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = most;
            BUG;
            if (threadIdx.x == 0) out[b] = max(part[0], part[1]);",
        bug: "",
        right: "__syncthreads()",
        finds: RACES,
    },
    Case {
        name: "partial results that the next round overwrites",
        kernel: "__shared__ int part[2];
            for (int b = blockIdx.x; b < 2 * n; b += gridDim.x) {
                if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = value[b % n] + threadIdx.x;
                __syncthreads();
                if (threadIdx.x == 0) out[b % n] = part[0] + part[1];
                BUG;
            }",
        bug: "",
        right: "__syncthreads()",
        finds: RACES,
    },
    Case {
        name: "a vertex pulls from its neighbours",
        kernel: "if (i < n) { int most = 0; for (int j = first[i]; j < first[i + 1]; j++) most = max(most, BUG[next[j]]); out[i] = most; }",
        bug: "out",
        right: "value",
        finds: RACES,
    },
    Case {
        name: "a vertex pushes to its neighbours",
        kernel: "if (i < n) for (int j = first[i]; j < first[i + 1]; j++) BUG;",
        bug: "out[next[j]] = max(out[next[j]], value[i])",
        right: "atomicMax(&out[next[j]], value[i])",
        finds: RACES,
    },
    Case {
        name: "one neighbour is enough",
        kernel: "if (i < n) for (int j = first[i]; j < first[i + 1]; j++) if (value[next[j]] > value[i]) { BUG; break; }",
        bug: "out[1]++",
        right: "atomicAdd(&out[1], 1)",
        finds: RACES,
    },
    Case {
        name: "a list of work",
        kernel: "if (i < n && value[i] > 3) { int at = BUG; out[1 + at] = i; }",
        bug: "out[0]++",
        right: "atomicAdd(&out[0], 1)",
        finds: RACES,
    },
    Case {
        name: "a list of work, one reservation for each warp",
        kernel: "unsigned yes = __ballot_sync(~0u, i < n && value[i % n] > 3); int at = 0;
            if (i % 32 == 0) at = BUG;
            at = __shfl_sync(~0u, at, 0) + __popc(yes & ((1u << (i % 32)) - 1));
            if (yes >> (i % 32) & 1) out[1 + at] = i;",
        bug: "out[0], out[0] += __popc(yes)",
        right: "atomicAdd(&out[0], __popc(yes))",
        finds: RACES,
    },
    Case {
        name: "paths to a root are made shorter",
        kernel: "if (i < n) { int v = i; while (v > BUG[v], 0)) v = BUG[v], 0); atomicExch(&out[i], v); }",
        bug: "(0 * (int)i + out",
        right: "atomicOr(&out",
        finds: RACES,
    },
    Case {
        name: "a flag that all write with the same value",
        kernel: "if (i < n && value[i] > 3) BUG;",
        bug: "out[0] = 1",
        right: "atomicExch(&out[0], 1)",
        finds: RACES,
    },
    Case {
        name: "more threads than vertices",
        kernel: "BUG { out[i % n] = first[i + 1] - first[i]; }",
        bug: "if (i <= n)",
        right: "if (i < n)",
        finds: BOUNDS,
    },
    Case {
        name: "a neighbour behind the last one",
        kernel: "if (i < n) { int s = 0; for (int j = first[i]; j BUG first[i + 1]; j++) s += next[j]; out[i] = s; }",
        bug: "<=",
        right: "<",
        finds: BOUNDS,
    },
    Case {
        name: "the last neighbour of a vertex that has none",
        kernel: "if (i < n BUG) out[i] = next[first[i + 1] - 1];",
        bug: "",
        right: "&& first[i + 1] > first[i]",
        finds: BOUNDS,
    },
    Case {
        name: "a vertex of a grid that goes on",
        kernel: "for (; BUG; i += gridDim.x * blockDim.x) out[i] = value[i];",
        bug: "i < n + 1",
        right: "i < n",
        finds: BOUNDS,
    },
];

/// The first vertex has no neighbours; each other vertex has the up to 5 vertices before it.
fn program(kernel: &str) -> String {
    format!(
        "__global__ void k(const int *first, const int *next, const int *value, int *out, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    {kernel}
}}
int main() {{
    const int n = 40;
    int first[n + 1], next[5 * n], value[n], out[n] = {{}}, edges = 0;
    for (int i = 0; i < n; i++) {{
        first[i] = edges;
        for (int j = max(i - 5, 0); j < i; j++) next[edges++] = j;
        value[i] = i * 7 % 11;
    }}
    first[n] = edges;
    int *f, *e, *v, *o;
    cudaMalloc(&f, sizeof(first)); cudaMalloc(&e, edges * sizeof(int)); cudaMalloc(&v, sizeof(value)); cudaMalloc(&o, sizeof(out));
    cudaMemcpy(f, first, sizeof(first), cudaMemcpyHostToDevice);
    cudaMemcpy(e, next, edges * sizeof(int), cudaMemcpyHostToDevice);
    cudaMemcpy(v, value, sizeof(value), cudaMemcpyHostToDevice);
    cudaMemcpy(o, out, sizeof(out), cudaMemcpyHostToDevice);
    k<<<n, 64>>>(f, e, v, o, n);
    cudaDeviceSynchronize();
}}"
    )
}

fn found(kernel: &str) -> Vec<&'static str> {
    let (_, run) = run(&program(kernel), Checks { race: true, ..Checks::MEMORY });
    run.findings.all.iter().map(|finding| finding.check).collect()
}

#[test]
fn every_planted_bug_of_the_graph_kernels_is_found_and_its_twin_is_clean() {
    let mut troubles = Vec::new();
    for Case { name, kernel, bug, right, finds } in CASES {
        let in_bug = found(&kernel.replace("BUG", bug));
        if !in_bug.contains(finds) {
            troubles.push(format!("{name}: {finds} finds nothing, but {in_bug:?}"));
        }
        let in_right = found(&kernel.replace("BUG", right));
        if !in_right.is_empty() {
            troubles.push(format!("{name}: {in_right:?} without a bug"));
        }
    }
    assert!(troubles.is_empty(), "{}", troubles.join("\n"));
}
