//! Barriers, shuffles and votes: operations at which lanes wait for each other.

use super::block::{Block, Group, State, Warp};
use super::checks::{Finding, Severity, Site};
use super::interpreter::{Runner, Stop};
use super::launch::fatal;
use crate::ir::{BarrierKind, LANES, NO_ROW, Op, ShuffleKind, VoteKind};

impl Runner<'_> {
    /// Handles a group's arrival at a shuffle or a vote. The group continues if all lanes of its mask have arrived, and
    /// waits otherwise.
    pub fn arrive(&mut self, block: &mut Block, warp: &mut Warp, mut group: Group) -> Result<(), Stop> {
        let program = self.program;
        let (Op::Shuffle { mask: row, .. } | Op::Vote { mask: row, .. }) = program.ops[group.pc as usize]
        else {
            return Ok(());
        };
        let masks = warp.registers.get::<u32>(row);
        // Lanes with different masks form separate groups.
        let first = group.mask.trailing_zeros() as usize & 31;
        let named = masks[first];
        let same = (0..LANES).filter(|lane| group.mask >> lane & 1 != 0 && masks[*lane] == named);
        let same = same.fold(0u32, |all, lane| all | 1 << lane);
        if same != group.mask {
            warp.groups.push(Group { mask: group.mask & !same, ..group });
            group.mask = same;
        }
        if group.mask & !named != 0 {
            self.bad_mask(block, warp, &group, named);
            let lanes = group.mask & named;
            if lanes == 0 {
                // The mask names no lane of the group, so each lane continues alone.
                let all = group.mask;
                self.operate(block, warp, group.pc, all, all);
                group.pc += 1;
                warp.groups.push(group);
                return Ok(());
            }
        }
        let existing = named & warp.live;
        // Other groups that wait here with the same mask.
        let mut i = 0;
        while i < warp.groups.len() {
            let other = warp.groups[i];
            if other.pc == group.pc && other.state == State::Lanes(named) {
                group.mask |= other.mask;
                warp.groups.swap_remove(i);
            } else {
                i += 1;
            }
        }
        if existing & !group.mask == 0 {
            self.check_ended(block, warp, &group, named);
            self.operate(block, warp, group.pc, group.mask, named);
            group.pc += 1;
            group.state = State::Ready;
            warp.groups.push(group);
        } else {
            group.state = State::Lanes(named);
            warp.groups.push(group);
        }
        Ok(())
    }

    /// Called when all groups of a warp wait. Releases groups whose missing lanes have exited, and groups that wait in
    /// `__syncwarp` at different positions.
    pub fn meet(&mut self, warp: &mut Warp) {
        for i in 0..warp.groups.len() {
            let State::Lanes(named) = warp.groups[i].state else { continue };
            let group = warp.groups[i];
            let existing = named & warp.live;
            if existing & !group.mask == 0 {
                warp.groups[i].state = State::Ready;
                continue;
            }
            let is_sync =
                |pc: u32| matches!(self.program.ops[pc as usize], Op::Vote { kind: VoteKind::Sync, .. });
            if !is_sync(group.pc) {
                continue;
            }
            let all: Vec<usize> = (0..warp.groups.len())
                .filter(|at| warp.groups[*at].state == State::Lanes(named) && is_sync(warp.groups[*at].pc))
                .collect();
            let mask = all.iter().fold(0, |mask, at| mask | warp.groups[*at].mask);
            if existing & !mask == 0 {
                for at in all {
                    warp.groups[at].state = State::Ready;
                    warp.groups[at].pc += 1;
                }
                turn(warp, mask);
            }
        }
    }

    fn operate(&mut self, block: &Block, warp: &mut Warp, pc: u32, mask: u32, named: u32) {
        turn(warp, mask);
        if let Some(clocks) = &mut self.machine.order.clocks {
            let first = warp.number as u16 * 32;
            clocks.meet(block.number, (0..32).filter(|lane| mask >> lane & 1 != 0).map(|lane| first + lane));
        }
        match self.program.ops[pc as usize] {
            Op::Shuffle { kind, wide, d, a, lane, width, .. } => {
                let values: [u64; LANES] = match wide {
                    true => warp.registers.get::<u64>(a),
                    false => warp.registers.get::<u32>(a).map(u64::from),
                };
                let (lanes, widths) = (warp.registers.get::<i32>(lane), warp.registers.get::<i32>(width));
                let mut out = values;
                for (me, out) in out.iter_mut().enumerate() {
                    // A width that is not a power of two up to 32 counts as 32.
                    let width = match widths[me] {
                        width @ (1 | 2 | 4 | 8 | 16) => width,
                        _ => 32,
                    };
                    let (here, start) = (me as i32, me as i32 / width * width);
                    let from = match kind {
                        ShuffleKind::Index => start + (lanes[me] & (width - 1)),
                        ShuffleKind::Up => here.wrapping_sub(lanes[me] & 31),
                        ShuffleKind::Down => here + (lanes[me] & 31),
                        ShuffleKind::Xor => here ^ (lanes[me] & 31),
                    };
                    let inside = match kind {
                        ShuffleKind::Up => from >= start,
                        ShuffleKind::Xor => from < start + width,
                        _ => from < start + width,
                    };
                    if inside && (0..32).contains(&from) {
                        *out = values[from as usize];
                    }
                }
                match wide {
                    true => warp.registers.set::<u64>(d, mask, &out),
                    false => warp.registers.set::<u32>(d, mask, &out.map(|bits| bits as u32)),
                }
            }
            Op::Vote { kind, d, a, .. } => {
                if d == NO_ROW || kind == VoteKind::Sync {
                    return;
                }
                let values: [u64; LANES] = match kind {
                    VoteKind::Match64 => warp.registers.get::<u64>(a),
                    _ => warp.registers.get::<u32>(a).map(u64::from),
                };
                let inside = |lane: &usize| (mask & named) >> lane & 1 != 0;
                let all = || (0..LANES).filter(inside).map(|lane| values[lane] as u32);
                let ballot = (0..LANES)
                    .filter(inside)
                    .filter(|lane| values[*lane] != 0)
                    .fold(0u32, |b, lane| b | 1 << lane);
                let signed = || all().map(|value| value as i32);
                let mut out = [match kind {
                    VoteKind::Any => u32::from(ballot != 0),
                    VoteKind::All => u32::from(ballot == mask & named),
                    VoteKind::Ballot => ballot,
                    VoteKind::ReduceAdd => all().fold(0, u32::wrapping_add),
                    VoteKind::ReduceAnd => all().fold(u32::MAX, |a, b| a & b),
                    VoteKind::ReduceOr => all().fold(0, |a, b| a | b),
                    VoteKind::ReduceXor => all().fold(0, |a, b| a ^ b),
                    VoteKind::ReduceMinI => signed().min().unwrap_or(0) as u32,
                    VoteKind::ReduceMaxI => signed().max().unwrap_or(0) as u32,
                    VoteKind::ReduceMinU => all().min().unwrap_or(0),
                    VoteKind::ReduceMaxU => all().max().unwrap_or(0),
                    _ => 0,
                }; LANES];
                if matches!(kind, VoteKind::Match32 | VoteKind::Match64) {
                    for (lane, out) in out.iter_mut().enumerate() {
                        *out = (0..LANES)
                            .filter(inside)
                            .filter(|other| values[*other] == values[lane])
                            .fold(0, |b, other| b | 1 << other);
                    }
                }
                warp.registers.set::<u32>(d, mask, &out);
            }
            _ => {}
        }
    }

    /// Reports a shuffle whose mask names lanes that have exited. It would read their values. A vote and `__syncwarp`
    /// may name them, since they wait only for threads that have not exited.
    fn check_ended(&mut self, block: &Block, warp: &Warp, group: &Group, named: u32) {
        let is_shuffle = matches!(self.program.ops[group.pc as usize], Op::Shuffle { .. });
        if !self.machine.checks().sync || !is_shuffle {
            return;
        }
        // Lanes past the end of the block never existed.
        let threads = self.shape.block.iter().product::<u32>();
        let lanes = threads.saturating_sub(warp.number * 32).min(32);
        let there = u32::MAX.checked_shr(32 - lanes).unwrap_or(0);
        let ended = named & there & !group.mask;
        if ended != 0 {
            let lane = group.mask.trailing_zeros() as usize & 31;
            let site = self.site_of("at", group.pc, block, warp, lane);
            self.sync_finding(
                "Barrier error detected. Invalid arguments",
                vec![site],
                vec![format!("the mask {named:#x} names the lanes {ended:#x}, which have ended without it")],
            );
        }
    }

    #[cold]
    fn bad_mask(&mut self, block: &Block, warp: &Warp, group: &Group, named: u32) {
        if !self.machine.checks().sync {
            return;
        }
        let lane = (group.mask & !named).trailing_zeros() as usize & 31;
        let site = self.site_of("at", group.pc, block, warp, lane);
        self.sync_finding(
            "Barrier error detected. Invalid arguments",
            vec![site],
            vec![format!("the mask {named:#x} leaves out the thread that calls it")],
        );
    }

    fn sync_finding(&mut self, title: &str, sites: Vec<Site>, notes: Vec<String>) {
        self.machine.findings.add(Finding {
            check: "synccheck",
            severity: Severity::Error,
            title: title.to_owned(),
            function: self.program.name.clone(),
            sites,
            notes,
            count: 1,
            is_fatal: false,
        });
    }

    /// Reports a barrier that only some threads of a block reach: others wait at another barrier, or part of their warp
    /// has exited.
    fn check_barrier(&mut self, block: &Block, warps: &[Warp]) {
        let title = "Barrier error detected. Divergent thread(s) in block";
        let threads = self.shape.block.iter().product::<u32>();
        let mut places: Vec<(u32, Site)> = Vec::new();
        for warp in warps {
            for group in &warp.groups {
                let lane = group.mask.trailing_zeros() as usize & 31;
                let site = self.site_of("at", group.pc, block, warp, lane);
                if places.iter().all(|(pc, _)| *pc != group.pc) {
                    places.push((group.pc, site.clone()));
                }
                let lanes = threads.saturating_sub(warp.number * 32).min(32);
                let ended = lanes - warp.live.count_ones();
                if ended > 0 {
                    let which = if ended == 1 { "thread has" } else { "threads have" };
                    let note = format!("{ended} {which} ended in this warp without reaching this barrier");
                    self.sync_finding(title, vec![site], vec![note]);
                }
            }
        }
        if places.len() > 1 {
            let sites = places.into_iter().map(|(_, site)| site).take(4).collect();
            self.sync_finding(
                title,
                sites,
                vec!["threads of the block wait at different barriers".to_owned()],
            );
        }
    }

    /// Opens a barrier that all live threads of the block have reached.
    pub fn open_barrier(&mut self, block: &mut Block, warps: &mut [Warp]) -> Result<(), Stop> {
        if self.machine.checks().sync {
            self.check_barrier(block, warps);
        }
        let program = self.program;
        let (mut count, mut all, mut threads) = (0u32, 0u32, 0u32);
        for warp in warps.iter() {
            for group in &warp.groups {
                if let Op::Barrier { a, kind, .. } = program.ops[group.pc as usize] {
                    if kind != BarrierKind::Plain {
                        let values = warp.registers.get::<u32>(a);
                        let yes = (0..LANES)
                            .filter(|lane| group.mask >> lane & 1 != 0 && values[*lane] != 0)
                            .count();
                        count += yes as u32;
                    }
                    threads += group.mask.count_ones();
                }
            }
        }
        all += u32::from(count == threads);
        for warp in warps.iter_mut() {
            let mut groups = std::mem::take(&mut warp.groups);
            for group in &mut groups {
                if let Op::Barrier { d, kind, .. } = program.ops[group.pc as usize] {
                    let result = match kind {
                        BarrierKind::Plain => None,
                        BarrierKind::And => Some(all),
                        BarrierKind::Or => Some(u32::from(count > 0)),
                        BarrierKind::Count => Some(count),
                    };
                    if let (Some(result), true) = (result, d != NO_ROW) {
                        warp.registers.set::<u32>(d, group.mask, &[result; LANES]);
                    }
                }
                group.pc += 1;
                group.state = State::Ready;
                group.gave_way = 0;
            }
            warp.groups = groups;
            warp.turns = [0; 32];
        }
        if let Some(clocks) = &mut self.machine.order.clocks {
            clocks.barrier(block.number, self.shape.block.iter().product());
        }
        block.interval = self.interval();
        block.waiting.forget();
        Ok(())
    }

    pub fn deadlock(&mut self, block: &Block, warps: &[Warp]) -> Stop {
        let mut sites: Vec<Site> = Vec::new();
        for warp in warps {
            for group in &warp.groups {
                let lane = group.mask.trailing_zeros() as usize & 31;
                let what = match group.state {
                    State::Barrier => "waiting at a barrier of the block at",
                    State::Lanes(_) => "waiting for other lanes of its warp at",
                    State::Ready => "ready at",
                };
                let site = self.site_of(what, group.pc, block, warp, lane);
                if !sites.iter().any(|known| known.span == site.span && known.text == site.text)
                    && sites.len() < 8
                {
                    sites.push(site);
                }
            }
        }
        let notes = vec!["each waits for threads that wait elsewhere or have ended".to_owned()];
        self.machine.findings.add(fatal(
            "synccheck",
            "Deadlock: threads wait for each other".to_owned(),
            &self.program.name,
            sites,
            notes,
        ));
        Stop::Timeout
    }
}

/// Orders the accesses of lanes before a warp-synchronous operation before those after it.
fn turn(warp: &mut Warp, mask: u32) {
    let most =
        (0..LANES).filter(|lane| mask >> lane & 1 != 0).map(|lane| warp.turns[lane]).max().unwrap_or(0);
    for lane in 0..LANES {
        if mask >> lane & 1 != 0 {
            warp.turns[lane] = most.wrapping_add(1);
        }
    }
}
