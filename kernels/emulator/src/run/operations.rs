use super::arithmetic::{self, as_on_device};
use super::block::Warp;
use crate::ir::{Address, Bin, IndexKind, LANES, Prim, Un};
use crate::{binary_table, unary_table};

pub fn addresses(warp: &Warp, at: &Address) -> [u64; LANES] {
    let mut out = warp.registers.get::<u64>(at.base);
    let registers = &warp.registers;
    for out in &mut out {
        *out = out.wrapping_add(i64::from(at.offset) as u64);
    }
    for index in [&at.first, &at.second] {
        let scale = i64::from(index.scale);
        let mut add =
            |lane: usize, by: i64| out[lane] = out[lane].wrapping_add(by.wrapping_mul(scale) as u64);
        match index.kind {
            IndexKind::None => break,
            IndexKind::I32 => {
                let index = registers.row::<i32>(index.row);
                (0..LANES).for_each(|lane| add(lane, i64::from(index[lane])));
            }
            IndexKind::U32 => {
                let index = registers.row::<u32>(index.row);
                (0..LANES).for_each(|lane| add(lane, i64::from(index[lane])));
            }
            IndexKind::I64 => {
                let index = registers.row::<i64>(index.row);
                (0..LANES).for_each(|lane| add(lane, index[lane]));
            }
        }
    }
    out
}

macro_rules! binary_loops {
    ($($name:ident: $a:ty, $b:ty, $d:ty, $f:expr;)*) => {
        #[inline(always)]
        pub fn binary(warp: &mut Warp, op: Bin, d: u32, a: u32, b: u32, mask: u32) {
            match op {
                $(Bin::$name => warp.registers.map2::<$a, $b, $d>(d, a, b, mask, $f),)*
            }
        }
    };
}
binary_table!(binary_loops);

/// Computes a binary float operation as the device does.
#[inline(always)]
pub fn float_binary(warp: &mut Warp, op: Bin, d: u32, a: u32, b: u32, mask: u32) {
    let registers = &mut warp.registers;
    match op {
        Bin::AddF32 => registers.map2::<f32, f32, f32>(d, a, b, mask, |a, b| as_on_device(a + b)),
        Bin::SubF32 => registers.map2::<f32, f32, f32>(d, a, b, mask, |a, b| as_on_device(a - b)),
        Bin::MulF32 => registers.map2::<f32, f32, f32>(d, a, b, mask, |a, b| as_on_device(a * b)),
        _ => registers.map2::<f32, f32, f32>(d, a, b, mask, |a, b| as_on_device(a / b)),
    }
}

macro_rules! unary_loops {
    ($($name:ident: $a:ty, $d:ty, $f:expr;)*) => {
        pub fn unary(warp: &mut Warp, op: Un, d: u32, a: u32, mask: u32) {
            match op {
                $(Un::$name => warp.registers.map::<$a, $d>(d, a, mask, $f),)*
            }
        }
    };
}
unary_table!(unary_loops);

pub fn convert(warp: &mut Warp, from: Prim, to: Prim, d: u32, a: u32, mask: u32) {
    let registers = &mut warp.registers;
    match (from, to) {
        (Prim::I32 | Prim::I8 | Prim::I16, Prim::I64 | Prim::U64) => {
            registers.map::<i32, i64>(d, a, mask, i64::from);
        }
        (Prim::U32 | Prim::U8 | Prim::U16 | Prim::Bool, Prim::I64 | Prim::U64) => {
            registers.map::<u32, u64>(d, a, mask, u64::from);
        }
        (Prim::I64 | Prim::U64, Prim::I32 | Prim::U32) => registers.map::<u64, u32>(d, a, mask, |x| x as u32),
        (Prim::I32, Prim::F32) => registers.map::<i32, f32>(d, a, mask, |x| x as f32),
        (Prim::F32, Prim::F64) => registers.map::<f32, f64>(d, a, mask, f64::from),
        (Prim::F64, Prim::F32) => registers.map::<f64, f32>(d, a, mask, |x| x as f32),
        (Prim::F32, Prim::I32) => registers.map::<f32, i32>(d, a, mask, |x| x as i32),
        _ => {
            let mut out = [0u64; LANES];
            for (lane, out) in out.iter_mut().enumerate() {
                *out = arithmetic::convert(from, to, registers.bits(from, a, lane));
            }
            for (lane, out) in out.iter().enumerate() {
                if mask >> lane & 1 != 0 {
                    registers.set_bits(to, d, lane, *out);
                }
            }
        }
    }
}

#[inline(always)]
pub fn taken(warp: &Warp, c: u32, when: bool, mask: u32) -> u32 {
    let c = warp.registers.row::<u32>(c);
    let first = c[mask.trailing_zeros() as usize & 31];
    let differences = c.iter().fold(0, |all, c| all | (c ^ first));
    if differences == 0 {
        return if (first != 0) == when { mask } else { 0 };
    }
    let mut yes = 0;
    for (lane, c) in c.iter().enumerate() {
        yes |= u32::from(*c != 0) << lane;
    }
    if when { yes & mask } else { !yes & mask }
}
