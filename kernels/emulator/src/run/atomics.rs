use super::block::{Block, Warp};
use super::interpreter::{Runner, Stop};
use super::races::{Access, Kind};
use crate::ir::{AtomicKind, LANES, NO_ROW, Op, Prim, Scope};

impl Runner<'_> {
    pub fn atomic(&mut self, block: &mut Block, warp: &mut Warp, mask: u32, pc: u32) -> Result<(), Stop> {
        let Op::Atomic { kind, ty, scope, d, base, a, b } = self.program.ops[pc as usize] else {
            return Ok(());
        };
        let addresses = warp.registers.get::<u64>(base);
        for lane in 0..LANES {
            if mask >> lane & 1 == 0 {
                continue;
            }
            let address = addresses[lane];
            let old = self.read_one(block, warp, pc, lane, address, ty, 1)?;
            let x = warp.registers.bits(ty, a, lane);
            let y = if b == NO_ROW { 0 } else { warp.registers.bits(ty, b, lane) };
            let new = result(kind, ty, old, x, y);
            self.write_one(block, warp, pc, lane, address, ty, new, 1)?;
            if d != NO_ROW {
                warp.registers.set_bits(ty, d, lane, old);
            }
            if self.machine.order.clocks.is_some() {
                let me = access(block, warp, lane);
                if let Some(clocks) = &mut self.machine.order.clocks {
                    clocks.atomic(&me, address, scope != Scope::Block);
                }
            }
        }
        if self.races {
            let kind = if scope == Scope::Block { Kind::BlockAtomic } else { Kind::Atomic };
            self.note(block, warp, mask, pc, &addresses, crate::ir::size_of(ty), kind);
        }
        Ok(())
    }

    pub fn fence(&mut self, block: &Block, warp: &mut Warp, mask: u32, scope: Scope) {
        let Some(clocks) = &mut self.machine.order.clocks else { return };
        for lane in (0..LANES).filter(|lane| mask >> lane & 1 != 0) {
            clocks.fence(&access(block, warp, lane), scope != Scope::Block);
            warp.steps[lane] = warp.steps[lane].saturating_add(1);
        }
    }
}

fn access(block: &Block, warp: &Warp, lane: usize) -> Access {
    Access {
        block: block.number,
        interval: block.interval,
        thread: (warp.number * 32) as u16 + lane as u16,
        turn: warp.turns[lane],
        step: warp.steps[lane],
        ..Access::default()
    }
}

fn result(kind: AtomicKind, ty: Prim, old: u64, x: u64, y: u64) -> u64 {
    let (a, b) = (f32::from_bits(old as u32), f32::from_bits(x as u32));
    let (c, d) = (f64::from_bits(old), f64::from_bits(x));
    let narrow = |bits: u64| super::arithmetic::narrowed(ty, bits);
    let signed = |bits: u64| if ty == Prim::I32 { i64::from(bits as u32 as i32) } else { bits as i64 };
    let is_signed = matches!(ty, Prim::I32 | Prim::I64);
    match kind {
        AtomicKind::Add => match ty {
            Prim::F32 => u64::from(super::arithmetic::as_on_device(a + b).to_bits()),
            Prim::F64 => (c + d).to_bits(),
            _ => narrow(old.wrapping_add(x)),
        },
        AtomicKind::Sub => narrow(old.wrapping_sub(x)),
        AtomicKind::Min if is_signed => {
            if signed(x) < signed(old) {
                x
            } else {
                old
            }
        }
        AtomicKind::Max if is_signed => {
            if signed(x) > signed(old) {
                x
            } else {
                old
            }
        }
        AtomicKind::Min => old.min(x),
        AtomicKind::Max => old.max(x),
        AtomicKind::And => old & x,
        AtomicKind::Or => old | x,
        AtomicKind::Xor => old ^ x,
        AtomicKind::Exch => x,
        // `atomicCAS(address, compare, value)`: the comparison value comes first.
        AtomicKind::Cas => {
            if old == x {
                y
            } else {
                old
            }
        }
        AtomicKind::Inc => {
            if old >= x {
                0
            } else {
                old + 1
            }
        }
        AtomicKind::Dec => {
            if old == 0 || old > x {
                x
            } else {
                old - 1
            }
        }
    }
}
