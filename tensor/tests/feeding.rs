//! Getting batches to a GPU: pinned by the loader, copied ahead of time by a prefetcher, or moved there by a
//! `collate_fn`.

use crate::each_case::each_case;
use std::collections::HashMap;
use std::time::Duration;

use todevice::cuda::{self, Stream};
use todevice::data::{Batch, Collate, DevicePrefetcher};
use todevice::prelude::*;
use todevice::time::Instant;
use todevice::{Machine, ToOptions};

fn on<R>(gpus: &str, test: impl FnOnce() -> R) -> R {
    gpus.parse::<Machine>().unwrap().enter(test)
}

fn text<T>(result: Result<T>) -> String {
    result.err().map_or("no error".to_string(), |error| error.to_string())
}

fn gpu() -> Device {
    Device::cuda(0)
}

fn at_once() -> ToOptions {
    ToOptions { device: Some(gpu()), non_blocking: true, ..Default::default() }
}

/// `n` rows of length `width`, each filled with its index.
fn rows(n: usize, width: usize) -> Result<TensorDataset<2>> {
    let y = Tensor::arange(0, n as i64, (1, DType::I64))?;
    let x = y.to(DType::F32)?.reshape(&[-1, 1])?.expand(&[n as i64, width as i64])?.contiguous()?;
    TensorDataset::new([x, y])
}

fn options(num_workers: usize) -> DataLoaderOptions {
    DataLoaderOptions { batch_size: 32, num_workers, pin_memory: true, ..Default::default() }
}

// Pinning.

#[test]
fn a_loader_pins_its_batches_and_changes_nothing_else() -> Result<()> {
    let epochs = |pin_memory: bool, num_workers: usize| -> Result<Vec<Vec<f32>>> {
        manual_seed(5);
        let options = DataLoaderOptions {
            pin_memory,
            shuffle: true,
            persistent_workers: num_workers > 0,
            ..options(num_workers)
        };
        let loader = DataLoader::new(rows(100, 3)?, options)?;
        let mut seen = Vec::new();
        each_case([usize::MAX, 2, usize::MAX], |stop| -> Result<()> {
            for batch in loader.iter().take(stop) {
                let [x, y] = batch?;
                assert_eq!([x.is_pinned(), y.is_pinned()], [pin_memory; 2]);
                let sum = (x.to(at_once())?.sum()?.item()?, y.to(at_once())?.sum()?.item()?);
                assert_eq!(sum.0, 3.0 * sum.1);
                seen.push(x.to_vec()?);
            }
            Ok(())
        });
        Ok(seen)
    };
    each_case([0, 1, 3], |num_workers| -> Result<()> {
        let plain = on("sim:t4", || epochs(false, num_workers))?;
        assert_eq!(plain.len(), 10);
        assert_eq!(on("sim:t4", || epochs(true, num_workers))?, plain, "{num_workers} workers");
        Ok(())
    });
    Ok(())
}

#[test]
fn everything_in_a_batch_that_is_a_tensor_is_pinned() -> Result<()> {
    struct Sentence(Tensor, &'static str);
    struct Sentences {
        words: Tensor,
        text: Vec<&'static str>,
    }
    impl Batch for Sentences {
        fn map_tensors(self, map: &mut dyn FnMut(Tensor) -> Result<Tensor>) -> Result<Sentences> {
            Ok(Sentences { words: map(self.words)?, ..self })
        }
    }
    impl Collate for Sentence {
        type Batch = Sentences;

        fn collate(samples: Vec<Sentence>) -> Result<Sentences> {
            let (words, text) =
                samples.into_iter().map(|sample| (sample.0, sample.1)).unzip::<_, _, Vec<_>, _>();
            Ok(Sentences { words: Collate::collate(words)?, text })
        }
    }
    struct Mixed;
    impl Dataset for Mixed {
        type Sample = (Vec<(f32, String)>, [Tensor; 2], Sentence);

        fn len(&self) -> usize {
            4
        }

        fn get(&self, index: usize) -> Result<Self::Sample> {
            let x = Tensor::full(&[2], (index as f64, DType::F32))?;
            Ok((vec![(0.5, "a".to_string())], [x.clone(), x.clone()], Sentence(x, "words")))
        }
    }
    on("sim:t4", || {
        let loader = DataLoader::new(Mixed, options(0))?;
        let (list, pair, sentences) = loader.iter().next().expect("a batch")?;
        assert!(list[0].0.is_pinned() && pair.iter().all(Tensor::is_pinned) && sentences.words.is_pinned());
        assert_eq!(
            (&list[0].1[..], &sentences.text[..]),
            (&["a"; 4].map(String::from)[..], &["words"; 4][..])
        );

        let by_name = |samples: Vec<[Tensor; 2]>| {
            let [x, y] = Collate::collate(samples)?;
            Ok((HashMap::from([("x", x)]), Some(y), None::<Tensor>))
        };
        let loader = DataLoader::with_collate_fn(rows(4, 1)?, by_name, options(0))?;
        let (by_name, y, none) = loader.iter().next().expect("a batch")?;
        assert!(by_name["x"].is_pinned() && y.is_some_and(|y| y.is_pinned()) && none.is_none());
        Ok(())
    })
}

#[test]
fn workers_pin_beside_the_caller() -> Result<()> {
    // An epoch of a loop that works about as long as pinning a batch takes.
    let epoch = |pin_memory: bool, num_workers: usize| -> Result<Duration> {
        let options = DataLoaderOptions { pin_memory, ..options(num_workers) };
        let loader = DataLoader::new(rows(1024, 4096)?, options)?;
        let run = || {
            let start = Instant::now();
            for batch in &loader {
                batch?;
                Tensor::ones(&[512, 1024])?.add(1.0)?; // Host work.
            }
            Ok::<_, Error>(start.elapsed())
        };
        run()?; // The pinned blocks exist.
        run()
    };
    let time = |pin: bool, workers: usize| on("sim:t4", || epoch(pin, workers));
    let (alone, pinning) = (time(false, 0)?, time(true, 0)?);
    let (workers, workers_pinning) = (time(false, 2)?, time(true, 2)?);
    assert!(pinning > alone + Duration::from_millis(1), "{pinning:?} {alone:?}");
    assert!(workers_pinning < workers + (pinning - alone) / 4, "{workers_pinning:?} {workers:?}");
    assert_eq!(time(true, 2)?, workers_pinning, "modelled, so always the same");
    Ok(())
}

// A `collate_fn` that uses the GPU.

#[test]
fn a_collate_fn_puts_batches_on_the_gpu_where_it_may() -> Result<()> {
    on("sim:t4", || {
        let to_device = |samples: Vec<[Tensor; 2]>| {
            let [x, y] = Collate::collate(samples)?;
            Ok((x.to(gpu())?, y.to(gpu())?))
        };
        let batches = |options: DataLoaderOptions| {
            let loader = DataLoader::with_collate_fn(rows(64, 3)?, to_device, options)?;
            loader.iter().collect::<Result<Vec<_>>>()
        };
        let plain = DataLoaderOptions { pin_memory: false, ..options(0) };
        let made = batches(plain.clone())?;
        assert!(made.len() == 2 && made.iter().all(|(x, y)| x.is_cuda() && y.is_cuda()));
        let pinned = text(batches(options(0)));
        assert_eq!(pinned, "cannot pin 'torch.cuda.FloatTensor' only dense CPU tensors can be pinned");
        let in_worker = "Caught RuntimeError in DataLoader worker process 0.\nOriginal error: Cannot re-initialize CUDA in forked \
                         subprocess. To use CUDA with multiprocessing, you must use the 'spawn' start method";
        assert_eq!(text(batches(DataLoaderOptions { num_workers: 2, ..plain })), in_worker);
        assert_eq!(text(batches(options(2))), in_worker);
        Ok(())
    })
}

#[test]
fn what_the_pinning_thread_cannot_pin_is_said_as_its_error() -> Result<()> {
    on("sim:t4", || {
        // Created beforehand, so that no worker has to use the GPU.
        let there = Tensor::ones((&[3], gpu()))?;
        let constant = move |_: Vec<[Tensor; 2]>| Ok(there.clone());
        let loader = DataLoader::with_collate_fn(rows(64, 3)?, constant, options(2))?;
        let errors: Vec<String> = loader.iter().map(text).collect();
        let expected = "Caught RuntimeError in pin memory thread for device 0.\nOriginal error: cannot pin \
                        'torch.cuda.FloatTensor' only dense CPU tensors can be pinned";
        assert_eq!(errors, [expected; 2]);
        Ok(())
    })
}

// The prefetcher.

/// A training loop that sums up its batches, and works on the device for some time for each.
fn consume<B>(
    batches: impl Iterator<Item = Result<B>>,
    take: impl Fn(B) -> Result<[Tensor; 2]>,
) -> Result<(Vec<f64>, Duration)> {
    let work = Tensor::ones((&[512, 512], gpu()))?;
    work.matmul(&work)?;
    cuda::synchronize()?;
    let start = Instant::now();
    let mut sums = Vec::new();
    for batch in batches {
        let [x, y] = take(batch?)?;
        work.matmul(&work)?;
        sums.push((x.sum()? + y.sum()?)?);
    }
    cuda::synchronize()?;
    let elapsed = start.elapsed();
    Ok((sums.iter().map(Tensor::item).collect::<Result<_>>()?, elapsed))
}

#[test]
fn a_prefetcher_gives_the_same_batches_sooner() -> Result<()> {
    let to_device = |[x, y]: [Tensor; 2]| Ok([x.to(gpu())?, y.to(gpu())?]);
    each_case([0, 2], |num_workers| -> Result<()> {
        on("sim:t4", || {
            let loader = DataLoader::new(rows(1024, 4096)?, options(num_workers))?;
            let (mut plain, mut ahead) = (Vec::new(), Vec::new());
            for _ in 0..3 {
                plain.push(consume(loader.iter(), to_device)?);
                ahead.push(consume(DevicePrefetcher::new(&loader, gpu())?, Ok)?);
            }
            let expected: Vec<f64> =
                (0..32).map(|batch| (0..32).map(|i| 4097.0 * f64::from(batch * 32 + i)).sum()).collect();
            for (sums, _) in plain.iter().chain(&ahead) {
                assert_eq!(*sums, expected);
            }
            // The first batch includes memory allocation.
            assert!(ahead[2].1 < plain[2].1, "{:?} {:?}", ahead[2].1, plain[2].1);
            Ok::<(), Error>(())
        })?;
        Ok(())
    });
    Ok(())
}

#[test]
fn copies_of_a_prefetcher_run_beside_the_work() -> Result<()> {
    on("sim:t4", || {
        let loader = DataLoader::new(rows(256, 4096)?, options(0))?;
        consume(DevicePrefetcher::new(&loader, gpu())?, Ok)?;
        let (_, trace) = Machine::current().profile(|| consume(DevicePrefetcher::new(&loader, gpu())?, Ok));
        let spans = |what: &str| -> Vec<(u64, u64)> {
            let work = trace.work.iter().filter(|work| work.call.kind.name() == what);
            work.map(|work| (work.span.start, work.span.end)).collect()
        };
        let (copies, products) = (spans("Memcpy HtoD"), spans("gemm"));
        let overlaps =
            |copy: &&(u64, u64)| products.iter().any(|product| copy.0 < product.1 && product.0 < copy.1);
        assert_eq!(copies.len(), 16);
        assert!(copies.iter().filter(overlaps).count() >= 6, "{copies:?} {products:?}");
        Ok(())
    })
}

#[test]
fn with_one_stream_for_all_epochs_no_epoch_takes_more_memory() -> Result<()> {
    on("sim:t4", || {
        let loader = DataLoader::new(rows(256, 4096)?, options(0))?;
        let copies = Stream::new(gpu())?;
        let reserved = || {
            let plain = consume(loader.iter(), |[x, y]| Ok([x.to(gpu())?, y.to(gpu())?]))?.0;
            assert_eq!(consume(DevicePrefetcher::with_stream(&loader, &copies), Ok)?.0, plain);
            Ok::<_, Error>(cuda::memory_reserved())
        };
        let first = reserved()?;
        assert_eq!([reserved()?, reserved()?], [first; 2]);
        // The prefetcher's stream has its own memory.
        consume(DevicePrefetcher::new(&loader, gpu())?, Ok)?;
        assert!(cuda::memory_reserved() > first);
        Ok(())
    })
}

#[test]
fn a_batch_may_be_dropped_while_it_is_used() -> Result<()> {
    // Each batch is used late, when its handle is already gone.
    on("sim:t4", || {
        let loader = DataLoader::new(rows(1024, 64)?, options(0))?;
        let work = Tensor::ones((&[1024, 1024], gpu()))?;
        let mut sums = Vec::new();
        for batch in DevicePrefetcher::new(&loader, gpu())? {
            work.matmul(&work)?;
            let [x, _] = batch?;
            sums.push(x.sum()?);
        }
        for (batch, sum) in sums.iter().enumerate() {
            let expected: f64 = (0..32).map(|i| 64.0 * (batch * 32 + i) as f64).sum();
            assert_eq!(sum.item()?, expected);
        }
        Ok(())
    })
}

#[test]
fn a_prefetcher_counts_its_batches_and_ends_once() -> Result<()> {
    on("sim:t4", || {
        let loader = DataLoader::new(rows(70, 1)?, options(0))?;
        let mut prefetcher = DevicePrefetcher::new(&loader, gpu())?;
        for left in (0..3).rev() {
            assert_eq!(prefetcher.size_hint(), (left + 1, Some(left + 1)));
            let [x, _] = prefetcher.next().expect("a batch")?;
            assert_eq!(x.size(0)?, [6, 32, 32][left]);
        }
        assert!(prefetcher.next().is_none() && prefetcher.next().is_none());
        let empty = DataLoader::new(rows(0, 1)?, options(0))?;
        assert!(DevicePrefetcher::new(&empty, gpu())?.next().is_none());
        drop(DevicePrefetcher::new(&loader, gpu())?); // A batch is in flight.
        cuda::synchronize()?;
        assert_eq!(cuda::memory_allocated(), 0);
        Ok(())
    })
}

#[test]
fn errors_come_in_the_place_of_their_batch() -> Result<()> {
    struct Broken;
    impl Dataset for Broken {
        type Sample = Tensor;

        fn len(&self) -> usize {
            4
        }

        fn get(&self, index: usize) -> Result<Tensor> {
            if index == 1 { Err(Error::custom("no such file")) } else { Tensor::ones(&[3]) }
        }
    }
    on("sim:t4", || {
        let loader = DataLoader::new(Broken, DataLoaderOptions { pin_memory: true, ..Default::default() })?;
        let seen: Vec<String> = DevicePrefetcher::new(&loader, gpu())?.map(text).collect();
        assert_eq!(seen, ["no error", "no such file", "no error", "no error"]);
        assert!(
            text(DevicePrefetcher::new(&loader, Device::cuda(3)))
                .starts_with("CUDA error: invalid device ordinal")
        );
        Ok(())
    })
}

#[test]
fn without_a_gpu_a_prefetcher_hands_batches_on() -> Result<()> {
    on("none", || {
        let loader = DataLoader::new(rows(64, 3)?, options(0))?;
        for batch in DevicePrefetcher::new(&loader, Device::cuda_if_available())? {
            let [x, _] = batch?;
            assert!(!x.is_cuda() && !x.is_pinned());
        }
        Ok(())
    })
}
