//! Tests on random kernels that waiting accesses give the same hazards as accesses noted at once.

use cuda_emulator::{Checks, Program};
use std::time::Duration;

fn random(state: &mut u64, n: usize) -> usize {
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    (*state >> 33) as usize % n
}

fn kernel(state: &mut u64) -> String {
    let index =
        ["t", "t + 1", "63 - t", "t / 2", "t % 32", "t % 7", "0", "t * 2 % 64", "32 + t % 32", "t ^ 1"];
    let mut body = String::new();
    for _ in 0..1 + random(state, 6) {
        let at = |state: &mut u64| index[random(state, index.len())];
        let (a, b) = (at(state), at(state));
        body += &match random(state, 13) {
            0 => format!("s[{a}] = x;"),
            1 => format!("x += s[{a}];"),
            2 => format!("g[{a}] = x;"),
            3 | 4 => format!("x += g[{a}];"),
            5 => format!("g[64 + {a} + 64 * blockIdx.x] = s[{b}];"),
            6 => format!("s[{a}] += g[{b}];"),
            7 => format!("if (t < 20) s[{a}] = g[{b}];"),
            8 => format!("((char *)s)[{a}] = x;"),
            9 => format!("x += ((long long *)s)[({a}) / 2];"),
            10 => format!("atomicAdd(&s[{a}], 1);"),
            11 => format!("atomicAdd(&g[{a}], 1);"),
            _ => ["__syncthreads();", "__syncthreads();", "__syncwarp();"][random(state, 3)].to_owned(),
        };
        body.push('\n');
    }
    format!(
        "__global__ void k(int *g) {{ __shared__ int s[128]; int t = threadIdx.x, x = t; {body} g[512 + t + 64 * blockIdx.x] = x; }}"
    )
}

#[test]
fn what_waits_has_the_same_hazards() {
    let mut state = 7;
    let (mut clean, mut racy) = (0, 0);
    for number in 0..200 {
        // Two launches, in one stream or in two unordered ones.
        let blocks = 1 + number % 2;
        let second = if number % 5 == 0 {
            format!("k<<<{blocks}, 64, 0, other>>>(g)")
        } else {
            format!("k<<<{blocks}, 64>>>(g)")
        };
        let text = format!(
            "{} int main() {{ int *g; cudaMalloc(&g, 8192); cudaStream_t other; \
             cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking); k<<<{blocks}, 64>>>(g); {second}; \
             return cudaDeviceSynchronize(); }}",
            kernel(&mut state)
        );
        let program =
            Program::compile("my.cu", &text, &|_| None).unwrap_or_else(|trouble| panic!("{trouble}"));
        let found = [false, true].map(|at_once| {
            let mut machine = program.machine(Checks { race: true, ..Checks::MEMORY });
            machine.budget = 1_000_000;
            machine.notes_at_once = at_once;
            program.run_on(machine, Duration::from_secs(60)).unwrap().findings.all
        });
        assert_eq!(found[0], found[1], "{text}");
        if found[0].is_empty() { clean += 1 } else { racy += 1 }
    }
    assert!(clean > 10 && racy > 50, "{clean} {racy}");
}
