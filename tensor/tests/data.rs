//! Data loading compared with PyTorch 2.11: batches, their order, and the random numbers drawn on the way; also errors,
//! panics, slow samples and iterators dropped early.
//!
//! Expected numbers were printed by torch 2.11.0 for the same program and seed.

use crate::each_case::each_case;
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use todevice::data::{
    BatchSampler, Collate, ConcatDataset, DataLoader, DataLoaderOptions, Dataset, DistributedSampler,
    DistributedSamplerOptions, RandomSampler, RandomSamplerOptions, Sampler, SamplerIter, SequentialSampler,
    Subset, SubsetRandomSampler, TensorDataset, default_collate, get_worker_info, random_split,
};
use todevice::errors::{DataError, IndexError};
use todevice::{DType, Error, Generator, Machine, Result, Tensor, is_grad_enabled, no_grad};

use crate::seeded;

// ------------------------------------------------------------------------------------------------ helpers

type Batches = Vec<Vec<i64>>;

/// The dataset `0, 1, ..., n - 1`.
fn numbers(n: usize) -> TensorDataset<1> {
    let values: Vec<i64> = (0..n as i64).collect();
    TensorDataset::new([Tensor::from_slice(&values, &[n]).unwrap()]).unwrap()
}

fn generator(seed: Option<u64>) -> Option<Generator> {
    seed.map(|seed| Generator::new().manual_seed(seed))
}

/// Parses a long batch of one-digit numbers.
fn digits(text: &str) -> Vec<i64> {
    text.bytes().map(|digit| i64::from(digit - b'0')).collect()
}

fn next_rand() -> f64 {
    Tensor::rand(&[1]).unwrap().item().unwrap()
}

/// The first `count` batches of an epoch that is then abandoned.
fn start<D: Dataset + 'static>(loader: &DataLoader<D, [Tensor; 1]>, count: usize) -> Batches {
    loader.iter().take(count).map(|batch| batch.unwrap()[0].to_vec().unwrap()).collect()
}

fn epoch<D: Dataset + 'static>(loader: &DataLoader<D, [Tensor; 1]>) -> Batches {
    let mut batches = Vec::new();
    for batch in loader {
        let [x] = batch.unwrap();
        batches.push(x.to_vec().unwrap());
    }
    batches
}

fn shuffled(
    n: usize,
    batch_size: usize,
    num_workers: usize,
    seed: Option<u64>,
) -> DataLoader<TensorDataset<1>> {
    let options = DataLoaderOptions {
        batch_size,
        shuffle: true,
        num_workers,
        generator: generator(seed),
        ..Default::default()
    };
    DataLoader::new(numbers(n), options).unwrap()
}

/// A dataset defined by a function of the index.
struct Made<F> {
    len: usize,
    make: F,
}

impl<S: Send, F: Fn(usize) -> Result<S> + Send + Sync> Dataset for Made<F> {
    type Sample = S;

    fn len(&self) -> usize {
        self.len
    }

    fn get(&self, index: usize) -> Result<S> {
        (self.make)(index)
    }
}

fn made<S: Send, F: Fn(usize) -> Result<S> + Send + Sync>(len: usize, make: F) -> Made<F> {
    Made { len, make }
}

fn message<T>(result: Result<T>) -> String {
    match result {
        Ok(_) => panic!("this should be an error"),
        Err(error) => error.to_string(),
    }
}

/// The warnings given while `program` runs on a new machine.
fn warnings(program: impl FnOnce()) -> Vec<String> {
    let machine = Machine::new();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let ear = heard.clone();
    machine.on_warning(move |text| ear.lock().unwrap().push(text.to_string()));
    machine.enter(program);
    heard.lock().unwrap().clone()
}

// ---------------------------------------------------------------------------------- the order, as PyTorch's

fn vectors() -> Vec<Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/vectors/dataloader_vectors.json");
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn every_loader_vector_holds_for_any_number_of_workers() {
    let cases: Vec<Value> = vectors().into_iter().filter(|case| case.get("epochs").is_some()).collect();
    assert_eq!(cases.len(), 12);
    each_case(cases, |case| {
        let size = |key: &str| case[key].as_u64().unwrap() as usize;
        let expected: Vec<Batches> = serde_json::from_value(case["epochs"].clone()).unwrap();
        for num_workers in [0, 1, 2, 5] {
            seeded(case["seed"].as_u64().unwrap(), || {
                let options = DataLoaderOptions {
                    batch_size: size("batch_size"),
                    shuffle: true,
                    drop_last: case["drop_last"].as_bool().unwrap(),
                    generator: generator(case["generator"].as_u64()),
                    num_workers,
                    ..Default::default()
                };
                let loader = DataLoader::new(numbers(size("n")), options).unwrap();
                for (number, batches) in expected.iter().enumerate() {
                    assert_eq!(loader.len(), batches.len());
                    assert_eq!(&epoch(&loader), batches, "epoch {number}, {num_workers} workers, {case}");
                }
                let next = case["next_rand_after"].as_f64().unwrap() as f32;
                assert_eq!(next_rand() as f32, next, "{num_workers} workers, {case}");
            });
        }
    });
}

#[test]
fn every_distributed_vector_holds() {
    let cases: Vec<Value> = vectors().into_iter().filter(|case| case.get("world").is_some()).collect();
    assert_eq!(cases.len(), 11);
    each_case(cases, |case| {
        let number = |key: &str| case[key].as_u64().unwrap();
        let dataset = numbers(number("n") as usize);
        let options = DistributedSamplerOptions {
            seed: number("seed"),
            drop_last: case["drop_last"].as_bool().unwrap(),
            ..Default::default()
        };
        let (world, rank) = (number("world") as usize, number("rank") as usize);
        let sampler = DistributedSampler::new(&dataset, world, rank, options).unwrap();
        sampler.set_epoch(number("epoch"));
        let expected: Vec<usize> = serde_json::from_value(case["indices"].clone()).unwrap();
        assert_eq!(sampler.iter().collect::<Vec<_>>(), expected, "{case}");
        assert_eq!(sampler.len(), expected.len());
    });
}

#[test]
fn distributed_shares_without_shuffling() {
    let cases: [(usize, usize, usize, bool, &[usize]); 5] = [
        (10, 3, 1, false, &[1, 4, 7, 0]),
        (2, 5, 3, false, &[1]),
        (10, 3, 2, true, &[2, 5, 8]),
        (0, 2, 1, false, &[]),
        (1, 3, 0, true, &[]),
    ];
    each_case(cases, |(n, world, rank, drop_last, expected)| {
        let options = DistributedSamplerOptions { shuffle: false, drop_last, ..Default::default() };
        let sampler = DistributedSampler::new(&numbers(n), world, rank, options).unwrap();
        assert_eq!(sampler.iter().collect::<Vec<_>>(), expected);
    });
    let refused =
        |world, rank| message(DistributedSampler::new(&numbers(10), world, rank, Default::default()));
    assert_eq!(refused(2, 2), "Invalid rank 2, rank should be in the interval [0, 1]");
    assert_eq!(refused(0, 0), "Invalid rank 0, rank should be in the interval [0, -1]");
}

#[test]
fn an_epoch_left_early_costs_what_it_costs_in_pytorch() {
    each_case([0, 2], |num_workers| {
        seeded(3, || {
            let loader = shuffled(10, 4, num_workers, None);
            assert_eq!(start(&loader, 1), [[6, 2, 0, 1]]);
            assert_eq!(epoch(&loader), [vec![3, 4, 0, 9], vec![6, 7, 1, 2], vec![5, 8]]);
            assert_eq!(next_rand(), 0.5944212079048157);
        });
    });
    // With a custom generator, workers that have been asked for all batches have drawn the last, empty permutation;
    // without workers it is not reached. PyTorch's epochs differ in the same way.
    each_case(
        [
            (0, [vec![7, 3, 4, 1], vec![8, 2, 5, 0], vec![6, 9]]),
            (2, [vec![5, 1, 6, 0], vec![9, 7, 8, 4], vec![3, 2]]),
        ],
        |(num_workers, second)| {
            seeded(3, || {
                let loader = shuffled(10, 4, num_workers, Some(7));
                assert_eq!(start(&loader, 1), [[1, 3, 5, 7]]);
                assert_eq!(epoch(&loader), second);
                assert_eq!(next_rand(), 0.004263520240783691);
            });
        },
    );
}

#[test]
fn leaving_after_the_last_batch_is_not_always_exhausting_the_sampler() {
    each_case(
        [
            (8, false, vec![vec![7, 3, 5, 2], vec![6, 1, 4, 0]]),
            (8, true, vec![vec![7, 3, 5, 2], vec![6, 1, 4, 0]]),
            (10, false, vec![vec![5, 1, 6, 0], vec![9, 7, 8, 4], vec![3, 2]]),
            (10, true, vec![vec![7, 3, 4, 1], vec![8, 2, 5, 0]]),
        ],
        |(n, drop_last, second)| {
            seeded(3, || {
                let options = DataLoaderOptions {
                    batch_size: 4,
                    shuffle: true,
                    drop_last,
                    generator: generator(Some(7)),
                    ..Default::default()
                };
                let loader = DataLoader::new(numbers(n), options).unwrap();
                start(&loader, loader.len());
                assert_eq!(epoch(&loader), second, "n = {n}, drop_last = {drop_last}");
            });
        },
    );
}

#[test]
fn persistent_workers_draw_the_base_seed_once() {
    let persistent = |batch_size, prefetch_factor, seed| {
        let options = DataLoaderOptions {
            batch_size,
            shuffle: true,
            num_workers: 2,
            persistent_workers: true,
            prefetch_factor,
            generator: generator(seed),
            ..Default::default()
        };
        DataLoader::new(numbers(10), options).unwrap()
    };
    seeded(3, || {
        let loader = persistent(4, None, None);
        assert_eq!(epoch(&loader), [vec![6, 2, 0, 1], vec![8, 3, 5, 4], vec![7, 9]]);
        assert_eq!(epoch(&loader), [vec![7, 5, 3, 1], vec![4, 2, 8, 9], vec![6, 0]]);
        assert_eq!(epoch(&loader), [vec![3, 4, 0, 9], vec![6, 7, 1, 2], vec![5, 8]]);
        assert_eq!(next_rand(), 0.5944212079048157);
    });
    seeded(3, || {
        let loader = persistent(4, None, Some(7));
        assert_eq!(epoch(&loader), [vec![1, 3, 5, 7], vec![9, 4, 6, 2], vec![8, 0]]);
        assert_eq!(epoch(&loader), [vec![6, 5, 9, 0], vec![8, 4, 2, 1], vec![7, 3]]);
        assert_eq!(epoch(&loader), [vec![5, 9, 0, 3], vec![4, 7, 6, 8], vec![2, 1]]);
        assert_eq!(next_rand(), 0.004263520240783691);
    });
    seeded(3, || {
        let loader = persistent(2, Some(1), None);
        assert_eq!(start(&loader, 1), [[6, 2]]);
        assert_eq!(epoch(&loader), [[7, 5], [3, 1], [4, 2], [8, 9], [6, 0]]);
        assert_eq!(next_rand(), 0.7718658447265625);
    });
    seeded(3, || {
        let loader = persistent(2, Some(1), Some(7));
        assert_eq!(start(&loader, 1), [[1, 3]]);
        assert_eq!(epoch(&loader), [[1, 9], [3, 5], [8, 6], [2, 7], [4, 0]]);
        assert_eq!(next_rand(), 0.004263520240783691);
    });
}

#[test]
fn an_unshuffled_epoch_still_draws_one_number() {
    each_case([0, 2], |num_workers| {
        seeded(3, || {
            let options = DataLoaderOptions { batch_size: 4, num_workers, ..Default::default() };
            let loader = DataLoader::new(numbers(10), options).unwrap();
            assert_eq!(epoch(&loader), [vec![0, 1, 2, 3], vec![4, 5, 6, 7], vec![8, 9]]);
            assert_eq!(next_rand(), 0.2858424782752991);
        });
    });
}

/// Two epochs and the next number of the default generator, for 0 and 2 workers.
fn check_sampler(
    sampler: impl Fn(Option<Generator>) -> Arc<dyn Sampler>,
    batch_size: usize,
    seed: Option<u64>,
    expected: [Batches; 2],
    next: f64,
) {
    for num_workers in [0, 2] {
        seeded(3, || {
            let sampler = Some(sampler(generator(seed)));
            let options = DataLoaderOptions { batch_size, sampler, num_workers, ..Default::default() };
            let loader = DataLoader::new(numbers(10), options).unwrap();
            for batches in &expected {
                assert_eq!(&epoch(&loader), batches);
            }
            assert_eq!(next_rand(), next);
        });
    }
}

#[test]
fn random_sampler_with_replacement_draws_32_at_a_time() {
    let sampler = |num_samples| {
        move |generator| -> Arc<dyn Sampler> {
            let options = RandomSamplerOptions { replacement: true, num_samples, generator };
            Arc::new(RandomSampler::new(&numbers(10), options).unwrap())
        }
    };
    let epochs = [vec![vec![6, 3, 8, 7, 2, 6, 8, 0, 2, 9]], vec![vec![3, 6, 9, 2, 2, 7, 2, 3, 3, 5]]];
    check_sampler(sampler(None), 32, None, epochs, 0.5944212079048157);
    let epochs = [vec![vec![5, 2, 1, 6, 3, 7, 7, 9, 8, 1]], vec![vec![8, 1, 8, 7, 2, 0, 6, 2, 3, 8]]];
    check_sampler(sampler(None), 32, Some(7), epochs, 0.47161436080932617);
    let epochs = [
        vec![
            digits("52163779818187206238605188370810"),
            digits("63566750914221482299730705220732"),
            vec![0, 0, 3, 9, 2, 9],
        ],
        vec![
            digits("12157256381115199769938373173707"),
            digits("68957929003557094828169930850462"),
            vec![1, 1, 9, 9, 4, 7],
        ],
    ];
    check_sampler(sampler(Some(70)), 32, Some(7), epochs, 0.47161436080932617);
}

#[test]
fn how_much_of_the_stream_an_epoch_left_early_took_depends_on_prefetching_as_in_pytorch() {
    each_case(
        [
            (0, [6, 3, 5, 6, 6, 7, 5, 0, 9, 1, 4, 2, 2, 1, 4, 8], 0.33048033714294434),
            (2, [0, 0, 3, 9, 2, 9, 1, 2, 1, 5, 7, 2, 5, 6, 3, 8], 0.7042391300201416),
        ],
        |(num_workers, second, next)| {
            seeded(3, || {
                let own = Generator::new().manual_seed(7);
                let options = RandomSamplerOptions {
                    replacement: true,
                    num_samples: Some(100),
                    generator: Some(own.clone()),
                };
                let options = DataLoaderOptions {
                    batch_size: 16,
                    sampler: Some(Arc::new(RandomSampler::new(&numbers(10), options).unwrap())),
                    num_workers,
                    prefetch_factor: (num_workers > 0).then_some(1),
                    ..Default::default()
                };
                let loader = DataLoader::new(numbers(10), options).unwrap();
                assert_eq!(start(&loader, 1), [[5, 2, 1, 6, 3, 7, 7, 9, 8, 1, 8, 1, 8, 7, 2, 0]]);
                assert_eq!(start(&loader, 1), [second]);
                assert_eq!(next_rand(), 0.47161436080932617);
                assert_eq!(Tensor::rand((&[1], &own)).unwrap().item().unwrap(), next);
            });
        },
    );
}

#[test]
fn random_sampler_with_num_samples_draws_whole_permutations() {
    let sampler = |num_samples| {
        move |generator| -> Arc<dyn Sampler> {
            let options =
                RandomSamplerOptions { num_samples: Some(num_samples), generator, replacement: false };
            Arc::new(RandomSampler::new(&numbers(10), options).unwrap())
        }
    };
    let epochs = [vec![digits("6201835479940187562334290")], vec![digits("3409671258596173842006892")]];
    check_sampler(sampler(25), 32, None, epochs, 0.5944212079048157);
    let epochs = [vec![digits("5034179682189574036237629")], vec![digits("7084269315607153498218072")]];
    check_sampler(sampler(25), 32, Some(7), epochs, 0.47161436080932617);
    let epochs = [vec![vec![6, 2, 0, 1]], vec![vec![3, 4, 0, 9]]];
    check_sampler(sampler(4), 32, None, epochs, 0.5944212079048157);
    let epochs = [vec![vec![5, 0, 3, 4]], vec![vec![1, 8, 9, 5]]];
    check_sampler(sampler(4), 32, Some(7), epochs, 0.47161436080932617);
}

#[test]
fn subset_random_sampler_draws_one_permutation() {
    let sampler = |generator| -> Arc<dyn Sampler> {
        Arc::new(SubsetRandomSampler::new(vec![9, 7, 5, 3, 1], generator))
    };
    let epochs = [vec![vec![5, 1, 3], vec![9, 7]], vec![vec![7, 1, 3], vec![9, 5]]];
    check_sampler(sampler, 3, None, epochs, 0.14984089136123657);
    let epochs = [vec![vec![9, 7, 3], vec![5, 1]], vec![vec![3, 1, 7], vec![5, 9]]];
    check_sampler(sampler, 3, Some(7), epochs, 0.47161436080932617);
}

#[test]
fn a_batch_sampler_of_ones_own_is_followed() {
    struct Mine;
    impl Sampler<Vec<usize>> for Mine {
        fn iter(&self) -> SamplerIter<'_, Vec<usize>> {
            Box::new([vec![1, 2], vec![5], vec![0, 0, 3]].into_iter())
        }
        fn len(&self) -> usize {
            3
        }
    }
    seeded(3, || {
        let options = DataLoaderOptions { batch_sampler: Some(Arc::new(Mine)), ..Default::default() };
        let loader = DataLoader::new(numbers(6), options).unwrap();
        assert_eq!(loader.len(), 3);
        assert_eq!(epoch(&loader), [vec![1, 2], vec![5], vec![0, 0, 3]]);
        assert_eq!(next_rand(), 0.2858424782752991);
    });
}

#[test]
fn two_epochs_of_one_loader_run_side_by_side() {
    each_case(
        [
            (0, [[3, 4], [0, 5], [1, 2]], [[3, 2], [0, 1], [4, 5]]),
            (2, [[2, 4], [0, 1], [3, 5]], [[3, 2], [0, 1], [4, 5]]),
        ],
        |(num_workers, left, right)| {
            seeded(3, || {
                let loader = shuffled(6, 2, num_workers, None);
                let (mut a, mut b) = (loader.iter(), loader.iter());
                for (left, right) in left.iter().zip(right) {
                    assert_eq!(a.next().unwrap().unwrap()[0].to_vec::<i64>().unwrap(), left);
                    assert_eq!(b.next().unwrap().unwrap()[0].to_vec::<i64>().unwrap(), right);
                }
                assert!(a.next().is_none() && b.next().is_none());
                assert_eq!(next_rand(), 0.5944212079048157);
            });
        },
    );
}

#[test]
fn two_epochs_of_persistent_workers_do_not_share_them() {
    let options =
        DataLoaderOptions { batch_size: 2, num_workers: 2, persistent_workers: true, ..Default::default() };
    let loader = DataLoader::new(numbers(6), options).unwrap();
    let (mut a, mut b) = (loader.iter(), loader.iter());
    for _ in 0..3 {
        let (a, b) = (a.next().unwrap().unwrap(), b.next().unwrap().unwrap());
        assert_eq!(a[0].to_vec::<i64>().unwrap(), b[0].to_vec::<i64>().unwrap());
    }
    assert!(a.next().is_none() && b.next().is_none());
    drop((a, b));
    assert_eq!(epoch(&loader), [[0, 1], [2, 3], [4, 5]]);
}

// ------------------------------------------------------------------------------------------- random_split

#[test]
fn random_split_cuts_one_permutation() {
    fn parts<const N: usize>(parts: &[Subset<Arc<TensorDataset<1>>>; N]) -> Vec<Vec<usize>> {
        parts.iter().map(|part| part.indices().to_vec()).collect()
    }
    let own = || Generator::new().manual_seed(42);

    seeded(3, || {
        let split = random_split(numbers(10), [7, 3], None).unwrap();
        assert_eq!(parts(&split), [vec![6, 0, 3, 7, 8, 5, 1], vec![9, 2, 4]]);
        assert_eq!(next_rand(), 0.887856662273407);
        let split = random_split(numbers(10), [7, 3], Some(&own())).unwrap();
        assert_eq!(parts(&split), [vec![2, 6, 1, 8, 4, 5, 0], vec![9, 3, 7]]);
    });
    seeded(3, || {
        let split = random_split(numbers(10), [0.7, 0.2, 0.1], None).unwrap();
        assert_eq!(parts(&split), [vec![6, 0, 3, 7, 8, 5, 1], vec![9, 2], vec![4]]);
        assert_eq!(next_rand(), 0.887856662273407);
    });
    seeded(3, || {
        let split = random_split(numbers(11), [0.25, 0.25, 0.5], None).unwrap();
        assert_eq!(parts(&split), [vec![9, 0, 3], vec![6, 4, 5], vec![2, 8, 1, 10, 7]]);
        assert_eq!(next_rand(), 0.45103132724761963);
        let split = random_split(numbers(11), [0.25, 0.25, 0.5], Some(&own())).unwrap();
        assert_eq!(parts(&split), [vec![6, 8, 9], vec![2, 1, 10], vec![0, 7, 3, 5, 4]]);
    });
    let split = random_split(numbers(5), [2, 0, 3], Some(&own())).unwrap();
    assert_eq!(parts(&split), [vec![2, 4], vec![], vec![3, 0, 1]]);
    let split = random_split(numbers(30), [0.3, 0.3, 0.4], Some(&own())).unwrap();
    assert_eq!(parts(&split)[0], [12, 0, 6, 25, 8, 15, 10, 18, 16]);
    assert_eq!(parts(&split)[2], [14, 2, 4, 1, 9, 11, 17, 19, 27, 5, 24, 3]);

    let options = DataLoaderOptions { batch_size: 2, ..Default::default() };
    let [part, _] = random_split(numbers(10), [3, 7], Some(&own())).unwrap();
    assert_eq!(epoch(&DataLoader::new(part, options).unwrap()), [vec![2, 6], vec![1]]);
}

#[test]
fn random_split_refuses_lengths_that_do_not_add_up() {
    let sum = "Sum of input lengths does not equal the length of the input dataset!";
    assert_eq!(message(random_split(numbers(10), [3, 3], None)), sum);
    assert_eq!(message(random_split(numbers(10), [usize::MAX, 11], None)), sum);
    assert_eq!(message(random_split(numbers(10), [0.5, 0.3], None)), sum);
    assert_eq!(message(random_split(numbers(10), [f64::NAN, 0.3], None)), sum);
    let fraction = "Fraction at index 0 is not between 0 and 1";
    assert_eq!(message(random_split(numbers(10), [1.5, -0.5], None)), fraction);

    let heard = warnings(|| drop(random_split(numbers(3), [0.9, 0.1, 0.0], None).unwrap()));
    assert_eq!(heard, ["Length of split at index 1 is 0. This might result in an empty dataset."]);
}

// ---------------------------------------------------------------------------------------- batches, collation

#[test]
fn last_batches_are_smaller_or_dropped() {
    let batches = |n, batch_size, drop_last, num_workers| {
        let options = DataLoaderOptions { batch_size, drop_last, num_workers, ..Default::default() };
        let loader = DataLoader::new(numbers(n), options).unwrap();
        let batches = epoch(&loader);
        assert_eq!(loader.len(), batches.len());
        assert_eq!(loader.is_empty(), batches.is_empty());
        batches
    };
    each_case([0, 1, 3], |num_workers| {
        assert_eq!(batches(5, 2, false, num_workers), [vec![0, 1], vec![2, 3], vec![4]]);
        assert_eq!(batches(5, 2, true, num_workers), [[0, 1], [2, 3]]);
        assert_eq!(batches(4, 2, true, num_workers), [[0, 1], [2, 3]]);
        assert_eq!(batches(3, 8, false, num_workers), [[0, 1, 2]]);
        assert_eq!(batches(3, 8, true, num_workers), Batches::new());
        assert_eq!(batches(3, usize::MAX, false, num_workers), [[0, 1, 2]]);
        assert_eq!(batches(1, 1, false, num_workers), [[0]]);
        assert_eq!(batches(0, 2, false, num_workers), Batches::new());
    });
}

#[test]
fn the_iterator_knows_how_many_batches_are_left() {
    each_case([0, 2], |num_workers| {
        let loader = shuffled(10, 4, num_workers, None);
        let mut batches = loader.iter();
        for left in [3, 2, 1] {
            assert_eq!((batches.len(), batches.size_hint()), (left, (left, Some(left))));
            batches.next().unwrap().unwrap();
        }
        assert_eq!(batches.len(), 0);
        assert!(batches.next().is_none() && batches.next().is_none());
    });
}

#[test]
fn default_collate_goes_by_the_type_of_the_sample() {
    let stacked = default_collate(vec![Tensor::zeros(&[2]).unwrap(), Tensor::ones(&[2]).unwrap()]).unwrap();
    assert_eq!((stacked.sizes(), stacked.to_vec::<f32>().unwrap()), (&[2, 2][..], vec![0.0, 0.0, 1.0, 1.0]));
    assert_eq!(default_collate(vec![1.5f64, 2.5]).unwrap().dtype(), DType::F64);
    assert_eq!(default_collate(vec![1.5f32, 2.5]).unwrap().dtype(), DType::F32);
    assert_eq!(default_collate(vec![1i64, 2]).unwrap().to_vec::<i64>().unwrap(), [1, 2]);
    assert_eq!(default_collate(vec![true, false]).unwrap().to_vec::<bool>().unwrap(), [true, false]);
    assert_eq!(default_collate(vec!["a".to_string(), "b".to_string()]).unwrap(), ["a", "b"]);

    let (a, (b, c)) = default_collate(vec![(1i64, (true, 0.5f64)), (2, (false, 0.25))]).unwrap();
    assert_eq!(a.to_vec::<i64>().unwrap(), [1, 2]);
    assert_eq!(b.to_vec::<bool>().unwrap(), [true, false]);
    assert_eq!(c.to_vec::<f64>().unwrap(), [0.5, 0.25]);
    let (a, b, c) = default_collate(vec![(1i64, 2i32, 3u8)]).unwrap();
    assert_eq!((a.dtype(), b.dtype(), c.dtype()), (DType::I64, DType::I32, DType::U8));
    let [a, b] = default_collate(vec![[1i64, 2], [3, 4], [5, 6]]).unwrap();
    assert_eq!((a.to_vec::<i64>().unwrap(), b.to_vec::<i64>().unwrap()), (vec![1, 3, 5], vec![2, 4, 6]));
    let columns = default_collate(vec![vec![1i64, 2], vec![3, 4]]).unwrap();
    assert_eq!(columns[1].to_vec::<i64>().unwrap(), [2, 4]);
}

#[test]
fn samples_that_do_not_fit_together_are_refused_in_pytorchs_words() {
    let [a, b] = [2, 3].map(|size| Tensor::zeros(&[size]).unwrap());
    let stack = "stack expects each tensor to be equal size, but got [2] at entry 0 and [3] at entry 1";
    assert_eq!(message(default_collate(vec![a, b])), stack);
    let sizes = "each element in list of batch should be of equal size";
    assert_eq!(message(default_collate(vec![vec![1i64, 2], vec![1]])), sizes);
    assert!(refused!(default_collate(Vec::<Tensor>::new()), DataError::EmptyBatch));
    assert!(refused!(default_collate(Vec::<i64>::new()), DataError::EmptyBatch));
    assert!(refused!(default_collate(Vec::<(i64, f32)>::new()), DataError::EmptyBatch));
    assert!(refused!(default_collate(Vec::<[Tensor; 2]>::new()), DataError::EmptyBatch));

    each_case([0, 2], |num_workers| {
        let options = DataLoaderOptions { batch_size: 2, num_workers, ..Default::default() };
        let ragged = made(4, |index| Tensor::zeros(&[2 + index]));
        let loader = DataLoader::new(ragged, options).unwrap();
        let text = message(loader.iter().next().unwrap());
        assert!(text.ends_with(stack), "{text}");
    });
}

#[test]
fn a_collate_fn_of_ones_own_makes_what_it_likes() {
    each_case([0, 2], |num_workers| {
        let options = DataLoaderOptions { batch_size: 2, num_workers, ..Default::default() };
        let longest = |words: Vec<&'static str>| Ok(words.into_iter().max_by_key(|word| word.len()));
        let words = made(4, |index| Ok(["a", "list", "of", "words"][index]));
        let loader = DataLoader::with_collate_fn(words, longest, options).unwrap();
        let batches: Vec<_> = loader.iter().collect::<Result<_>>().unwrap();
        assert_eq!(batches, [Some("list"), Some("words")]);
    });
}

#[test]
fn a_batch_of_a_tensor_dataset_is_its_stacked_samples() {
    let plain = Tensor::arange(0, 24, (1, DType::F32)).unwrap().reshape(&[6, 4]).unwrap();
    let transposed = plain.reshape(&[4, 6]).unwrap().t().unwrap();
    let part = plain.narrow(0, 0, 6).unwrap().narrow(1, 1, 2).unwrap();
    let labels = plain.select(1, 3).unwrap().to(DType::I64).unwrap();
    let flags = labels.to(DType::Bool).unwrap();
    let empty = Tensor::zeros(&[6, 0, 3]).unwrap();
    each_case([plain, transposed, part, labels, flags, empty], |tensor| {
        let dataset = TensorDataset::new([tensor.clone(), tensor]).unwrap();
        for indices in [vec![0], vec![5, 0, 0, 3], (0..6).collect()] {
            let [fast, again] = dataset.get_batch(&indices).unwrap();
            let [stacked, _] = default_collate(dataset.get_items(&indices).unwrap()).unwrap();
            assert_eq!((fast.sizes(), fast.strides()), (stacked.sizes(), stacked.strides()));
            assert_eq!(fast.dtype(), stacked.dtype());
            assert_eq!((fast.to_string(), again.to_string()), (stacked.to_string(), stacked.to_string()));
            assert!(!fast.shares_storage(&dataset.tensors()[0]));
        }
    });
    let dataset = numbers(6);
    let out = "index 6 is out of bounds for dimension 0 with size 6";
    assert_eq!(message(dataset.get_batch(&[0, 6])), out);
    assert_eq!(message(dataset.get(6)), out);
    assert!(dataset.get(usize::MAX).is_err());
    assert!(refused!(dataset.get_batch(&[]), DataError::EmptyBatch));
}

#[test]
fn gradients_flow_through_a_batch() {
    let x = Tensor::ones(&[4, 2]).unwrap().requires_grad_(true).unwrap();
    let [batch] = TensorDataset::new([x.clone()]).unwrap().get_batch(&[1, 1, 3]).unwrap();
    batch.sum().unwrap().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec::<f32>().unwrap(), [0.0, 0.0, 2.0, 2.0, 0.0, 0.0, 1.0, 1.0]);
}

#[test]
fn tensor_datasets_are_made_of_rows() {
    let [three, two] = [3, 2].map(|rows| Tensor::zeros(&[rows]).unwrap());
    assert_eq!(message(TensorDataset::new([three, two])), "Size mismatch between tensors");
    assert!(TensorDataset::new([Tensor::zeros(&[]).unwrap()]).is_err());
}

#[test]
fn subsets_and_concatenations_count_anew() {
    let subset = Subset::new(numbers(10), vec![7, 3, 3, 12]);
    assert_eq!(subset.get_batch(&[2, 0]).unwrap()[0].to_vec::<i64>().unwrap(), [3, 7]);
    assert_eq!(subset.get(1).unwrap()[0].item().unwrap(), 3.0);
    assert!(subset.get(3).is_err());
    assert_eq!(message(subset.get(4)), "index 4 is out of range for a dataset of 4 samples");

    // Two types of dataset with one type of sample.
    type Part = Arc<dyn Dataset<Sample = [Tensor; 1]>>;
    let parts: Vec<Part> = vec![Arc::new(numbers(2)), Arc::new(numbers(0)), Arc::new(subset)];
    let both = ConcatDataset::new(parts).unwrap();
    assert_eq!(both.len(), 6);
    let loader = DataLoader::new(both, DataLoaderOptions { batch_size: 5, ..Default::default() }).unwrap();
    assert_eq!(start(&loader, 1), [[0, 1, 7, 3, 3]]);
    assert!(loader.dataset().get(6).is_err());
    let none: Vec<TensorDataset<1>> = Vec::new();
    assert_eq!(message(ConcatDataset::new(none)), "datasets should not be an empty iterable");
}

// ------------------------------------------------------------------------------------------------ options

#[test]
fn options_that_contradict_each_other_are_refused_in_pytorchs_words() {
    let refused = |options| message(DataLoader::new(numbers(10), options));
    let default = DataLoaderOptions::default;
    let order = || Some(Arc::new(SequentialSampler::new(&numbers(10))) as Arc<dyn Sampler>);
    let batches = || {
        let batches = BatchSampler::new(SequentialSampler::new(&numbers(10)), 2, false).unwrap();
        Some(Arc::new(batches) as Arc<dyn Sampler<Vec<usize>>>)
    };

    let text = "batch_size should be a positive integer value, but got batch_size=0";
    assert_eq!(refused(DataLoaderOptions { batch_size: 0, ..default() }), text);
    let text = "sampler option is mutually exclusive with shuffle";
    assert_eq!(refused(DataLoaderOptions { shuffle: true, sampler: order(), ..default() }), text);
    let text = "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last";
    assert_eq!(refused(DataLoaderOptions { batch_sampler: batches(), batch_size: 2, ..default() }), text);
    assert_eq!(refused(DataLoaderOptions { batch_sampler: batches(), drop_last: true, ..default() }), text);
    let text = "timeout option should be non-negative";
    assert_eq!(refused(DataLoaderOptions { timeout: -1.0, ..default() }), text);
    assert_eq!(refused(DataLoaderOptions { timeout: f64::NAN, num_workers: 1, ..default() }), text);
    let text = "_SingleProcessDataLoaderIter requires timeout == 0";
    assert_eq!(refused(DataLoaderOptions { timeout: 1.0, ..default() }), text);
    let text = "prefetch_factor option could only be specified in multiprocessing.let num_workers > 0 to \
                enable multiprocessing, otherwise set prefetch_factor to None.";
    assert_eq!(refused(DataLoaderOptions { prefetch_factor: Some(2), ..default() }), text);
    let text = "prefetch_factor must be greater than 0 for MultiProcessingDataLoaderIter";
    assert_eq!(refused(DataLoaderOptions { prefetch_factor: Some(0), num_workers: 1, ..default() }), text);
    let text = "persistent_workers option needs num_workers > 0";
    assert_eq!(refused(DataLoaderOptions { persistent_workers: true, ..default() }), text);

    let text = "num_samples should be a positive integer value, but got num_samples=0";
    assert_eq!(message(DataLoader::new(numbers(0), DataLoaderOptions { shuffle: true, ..default() })), text);
    let sampler = |n, num_samples, replacement| {
        let options = RandomSamplerOptions { num_samples, replacement, generator: None };
        message(RandomSampler::new(&numbers(n), options))
    };
    assert_eq!(sampler(10, Some(0), false), text);
    assert_eq!(
        sampler(0, Some(3), true),
        "random_ expects 'from' to be less than 'to', but got from=0 >= to=0"
    );
    assert_eq!(sampler(0, Some(3), false), "ZeroDivisionError");

    // Infinity is a valid timeout.
    let options = DataLoaderOptions { timeout: f64::INFINITY, num_workers: 1, ..default() };
    assert_eq!(epoch(&DataLoader::new(numbers(2), options).unwrap()), [[0], [1]]);
}

#[test]
fn pinning_without_an_accelerator_warns_once_and_changes_nothing() {
    let heard = warnings(|| {
        let options = DataLoaderOptions { pin_memory: true, batch_size: 4, ..Default::default() };
        let loader = DataLoader::new(numbers(4), options).unwrap();
        assert_eq!(epoch(&loader), [[0, 1, 2, 3]]);
        assert_eq!(epoch(&loader), [[0, 1, 2, 3]]);
    });
    assert_eq!(
        heard,
        [
            "'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't \
          be used."
        ]
    );
}

#[test]
fn more_workers_than_cores_are_warned_of() {
    let cores = thread::available_parallelism().unwrap().get();
    let loader = |num_workers| {
        warnings(|| {
            let options = DataLoaderOptions { num_workers, ..Default::default() };
            drop(DataLoader::new(numbers(4), options).unwrap());
        })
    };
    assert_eq!(loader(cores), Vec::<String>::new());
    if cfg!(target_os = "linux") {
        let expected = format!(
            "This DataLoader will create {} worker processes in total. Our suggested max number of worker in \
             current system is {cores}, which is smaller than what this DataLoader is going to create. Please \
             be aware that excessive worker creation might get DataLoader running slow or even freeze, lower \
             the worker number to avoid potential slowness/freeze if necessary.",
            cores + 1
        );
        assert_eq!(loader(cores + 1), [expected]);
    }
}

// ------------------------------------------------------------------------------------------------ workers

/// Samples that are random numbers, drawn by the thread that makes them.
fn random_numbers() -> impl Dataset<Sample = Tensor> {
    made(6, |_| Tensor::rand(&[]))
}

fn values(loader: &DataLoader<impl Dataset + 'static, Tensor>, count: usize) -> Vec<Vec<f64>> {
    let batch = |batch: Result<Tensor>| batch?.to(DType::F64)?.to_vec();
    loader.iter().take(count).map(|b| batch(b).unwrap()).collect()
}

#[test]
fn each_worker_draws_from_a_generator_of_its_own() {
    let worker_0 =
        [vec![0.2876076102256775, 0.686290979385376], vec![0.6020464301109314, 0.6949343085289001]];
    let worker_1 = vec![0.7470175623893738, 0.8290408253669739];
    // With workers and shuffling: a first epoch, the first batch of a second, and the caller's next numbers.
    let expected = [
        (
            0,
            false,
            [
                vec![0.2858424782752991, 0.026954829692840576],
                vec![0.47161436080932617, 0.06011629104614258],
                vec![0.7718658447265625, 0.7436993718147278],
            ],
            vec![0.45103132724761963, 0.7994906306266785],
            0.17560523748397827,
        ),
        (
            0,
            true,
            [
                vec![0.47161436080932617, 0.06011629104614258],
                vec![0.7718658447265625, 0.7436993718147278],
                vec![0.5944212079048157, 0.887856662273407],
            ],
            vec![0.054176926612854004, 0.45940524339675903],
            0.6483104228973389,
        ),
        (
            1,
            false,
            [worker_0[0].clone(), worker_0[1].clone(), vec![0.9360095262527466, 0.7469896078109741]],
            vec![0.09746849536895752, 0.3230239748954773],
            0.47161436080932617,
        ),
        (
            2,
            false,
            [worker_0[0].clone(), worker_1.clone(), worker_0[1].clone()],
            vec![0.09746849536895752, 0.3230239748954773],
            0.47161436080932617,
        ),
        (
            3,
            false,
            [worker_0[0].clone(), worker_1.clone(), vec![0.2540777921676636, 0.6215828061103821]],
            vec![0.09746849536895752, 0.3230239748954773],
            0.47161436080932617,
        ),
        (
            2,
            true,
            [worker_0[0].clone(), worker_1.clone(), worker_0[1].clone()],
            vec![0.9488274455070496, 0.645603358745575],
            0.5944212079048157,
        ),
        (
            3,
            true,
            [worker_0[0].clone(), worker_1, vec![0.2540777921676636, 0.6215828061103821]],
            vec![0.9488274455070496, 0.645603358745575],
            0.5944212079048157,
        ),
    ];
    for (num_workers, shuffle, first, second, next) in expected {
        seeded(3, || {
            let options = DataLoaderOptions { batch_size: 2, shuffle, num_workers, ..Default::default() };
            let loader = DataLoader::new(random_numbers(), options).unwrap();
            assert_eq!(values(&loader, 9), first, "{num_workers} workers");
            assert_eq!(values(&loader, 9)[0], second, "{num_workers} workers");
            assert_eq!(next_rand(), next, "{num_workers} workers");
        });
    }
}

#[test]
fn worker_init_fn_runs_in_the_worker_after_seeding() {
    let options = |num_workers| DataLoaderOptions {
        batch_size: 2,
        num_workers,
        worker_init_fn: Some(Arc::new(|id| Tensor::rand(&[id + 1]).map(drop))),
        ..Default::default()
    };
    let first = vec![0.686290979385376, 0.6020464301109314];
    let second = vec![0.6949343085289001, 0.9360095262527466];
    let third = vec![0.7469896078109741, 0.558281421661377];
    let other = vec![0.682488203048706, 0.6939346790313721];
    seeded(3, || {
        let loader = DataLoader::new(random_numbers(), options(1)).unwrap();
        assert_eq!(values(&loader, 9), [first.clone(), second.clone(), third.clone()]);
        assert_eq!(next_rand(), 0.2858424782752991);
    });
    seeded(3, || {
        let loader = DataLoader::new(random_numbers(), options(2)).unwrap();
        assert_eq!(values(&loader, 9), [first.clone(), other.clone(), second.clone()]);
        assert_eq!(next_rand(), 0.2858424782752991);
    });
    // Persistent workers are initialised once, and their random numbers continue from epoch to epoch.
    let more = [vec![0.29077035188674927, 0.05694246292114258], vec![0.9107693433761597, 0.35293048620224]];
    seeded(3, || {
        let options = DataLoaderOptions { persistent_workers: true, ..options(2) };
        let loader = DataLoader::new(random_numbers(), options).unwrap();
        assert_eq!(values(&loader, 9), [first.clone(), other.clone(), second.clone()]);
        assert_eq!(values(&loader, 9), [third.clone(), more[0].clone(), more[1].clone()]);
        assert_eq!(values(&loader, 9)[0], [0.9461700320243835, 0.3778146505355835]);
        assert_eq!(next_rand(), 0.2858424782752991);
    });
    // Batches requested by an abandoned epoch are still made.
    seeded(3, || {
        let options = DataLoaderOptions { persistent_workers: true, prefetch_factor: Some(1), ..options(2) };
        let loader = DataLoader::new(random_numbers(), options).unwrap();
        assert_eq!(values(&loader, 1), [first]);
        assert_eq!(values(&loader, 9), [third, more[0].clone(), more[1].clone()]);
        assert_eq!(next_rand(), 0.2858424782752991);
    });
}

#[test]
fn a_worker_knows_which_it_is() {
    assert_eq!(get_worker_info(), None);
    seeded(3, || {
        let told = made(4, |_| {
            let info = get_worker_info().ok_or(Error::custom("not in a worker"))?;
            assert_eq!(default_seed(), info.seed);
            Ok((info.id as i64, info.num_workers as i64, info.seed as i64))
        });
        let options = DataLoaderOptions { num_workers: 2, ..Default::default() };
        let loader = DataLoader::new(told, options).unwrap();
        let ids: Vec<_> = loader
            .iter()
            .map(|batch| batch.unwrap())
            .map(|(id, workers, seed)| [id, workers, seed].map(|x| x.to_vec::<i64>().unwrap()[0]))
            .collect();
        let seed = 937055941807507096;
        assert_eq!(ids, [[0, 2, seed], [1, 2, seed + 1], [0, 2, seed], [1, 2, seed + 1]]);
    });
    assert_eq!(get_worker_info(), None);
}

fn default_seed() -> u64 {
    Machine::default_generator().initial_seed()
}

#[test]
fn workers_record_gradients_where_the_caller_does() {
    let mode = || made(2, |_| Ok(is_grad_enabled()));
    let recorded = |num_workers| {
        let options = DataLoaderOptions { batch_size: 2, num_workers, ..Default::default() };
        let loader = DataLoader::new(mode(), options).unwrap();
        loader.iter().next().unwrap().unwrap().to_vec::<bool>().unwrap()
    };
    each_case([0, 2], |num_workers| {
        assert_eq!(recorded(num_workers), [true, true]);
        assert_eq!(no_grad(|| recorded(num_workers)), [false, false]);
    });
}

#[test]
fn no_more_workers_start_than_there_are_batches() {
    let threads = Arc::new(Mutex::new(HashSet::new()));
    let seen = threads.clone();
    let dataset = made(9, move |index| {
        seen.lock().unwrap().insert((thread::current().id(), get_worker_info().unwrap().id));
        Ok(index as i64)
    });
    let options = DataLoaderOptions { batch_size: 3, num_workers: 1_000_000, ..Default::default() };
    let loader = DataLoader::new(dataset, options).unwrap();
    assert_eq!(loader.iter().filter(|batch| batch.is_ok()).count(), 3);
    let ids: HashSet<usize> = threads.lock().unwrap().iter().map(|(_, id)| *id).collect();
    assert_eq!((threads.lock().unwrap().len(), ids), (3, HashSet::from([0, 1, 2])));
}

#[test]
fn workers_do_not_run_ahead_of_a_slow_caller() {
    let started = Arc::new(AtomicUsize::new(0));
    let count = started.clone();
    let dataset = made(100, move |_| Ok(count.fetch_add(1, Ordering::SeqCst) as i64));
    let options = DataLoaderOptions { num_workers: 2, prefetch_factor: Some(3), ..Default::default() };
    let loader = DataLoader::new(dataset, options).unwrap();
    let mut batches = loader.iter();
    for taken in 0..5 {
        let limit = 6 + taken;
        let deadline = Instant::now() + Duration::from_secs(20);
        while started.load(Ordering::SeqCst) < limit && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(1));
        }
        thread::sleep(Duration::from_millis(20));
        assert_eq!(started.load(Ordering::SeqCst), limit);
        batches.next().unwrap().unwrap();
    }
}

// --------------------------------------------------------------------------------------- errors and panics

#[test]
fn an_error_comes_in_the_place_of_its_batch_and_the_others_still_come() {
    each_case([0, 1, 3], |num_workers| {
        for bad in 0..10usize {
            let dataset = made(10, move |index| match index {
                _ if index == bad => Err(Error::custom(format!("bad sample {index}"))),
                _ => Ok(index as i64),
            });
            let options = DataLoaderOptions { batch_size: 2, num_workers, ..Default::default() };
            let loader = DataLoader::new(dataset, options).unwrap();
            let batches: Vec<Result<Tensor>> = loader.iter().collect();
            assert_eq!(batches.len(), 5);
            for (number, batch) in batches.into_iter().enumerate() {
                if number == bad / 2 {
                    let worker = number % num_workers.max(1);
                    let expected = match num_workers {
                        0 => format!("bad sample {bad}"),
                        _ => format!(
                            "Caught RuntimeError in DataLoader worker process {worker}.\n\
                             Original error: bad sample {bad}"
                        ),
                    };
                    assert_eq!(message(batch), expected);
                } else {
                    let first = 2 * number as i64;
                    assert_eq!(batch.unwrap().to_vec::<i64>().unwrap(), [first, first + 1]);
                }
            }
        }
    });
}

#[test]
fn a_workers_error_keeps_the_error_it_was() {
    let options = DataLoaderOptions { num_workers: 2, ..Default::default() };
    let loader = DataLoader::new(Subset::new(numbers(3), vec![0, 7]), options).unwrap();
    let batches: Vec<_> = loader.iter().collect();
    let [Ok(_), Err(error)] = &batches[..] else { panic!("{batches:?}") };
    let Some(DataError::Worker { worker: 1, kind: "IndexError", cause }) = error.refusal() else {
        panic!("{error:?}");
    };
    assert!(matches!(cause.refusal(), Some(IndexError::OutOfBounds { index: 7, dim: 0, size: 3 })));
}

#[test]
fn a_panic_in_a_dataset_is_an_error() {
    each_case([1, 3], |num_workers| {
        let dataset = made(6, |index| {
            assert!(index != 3, "sample {index} is broken");
            Ok(index as i64)
        });
        let options = DataLoaderOptions { num_workers, ..Default::default() };
        let loader = DataLoader::new(dataset, options).unwrap();
        let batches: Vec<_> = loader.iter().collect();
        assert_eq!(batches.iter().filter(|batch| batch.is_ok()).count(), 5);
        let Err(error) = &batches[3] else { panic!("sample 3 panics") };
        let worker = 3 % num_workers;
        let expected = format!(
            "Caught panic in DataLoader worker process {worker}.\nOriginal error: sample 3 is broken"
        );
        assert_eq!(error.to_string(), expected);
    });
}

#[test]
fn a_worker_that_cannot_be_initialised_makes_no_batch() {
    let options = DataLoaderOptions {
        num_workers: 2,
        worker_init_fn: Some(Arc::new(|id| match id {
            1 => Err(Error::custom("no camera")),
            _ => Ok(()),
        })),
        ..Default::default()
    };
    let loader = DataLoader::new(numbers(4), options).unwrap();
    let batches: Vec<bool> = loader.iter().map(|batch| batch.is_ok()).collect();
    assert_eq!(batches, [true, false, true, false]);
    let error = message(loader.iter().nth(1).unwrap());
    assert_eq!(error, "Caught RuntimeError in DataLoader worker process 1.\nOriginal error: no camera");
}

#[test]
fn an_iterator_dropped_early_stops_its_workers_after_the_sample_they_are_at() {
    each_case([false, true], |persistent_workers| {
        let begun = Arc::new(AtomicUsize::new(0));
        let count = begun.clone();
        let dataset = made(1000, move |index| {
            count.fetch_add(1, Ordering::Relaxed);
            if index >= 10 {
                thread::sleep(Duration::from_millis(300));
            }
            Ok(index as i64)
        });
        let options =
            DataLoaderOptions { batch_size: 10, num_workers: 2, persistent_workers, ..Default::default() };
        let loader =
            DataLoader::new(dataset, DataLoaderOptions { prefetch_factor: Some(20), ..options }).unwrap();
        let mut batches = loader.iter();
        batches.next().unwrap().unwrap();
        let before = begun.load(Ordering::Relaxed);
        drop(batches);
        drop(loader);
        // Each worker may start one more sample before it learns of the end. The rest of their batches would be 18.
        let after = begun.load(Ordering::Relaxed);
        assert!(after - before <= 6, "{before} samples were begun before the end, and {after} in all");
    });
}

#[test]
fn an_iterator_dropped_early_stops_workers_whose_batches_nobody_fetched() {
    for taken in 0..4 {
        let loader = shuffled(100, 1, 3, None);
        let mut batches = loader.iter();
        thread::sleep(Duration::from_millis(5));
        for _ in 0..taken {
            batches.next().unwrap().unwrap();
        }
    }
}

#[test]
fn a_batch_that_takes_too_long_is_the_last_item_of_its_epoch() {
    each_case([false, true], |persistent_workers| {
        let (release, wait) = mpsc::channel::<()>();
        let wait = Mutex::new(wait);
        let dataset = made(3, move |index| {
            if index == 1 {
                let _ = wait.lock().unwrap().recv(); // Blocks until the other end is dropped.
            }
            Ok(index as i64)
        });
        let options =
            DataLoaderOptions { num_workers: 1, timeout: 1.0, persistent_workers, ..Default::default() };
        let loader = DataLoader::new(dataset, options).unwrap();
        let mut batches = loader.iter();
        assert_eq!(batches.next().unwrap().unwrap().to_vec::<i64>().unwrap(), [0]);
        assert_eq!(message(batches.next().unwrap()), "DataLoader timed out after 1 seconds");
        assert_eq!(batches.len(), 0);
        assert!(batches.next().is_none() && batches.next().is_none());
        drop(release);
        // The next epoch is unaffected.
        let epoch: Vec<i64> = loader.iter().map(|batch| batch.unwrap().item().unwrap() as i64).collect();
        assert_eq!(epoch, [0, 1, 2]);
    });
}

#[test]
fn workers_that_hang_are_not_waited_for() {
    let dataset = made(4, |index| {
        thread::sleep(Duration::from_secs(30));
        Ok(index as i64)
    });
    let options = DataLoaderOptions { num_workers: 2, timeout: 0.05, ..Default::default() };
    let begin = Instant::now();
    let loader = DataLoader::new(dataset, options).unwrap();
    let errors = loader.iter().inspect(|batch| assert!(refused!(batch.as_ref(), DataError::Timeout { .. })));
    assert_eq!(errors.count(), 1);
    drop(loader);
    assert!(begin.elapsed() < Duration::from_secs(10));
}

#[test]
fn many_epochs_leave_no_thread_behind() {
    static LIVE: AtomicUsize = AtomicUsize::new(0);
    struct Alive;
    impl Drop for Alive {
        fn drop(&mut self) {
            LIVE.fetch_sub(1, Ordering::SeqCst);
        }
    }
    thread_local! {
        static ALIVE: Alive = {
            LIVE.fetch_add(1, Ordering::SeqCst);
            Alive
        };
    }
    let dataset = || {
        made(8, |index| {
            ALIVE.with(|_| ());
            Ok(index as i64)
        })
    };
    let options = DataLoaderOptions { num_workers: 3, ..Default::default() };
    let loader = DataLoader::new(dataset(), options.clone()).unwrap();
    for number in 0..200 {
        assert_eq!(
            loader.iter().take(1 + number % 10).filter(|batch| batch.is_ok()).count(),
            (1 + number % 10).min(8)
        );
        assert_eq!(LIVE.load(Ordering::SeqCst), 0);
    }
    let loader =
        DataLoader::new(dataset(), DataLoaderOptions { persistent_workers: true, ..options }).unwrap();
    for number in 0..200 {
        loader.iter().take(1 + number % 10).for_each(|batch| drop(batch.unwrap()));
        assert!(LIVE.load(Ordering::SeqCst) <= 3);
    }
    drop(loader);
    assert_eq!(LIVE.load(Ordering::SeqCst), 0);
}

/// The next test runs this in a child process in which no thread can be started.
#[test]
#[ignore = "helper"]
fn helper_that_can_start_no_thread() {
    let options = DataLoaderOptions { num_workers: 2, ..Default::default() };
    let loader = DataLoader::new(numbers(4), options).unwrap();
    let mut batches = loader.iter();
    let error = batches.next().unwrap().unwrap_err();
    assert!(matches!(error.refusal(), Some(DataError::WorkerStart { worker: 0, .. })), "{error}");
    assert_eq!(batches.len(), 0);
    assert!(batches.next().is_none());
    println!("{error}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_thread_that_cannot_be_started_is_an_error() {
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "data::helper_that_can_start_no_thread",
            "--ignored",
            "--nocapture",
            "--test-threads=1",
        ])
        .env("RUST_MIN_STACK", (1u64 << 50).to_string()) // Larger than the address space.
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let said = text.contains("DataLoader worker 0 could not be started: ");
    assert!(output.status.success() && said, "{output:?}");
}

#[test]
fn samplers_can_be_used_by_themselves() {
    let dataset = numbers(10);
    let batches = |size, drop_last| {
        let sampler = BatchSampler::new(SequentialSampler::new(&dataset), size, drop_last).unwrap();
        assert_eq!(sampler.len(), sampler.iter().count());
        sampler.iter().collect::<Vec<_>>()
    };
    assert_eq!(batches(4, false), [vec![0, 1, 2, 3], vec![4, 5, 6, 7], vec![8, 9]]);
    assert_eq!(batches(4, true), [[0, 1, 2, 3], [4, 5, 6, 7]]);
    assert!(BatchSampler::new(SequentialSampler::new(&dataset), 0, false).is_err());
}

/// A custom type can define its own collation.
#[test]
fn collation_can_be_taught() {
    struct Text(String);
    impl Collate for Text {
        type Batch = String;

        fn collate(samples: Vec<Text>) -> Result<String> {
            Ok(samples.into_iter().map(|text| text.0).collect::<Vec<_>>().join(" "))
        }
    }
    let dataset = made(3, |index| Ok(Text(format!("word{index}"))));
    let loader = DataLoader::new(dataset, DataLoaderOptions { batch_size: 2, ..Default::default() }).unwrap();
    assert_eq!(loader.iter().collect::<Result<Vec<_>>>().unwrap(), ["word0 word1", "word2"]);
}
