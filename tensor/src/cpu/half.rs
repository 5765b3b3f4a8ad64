//! The kernels of half types (`torch.float16`, `torch.bfloat16`): the f32 kernels between two conversions.
//!
//! As in PyTorch, nothing is computed in 16 bits: an operation computes in f32 and rounds its result once. So only
//! kernels that move elements are written for half types. Any other kernel is the f32 kernel with other types in memory
//! ([`KernelDef::of_f32`]), and its twin runs on converted operands: block by block for elementwise kernels, else on
//! whole operands. Where that takes too much memory, a twin converts one row at a time ([`Stored`]).

use std::sync::OnceLock;

use bytemuck::Pod;
use half::prelude::*;
use smallvec::SmallVec;

use super::blocks::{BLOCK, BlockReader, Runs, Scratch, for_shares, map1, scatter};
#[cfg(target_family = "wasm")]
use super::float16;
use super::number::Float;
use super::parallel::for_pieces;
use super::pool::threads_for;
use super::simd::vectorized;
use crate::cpu::reserve::reserve;
use crate::dtype::{DType, Element, Memory};
use crate::error::Result;
use crate::kernel::{Args, Cost, Input, KernelDef, KernelParameter, Output, TwinError, TwinResult};
use crate::shape::Layout;

pub(crate) fn by_way_of_f32(args: Args<'_, '_>) -> TwinResult {
    let kernel = args.kernel;
    let of_f32 = kernel.of_f32.expect("a kernel of halves says which one of f32 it is");
    match of_f32.is_elementwise() && of_f32.parameters.len() <= MOST_INPUTS + 1 {
        true => in_blocks(kernel, of_f32, args),
        false => as_a_whole(kernel, of_f32, args),
    }
}

const MOST_INPUTS: usize = 4;

fn operands(kernel: &KernelDef) -> [SmallVec<[DType; 4]>; 2] {
    let mut operands = [SmallVec::new(), SmallVec::new()];
    for parameter in kernel.parameters {
        match parameter {
            KernelParameter::In(dtype) => operands[0].push(*dtype),
            KernelParameter::Out(dtype) => operands[1].push(*dtype),
            KernelParameter::Int | KernelParameter::Float | KernelParameter::Block(..) => {}
        }
    }
    operands
}

fn in_blocks(kernel: &KernelDef, of_f32: &'static KernelDef, args: Args<'_, '_>) -> TwinResult {
    let [reads, writes] = operands(kernel);
    match writes[0].size() {
        1 => in_blocks_of::<u8>(&reads, writes[0], of_f32, args),
        2 => in_blocks_of::<u16>(&reads, writes[0], of_f32, args),
        4 => in_blocks_of::<u32>(&reads, writes[0], of_f32, args),
        _ => in_blocks_of::<u64>(&reads, writes[0], of_f32, args),
    }
}

/// Like [`in_blocks`], for an output whose elements have the size of `O`.
fn in_blocks_of<O: Pod + Send>(
    reads: &[DType],
    written: DType,
    of_f32: &'static KernelDef,
    args: Args<'_, '_>,
) -> TwinResult {
    let output = &mut args.outputs[0];
    let mut inputs: SmallVec<[(DType, BlockReader); MOST_INPUTS]> = SmallVec::new();
    for (input, dtype) in args.inputs.iter().zip(reads) {
        inputs.push((*dtype, BlockReader::new(input, output.layout.sizes())?));
    }
    let in_place = inputs.iter().any(|(_, reader)| reader.is_output());
    let failure = OnceLock::new();
    for_shares(output, of_f32.cost, &|start, out: &mut [O]| {
        let run = |inputs: &[Input], out: &mut [u8], layout: &Layout| {
            let outputs = &mut [Output { bytes: out, layout }];
            (of_f32.twin)(Args { kernel: of_f32, inputs, outputs, ints: &[], floats: &[] })
        };
        let mut blocks: [Widened; MOST_INPUTS] = Default::default();
        let mut floats = [0.0; BLOCK];
        for (i, out) in out.chunks_mut(BLOCK).enumerate() {
            let start = start + i * BLOCK;
            let result = Layout::contiguous(&[out.len()]).map_err(TwinError::from).and_then(|layout| {
                let inputs: SmallVec<[Input; MOST_INPUTS]> = (inputs.iter().zip(&mut blocks))
                    .map(|((dtype, reader), block)| block.read(*dtype, reader, start, out.len()))
                    .map(|bytes| Input { bytes, layout: &layout })
                    .collect();
                if !written.is_half() {
                    return run(&inputs, bytemuck::cast_slice_mut(out), &layout);
                }
                let out: &mut [u16] = bytemuck::cast_slice_mut(out);
                let floats = &mut floats[..out.len()];
                if in_place {
                    widen(written, out, floats);
                }
                run(&inputs, bytemuck::cast_slice_mut(floats), &layout)?;
                narrow(written, floats, out);
                Ok(())
            });
            if let Err(error) = result {
                let _ = failure.set(error); // One error is enough.
            }
        }
    });
    failure.into_inner().map_or(Ok(()), Err)
}

#[derive(Default)]
struct Widened {
    gathered: Scratch,
    floats: Option<[f32; BLOCK]>,
}

impl Widened {
    /// Returns contiguous elements from `start`, with half types as f32. `None` for the output.
    fn read<'b>(
        &'b mut self,
        dtype: DType,
        reader: &'b BlockReader,
        start: usize,
        length: usize,
    ) -> Option<&'b [u8]> {
        let gathered = &mut self.gathered;
        let elements: &[u8] = match dtype.size() {
            1 => reader.read(start, length, gathered)?,
            2 => bytemuck::cast_slice(reader.read::<u16>(start, length, gathered)?),
            4 => bytemuck::cast_slice(reader.read::<u32>(start, length, gathered)?),
            _ => bytemuck::cast_slice(reader.read::<u64>(start, length, gathered)?),
        };
        if !dtype.is_half() {
            return Some(elements);
        }
        let floats = &mut self.floats.get_or_insert([0.0; BLOCK])[..length];
        widen(dtype, bytemuck::cast_slice(elements), floats);
        Some(bytemuck::cast_slice(floats))
    }
}

fn as_a_whole(kernel: &KernelDef, of_f32: &'static KernelDef, args: Args<'_, '_>) -> TwinResult {
    let [reads, writes] = operands(kernel);
    let mut inputs: SmallVec<[Option<Wide>; 4]> = SmallVec::new();
    for (input, dtype) in args.inputs.iter().zip(reads) {
        inputs.push(match input.bytes {
            Some(bytes) if dtype.is_half() => Some(Wide::of(dtype, bytes, input.layout)?),
            _ => None,
        });
    }
    // A kernel may read an output before it writes it, or write only a part of it.
    let mut outputs: SmallVec<[Option<Wide>; 4]> = SmallVec::new();
    for (output, dtype) in args.outputs.iter().zip(&writes) {
        let wide = dtype.is_half().then(|| Wide::of(*dtype, output.bytes, output.layout));
        outputs.push(wide.transpose()?);
    }
    let in_f32 = inputs.iter().map(|wide| wide.as_ref().map(Wide::input));
    let twin_inputs: SmallVec<[Input; 4]> =
        args.inputs.iter().zip(in_f32).map(|(input, wide)| wide.unwrap_or(*input)).collect();
    let mut twin_outputs: SmallVec<[Output; 4]> = SmallVec::new();
    for (output, wide) in args.outputs.iter_mut().zip(&mut outputs) {
        twin_outputs.push(match wide {
            Some(Wide { floats, layout }) => Output { bytes: bytemuck::cast_slice_mut(floats), layout },
            None => Output { bytes: output.bytes, layout: output.layout },
        });
    }
    let (ints, floats) = (args.ints, args.floats);
    (of_f32.twin)(Args { kernel: of_f32, inputs: &twin_inputs, outputs: &mut twin_outputs, ints, floats })?;
    drop(twin_outputs);
    for ((output, wide), dtype) in args.outputs.iter_mut().zip(&outputs).zip(writes) {
        if let Some(wide) = wide {
            wide.write(dtype, output)?;
        }
    }
    Ok(())
}

struct Wide {
    floats: Vec<f32>,
    layout: Layout,
}

impl Wide {
    fn of(dtype: DType, bytes: &[u8], layout: &Layout) -> Result<Wide> {
        let halves: &[u16] = bytemuck::cast_slice(bytes);
        if is_mostly_dense(layout) {
            let halves = halves.get(layout.offset..).unwrap_or_default();
            let floats = widened(dtype, &halves[..layout.reach()])?;
            return Ok(Wide { floats, layout: layout.at_start() });
        }
        let (distinct, layout) = layout.packed();
        let mut dense = reserve(distinct.numel())?;
        dense.resize(distinct.numel(), 0);
        Runs::of(&distinct).gather(halves, 0, &mut dense);
        Ok(Wide { floats: widened(dtype, &dense)?, layout })
    }

    fn input(&self) -> Input<'_> {
        Input { bytes: Some(bytemuck::cast_slice(&self.floats)), layout: &self.layout }
    }

    fn write(&self, dtype: DType, output: &mut Output) -> Result<()> {
        let halves: &mut [u16] = bytemuck::cast_slice_mut(output.bytes);
        // The kernel must not write between the elements.
        if output.layout.reach() == output.layout.numel() {
            let halves = halves.get_mut(output.layout.offset..).unwrap_or_default();
            narrow_all(dtype, &self.floats, &mut halves[..self.floats.len()]);
            return Ok(());
        }
        let mut floats = reserve(output.layout.numel())?;
        floats.resize(output.layout.numel(), 0.0);
        Runs::of(&self.layout).gather(&self.floats, 0, &mut floats);
        let mut dense = reserve(floats.len())?;
        dense.resize(floats.len(), 0);
        narrow_all(dtype, &floats, &mut dense);
        scatter(&Runs::of(output.layout), &dense, 0, halves);
        Ok(())
    }
}

/// Whether most of the memory that the elements span belongs to them, so that all of it is converted.
fn is_mostly_dense(layout: &Layout) -> bool {
    layout.reach() <= 2 * layout.distinct()
}

/// Elements in memory, for twins that process one row at a time.
pub(crate) trait Stored: Memory<Math: Float + Element + Pod> {
    /// Returns a row as numbers: the row, or, for half types, its conversion in `room`.
    fn read<'a>(row: &'a [Self], room: &'a mut Vec<Self::Math>) -> &'a [Self::Math];
    /// Writes the numbers that `make` computes, directly or, for half types, through `room`.
    fn write(row: &mut [Self], room: &mut Vec<Self::Math>, make: impl FnOnce(&mut [Self::Math]));
}

macro_rules! impl_stored {
    ($($Whole:ty),*; $($Half:ty),*) => {
        $(impl Stored for $Whole {
            fn read<'a>(row: &'a [Self], _: &'a mut Vec<Self>) -> &'a [Self] {
                row
            }
            fn write(row: &mut [Self], _: &mut Vec<Self>, make: impl FnOnce(&mut [Self])) {
                make(row);
            }
        })*
        $(impl Stored for $Half {
            fn read<'a>(row: &'a [Self], room: &'a mut Vec<f32>) -> &'a [f32] {
                room.resize(row.len(), 0.0);
                widen(Self::DTYPE, bytemuck::cast_slice(row), room);
                room
            }
            fn write(row: &mut [Self], room: &mut Vec<f32>, make: impl FnOnce(&mut [f32])) {
                room.resize(row.len(), 0.0);
                make(room);
                narrow(Self::DTYPE, room, bytemuck::cast_slice_mut(row));
            }
        })*
    };
}
impl_stored!(f32, f64; f16, bf16);

pub(crate) fn to_f32<H: Element>(args: Args<'_, '_>) -> TwinResult {
    map1::<u16, f32>(args, Cost::Cheap, |halves, floats| widen(H::DTYPE, halves, floats))
}

pub(crate) fn from_f32<H: Element>(args: Args<'_, '_>) -> TwinResult {
    map1::<f32, u16>(args, Cost::Cheap, |floats, halves| narrow(H::DTYPE, floats, halves))
}

pub(crate) fn widened(dtype: DType, halves: &[u16]) -> Result<Vec<f32>> {
    let mut floats = reserve(halves.len())?;
    floats.resize(halves.len(), 0.0);
    let (threads, share) = shares(halves.len());
    for_pieces(threads, &mut floats, share, &|i, floats| {
        widen(dtype, &halves[i * share..][..floats.len()], floats);
    });
    Ok(floats)
}

pub(crate) fn narrow_all(dtype: DType, floats: &[f32], halves: &mut [u16]) {
    let (threads, share) = shares(halves.len());
    for_pieces(threads, halves, share, &|i, halves| {
        narrow(dtype, &floats[i * share..][..halves.len()], halves);
    });
}

fn shares(elements: usize) -> (usize, usize) {
    let threads = threads_for(elements, Cost::Cheap.smallest_parallel());
    (threads, elements.div_ceil(threads))
}

fn widen(dtype: DType, halves: &[u16], floats: &mut [f32]) {
    #[inline(always)]
    fn lanes(halves: &[bf16], floats: &mut [f32]) {
        for (float, half) in floats.iter_mut().zip(halves) {
            *float = half.to_f32();
        }
    }
    match dtype {
        #[cfg(target_family = "wasm")]
        DType::F16 => floats.iter_mut().zip(halves).for_each(|(float, half)| *float = float16::widen(*half)),
        // A single instruction for eight elements, if the processor has it.
        #[cfg(not(target_family = "wasm"))]
        DType::F16 => halves.reinterpret_cast::<f16>().convert_to_f32_slice(floats),
        _ => vectorized!(Costly lanes, (halves: &[bf16], floats: &mut [f32]))(
            halves.reinterpret_cast(),
            floats,
        ),
    }
}

/// Rounds to the nearest half type, with ties to even.
fn narrow(dtype: DType, floats: &[f32], halves: &mut [u16]) {
    #[inline(always)]
    fn lanes(floats: &[f32], halves: &mut [u16]) {
        for (half, float) in halves.iter_mut().zip(floats) {
            *half = bfloat16(*float);
        }
    }
    match dtype {
        #[cfg(target_family = "wasm")]
        DType::F16 => halves.iter_mut().zip(floats).for_each(|(half, float)| *half = float16::narrow(*float)),
        #[cfg(not(target_family = "wasm"))]
        DType::F16 => halves.reinterpret_cast_mut::<f16>().convert_from_f32_slice(floats),
        _ => vectorized!(Costly lanes, (floats: &[f32], halves: &mut [u16]))(floats, halves),
    }
}

/// Rounds to the nearest bfloat16, like `bf16::from_f32`, which mixes 16 and 32 bits and so vectorises badly.
#[inline(always)]
fn bfloat16(x: f32) -> u16 {
    let bits = x.to_bits();
    // Adds half a step minus one bit, plus that bit if the result would be odd, so that truncation rounds correctly.
    let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1));
    let quiet = bits | 0x40_0000;
    let bits = if bits & 0x7fff_ffff > 0x7f80_0000 { quiet } else { rounded };
    (bits >> 16) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f32s_round_to_the_same_bfloat16_as_in_software() {
        let near_every_bfloat16 = (0..=u16::MAX).flat_map(|bits| {
            let between = u32::from(bits) << 16;
            [0u32, 1, 0x7fff, 0x8000, 0x8001, 0xffff].map(|more| between + more)
        });
        for bits in near_every_bfloat16.chain((0..=u32::MAX).step_by(4999)) {
            let x = f32::from_bits(bits);
            assert_eq!(bfloat16(x), bf16::from_f32(x).to_bits(), "{x:e} {bits:#x}");
        }
    }
}
