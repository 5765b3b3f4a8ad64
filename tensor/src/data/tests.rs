//! Whether threads ran the workers or not cannot be seen in what they made.

use std::sync::Arc;

use super::{DataLoader, DataLoaderOptions, Dataset, get_worker_info};
use crate::{Error, Machine, Result, Tensor, is_grad_enabled, manual_seed, no_grad};

/// Samples that show all a worker could do differently: its random numbers, its id, its modes, its errors.
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

/// Everything a program can see of three epochs, the second of which it leaves early.
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
