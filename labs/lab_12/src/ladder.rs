//! The ladders: one task, solved step by step, from the first idea to a fast kernel. Each step is a complete program. A
//! table shows the counters and the modelled time of each.

use std::fmt::Write;

use cuda_emulator::run::amounts::thousands;
use cuda_emulator::run::counters::Counters;
use cuda_emulator::{Program, report::json::string};
use todevice_figures::product;
use todevice_figures::profile::Profile;

use crate::model::{self, Modelled};
use crate::registers;

pub struct Step {
    /// Its source in the folder `ladder`.
    pub file: &'static str,
    pub name: &'static str,
    pub text: &'static str,
}

/// Steps that compute the same.
pub struct Ladder {
    pub name: &'static str,
    /// The kernel's name in each step.
    kernel: &'static str,
    /// The `N` of the modelled times. The programs have a smaller one, so that a run of all blocks is short.
    pub size: u64,
    sample: u64,
    pub steps: &'static [Step],
}

macro_rules! step {
    ($ladder:literal, $file:literal, $name:literal) => {
        Step {
            file: concat!($ladder, "/", $file, ".cu"),
            name: $name,
            text: include_str!(concat!("../ladder/", $ladder, "/", $file, ".cu")),
        }
    };
}

pub static REDUCTION: Ladder = Ladder {
    name: "reduction",
    kernel: "reduce",
    size: 1 << 24,
    sample: 4,
    steps: &[
        step!("reduction", "1-naive", "naive: an atomic addition each"),
        step!("reduction", "2-interleaved", "shared memory, neighbours first"),
        step!("reduction", "3-sequential", "shared memory, halves"),
        step!("reduction", "4-first-add", "first addition during the load"),
        step!("reduction", "5-shuffles", "warp shuffles"),
        step!("reduction", "6-vectorized", "float4 loads, grid stride"),
    ],
};

pub static MATMUL: Ladder = Ladder {
    name: "matmul",
    kernel: "matmul",
    size: 1024,
    sample: 1,
    steps: &[
        step!("matmul", "1-naive", "naive: neighbours in a column"),
        step!("matmul", "2-coalesced", "coalesced: neighbours in a row"),
        step!("matmul", "3-shared-tiles", "tiles in shared memory"),
        step!("matmul", "4-register-tiles", "4 × 4 tile of registers"),
        step!("matmul", "5-vectorized", "8 × 4 tile, float4 loads"),
    ],
};

pub static LADDERS: [&Ladder; 2] = [&REDUCTION, &MATMUL];

pub fn find(name: &str) -> Result<&'static Ladder, String> {
    let names = || LADDERS.map(|ladder| ladder.name).join(", ");
    LADDERS
        .into_iter()
        .find(|ladder| ladder.name == name)
        .ok_or_else(|| format!("unknown ladder `{name}`: the ladders are {}", names()))
}

/// The counters of a step on a card, scaled to the whole grid.
pub struct Row {
    pub step: &'static str,
    pub file: &'static str,
    pub sectors_per_request: f64,
    pub bank_conflicts: f64,
    pub divergent_branches: f64,
    /// Counted once per warp.
    pub barriers: f64,
    /// Warp instructions that the hardware is expected to execute.
    pub instructions: f64,
    pub bytes: f64,
    pub microseconds: f64,
    pub bound: &'static str,
    /// Share of the card's peak memory bandwidth or float arithmetic.
    pub share_of_peak: f64,
}

/// The fastest known implementation on the card.
pub struct Reference {
    pub name: &'static str,
    pub microseconds: f64,
    pub share_of_peak: f64,
}

pub struct Table {
    pub ladder: &'static Ladder,
    pub card: &'static Profile,
    pub rows: Vec<Row>,
    pub reference: Reference,
}

pub struct Counted {
    step: &'static Step,
    pub program: Program,
    pub counters: Counters,
}

impl Ladder {
    /// Counts each step. The counters hold for every card.
    pub fn count(&'static self) -> Result<Vec<Counted>, String> {
        self.steps.iter().map(|step| self.counted(step)).collect()
    }

    fn counted(&self, step: &'static Step) -> Result<Counted, String> {
        let wrong = |why: &str| format!("{}: {why}", step.name);
        let text = step.text.replacen("#ifndef N", &format!("#define N {}\n#ifndef N", self.size), 1);
        let program = Program::compile(step.name, &text, &|_| None)?;
        let run = program.count_sample(Some(self.sample)).ok_or(wrong("it has no `main`"))?;
        if run.exit_code() != 0 {
            return Err(wrong("it ends with an error"));
        }
        let (number, _) = program.kernel(self.kernel).ok_or(wrong("it lacks the ladder's kernel"))?;
        let counters = run.counters.into_iter().find(|counters| counters.kernel == number);
        let counters = counters.ok_or(wrong("it never launches the ladder's kernel"))?;
        Ok(Counted { step, program, counters })
    }

    pub fn table(&'static self, counted: &[Counted], card: &'static Profile) -> Result<Table, String> {
        let rows = counted.iter().map(|counted| self.row(counted, card)).collect::<Result<_, _>>()?;
        Ok(Table { ladder: self, card, rows, reference: self.reference(card) })
    }

    fn row(&self, Counted { step, program, counters }: &Counted, card: &Profile) -> Result<Row, String> {
        let kernel = &program.kernels[counters.kernel as usize];
        let registers = registers::of(step.text, self.kernel);
        let modelled = model::time(card, counters, kernel, registers);
        let Modelled { microseconds, bound, instructions, bytes } =
            modelled.ok_or(format!("{}: no block of it fits on a multiprocessor", step.name))?;
        let scale = counters.blocks as f64 / counters.counted_blocks as f64;
        let scaled = |count: u64| scale * count as f64;
        Ok(Row {
            step: step.name,
            file: step.file,
            sectors_per_request: counters.loads.sectors as f64 / counters.loads.requests.max(1) as f64,
            bank_conflicts: scaled(counters.shared_loads.conflicts + counters.shared_stores.conflicts),
            divergent_branches: scaled(counters.divergent_branches),
            barriers: scaled(counters.barriers(kernel)),
            instructions,
            bytes,
            microseconds,
            bound,
            share_of_peak: self.share_of_peak(card, microseconds),
        })
    }

    /// The minimum of bytes to read, or of float operations to do.
    fn work(&self) -> f64 {
        match self.name {
            "matmul" => 2.0 * (self.size as f64).powi(3),
            _ => 4.0 * self.size as f64,
        }
    }

    fn share_of_peak(&self, card: &Profile, microseconds: f64) -> f64 {
        let peak = if self.name == "matmul" { card.fp32.value } else { card.dram.value };
        self.work() / (microseconds * 1e3) / peak
    }

    fn reference(&self, card: &Profile) -> Reference {
        let n = self.size;
        let (name, nanoseconds) = match self.name {
            "matmul" => {
                let pace = card.fp32.value * card.gemm_factor.value;
                ("cuBLAS", product::time(card, 3 * 4 * n * n, [n, n, n, 1], pace) as f64)
            }
            _ => {
                let read = self.work() / (card.dram.value * card.dram_factor.value);
                ("a large copy's rate", card.smallest_kernel.nanoseconds() as f64 + read)
            }
        };
        let microseconds = nanoseconds / 1e3;
        Reference { name, microseconds, share_of_peak: self.share_of_peak(card, microseconds) }
    }

    fn peak(&self) -> &'static str {
        if self.name == "matmul" { "% of float peak" } else { "% of bandwidth" }
    }

    fn task(&self) -> String {
        match self.name {
            "matmul" => format!("the product of two matrices of {n} × {n} floats", n = self.size),
            _ => format!("the sum of {} floats", thousands(self.size)),
        }
    }
}

/// Formats a count with a thousands separator, or in millions if it is large.
fn count(number: f64) -> String {
    let whole = number.round() as u64;
    if whole < 1_000_000 { thousands(whole) } else { format!("{:.1} M", number / 1e6) }
}

/// Aligns cells in columns: the first to the left, the others to the right.
fn aligned(lines: &[Vec<String>]) -> String {
    let mut text = String::new();
    for line in lines {
        let mut columns = String::new();
        for (column, cell) in line.iter().enumerate() {
            let width = lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
            let _ = match column {
                0 => write!(columns, "{cell:width$}"),
                _ => write!(columns, "  {cell:>width$}"),
            };
        }
        let _ = writeln!(text, "{}", columns.trim_end());
    }
    text
}

pub fn on_every_card(tables: &[Table]) -> String {
    let Some(Table { ladder, rows, reference, .. }) = tables.first() else { return String::new() };
    let line = |first: String, cell: &dyn Fn(&Table) -> String| {
        let mut line = vec![first];
        line.extend(tables.iter().map(cell));
        line
    };
    let mut lines = vec![line("step".to_owned(), &|table| table.card.key.to_owned())];
    for (at, row) in rows.iter().enumerate() {
        lines.push(line(format!("{}. {}", at + 1, row.step), &|table| {
            format!("{:.1}", table.rows[at].microseconds)
        }));
    }
    lines.push(line(reference.name.to_owned(), &|table| format!("{:.1}", table.reference.microseconds)));
    format!(
        "{}: {}; microseconds on each card\n\n{}\nTimes are modelled, not measured.\n",
        ladder.name,
        ladder.task(),
        aligned(&lines)
    )
}

impl Table {
    pub fn text(&self) -> String {
        let head = [
            "step",
            "sectors/request",
            "conflicts",
            "divergent",
            "barriers",
            "instructions",
            "DRAM MB",
            "modelled µs",
            "bound by",
            self.ladder.peak(),
        ];
        let mut lines = vec![head.map(str::to_owned).to_vec()];
        for (number, row) in self.rows.iter().enumerate() {
            lines.push(vec![
                format!("{}. {}", number + 1, row.step),
                format!("{:.2}", row.sectors_per_request),
                count(row.bank_conflicts),
                count(row.divergent_branches),
                count(row.barriers),
                count(row.instructions),
                format!("{:.1}", row.bytes / 1e6),
                format!("{:.1}", row.microseconds),
                row.bound.to_owned(),
                format!("{:.1}", 100.0 * row.share_of_peak),
            ]);
        }
        let mut last = vec![String::new(); head.len()];
        last[0] = self.reference.name.to_owned();
        last[7] = format!("{:.1}", self.reference.microseconds);
        last[9] = format!("{:.1}", 100.0 * self.reference.share_of_peak);
        lines.push(last);
        let mut out =
            format!("{}: {}; {} (simulated)\n\n", self.ladder.name, self.ladder.task(), self.card.name);
        out += &aligned(&lines);
        let blocks = if self.ladder.sample == 1 {
            "One block of each step is".to_owned()
        } else {
            format!("{} blocks of each step are", self.ladder.sample)
        };
        let _ = write!(
            out,
            "\n{blocks} counted, and the counts scaled to the grid. Times are modelled, not measured, and so is the last row.\n"
        );
        out
    }

    pub fn json(&self) -> String {
        let rows: Vec<String> = self
            .rows
            .iter()
            .map(|row| {
                format!(
                    "{{\"step\":{},\"file\":{},\"sectors_per_request\":{:.2},\"bank_conflicts\":{:.0},\"divergent_branches\":{:.0},\
                     \"barriers\":{:.0},\"instructions\":{:.0},\"bytes\":{:.0},\"modelled_microseconds\":{:.3},\
                     \"bound\":{},\"share_of_peak\":{:.4}}}",
                    string(row.step),
                    string(row.file),
                    row.sectors_per_request,
                    row.bank_conflicts,
                    row.divergent_branches,
                    row.barriers,
                    row.instructions,
                    row.bytes,
                    row.microseconds,
                    string(row.bound),
                    row.share_of_peak
                )
            })
            .collect();
        format!(
            "{{\"ladder\":{},\"card\":{},\"task\":{},\"peak\":{},\"rows\":[{}],\"reference\":{{\"name\":{},\
             \"modelled_microseconds\":{:.3},\"share_of_peak\":{:.4}}}}}\n",
            string(self.ladder.name),
            string(self.card.name),
            string(&self.ladder.task()),
            string(self.ladder.peak()),
            rows.join(","),
            string(self.reference.name),
            self.reference.microseconds,
            self.reference.share_of_peak
        )
    }
}
