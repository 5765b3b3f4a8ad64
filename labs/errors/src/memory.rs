//! The numbers in an out-of-memory message: who holds the GPU's memory, whether it lies in pieces, and what to try first.
//!
//! PyTorch has worded the message in three ways so far. Each is told by the phrases around its numbers, so that parts which are missing
//! (a warning's, a cut-off paste's) are only left out.

use crate::Pasted;
use crate::numbers::size;

/// Bytes, as far as the message has them.
#[derive(Default, Debug)]
struct Memory {
    asked: Option<u64>,
    gpu: Option<u64>,
    total: Option<u64>,
    free: Option<u64>,
    /// What each other process holds, by its number.
    others: Vec<(u64, u64)>,
    /// The process among them that is probably the program itself.
    own: Option<(u64, u64)>,
    /// What this process holds, with what is not PyTorch's.
    mine: Option<u64>,
    /// The most that the program allows itself.
    limit: Option<u64>,
    allocated: Option<u64>,
    /// In pools of CUDA graphs. They are not part of `allocated`.
    pools: Option<u64>,
    /// Kept by PyTorch's allocator for tensors to come.
    cached: Option<u64>,
}

/// Sentences on the numbers of an out-of-memory message.
pub fn sentences(pasted: &Pasted) -> Vec<String> {
    let text = &pasted.squeezed;
    if let Some(at) = text.rfind("mpsbackendoutofmemory") {
        return mps(&text[at..]);
    }
    // The last message of the text. Other ranks may have printed theirs before.
    let at = text.rfind("triedtoallocate").unwrap_or(0);
    let memory = Memory::read(&text[at..], text);
    match memory.asked {
        Some(asked) => [memory.who(asked), memory.why(asked)].into_iter().flatten().collect(),
        None => Vec::new(),
    }
}

/// On a Mac: `(MPS allocated: 8.50 GB, other allocations: 560.00 MB, max allowed: 9.07 GB). Tried to allocate 256.00 MB`
fn mps(message: &str) -> Vec<String> {
    let after = |phrase: &str| Some(bytes(&message[message.find(phrase)? + phrase.len()..])?.0);
    let Some(asked) = after("triedtoallocate") else { return Vec::new() };
    let mut who = format!("Your program asked for {} more.", size(asked));
    if let (Some(held), Some(other), Some(limit)) =
        (after("mpsallocated:"), after("otherallocations:"), after("maxallowed:"))
    {
        who += &format!(
            " Of the {} that MPS allows it, {} are held by PyTorch and {} by the rest of your program.",
            size(limit),
            size(held),
            size(other)
        );
    }
    vec![who, "Try first: halve the batch. A Mac's GPU shares the memory with all programs, so close those that you do not need.".to_owned()]
}

impl Memory {
    fn read(message: &str, whole: &str) -> Memory {
        let after = |phrase: &str| {
            let at = message.find(phrase)? + phrase.len();
            Some(bytes(&message[at..])?.0)
        };
        let before = |phrase: &str| bytes_before(&message[..message.find(phrase)?]);
        // A log may have put the date of its next line after `GPU`.
        let gpu = message.split("gpu").skip(1).find_map(|part| {
            let rest = part.trim_start_matches(|letter: char| letter.is_ascii_digit());
            (rest.starts_with("hasatotal") || rest.starts_with(';')).then(|| digits(part))?
        });
        let mut memory = Memory {
            asked: after("triedtoallocate"),
            gpu,
            // PyTorch 2.1 and 2.2 have a typing error here.
            total: after("totalcapacityof")
                .or_else(|| after("totalcapactyof"))
                .or_else(|| before("totalcapacity;")),
            free: after("ofwhich").or_else(|| before("free;")),
            mine: after("thisprocesshas"),
            limit: before("allowed;"),
            allocated: after("oftheallocatedmemory").or_else(|| before("alreadyallocated;")),
            pools: before("allocatedinprivatepools"),
            cached: before("isreservedbypytorchbutunallocated"),
            others: Vec::new(),
            own: None,
        };
        if let (None, Some(reserved), Some(allocated)) = (
            memory.cached,
            before("reservedintotalbypytorch").or_else(|| before("cached)")),
            memory.allocated,
        ) {
            // Until PyTorch 1.3 it was what is cached, and not all that is reserved.
            let is_all = message.contains("reservedintotalbypytorch");
            memory.cached = Some(if is_all { reserved.saturating_sub(allocated) } else { reserved });
        }
        // `Process 2112 has 1.00 GiB memory in use.`
        for part in message.split("process").skip(1) {
            let number = digits(part);
            let after = part.trim_start_matches(|letter: char| letter.is_ascii_digit());
            let held = after.strip_prefix("has").and_then(bytes);
            if let (Some(number), Some((held, rest))) = (number, held)
                && rest.starts_with("memoryinuse")
            {
                memory.others.push((number, held));
            }
        }
        // In a container, a program does not know its number. It holds all that PyTorch does.
        let pytorchs = memory.pytorchs();
        if memory.mine.is_none() && pytorchs > 0 {
            let can_be = memory.others.iter().copied().filter(|(_, held)| *held >= pytorchs);
            memory.own = can_be.min_by_key(|(_, held)| *held);
            let own = memory.own;
            memory.others.retain(|other| Some(*other) != own);
        }
        if memory.asked.is_none() {
            memory.asked = whole.rfind("triedtoallocate").and_then(|at| Some(bytes(&whole[at + 15..])?.0));
        }
        memory
    }

    /// Who holds the memory.
    fn who(&self, asked: u64) -> Option<String> {
        let gpu = self.gpu.map_or("the GPU".to_owned(), |gpu| format!("GPU {gpu}"));
        let mut parts = Vec::new();
        if let Some(allocated) = self.allocated {
            parts.push(format!("{} are tensors of your program", size(allocated)));
        }
        if let Some(pools) = self.pools {
            parts.push(format!("{} are in pools of CUDA graphs", size(pools)));
        }
        if let Some(cached) = self.cached {
            parts.push(format!("{} are kept by PyTorch for its next tensors", size(cached)));
        }
        let pytorchs = self.pytorchs();
        match (self.mine, self.total, self.free) {
            (Some(mine), ..) if mine > pytorchs && self.allocated.is_some() => {
                parts.push(format!(
                    "{} belong to CUDA itself or to other libraries in your program",
                    size(mine - pytorchs)
                ));
            }
            (Some(mine), ..) if self.allocated.is_none() => {
                parts.push(format!("{} are your program's", size(mine)))
            }
            // The old messages do not name others. What is left over is theirs and CUDA's.
            (None, Some(total), Some(free))
                if self.allocated.is_some()
                    && self.others.is_empty()
                    && self.own.is_none()
                    && total > free.saturating_add(pytorchs) =>
            {
                parts.push(format!(
                    "{} belong to CUDA itself or to other programs",
                    size(total - free - pytorchs)
                ));
            }
            _ => {}
        }
        for (number, held) in &self.others {
            parts.push(format!("{} are held by process {number}, another program", size(*held)));
        }
        let own = self.own.map_or(String::new(), |(number, held)| {
            format!(
                " Process {number}, which holds {} in all, is probably your own program: in a container it does not know its number.",
                size(held)
            )
        });
        if let Some(free) = self.free {
            parts.push(format!("{} are free", size(free)));
        }
        if parts.is_empty() && self.total.is_none() {
            return Some(format!(
                "Your program asked {gpu} for {}. The message does not say who holds the rest.",
                size(asked)
            ));
        }
        let total =
            self.total.map_or(format!("On {gpu}"), |total| format!("Of the {} on {gpu}", size(total)));
        let parts = if parts.is_empty() { "nothing more is said".to_owned() } else { crate::and(&parts) };
        Some(format!("Your program asked for {} more. {total}, {parts}.{own}", size(asked)))
    }

    /// All that PyTorch has reserved.
    fn pytorchs(&self) -> u64 {
        [self.allocated, self.pools, self.cached].into_iter().flatten().sum()
    }

    /// Why there was not enough, and what to try first.
    fn why(&self, asked: u64) -> Option<String> {
        let cached = self.cached.unwrap_or(0);
        let free = self.free.unwrap_or(0);
        let allocated = self.allocated.unwrap_or(0) + self.pools.unwrap_or(0);
        let others: u64 = self.others.iter().map(|(_, held)| *held).sum();
        if self.total.is_some_and(|total| asked > total) {
            return Some(
                "Fragmentation is not the cause: this one request is larger than the whole GPU. Try first: look at the shapes on \
                 the line that failed. Often two tensors were broadcast against each other by accident; otherwise the batch, the \
                 image or the sequence has to be much smaller."
                    .to_owned(),
            );
        }
        if cached >= asked && cached >= allocated / 10 {
            return Some(format!(
                "Fragmentation is the cause: {} are reserved and unused, more than you asked for, but no piece of it is large enough. \
                 Try first: set `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True` before the program starts (on Linux), and keep \
                 the sizes the same in every step.",
                size(cached)
            ));
        }
        if cached >= asked {
            return Some(format!(
                "Fragmentation is only part of the cause: {} are reserved and unused, but not in one piece, and the rest is full of \
                 tensors. Try first: halve the batch. `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True` (on Linux) wins back the pieces.",
                size(cached)
            ));
        }
        if let Some(limit) = self.limit
            && allocated + cached + asked > limit
            && free >= asked
        {
            return Some(format!(
                "Fragmentation is not the cause: the program has set itself a limit of {} and reached it, while the GPU has {} free. \
                 Try first: raise the limit, `set_per_process_memory_fraction`.",
                size(limit),
                size(free)
            ));
        }
        if free >= asked && self.total.is_some_and(|total| allocated > total / 4 * 3) {
            return Some(format!(
                "Fragmentation is not the cause: the {} that are free are hardly more than the request, and CUDA does not give out the \
                 last of them. The memory is full of tensors. Try first: halve the batch, and run evaluations under `no_grad`.",
                size(free)
            ));
        }
        if free >= asked && self.free.is_some() {
            return Some(format!(
                "Fragmentation is not the cause, and the GPU itself says that {} are free, enough for the request. Try first: look at \
                 `nvidia-smi` while your program runs, since another program may have held the memory for a moment. On Windows, \
                 also check that the page file is not too small.",
                size(free)
            ));
        }
        if others + free >= asked && others > 0 && others >= (allocated + cached) / 4 {
            return Some(format!(
                "Fragmentation is not the cause: other programs hold {}, and without them your request would fit. Try first: find \
                 them with `nvidia-smi`, and end those that you no longer need, or use another GPU.",
                size(others)
            ));
        }
        if let Some(mine) = self.mine
            && self.allocated.is_some()
            && mine.saturating_sub(allocated + cached) > allocated + cached
        {
            return Some(
                "Fragmentation is not the cause: most of what your program holds is not PyTorch's. Try first: find the other library \
                 that uses the GPU in the same program, such as TensorFlow, JAX or CuPy, and limit it."
                    .to_owned(),
            );
        }
        // The older messages name no other program.
        if let (None, Some(total), Some(_), Some(_)) = (self.mine, self.total, self.free, self.allocated) {
            let rest = total.saturating_sub(free.saturating_add(allocated + cached + others));
            if rest > total / 4 && rest + free >= asked && self.others.is_empty() && self.own.is_none() {
                return Some(format!(
                    "Fragmentation is not the cause: {} of the memory are neither free nor PyTorch's. Try first: see with `nvidia-smi` \
                     which other program holds them, and end it if you no longer need it.",
                    size(rest)
                ));
            }
        }
        if cached + free >= asked && cached > 0 {
            return Some(format!(
                "Fragmentation is part of the cause: {} reserved and {} free would be enough together, but not in one piece. Try \
                 first: set `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True` before the program starts (on Linux); if that is not \
                 enough, halve the batch.",
                size(cached),
                size(free)
            ));
        }
        self.allocated?;
        Some(format!(
            "Fragmentation is not the cause: of what PyTorch has reserved, only {} are unused, less than you asked for. The memory is \
             full of tensors. Try first: halve the batch, and run evaluations under `no_grad`.",
            size(cached)
        ))
    }
}

/// A size at the start of a text, in bytes, and what follows it.
fn bytes(text: &str) -> Option<(u64, &str)> {
    let end = text
        .find(|letter: char| !letter.is_ascii_digit() && letter != '.' && letter != ',')
        .unwrap_or(text.len());
    let rest = &text[end..];
    let (unit, factor) = UNITS.iter().find(|(unit, _)| rest.starts_with(unit))?;
    Some((product(&text[..end], *factor)?, &rest[unit.len()..]))
}

/// A size at the end of a text.
fn bytes_before(text: &str) -> Option<u64> {
    let text = text.strip_suffix("is").unwrap_or(text);
    let (unit, factor) = UNITS.iter().find(|(unit, _)| text.ends_with(unit))?;
    let text = &text[..text.len() - unit.len()];
    let number = text
        .rfind(|letter: char| !letter.is_ascii_digit() && letter != '.' && letter != ',')
        .map_or(0, |at| at + text[at..].chars().next().map_or(1, char::len_utf8));
    product(text[number..].trim_start_matches(['.', ',']), *factor)
}

/// A decimal number times a unit.
fn product(number: &str, factor: u64) -> Option<u64> {
    // PyTorch writes two decimals, in some languages after a comma.
    let (whole, fraction) = number
        .split_once('.')
        .or_else(|| number.split_once(',').filter(|(_, decimals)| decimals.len() == 2))
        .unwrap_or((number, "0"));
    let parts = 10_u64.checked_pow(fraction.len() as u32).filter(|parts| *parts <= 10_000)?;
    let fraction: u64 = fraction.parse().ok()?;
    let bytes = whole.parse::<u64>().ok()?.checked_mul(factor)?.checked_add(factor * fraction / parts)?;
    // More than any computer has would only overflow sums.
    (bytes < 1 << 56).then_some(bytes)
}

/// As they are squeezed. A longer name comes before one that it ends in.
const UNITS: [(&str, u64); 9] = [
    ("bytes", 1),
    ("byte", 1),
    ("kib", 1024),
    ("mib", 1_048_576),
    ("gib", 1_073_741_824),
    ("tib", 1_099_511_627_776),
    ("kb", 1024),
    ("mb", 1_048_576),
    ("gb", 1_073_741_824),
];

fn digits(text: &str) -> Option<u64> {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    text[..end].parse().ok()
}
