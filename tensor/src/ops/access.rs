//! [`access`] is the only way to a tensor's bytes on the host. It takes the locks and resolves aliasing.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use smallvec::SmallVec;

use crate::error::{Error, Result, TensorError};
use crate::gpu::pinned::PinnedMemory;
use crate::host_context::HostContext;
use crate::host_memory::HostBuffer;
use crate::kernel::{Input, Output};
use crate::ops::plain::copy_of;
use crate::sort;
use crate::storage::{Storage, StorageMemory};
use crate::tensor::Tensor;

/// Calls `kernel` with the storage bytes of `reads` and `writes`, protected from each other.
///
/// - A read with the storage and layout of the first write has no bytes: the kernel reads it from the output, in place.
/// - A read that shares a storage with a write in any other way is copied first. The kernel gets the copy's layout.
/// - Pinned memory is never borrowed, because a copy engine may be using it. The kernel gets snapshots.
/// - Two writes to one storage are an error.
///
/// Each storage is locked once, pinned memory first, in address order, so two operations on the same tensors cannot
/// deadlock. A kernel must not call this function, because it runs while the locks are held.
pub(crate) fn access<const R: usize, const W: usize, T>(
    reads: [&Tensor; R],
    writes: [&Tensor; W],
    kernel: impl for<'k, 'm> FnOnce(&'k [Input<'m>; R], &'k mut [Output<'m>; W]) -> T,
) -> Result<T> {
    let (mut kernel, mut result) = (Some(kernel), None);
    access_all(&reads, &writes, &mut |inputs, outputs| {
        let (Ok(inputs), Ok(outputs)) = (inputs.try_into(), outputs.try_into()) else {
            unreachable!("there are as many as tensors")
        };
        result = kernel.take().map(|kernel| kernel(inputs, outputs));
        Ok(())
    })?;
    Ok(result.expect("the kernel has run"))
}

type Calculation<'c> = dyn for<'k, 'm> FnMut(&'k [Input<'m>], &'k mut [Output<'m>]) -> Result<()> + 'c;

/// Like [`access`], for any number of tensors. It is not generic, so it is compiled once.
pub(crate) fn access_all(reads: &[&Tensor], writes: &[&Tensor], kernel: &mut Calculation) -> Result<()> {
    let sources = sources(reads, writes)?;
    let mut found: SmallVec<[Option<&Tensor>; 4]> = SmallVec::new();
    for (read, source) in reads.iter().zip(&sources) {
        found.push(match source {
            InputSource::Direct => Some(*read),
            InputSource::FirstOutput => None,
            InputSource::Copied(copy) => Some(copy),
        });
    }
    let (reads, pinned) = (found, pinned_outputs(writes)?);
    let mut targets: SmallVec<[&Tensor; 4]> = SmallVec::new();
    for write in writes {
        let pinned = pinned.iter().find(|pinned| std::ptr::eq(pinned.output, *write));
        targets.push(pinned.map_or(*write, |pinned| &pinned.snapshot));
    }
    let writes = targets;
    let mut guards = Guards::new();
    lock(&mut guards, &reads, &writes)?;
    let mut inputs: SmallVec<[Input; 4]> = SmallVec::new();
    for read in &reads {
        inputs.push(Input { bytes: None, layout: read.unwrap_or_else(|| writes[0]).layout() });
    }
    let mut outputs: SmallVec<[Output; 4]> = SmallVec::new();
    for write in &writes {
        outputs.push(Output { bytes: Default::default(), layout: write.layout() });
    }
    split(&mut guards, &reads, &writes, &mut inputs, &mut outputs);
    let result = kernel(&inputs, &mut outputs);
    drop((inputs, outputs));
    drop(guards);
    // After a failed kernel, too: partial writes stay in any kind of memory.
    pinned.iter().try_for_each(PinnedOutput::write_back)?;
    result
}

pub(crate) enum InputSource {
    Direct,
    /// The first output, which the kernel is about to overwrite.
    FirstOutput,
    /// A copy, because the input overlaps an output or is in pinned memory.
    Copied(Tensor),
}

pub(crate) fn sources(reads: &[&Tensor], writes: &[&Tensor]) -> Result<SmallVec<[InputSource; 4]>> {
    let same =
        |read: &Tensor, write: &Tensor| read.layout() == write.layout() && read.dtype() == write.dtype();
    let source = |read: &Tensor| match writes.iter().position(|write| read.shares_storage(write)) {
        None => match read.storage().pinned() {
            Some(memory) => snapshot(&memory, read).map(InputSource::Copied),
            None => Ok(InputSource::Direct),
        },
        Some(0) if same(read, writes[0]) => Ok(InputSource::FirstOutput),
        Some(_) => copy_of(read).map(InputSource::Copied),
    };
    let mut sources = SmallVec::new();
    for read in reads {
        sources.push(source(read)?);
    }
    Ok(sources)
}

type Guards<'a> = SmallVec<[(&'a Storage, Guard<'a>); 4]>;

fn lock<'a>(guards: &mut Guards<'a>, reads: &[Option<&'a Tensor>], writes: &[&'a Tensor]) -> Result<()> {
    let mut order: SmallVec<[(&Storage, bool); 4]> = SmallVec::new();
    for write in writes {
        order.push((write.storage(), true));
    }
    for read in reads.iter().flatten() {
        if !order.iter().any(|(storage, _)| std::ptr::eq(*storage, &**read.storage())) {
            order.push((read.storage(), false));
        }
    }
    sort::few(&mut order, |(storage, _)| std::ptr::from_ref::<Storage>(storage));
    if order.windows(2).any(|pair| std::ptr::eq(pair[0].0, pair[1].0)) {
        return Err(TensorError::WriteOverlap.into());
    }
    for (storage, write) in order {
        guards.push((storage, Guard::take(storage, write)?));
    }
    Ok(())
}

fn split<'g>(
    guards: &'g mut Guards<'_>,
    reads: &[Option<&'g Tensor>],
    writes: &[&Tensor],
    inputs: &mut [Input<'g>],
    outputs: &mut [Output<'g>],
) {
    for (storage, guard) in guards {
        match guard {
            Guard::Read(buffer) => deal_out(buffer, storage, reads, inputs),
            Guard::Write(buffer) => outputs[written(storage, writes)].bytes = buffer.bytes_mut(),
        }
    }
}

fn deal_out<'g>(
    buffer: &'g HostBuffer,
    storage: &Storage,
    reads: &[Option<&'g Tensor>],
    inputs: &mut [Input<'g>],
) {
    for (input, read) in inputs.iter_mut().zip(reads) {
        if read.is_some_and(|read| std::ptr::eq(&**read.storage(), storage)) {
            input.bytes = Some(buffer.bytes());
        }
    }
}

fn written(storage: &Storage, writes: &[&Tensor]) -> usize {
    let write = writes.iter().position(|write| std::ptr::eq(&**write.storage(), storage));
    write.expect("every write lock belongs to a write")
}

/// Copies the part of pinned memory that a tensor reaches to memory that no copy engine uses. Reading one row of a
/// dataset must not cost as much as reading all of it.
fn snapshot(memory: &PinnedMemory, tensor: &Tensor) -> Result<Tensor> {
    let (layout, size) = (tensor.layout(), tensor.dtype().size());
    let mut buffer = HostBuffer::allocate(HostContext::memory(), layout.reach() * size)?;
    memory.read(layout.offset * size, buffer.bytes_mut())?;
    Ok(Tensor::made_of(Storage::in_host(buffer), layout.at_start(), tensor.dtype()))
}

/// An output in pinned memory, which stays locked until the kernel's snapshot is copied back.
struct PinnedOutput<'a> {
    memory: RwLockWriteGuard<'a, PinnedMemory>,
    output: &'a Tensor,
    snapshot: Tensor,
}

impl PinnedOutput<'_> {
    /// Writes only the bytes that the output reaches.
    fn write_back(&self) -> Result<()> {
        let StorageMemory::Host(buffer) = &self.snapshot.storage().memory else { return Ok(()) };
        let buffer = buffer.read().unwrap_or_else(PoisonError::into_inner);
        Ok(self.memory.write(self.output.layout().offset * self.output.dtype().size(), buffer.bytes())?)
    }
}

fn pinned_outputs<'a>(writes: &[&'a Tensor]) -> Result<SmallVec<[PinnedOutput<'a>; 1]>> {
    let mut order: SmallVec<[(&Tensor, &RwLock<PinnedMemory>); 1]> = SmallVec::new();
    for write in writes {
        if let StorageMemory::Pinned(memory) = &write.storage().memory {
            order.push((*write, memory));
        }
    }
    sort::few(&mut order, |(_, memory)| std::ptr::from_ref(*memory));
    if order.windows(2).any(|pair| std::ptr::eq(pair[0].1, pair[1].1)) {
        return Err(TensorError::WriteOverlap.into());
    }
    let mut locked = SmallVec::new();
    for (output, memory) in order {
        let memory = memory.write().unwrap_or_else(PoisonError::into_inner);
        let snapshot = snapshot(&memory, output)?;
        locked.push(PinnedOutput { memory, output, snapshot });
    }
    Ok(locked)
}

enum Guard<'a> {
    Read(RwLockReadGuard<'a, HostBuffer>),
    Write(RwLockWriteGuard<'a, HostBuffer>),
}

impl<'a> Guard<'a> {
    fn take(storage: &'a Storage, write: bool) -> Result<Guard<'a>> {
        // A kernel that panicked left partial data, but every bit pattern is a valid element.
        match (&storage.memory, write) {
            (StorageMemory::Host(buffer), true) => {
                Ok(Guard::Write(buffer.write().unwrap_or_else(PoisonError::into_inner)))
            }
            (StorageMemory::Host(buffer), false) => {
                Ok(Guard::Read(buffer.read().unwrap_or_else(PoisonError::into_inner)))
            }
            // `access_all` has replaced pinned memory by snapshots, and operations never pass GPU memory.
            (StorageMemory::Pinned(_) | StorageMemory::Device(_), _) => {
                Err(Error::custom("the memory of a GPU cannot be read by the host"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::each_case::each_case;
    use crate::machine::Machine;

    #[test]
    fn what_a_kernel_wrote_before_it_failed_stays_in_any_memory() -> Result<()> {
        let machine: Machine = "sim:t4".parse().unwrap();
        machine.enter(|| {
            each_case([Tensor::zeros(&[2])?, Tensor::zeros(&[2])?.pin_memory()?], |x| -> Result<()> {
                let failed = access_all(&[], &[&x], &mut |_, outputs| {
                    outputs[0].elements::<f32>()[0] = 7.0;
                    Err(Error::custom("stopped"))
                });
                assert!(failed.is_err());
                assert_eq!(x.to_vec::<f32>()?, [7.0, 0.0]);
                Ok(())
            });
            Ok(())
        })
    }

    #[test]
    fn only_the_first_output_is_read_in_place() -> Result<()> {
        let (a, b, c) = (Tensor::zeros(&[3])?, Tensor::zeros(&[3])?, Tensor::zeros(&[3])?);
        let part = a.narrow(0, 1, 2)?;
        let found = sources(&[&a, &b, &c, &part], &[&a, &b])?;
        assert!(matches!(
            found[..],
            [InputSource::FirstOutput, InputSource::Copied(_), InputSource::Direct, InputSource::Copied(_)]
        ));
        Ok(())
    }
}
