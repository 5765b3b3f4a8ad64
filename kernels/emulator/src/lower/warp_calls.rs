//! Functions for cooperation between threads: barriers, shuffles, votes, atomics, fences.

use super::{Lower, Place, Value};
use crate::ir::{AtomicKind, BarrierKind, NO_ROW, Op, Prim, Scope, ShuffleKind, Special, VoteKind, rows_of};
use crate::source::{Error, Result, Span};
use crate::types::{self, BOOL, I32, TypeId, U32, VOID};

pub const NAMES: &[&str] = &[
    "__syncthreads",
    "__syncthreads_and",
    "__syncthreads_or",
    "__syncthreads_count",
    "__syncwarp",
    "__shfl_sync",
    "__shfl_up_sync",
    "__shfl_down_sync",
    "__shfl_xor_sync",
    "__any_sync",
    "__all_sync",
    "__ballot_sync",
    "__match_any_sync",
    "__reduce_add_sync",
    "__reduce_min_sync",
    "__reduce_max_sync",
    "__reduce_and_sync",
    "__reduce_or_sync",
    "__reduce_xor_sync",
    "__activemask",
    "__threadfence",
    "__threadfence_block",
    "__threadfence_system",
    "__emulator_lane",
    "__emulator_dynamic_shared",
    "atomicAdd",
    "atomicSub",
    "atomicMin",
    "atomicMax",
    "atomicAnd",
    "atomicOr",
    "atomicXor",
    "atomicExch",
    "atomicCAS",
    "atomicInc",
    "atomicDec",
    "atomicAdd_block",
    "atomicSub_block",
    "atomicMin_block",
    "atomicMax_block",
    "atomicAnd_block",
    "atomicOr_block",
    "atomicXor_block",
    "atomicExch_block",
    "atomicCAS_block",
    "atomicAdd_system",
    "atomicExch_system",
    "atomicCAS_system",
];

impl Lower<'_> {
    pub fn warp_call(&mut self, name: &str, mut values: Vec<Value>, span: Span) -> Result<Value> {
        if !self.on_device {
            return self.error(format!("`{name}` exists only in device code, and this is host code"));
        }
        let nothing = || Value::new(VOID, Place::Nothing);
        let full = Value::constant(U32, 0xffff_ffff);
        match name {
            "__syncthreads" => {
                self.exactly::<0>(name, values)?;
                self.emit(Op::Barrier { kind: BarrierKind::Plain, d: NO_ROW, a: NO_ROW });
                Ok(nothing())
            }
            "__syncthreads_and" | "__syncthreads_or" | "__syncthreads_count" => {
                let [value] = self.exactly::<1>(name, values)?;
                let value = self.to_bool(value)?;
                let a = self.row(&value)?;
                let kind = match name {
                    "__syncthreads_and" => BarrierKind::And,
                    "__syncthreads_or" => BarrierKind::Or,
                    _ => BarrierKind::Count,
                };
                let d = self.program.rows(1);
                self.emit(Op::Barrier { kind, d, a });
                Ok(Value::new(I32, Place::Row(d)))
            }
            "__syncwarp" => {
                let mask = values.pop().unwrap_or(full);
                let mask = self.mask(mask)?;
                self.emit(Op::Vote { kind: VoteKind::Sync, d: NO_ROW, a: NO_ROW, mask });
                Ok(nothing())
            }
            "__activemask" => {
                let d = self.program.rows(1);
                self.emit(Op::Special { d, which: Special::ActiveMask });
                Ok(Value::new(U32, Place::Row(d)))
            }
            "__emulator_lane" | "__emulator_dynamic_shared" => {
                let which = if name == "__emulator_lane" { Special::Lane } else { Special::DynamicShared };
                let row = self.program.special(which);
                Ok(Value::new(U32, Place::Row(row)))
            }
            "__threadfence" | "__threadfence_block" | "__threadfence_system" => {
                let scope = match name {
                    "__threadfence_block" => Scope::Block,
                    "__threadfence" => Scope::Device,
                    _ => Scope::System,
                };
                self.emit(Op::Fence { scope });
                Ok(nothing())
            }
            _ if name.starts_with("__shfl") => self.shuffle(name, values),
            _ if name.starts_with("atomic") => self.atomic(name, values, span),
            _ => self.vote(name, values),
        }
    }

    fn mask(&mut self, value: Value) -> Result<u32> {
        let value = self.coerced(value, U32)?;
        self.row(&value)
    }

    fn shuffle(&mut self, name: &str, mut values: Vec<Value>) -> Result<Value> {
        if values.len() == 3 {
            values.push(Value::constant(I32, 32));
        }
        let [mask, value, lane, width] = self.exactly::<4>(name, values)?;
        let kind = match name {
            "__shfl_sync" => ShuffleKind::Index,
            "__shfl_up_sync" => ShuffleKind::Up,
            "__shfl_down_sync" => ShuffleKind::Down,
            _ => ShuffleKind::Xor,
        };
        let mask = self.mask(mask)?;
        let value = match self.types.of_struct(value.ty) {
            Some(of) if of.rows == Some(1) => self.loaded(value)?,
            Some(_) => return self.error(format!("`{name}` takes numbers of 32 or 64 bits")),
            None => self.loaded(value)?,
        };
        // Smaller integers are shuffled as `int`.
        let (value, ty): (Value, TypeId) = match self.types.arithmetic(value.ty) {
            Some(prim) if rows_of(prim) == 1 && prim != Prim::F32 => {
                let to = types::of_prim(types::promoted(prim));
                (self.converted_scalar(value, to, false)?, to)
            }
            _ => {
                let ty = value.ty;
                (value, ty)
            }
        };
        let lane = self.coerced(lane, I32)?;
        let width = self.coerced(width, I32)?;
        let wide = self.types.rows(ty) == Some(2);
        let (a, lane, width) = (self.row(&value)?, self.row(&lane)?, self.row(&width)?);
        let d = self.program.rows(1 + u32::from(wide));
        self.emit(Op::Shuffle { kind, wide, d, a, lane, width, mask });
        Ok(Value::new(ty, Place::Row(d)))
    }

    fn vote(&mut self, name: &str, values: Vec<Value>) -> Result<Value> {
        let [mask, value] = self.exactly::<2>(name, values)?;
        let mask = self.mask(mask)?;
        let (kind, from, to) = match name {
            "__any_sync" => (VoteKind::Any, BOOL, I32),
            "__all_sync" => (VoteKind::All, BOOL, I32),
            "__ballot_sync" => (VoteKind::Ballot, BOOL, U32),
            "__match_any_sync" => {
                let value = self.loaded(value)?;
                let wide = self.types.rows(value.ty) == Some(2);
                let a = self.row(&value)?;
                let d = self.program.rows(1);
                let kind = if wide { VoteKind::Match64 } else { VoteKind::Match32 };
                self.emit(Op::Vote { kind, d, a, mask });
                return Ok(Value::new(U32, Place::Row(d)));
            }
            _ => {
                let is_signed = self.types.arithmetic(value.ty).is_some_and(types::is_signed);
                let ty = if is_signed { I32 } else { U32 };
                let kind = match (name, is_signed) {
                    ("__reduce_add_sync", _) => VoteKind::ReduceAdd,
                    ("__reduce_min_sync", true) => VoteKind::ReduceMinI,
                    ("__reduce_min_sync", false) => VoteKind::ReduceMinU,
                    ("__reduce_max_sync", true) => VoteKind::ReduceMaxI,
                    ("__reduce_max_sync", false) => VoteKind::ReduceMaxU,
                    ("__reduce_and_sync", _) => VoteKind::ReduceAnd,
                    ("__reduce_or_sync", _) => VoteKind::ReduceOr,
                    _ => VoteKind::ReduceXor,
                };
                (kind, ty, ty)
            }
        };
        let value = self.coerced(value, from)?;
        let a = self.row(&value)?;
        let d = self.program.rows(1);
        self.emit(Op::Vote { kind, d, a, mask });
        Ok(Value::new(to, Place::Row(d)))
    }

    fn atomic(&mut self, name: &str, values: Vec<Value>, span: Span) -> Result<Value> {
        let (plain, scope) = match (name.strip_suffix("_block"), name.strip_suffix("_system")) {
            (Some(plain), _) => (plain, Scope::Block),
            (_, Some(plain)) => (plain, Scope::System),
            _ => (name, Scope::Device),
        };
        let kind = match plain {
            "atomicAdd" => AtomicKind::Add,
            "atomicSub" => AtomicKind::Sub,
            "atomicMin" => AtomicKind::Min,
            "atomicMax" => AtomicKind::Max,
            "atomicAnd" => AtomicKind::And,
            "atomicOr" => AtomicKind::Or,
            "atomicXor" => AtomicKind::Xor,
            "atomicExch" => AtomicKind::Exch,
            "atomicCAS" => AtomicKind::Cas,
            "atomicInc" => AtomicKind::Inc,
            _ => AtomicKind::Dec,
        };
        let mut values = values.into_iter();
        let count = if kind == AtomicKind::Cas { 3 } else { 2 };
        let (Some(pointer), Some(a)) = (values.next(), values.next()) else {
            return self.error(format!("`{name}` takes {count} arguments"));
        };
        let b = values.next();
        if b.is_some() != (kind == AtomicKind::Cas) || values.next().is_some() {
            return self.error(format!("`{name}` takes {count} arguments"));
        }
        let pointer = self.loaded(pointer)?;
        let Some((to, false)) = self.types.pointee(pointer.ty) else {
            let message = format!("`{name}` takes the address of a variable that is not `const`");
            let error = Error::new(self.span, message);
            return Err(match self.types.pointee(pointer.ty) {
                None => error.help(format!("write `&` before it: `{name}(&out[0], …)`")),
                Some(_) => error,
            });
        };
        let Some(prim) = self.types.arithmetic(to) else {
            return self.error(format!("there is no `{name}` for `{}`", self.types.name(to)));
        };
        let fits = match prim {
            Prim::F32 | Prim::F64 => {
                matches!(kind, AtomicKind::Add) || kind == AtomicKind::Exch && prim == Prim::F32
            }
            Prim::I32 | Prim::U32 => true,
            Prim::U64 => !matches!(kind, AtomicKind::Inc | AtomicKind::Dec | AtomicKind::Sub),
            Prim::I64 => matches!(kind, AtomicKind::Min | AtomicKind::Max),
            Prim::U16 => kind == AtomicKind::Cas,
            _ => false,
        };
        if !fits || matches!(kind, AtomicKind::Inc | AtomicKind::Dec) && prim != Prim::U32 {
            return self.error(format!("there is no `{name}` for `{}`", self.types.name(to)));
        }
        let a = self.coerced(a, to)?;
        let a = self.row(&a)?;
        let b = match b {
            Some(b) => {
                let b = self.coerced(b, to)?;
                self.row(&b)?
            }
            None => NO_ROW,
        };
        let base = self.row(&pointer)?;
        let d = self.program.rows(rows_of(prim));
        self.span = span;
        self.emit(Op::Atomic { kind, ty: prim, scope, d, base, a, b });
        Ok(Value::new(to, Place::Row(d)))
    }
}
