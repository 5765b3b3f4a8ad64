//! GPU0002: a GPU is out of memory.

use crate::base::place::Place;
use std::fmt::{self, Write};

use crate::base::process::Process;

/// The workspace of matrix products, the only block that no tensor holds.
pub const WORKSPACE: &str = "cuBLAS workspace";

const MOST_LINES: usize = 8;

/// A GPU is full: the request, the capacity, and the holders of the memory. All sizes are in bytes.
#[derive(Debug)]
pub struct OutOfMemory {
    pub device: usize,
    /// The requested segment, which may be larger than the tensor.
    pub tried: u64,
    pub total: u64,
    pub free: u64,
    /// The processes that hold memory of the GPU.
    pub processes: Vec<Process>,
    /// This program's limit, if it is set (`set_per_process_memory_fraction`).
    pub allowed: Option<u64>,
    /// In allocated blocks.
    pub allocated: u64,
    /// In segments of the caching allocator.
    pub reserved: u64,
    pub operation: Option<&'static str>,
    pub place: Place,
    /// The lines that hold the memory, largest first.
    pub holders: Vec<MemoryHolder>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryHolder {
    /// `None` for the cuBLAS workspace, which the first matrix product allocates on behalf of all.
    pub place: Option<Place>,
    pub blocks: usize,
    pub bytes: u64,
}

impl OutOfMemory {
    pub(super) fn report(&self) -> String {
        let mut report = format!("error[GPU0002]: {self}\n");
        let _ = match self.operation {
            Some(operation) => writeln!(report, "  --> {}: {operation}", self.place),
            None => writeln!(report, "  --> {}", self.place),
        };
        let _ = match self.holders.is_empty() {
            true => writeln!(report, "   = nothing is held on GPU {}", self.device),
            false => writeln!(report, "   = held on GPU {}, by the line that asked for it:", self.device),
        };
        for [line, blocks, bytes] in self.table() {
            let _ = writeln!(report, "     {line}  {blocks}  {bytes}");
        }
        let _ = write!(report, "   = fix: {}", self.fix());
        report
    }

    /// Rows of line, blocks and bytes: the largest holders, then all others in one row. Padded to equal width.
    fn table(&self) -> Vec<[String; 3]> {
        let row = |line: String, holders: &[MemoryHolder]| {
            let blocks: usize = holders.iter().map(|holder| holder.blocks).sum();
            let bytes = holders.iter().map(|holder| holder.bytes).sum();
            let plural = if blocks == 1 { "" } else { "s" };
            [line, format!("{blocks} block{plural}"), PrintedSize(bytes).to_string()]
        };
        // A row "1 more" would take as much space as the holder.
        let shown = match self.holders.len() {
            all if all <= MOST_LINES => all,
            _ => MOST_LINES - 1,
        };
        let (largest, others) = self.holders.split_at(shown);
        let mut table: Vec<_> = largest
            .iter()
            .map(|holder| {
                let line = |place: Place| format!("{}:{}", place.file(), place.line());
                row(holder.place.map_or(WORKSPACE.to_owned(), line), &[*holder])
            })
            .collect();
        if !others.is_empty() {
            table.push(row(format!("{} more", others.len()), others));
        }
        let width = |column: usize| table.iter().map(|row| row[column].len()).max().unwrap_or(0);
        let widths = [width(0), width(1), width(2)];
        for [line, blocks, bytes] in &mut table {
            *line = format!("{line:<0$}", widths[0]);
            *blocks = format!("{blocks:<0$}", widths[1]);
            *bytes = format!("{bytes:>0$}", widths[2]);
        }
        table
    }

    fn fix(&self) -> &'static str {
        if self.tried > self.total {
            return "the request is larger than the GPU's memory: allocate less at a time";
        }
        if self.allowed.is_some_and(|allowed| self.tried > allowed) {
            return "the request exceeds the limit set with `set_per_process_memory_fraction`: raise the limit";
        }
        "use a smaller batch, or drop what is no longer needed before this line;\n          \
         in an evaluation, where nothing learns, run the forward pass in `no_grad(|| …)`"
    }
}

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "CUDA out of memory. Tried to allocate {}. GPU {} has a total capacity of {} of which {} is free. ",
            PrintedSize(self.tried),
            self.device,
            PrintedSize(self.total),
            PrintedSize(self.free)
        )?;
        for Process { pid, used_memory, is_this, .. } in &self.processes {
            match is_this {
                true => f.write_str("Including non-PyTorch memory, this process")?,
                false => write!(f, "Process {pid}")?,
            }
            write!(f, " has {} memory in use. ", PrintedSize(*used_memory))?;
        }
        if let Some(allowed) = self.allowed {
            write!(f, "{} allowed; ", PrintedSize(allowed))?;
        }
        write!(
            f,
            "Of the allocated memory {} is allocated by PyTorch, and {} is reserved by PyTorch but unallocated. \
             If reserved but unallocated memory is large try setting \
             PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  \
             See documentation for Memory Management  \
             (https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)",
            PrintedSize(self.allocated),
            PrintedSize(self.reserved - self.allocated)
        )
    }
}

/// A size in bytes, formatted as in PyTorch's message.
struct PrintedSize(u64);

impl fmt::Display for PrintedSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            bytes if bytes <= 1024 => write!(f, "{bytes} bytes"),
            bytes if bytes <= 1 << 20 => write!(f, "{:.2} KiB", bytes as f64 / 1024.0),
            bytes if bytes <= 1 << 30 => write!(f, "{:.2} MiB", bytes as f64 / 1048576.0),
            bytes => write!(f, "{:.2} GiB", bytes as f64 / 1073741824.0),
        }
    }
}
