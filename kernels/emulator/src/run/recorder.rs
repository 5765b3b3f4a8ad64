//! Records the steps of one warp. The warp runs one instruction at a time. A step is the part of a statement that some
//! lanes execute together.

use super::access::{Which, which};
use super::block::{Block, Group, State, Warp};
use super::interpreter::{Runner, Stop};
use super::memory::Space;
use super::operations::addresses;
use super::recording::{Access, AccessKind, Content, End, Event, Recording, Region, Step, Wanted};
use crate::ir::debug::{Debug, Place, Variable};
use crate::ir::{Address, LANES, Op, Program, Scaled, rows_of, size_of, space};

/// The maximum number of warp instructions of a launch after its recording, so that an endless kernel shows its first
/// steps soon.
const MOST_AFTERWARDS: u64 = 40_000_000;
/// The maximum number of steps, and of the values of their accesses and changes.
pub const MOST_STEPS: usize = 2000;
const MOST_VALUES: usize = 500_000;

pub struct Recorder {
    wanted: Wanted,
    launches: u64,
    /// `None` before the wanted launch.
    recording: Option<Recording>,
    is_done: bool,
    pub(super) lanes: [Position; LANES],
    /// The shown contents of each part of each variable.
    pub(super) shown: Vec<Vec<[Content; LANES]>>,
    /// For each part of a variable declared without a value, the lanes that have written it.
    pub(super) written: Vec<Vec<u32>>,
    /// The shown contents of the shared variables, and all shared bytes with their states at that time.
    pub(super) cells: Vec<Vec<Content>>,
    pub(super) shared: Space,
    open: Option<Open>,
    /// The statement of the barrier that the warp waits at.
    barrier: Option<u32>,
    /// Lanes that wait for other lanes or other warps.
    waiting: u32,
    pub(super) values: usize,
}

/// A lane's last instruction.
#[derive(Clone, Copy, Default)]
pub(super) struct Position {
    /// The mark of the instruction; `None` before the first mark, and after the end.
    mark: Option<u32>,
    /// The instruction after it.
    pub(super) next: u32,
    /// The number of marks that a jump to `next` skips.
    skipped: u32,
}

struct Open {
    step: Step,
    mark: u32,
    last: u32,
}

impl Recorder {
    pub fn new(wanted: Wanted) -> Recorder {
        Recorder {
            wanted,
            launches: 0,
            recording: None,
            is_done: false,
            lanes: Default::default(),
            shown: Vec::new(),
            written: Vec::new(),
            cells: Vec::new(),
            shared: Space::default(),
            open: None,
            barrier: None,
            waiting: 0,
            values: 0,
        }
    }

    pub fn is_at(&self, block: &Block, warp: &Warp) -> bool {
        self.recording.is_some()
            && !self.is_done
            && block.index == self.wanted.block
            && warp.number == self.wanted.warp
    }

    pub fn is_at_launch(&self) -> bool {
        self.launches == self.wanted.launch
    }

    pub fn recording(self) -> Option<Recording> {
        self.recording
    }

    /// Counts a launch, and begins the recording if it is the wanted one.
    pub fn begin(&mut self, runner: &Runner, kernel: u32) {
        self.launches += 1;
        if !self.is_at_launch() {
            return;
        }
        let (debug, shape) = (&runner.program.debug, runner.shape);
        self.shown =
            debug.variables.iter().map(|known| vec![[Content::Nothing; LANES]; known.parts.len()]).collect();
        self.written = debug.variables.iter().map(|known| vec![0; known.parts.len()]).collect();
        let cells = |known: &crate::ir::debug::SharedVariable| {
            known.elements(shape.dynamic_shared) as usize * known.fields.len()
        };
        self.cells = debug.shared.iter().map(|known| vec![Content::Nothing; cells(known)]).collect();
        self.recording = Some(Recording {
            wanted: self.wanted,
            kernel,
            shape,
            steps: Vec::new(),
            end: End::Error,
            regions: regions(runner),
        });
    }

    pub fn finish(&mut self) {
        self.is_done |= self.is_at_launch();
    }

    fn before(&mut self, runner: &Runner, block: &Block, warp: &Warp, group: &Group) {
        let program = runner.program;
        let debug = &program.debug;
        self.released(warp, group);
        let Some(mark) = mark_of(debug, group.pc) else { return };
        if let (Some(statement), Some(mark)) = (self.barrier.take(), mark_of(debug, group.pc - 1)) {
            self.open(runner, block, group.mask, statement, mark);
            let elsewhere = self.elsewhere(debug, warp, group.mask);
            if let Some(open) = &mut self.open {
                (open.step.event, open.step.elsewhere) = (Event::Opened, elsewhere);
                open.last = group.pc - 1;
            }
        }
        let continues = self.open.as_ref().is_some_and(|open| {
            open.mark == mark && group.pc > open.last && group.mask & !open.step.active == 0
        });
        if !continues {
            self.close(runner, block, warp);
            self.statements_without_instructions(runner, block, warp, group, mark);
            if let Some(statement) = debug.marks[mark as usize].statement {
                self.open(runner, block, group.mask, statement, mark);
            }
        }
        let op = program.ops[group.pc as usize];
        self.note_writes(program, warp, group, mark, op);
        if let Some(access) = access(warp, group.mask, op)
            && let Some(open) = &mut self.open
        {
            self.values += 2 * access.lanes.count_ones() as usize;
            open.step.accesses.push(access);
        }
    }

    fn after(&mut self, runner: &Runner, block: &Block, warp: &Warp, group: &Group, is_error: bool) {
        let debug = &runner.program.debug;
        let (pc, mask) = (group.pc, group.mask);
        let op = runner.program.ops[pc as usize];
        let mark = mark_of(debug, pc);
        let is_exit = matches!(op, Op::Exit);
        for lane in lanes(mask) {
            self.lanes[lane] = match is_exit {
                true => Position::default(),
                false => Position { mark, next: pc + 1, skipped: 0 },
            };
        }
        let skipped = debug.skipped.iter().find(|(jump, _)| *jump == pc).map_or(0, |(_, skipped)| *skipped);
        for other in warp.groups.iter().filter(|other| other.mask & mask != 0) {
            if let Op::Jump { to } | Op::Branch { to, .. } = op
                && other.pc == to
            {
                lanes(other.mask & mask).for_each(|lane| self.lanes[lane].skipped = skipped);
            }
            if other.state != State::Ready {
                self.waiting |= other.mask & mask;
                lanes(other.mask & mask).for_each(|lane| self.lanes[lane].next = pc);
            }
        }
        let waits = self.waiting & mask != 0;
        let elsewhere = self.open.as_ref().map(|open| self.elsewhere(debug, warp, open.step.active));
        if let Some(open) = &mut self.open {
            open.last = pc;
            open.step.exited |= if is_exit { mask } else { 0 };
            open.step.elsewhere = elsewhere.unwrap_or_default();
            if let Some(access) = open.step.accesses.last_mut()
                && access.contents[access.lanes.trailing_zeros() as usize & 31] == Content::Nothing
            {
                for lane in lanes(access.lanes) {
                    let found = runner.peek(block, warp, lane, access.addresses[lane], access.ty);
                    access.contents[lane] = found.map_or(Content::Unwritten, Content::Bits);
                }
            }
            if waits && matches!(op, Op::Barrier { .. }) {
                open.step.event = Event::Barrier;
                self.barrier = Some(open.step.statement);
            } else if waits {
                open.step.event = Event::Lanes;
            }
        }
        if waits || is_error || warp.live == 0 {
            self.close(runner, block, warp);
        }
        if let Some(recording) = &mut self.recording
            && (is_error || warp.live == 0)
        {
            recording.end = if is_error { End::Error } else { End::Returned };
            self.is_done = true;
        }
    }

    /// Moves lanes that waited for others past the instruction that they waited at.
    fn released(&mut self, warp: &Warp, next: &Group) {
        for group in warp.groups.iter().chain([next]).filter(|group| group.state == State::Ready) {
            for lane in lanes(group.mask & self.waiting) {
                self.lanes[lane].next = group.pc;
            }
            self.waiting &= !group.mask;
        }
    }

    /// Records statements without instructions, such as the declaration of a constant.
    fn statements_without_instructions(
        &mut self,
        runner: &Runner,
        block: &Block,
        warp: &Warp,
        group: &Group,
        mark: u32,
    ) {
        let debug = &runner.program.debug;
        let first = debug.marks.partition_point(|known| known.at < group.pc) as u32;
        for number in first..mark {
            let known = debug.marks[number as usize];
            let active = lanes(group.mask).filter(|lane| self.lanes[*lane].skipped <= number - first);
            let active = active.fold(0, |all, lane| all | 1 << lane);
            if let (Some(statement), false) = (known.statement, known.is_rest || active == 0) {
                self.open(runner, block, active, statement, number);
                let elsewhere = self.elsewhere(debug, warp, group.mask);
                for lane in lanes(active) {
                    self.lanes[lane] = Position { mark: Some(number), next: group.pc, skipped: 0 };
                }
                if let Some(open) = &mut self.open {
                    open.step.elsewhere = elsewhere;
                }
                self.close(runner, block, warp);
            }
        }
    }

    fn open(&mut self, runner: &Runner, block: &Block, active: u32, statement: u32, mark: u32) {
        if self.is_done {
            return;
        }
        let step = Step {
            statement,
            active,
            event: Event::None,
            variables: Vec::new(),
            shared: Vec::new(),
            others: self.changed_cells(runner, block),
            accesses: Vec::new(),
            exited: 0,
            elsewhere: Vec::new(),
        };
        self.open = Some(Open { step, mark, last: 0 });
    }

    /// Ends the step. Its changes are those since the last one.
    fn close(&mut self, runner: &Runner, block: &Block, warp: &Warp) {
        let Some(Open { mut step, .. }) = self.open.take() else { return };
        step.variables = self.changed_variables(runner, block, warp);
        step.shared = self.changed_cells(runner, block);
        self.values += step.variables.iter().map(|change| change.contents.len()).sum::<usize>();
        let Some(recording) = &mut self.recording else { return };
        recording.steps.push(step);
        if recording.steps.len() >= MOST_STEPS || self.values >= MOST_VALUES {
            recording.end = End::Limit;
            self.is_done = true;
        }
    }

    /// The live lanes that are not active, and their next statements.
    fn elsewhere(&self, debug: &Debug, warp: &Warp, active: u32) -> Vec<(u32, Option<u32>)> {
        let mut all: Vec<(u32, Option<u32>)> = Vec::new();
        for group in &warp.groups {
            for lane in lanes(group.mask & !active) {
                let first = debug.marks.partition_point(|known| known.at < group.pc);
                let last = debug.marks.partition_point(|known| known.at <= group.pc);
                let skipped = (first + self.lanes[lane].skipped as usize).min(last.saturating_sub(1));
                let at = if first == last { last.saturating_sub(1) } else { skipped };
                let statement = debug.marks.get(at).and_then(|mark| mark.statement);
                match all.iter_mut().find(|(_, known)| *known == statement) {
                    Some((lanes, _)) => *lanes |= 1 << lane,
                    None => all.push((1 << lane, statement)),
                }
            }
        }
        all.sort_by_key(|(lanes, _)| lanes.trailing_zeros());
        all
    }

    /// Notes an instruction's writes to variables declared without a value.
    fn note_writes(&mut self, program: &Program, warp: &Warp, group: &Group, mark: u32, mut op: Op) {
        // If lanes arrive one after another, the last ones write for all.
        let is_joint = matches!(op, Op::Shuffle { .. } | Op::Vote { .. });
        let mask = group.mask | if is_joint { self.waiting } else { 0 };
        let mut rows = (0, 0);
        op.visit(&program.operands, &mut |row, count, is_written| {
            if is_written {
                rows = (*row, count);
            }
        });
        let stored = match op {
            Op::Store { ref at, .. } => Some(addresses(warp, at)),
            _ => None,
        };
        let variables = program.debug.variables.iter().enumerate();
        for (number, variable) in variables.filter(|(_, variable)| variable.is_bare) {
            let is_declaration = mark + 1 == variable.born && group.pc < variable.from;
            if !is_declaration && !(variable.born..variable.dies).contains(&mark) {
                continue;
            }
            for (part, written) in variable.parts.iter().zip(&mut self.written[number]) {
                match (part.place, &stored) {
                    (Place::Row(row), _)
                        if row < rows.0 + rows.1 && rows.0 < row + rows_of(part.kind.prim()) =>
                    {
                        *written = if is_declaration { *written & !mask } else { *written | mask };
                    }
                    (Place::Fixed(at), Some(stored)) => {
                        let there = lanes(group.mask).filter(|lane| stored[*lane] == at);
                        *written |= there.fold(0, |all, lane| all | 1 << lane);
                    }
                    _ => {}
                }
            }
        }
    }
}

impl Position {
    pub(super) fn sees(&self, variable: &Variable) -> bool {
        let Some(mark) = self.mark else { return false };
        mark < variable.dies
            && (variable.born <= mark || variable.born == mark + 1 && variable.from <= self.next)
    }
}

impl Runner<'_> {
    pub fn is_recorded(&self, block: &Block, warp: &Warp) -> bool {
        self.recorder.as_ref().is_some_and(|recorder| recorder.is_at(block, warp))
    }

    /// Runs one instruction of a group of the recorded warp.
    pub fn run_recorded(
        &mut self,
        block: &mut Block,
        warp: &mut Warp,
        group: Group,
        others: bool,
    ) -> Result<(), Stop> {
        let Some(mut recorder) = self.recorder.take() else { return Ok(()) };
        recorder.before(self, block, warp, &group);
        // The slice ends at a jump backwards, the limit at every other instruction.
        let result = self.run_group(block, warp, group, group.pc + 1, others, u64::MAX);
        recorder.after(self, block, warp, &group, result.is_err());
        if recorder.is_done {
            self.left = self.left.min(MOST_AFTERWARDS);
        }
        self.recorder = Some(recorder);
        result
    }
}

fn mark_of(debug: &Debug, pc: u32) -> Option<u32> {
    (debug.marks.partition_point(|mark| mark.at <= pc) as u32).checked_sub(1)
}

pub(super) fn lanes(mask: u32) -> impl Iterator<Item = usize> + Clone {
    (0..LANES).filter(move |lane| mask >> lane & 1 != 0)
}

/// An instruction's access to global or shared memory, without its contents yet.
fn access(warp: &Warp, mask: u32, op: Op) -> Option<Access> {
    let (kind, ty, at) = match op {
        Op::Load { ty, at, .. } => (AccessKind::Load, ty, at),
        Op::Store { ty, at, .. } => (AccessKind::Store, ty, at),
        Op::Atomic { ty, base, .. } => {
            let at = Address { base, first: Scaled::NONE, second: Scaled::NONE, offset: 0, align: 1 };
            (AccessKind::Atomic, ty, at)
        }
        _ => return None,
    };
    let addresses = addresses(warp, &at);
    let there = lanes(mask).filter(|lane| matches!(which(addresses[*lane]), Which::Heap | Which::Shared));
    let lanes = there.fold(0, |all, lane| all | 1 << lane);
    (lanes != 0).then_some(Access { kind, ty, lanes, addresses, contents: [Content::Nothing; LANES] })
}

/// The memory named by the kernel's pointers, global variables and shared variables.
fn regions(runner: &Runner) -> Vec<Region> {
    let heap = &runner.machine.heap;
    let debug = &runner.program.debug;
    let mut regions = Vec::new();
    for pointer in &debug.pointers {
        let at = pointer.offset as usize;
        let Some(bytes) = runner.parameters.get(at..at + 8) else { continue };
        let start = u64::from_le_bytes(bytes.try_into().unwrap_or_default());
        let offset = start.wrapping_sub(space::HEAP);
        let inside = |size: u64, from: u64| (from..=from + size).contains(&offset);
        if let Some(of) = heap.allocations.iter().find(|of| inside(of.size, of.offset)) {
            // Includes out-of-bounds addresses nearby: the next allocation is at least 256 bytes away.
            let from = space::HEAP + of.offset;
            regions.push(Region {
                name: pointer.name.clone(),
                start,
                range: from - 128..=from + of.size + 127,
                element_size: pointer.element_size,
                kind: None,
            });
        }
    }
    for of in heap.allocations.iter().filter(|of| of.owner == super::memory::Owner::Global) {
        let start = space::HEAP + of.offset;
        if !of.name.starts_with('<') {
            let range = start..=start + of.size;
            regions.push(Region { name: of.name.clone(), start, range, element_size: 0, kind: None });
        }
    }
    for known in &debug.shared {
        let size = known.elements(runner.shape.dynamic_shared) * known.element_size;
        regions.push(Region {
            name: known.name.clone(),
            start: known.address,
            range: known.address..=known.address + size,
            element_size: known.element_size,
            kind: known.fields.first().map(|(_, _, kind)| *kind),
        });
    }
    for slot in &runner.program.local {
        let start = space::LOCAL + slot.offset;
        let parts = debug.variables.iter().filter_map(|known| known.parts.first());
        let first = parts.clone().find(|part| matches!(part.place, Place::Fixed(at) if at == start));
        // An array of structs counts as one element: the size of its elements is unknown here.
        let element_size = match first {
            Some(part) if part.path.contains('.') => slot.size,
            Some(part) => size_of(part.kind.prim()),
            None => 1,
        };
        let range = start..=start + slot.size;
        regions.push(Region { name: slot.name.clone(), start, range, element_size, kind: None });
    }
    regions
}
