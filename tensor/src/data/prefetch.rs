use std::iter::{self, Fuse};

use super::batch::Batch;
use crate::device::Device;
use crate::error::Result;
use crate::gpu::{self, Event, Stream};
use crate::scope::{self, Place};
use crate::tensor_options::ToOptions;

/// Copies the next batch to a device while the current one is in use (the *data prefetcher* of many training scripts).
///
/// The copy runs on a separate stream, in parallel with the work on the current batch, and the current stream waits for
/// it. Use `pin_memory`: copies from pageable memory block the host. A prefetcher covers one epoch. An error of the
/// loader or the copy replaces its batch. For the CPU, batches pass through unchanged.
///
/// ```
/// use todevice::data::{DataLoader, DataLoaderOptions, DevicePrefetcher, TensorDataset};
/// use todevice::{Device, Machine, Tensor};
///
/// let machine: Machine = "sim:t4".parse()?;
/// machine.enter(|| {
///     let device = Device::cuda_if_available();
///     let dataset = TensorDataset::new([Tensor::ones(&[100, 3])?])?;
///     let options = DataLoaderOptions { batch_size: 32, pin_memory: true, ..Default::default() };
///     let loader = DataLoader::new(dataset, options)?;
///     let mut sum = 0.0;
///     for batch in DevicePrefetcher::new(&loader, device)? {
///         let [x] = batch?;
///         assert_eq!(x.device(), device);
///         sum += x.sum()?.item()?;
///     }
///     assert_eq!(sum, 300.0);
///     Ok::<(), todevice::Error>(())
/// })?;
/// # Ok::<(), todevice::Error>(())
/// ```
pub struct DevicePrefetcher<I, B> {
    batches: Fuse<I>,
    device: Device,
    stream: Option<Stream>,
    /// The next batch, and the event after its copy.
    next: Option<Result<(B, Option<Event>)>>,
    place: Place,
}

impl<I: Iterator<Item = Result<B>>, B: Batch> DevicePrefetcher<I, B> {
    /// Requests the first batch. Returns an error if the GPU `device` does not exist.
    #[track_caller]
    pub fn new(
        batches: impl IntoIterator<Item = Result<B>, IntoIter = I>,
        device: Device,
    ) -> Result<DevicePrefetcher<I, B>> {
        let stream = if device.is_cuda() { Some(Stream::new(device)?) } else { None };
        Ok(DevicePrefetcher::begin(batches, device, stream))
    }

    /// Like [`new`](Self::new), with a given stream. Memory belongs to the stream of its allocation, so with one stream
    /// for all epochs, each epoch reuses the memory of the previous one.
    #[track_caller]
    pub fn with_stream(
        batches: impl IntoIterator<Item = Result<B>, IntoIter = I>,
        stream: &Stream,
    ) -> DevicePrefetcher<I, B> {
        DevicePrefetcher::begin(batches, stream.device(), Some(stream.clone()))
    }

    #[track_caller]
    fn begin(
        batches: impl IntoIterator<Item = Result<B>, IntoIter = I>,
        device: Device,
        stream: Option<Stream>,
    ) -> DevicePrefetcher<I, B> {
        let place = scope::here();
        let _scope = scope::on_behalf_of(place);
        let batches = batches.into_iter().fuse();
        let mut prefetcher = DevicePrefetcher { batches, device, stream, next: None, place };
        prefetcher.preload();
        prefetcher
    }

    fn preload(&mut self) {
        let batch = self.batches.next();
        self.next = batch.map(|batch| self.send(batch?));
    }

    fn send(&self, batch: B) -> Result<(B, Option<Event>)> {
        let to = ToOptions { device: Some(self.device), non_blocking: true, ..Default::default() };
        let copy = || batch.map_tensors(&mut |tensor| tensor.to(to));
        match &self.stream {
            Some(stream) => Ok((gpu::stream(stream, copy)?, Some(stream.record_event()?))),
            None => Ok((copy()?, None)),
        }
    }

    /// Makes the current stream wait for a batch, and keeps the batch's memory until the current stream has used it.
    fn receive(&self, (batch, copied): (B, Option<Event>)) -> Result<B> {
        let Some(copied) = copied else { return Ok(batch) };
        let current = gpu::current_stream(self.device)?;
        current.wait_event(&copied)?;
        batch.map_tensors(&mut |tensor| tensor.record_stream(&current).map(|()| tensor))
    }
}

impl<I: Iterator<Item = Result<B>>, B: Batch> Iterator for DevicePrefetcher<I, B> {
    type Item = Result<B>;

    fn next(&mut self) -> Option<Result<B>> {
        let _scope = scope::on_behalf_of(self.place);
        let batch = self.next.take()?.and_then(|sent| self.receive(sent));
        self.preload();
        Some(batch)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let sent = usize::from(self.next.is_some());
        let (least, most) = self.batches.size_hint();
        (least + sent, most.map(|most| most + sent))
    }
}

impl<I: Iterator<Item = Result<B>>, B: Batch> iter::FusedIterator for DevicePrefetcher<I, B> {}
