//! Tests that batches do not depend on the workers' threads.

use std::sync::Arc;
use std::time::Duration;

use super::{DataLoader, DataLoaderOptions, Dataset, default_collate, get_worker_info};
use crate::time::Instant;
use crate::{Error, Machine, Result, Tensor, is_grad_enabled, manual_seed, no_grad};

/// Samples that reveal a worker's random numbers, id, modes and errors.
struct Revealing;

impl Dataset for Revealing {
    type Sample = (i64, Tensor, (i64, bool));

    fn len(&self) -> usize {
        23
    }

    fn get(&self, index: usize) -> Result<Self::Sample> {
        assert_ne!(index, 17, "a panic");
        if index == 5 {
            return Err(Error::custom("an error"));
        }
        let worker = get_worker_info().map_or(-1, |info| info.id as i64);
        Ok((index as i64, Tensor::randn(&[3])?, (worker, is_grad_enabled())))
    }
}

/// Returns everything observable in three epochs, the second of which ends early.
fn report(threads: bool, options: DataLoaderOptions) -> Vec<String> {
    Machine::new().enter(|| {
        manual_seed(11);
        let mut loader = DataLoader::new(Revealing, options).unwrap();
        loader.threads = threads;
        let mut seen = Vec::new();
        for batches in [usize::MAX, 2, usize::MAX] {
            seen.extend(loader.iter().take(batches).map(|batch| format!("{batch:?}")));
            seen.push(Tensor::rand(&[2]).unwrap().to_string());
        }
        seen
    })
}

#[test]
fn workers_in_the_callers_thread_make_what_workers_on_threads_make() {
    for num_workers in [1, 2, 3, 5, 1000] {
        for shuffle in [false, true] {
            for persistent_workers in [false, true] {
                for broken in [false, true] {
                    let worker_init_fn = move |id: usize| match id {
                        1 if broken => Err(Error::custom("a broken worker")),
                        _ => Tensor::rand(&[1]).map(drop),
                    };
                    let options = DataLoaderOptions {
                        batch_size: 3,
                        shuffle,
                        num_workers,
                        persistent_workers,
                        worker_init_fn: Some(Arc::new(worker_init_fn)),
                        ..Default::default()
                    };
                    assert_eq!(report(true, options.clone()), report(false, options.clone()));
                    assert_eq!(no_grad(|| report(true, options.clone())), no_grad(|| report(false, options)),);
                }
            }
        }
    }
}

#[test]
fn workers_in_the_callers_thread_start_no_thread() {
    struct WhichThread;
    impl Dataset for WhichThread {
        type Sample = bool;

        fn len(&self) -> usize {
            4
        }

        fn get(&self, _: usize) -> Result<bool> {
            Ok(std::thread::current().name().is_some_and(|name| name.starts_with("DataLoader worker")))
        }
    }
    for threads in [false, true] {
        let options = DataLoaderOptions { batch_size: 4, num_workers: 2, ..Default::default() };
        let mut loader = DataLoader::new(WhichThread, options).unwrap();
        loader.threads = threads;
        let batch = loader.iter().next().unwrap().unwrap();
        assert_eq!(batch.to_vec::<bool>().unwrap(), [threads; 4]);
    }
}

/// Returns the times of two epochs of four empty batches.
fn epochs(threads: bool, num_workers: usize, persistent_workers: bool) -> [Duration; 2] {
    let machine: Machine = "sim:t4".parse().unwrap();
    machine.enter(|| {
        struct Empty;
        impl Dataset for Empty {
            type Sample = ();

            fn len(&self) -> usize {
                4
            }

            fn get(&self, _: usize) -> Result<()> {
                Ok(())
            }
        }
        let options = DataLoaderOptions { num_workers, persistent_workers, ..Default::default() };
        let mut loader = DataLoader::with_collate_fn(Empty, |_| Ok(()), options).unwrap();
        loader.threads = threads;
        [(); 2].map(|()| {
            let start = Instant::now();
            loader.iter().for_each(|batch| batch.unwrap());
            start.elapsed()
        })
    })
}

#[test]
fn an_item_takes_the_same_time_whoever_collates_it() {
    let epoch = |default: bool| {
        let machine: Machine = "sim:t4".parse().unwrap();
        machine.enter(|| {
            let (dataset, options) = (Revealing, DataLoaderOptions { batch_size: 2, ..Default::default() });
            let start = Instant::now();
            if default {
                DataLoader::new(dataset, options).unwrap().iter().take(2).for_each(drop);
            } else {
                DataLoader::with_collate_fn(dataset, default_collate, options)
                    .unwrap()
                    .iter()
                    .take(2)
                    .for_each(drop);
            }
            start.elapsed()
        })
    };
    assert_eq!(epoch(true), epoch(false));
}

#[test]
fn a_worker_costs_its_start_and_a_hand_over_for_each_batch() {
    let microseconds =
        |[first, second]: [Duration; 2]| [first, second].map(|time| time.as_nanos() as f64 / 1e3);
    for threads in [true, false] {
        let epochs = |workers, persistent| microseconds(epochs(threads, workers, persistent));
        // Each batch takes 0.5 µs, in the caller, or in workers while other batches are returned.
        assert_eq!(epochs(0, false), [2.0, 2.0]);
        assert_eq!(epochs(1, false), [30.0 + 0.5 + 4.0 * 5.0; 2]);
        assert_eq!(epochs(2, false), [60.0 + 4.0 * 5.0; 2]);
        assert_eq!(epochs(4, false), [120.0 + 4.0 * 5.0; 2]);
        assert_eq!(epochs(2, true), [60.0 + 4.0 * 5.0, 0.5 + 4.0 * 5.0]);
    }
}
