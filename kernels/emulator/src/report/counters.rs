//! Kernel counters as a table of plain descriptions and Nsight Compute's names, or as JSON.

use super::json::string;
use crate::ir::Program;
use crate::run::amounts::thousands;
use crate::run::counters::{Counters, Requests, SECTOR, Wavefronts};
use crate::run::occupancy::{Card, Occupancy};

/// A row of the table, without a metric if Nsight Compute has no such figure.
struct Row {
    words: &'static str,
    value: String,
    metric: &'static str,
}

/// The inputs of a report besides the counters.
pub struct Known<'a> {
    pub card: &'a Card,
    /// Returns the real compiler's register count of a kernel, if known.
    pub registers: &'a dyn Fn(&Program) -> Option<u32>,
    /// Returns the modelled duration of the launches in microseconds, and its bound.
    pub time: &'a dyn Fn(&Counters, &Program) -> Option<(f64, String)>,
}

pub fn text(counters: &[Counters], kernels: &[Program], known: &Known<'_>) -> String {
    let mut out = String::new();
    for of in counters {
        let program = &kernels[of.kernel as usize];
        let rows = rows(of, program, known);
        let words = rows.iter().map(|row| row.words.len()).max().unwrap_or(0);
        let values = rows.iter().map(|row| row.value.chars().count()).max().unwrap_or(0);
        out.push_str(&format!("{}: {}\n", program.name, launches(of)));
        for Row { words: text, value, metric } in rows {
            let line = format!("  {text:words$}  {value:>values$}  {metric}");
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out.push('\n');
    }
    out.push_str(&format!(
        "Instructions are the emulator's, not those of NVIDIA's compiler. Occupancy, roof and time are those of this \
         card: {} (simulated). The time is modelled, not measured.\n",
        known.card.name
    ));
    out
}

/// As [`text`], as JSON: one object for each kernel.
pub fn json(counters: &[Counters], kernels: &[Program], known: &Known<'_>) -> String {
    let all: Vec<String> = counters
        .iter()
        .map(|of| {
            let program = &kernels[of.kernel as usize];
            let rows: Vec<String> = rows(of, program, known)
                .iter()
                .map(|row| {
                    let value = row.value.replace(',', "");
                    let value = if value.parse::<f64>().is_ok() { value } else { string(&row.value) };
                    format!(
                        "{{\"name\":{},\"value\":{value},\"metric\":{}}}",
                        string(row.words),
                        string(row.metric)
                    )
                })
                .collect();
            let shape = format!("\"grid\":{:?},\"block\":{:?}", of.shape.grid, of.shape.block);
            format!(
                "{{\"kernel\":{},\"launches\":{},{shape},\"counters\":[{}]}}",
                string(&program.name),
                of.launches,
                rows.join(",")
            )
        })
        .collect();
    format!("[{}]", all.join(","))
}

fn launches(of: &Counters) -> String {
    let count = |n: u64, what: &str| format!("{} {what}{}", thousands(n), if n == 1 { "" } else { "s" });
    let product = |all: [u32; 3]| all.iter().map(|n| u64::from(*n)).product::<u64>();
    let last = if of.launches == 1 { "" } else { ", the last" };
    let (blocks, threads) = (product(of.shape.grid), product(of.shape.block));
    format!(
        "{}{last} of {} of {}",
        count(of.launches, "launch").replace("launchs", "launches"),
        count(blocks, "block"),
        count(threads, "thread")
    )
}

fn rows(of: &Counters, program: &Program, known: &Known<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut add = |words, value, metric| rows.push(Row { words, value, metric });
    let instructions = of.instructions();
    add("warp instructions", thousands(instructions), "smsp__inst_executed.sum");
    add(
        "active lanes per instruction",
        ratio(of.thread_instructions(), instructions),
        "smsp__thread_inst_executed_per_inst_executed.ratio",
    );
    add(
        "divergent branches",
        thousands(of.divergent_branches),
        "smsp__sass_branch_targets_threads_divergent.sum",
    );
    add("barriers, by warp", thousands(of.barriers(program)), "");
    let global: [(Requests, [(&'static str, &'static str); 3]); 3] = [
        (
            of.loads,
            [
                ("global loads: requests", "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"),
                ("global loads: sectors", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"),
                (
                    "global loads: sectors per request",
                    "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio",
                ),
            ],
        ),
        (
            of.stores,
            [
                ("global stores: requests", "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum"),
                ("global stores: sectors", "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"),
                (
                    "global stores: sectors per request",
                    "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_st.ratio",
                ),
            ],
        ),
        (
            of.atomics,
            [
                ("global atomics: requests", ""),
                ("global atomics: sectors", ""),
                ("global atomics: sectors per request", ""),
            ],
        ),
    ];
    for (requests, [first, second, third]) in global {
        if requests.requests > 0 {
            add(first.0, thousands(requests.requests), first.1);
            add(second.0, thousands(requests.sectors), second.1);
            add(third.0, ratio(requests.sectors, requests.requests), third.1);
        }
    }
    let shared: [(Wavefronts, [(&'static str, &'static str); 2]); 2] = [
        (
            of.shared_loads,
            [
                ("shared loads: wavefronts", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"),
                ("shared loads: bank conflicts", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"),
            ],
        ),
        (
            of.shared_stores,
            [
                ("shared stores: wavefronts", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum"),
                ("shared stores: bank conflicts", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum"),
            ],
        ),
    ];
    for (fronts, [first, second]) in shared {
        if fronts.requests > 0 {
            add(first.0, thousands(fronts.wavefronts), first.1);
            add(second.0, thousands(fronts.conflicts), second.1);
        }
    }
    occupancy(of, program, known, &mut add);
    roofline(of, program, known.card, &mut add);
    if let Some((microseconds, bound)) = (known.time)(of, program) {
        add("modelled time, µs", format!("{microseconds:.2}"), "");
        add("modelled time is bound by", bound, "");
    }
    rows
}

fn occupancy(
    of: &Counters,
    program: &Program,
    known: &Known<'_>,
    add: &mut impl FnMut(&'static str, String, &'static str),
) {
    let (card, registers) = (known.card, (known.registers)(program));
    let occupancy = Occupancy::new(card, program, &of.shape, registers);
    let shared = program.shared_bytes + of.shape.dynamic_shared;
    let or_unknown = |value: Option<String>| value.unwrap_or_else(|| "unknown".to_owned());
    add(
        "registers of a thread",
        or_unknown(registers.map(|registers| registers.to_string())),
        "launch__registers_per_thread",
    );
    add("shared memory of a block, bytes", thousands(shared), "launch__shared_mem_per_block");
    add("blocks by warps", occupancy.by_warps.to_string(), "launch__occupancy_limit_warps");
    add("blocks by number", occupancy.by_blocks.to_string(), "launch__occupancy_limit_blocks");
    add("blocks by shared memory", occupancy.by_shared.to_string(), "launch__occupancy_limit_shared_mem");
    add(
        "blocks by registers",
        or_unknown(occupancy.by_registers.map(|blocks| blocks.to_string())),
        "launch__occupancy_limit_registers",
    );
    let percent = format!("{:.1}", occupancy.theoretical() * 100.0);
    let words = if registers.is_some() { "occupancy, %" } else { "occupancy, % at most" };
    add(words, percent, "sm__maximum_warps_per_active_cycle_pct");
    add(
        "waves of blocks",
        ratio(of.shape.blocks(), card.multiprocessors * occupancy.blocks()),
        "launch__waves_per_multiprocessor",
    );
    debug_assert!(occupancy.blocks() * occupancy.warps_of_block <= card.warps);
}

/// The kernel's place in the card's roofline. Each sector is read from memory at least once. The real number depends on
/// the caches, which are not modelled.
fn roofline(
    of: &Counters,
    program: &Program,
    card: &Card,
    add: &mut impl FnMut(&'static str, String, &'static str),
) {
    let flops = of.flops(program);
    let cached = of.global_sectors() * SECTOR;
    add("operations on floats", thousands(flops), "");
    add("bytes between L1 and multiprocessor", thousands(cached), "");
    add("bytes of memory at least", thousands(of.footprint), "");
    add("operations per byte of L1", ratio(flops, cached), "");
    add("operations per byte of memory at most", ratio(flops, of.footprint), "");
    if flops > 0 && of.footprint > 0 {
        let roof = (flops as f64 / of.footprint as f64 * card.bytes).min(card.flops);
        let by = if roof < card.flops { "memory" } else { "arithmetic" };
        add("roof, TFLOP/s", format!("{:.2}", roof / 1e12), "");
        add("bound by", by.to_owned(), "");
    }
}

fn ratio(a: u64, b: u64) -> String {
    if b == 0 { "-".to_owned() } else { format!("{:.2}", a as f64 / b as f64) }
}
