//! Tests of the context in code that runs on another thread, or again later.

use std::panic::Location;
use std::sync::{Arc, LazyLock, Mutex, RwLock};

use super::{
    CurrentCheckpoint, CurrentWorker, OfThread, Part as _, TensorContext, ThreadContext, WorkerInfo,
};
use crate::amp::{self, AutocastOptions};
use crate::autograd::{self, checkpoint, stand_ins};
use crate::cpu::pool;
use crate::data::{DataLoader, DataLoaderOptions, Dataset, get_worker_info};
use crate::device::{Device, DeviceType};
use crate::dtype::DType;
use crate::error::Result;
use crate::gpu;
use crate::gpu::current_stream;
use crate::host_context::HostContext;
use crate::machine::{Machine, manual_seed, record_function};
use crate::parallel::distributed::Ranks;
use crate::scope;
use crate::tensor::Tensor;

/// The context that the code sees.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Finds {
    /// The context of the place that started it.
    Taken,
    /// The context of a new process.
    Fresh,
    /// A context different from both.
    Own,
}

use Finds::{Fresh, Own, Taken};

/// Starts code in one place and runs it in another.
type Start = fn(started: &mut dyn FnMut(&mut dyn FnMut()), read: fn() -> String) -> String;

const STARTS: [(&str, Start); 6] = [
    ("a worker on a thread", |started, read| in_worker(true, started, read)),
    ("a worker in the caller", |started, read| in_worker(false, started, read)),
    ("a rank on a thread", |started, read| in_rank(Ranks::new, started, read)),
    ("a rank in turns", |started, read| in_rank(Ranks::in_turns, started, read)),
    ("a checkpoint", again_in_checkpoint),
    ("backward", in_backward),
];

/// A part of the context: how to read and change it, and its expected value for each of the above starts.
struct Part {
    name: &'static str,
    read: fn() -> String,
    change: fn(&mut dyn FnMut()),
    finds: [Finds; STARTS.len()],
}

const PARTS: &[Part] = &[
    Part {
        name: "machine",
        read: || format!("{:?}", Machine::current().id()),
        change: |run| Machine::new().enter(run),
        finds: [Taken, Taken, Own, Own, Taken, Taken],
    },
    Part {
        name: "host",
        read: || format!("{:?}", HostContext::current_id()),
        change: |run| Machine::new().enter(run),
        finds: [Taken, Taken, Own, Own, Taken, Taken],
    },
    Part {
        name: "seed",
        read: || format!("{:?}", TensorContext::read(|context| context.seed)),
        change: |run| {
            Machine::new().enter(|| {
                manual_seed(3);
                run();
            });
        },
        finds: [Taken, Taken, Fresh, Fresh, Taken, Taken],
    },
    Part {
        name: "current device",
        read: || HostContext::current_device().to_string(),
        change: |run| two_gpus().enter(|| gpu::device(1, run).unwrap()),
        finds: [Taken, Taken, Fresh, Fresh, Taken, Taken],
    },
    Part {
        name: "current streams",
        read: || format!("{:?}", current_stream::snapshot()),
        change: |run| {
            two_gpus().enter(|| gpu::stream(&gpu::Stream::new(Device::cuda(1)).unwrap(), run));
        },
        finds: [Taken, Taken, Fresh, Fresh, Taken, Taken],
    },
    Part {
        name: "grad mode",
        read: || autograd::is_grad_enabled().to_string(),
        change: |run| autograd::no_grad(run),
        // An unrecorded checkpoint does not run again.
        finds: [Taken, Taken, Fresh, Fresh, Fresh, Taken],
    },
    Part {
        name: "inference mode",
        read: || autograd::is_inference_mode_enabled().to_string(),
        change: |run| autograd::inference_mode(run),
        finds: [Taken, Taken, Fresh, Fresh, Fresh, Taken],
    },
    Part {
        name: "autocast",
        read: || {
            let types = [DeviceType::Cpu, DeviceType::Cuda];
            format!("{:?}", types.map(|of| (amp::is_autocast_enabled(of), amp::get_autocast_dtype(of))))
        },
        change: |run| {
            let options = AutocastOptions { dtype: Some(DType::F16), ..DeviceType::Cpu.into() };
            amp::autocast(options, run);
        },
        finds: [Taken, Taken, Fresh, Fresh, Taken, Taken],
    },
    Part {
        name: "stand-ins",
        read: || stand_ins::tensor_in(&CELL).to_vec::<f32>().unwrap()[0].to_string(),
        change: |run| {
            let _left = stand_ins::enter([(CELL.clone(), Tensor::full(&[1], 2.0).unwrap())]);
            run();
        },
        finds: [Taken, Taken, Fresh, Fresh, Taken, Taken],
    },
    Part {
        name: "worker",
        read: || format!("{:?}", get_worker_info()),
        change: |run| {
            let info = WorkerInfo { id: 7, num_workers: 8, seed: 9 };
            let worker = Some(CurrentWorker { info, stop: Arc::default() });
            let _left = TensorContext { worker, ..TensorContext::current() }.enter();
            run();
        },
        finds: [Own, Own, Fresh, Fresh, Taken, Taken],
    },
    Part {
        name: "open ranges",
        read: || TensorContext::read(|context| context.ranges.0).to_string(),
        change: |run| {
            let machine = Machine::new();
            machine.enter(|| machine.profile(|| record_function("range", run)));
        },
        finds: [Taken, Taken, Fresh, Fresh, Fresh, Taken],
    },
    Part {
        name: "checkpoint",
        read: || {
            let around = TensorContext::read(|context| context.checkpoint.0.clone());
            format!("{:?}", around.map(|around| Arc::as_ptr(&around).cast::<()>().addr()))
        },
        change: |run| {
            let _left = CurrentCheckpoint(Some(Arc::new(1))).enter();
            run();
        },
        // Workers and ranks have separate checkpoints. The second run of a checkpoint records its saved tensors.
        finds: [Fresh, Fresh, Fresh, Fresh, Own, Taken],
    },
    Part {
        name: "operation",
        read: || format!("{:?}", scope::current_operation()),
        change: |run| {
            let _left = scope::operation("outer", Location::caller());
            run();
        },
        finds: [Fresh, Fresh, Fresh, Fresh, Fresh, Taken],
    },
    Part {
        name: "line",
        read: || format!("{:?}", scope::current_place()),
        change: |run| {
            let _left = scope::on_behalf_of(Location::caller());
            run();
        },
        finds: [Taken, Taken, Fresh, Fresh, Own, Taken],
    },
    Part {
        name: "computes alone",
        read: || pool::is_alone().to_string(),
        change: |run| {
            let _left = ThreadContext { is_alone: true, ..ThreadContext::current() }.enter();
            run();
        },
        // A checkpoint runs again on backward's thread.
        finds: [Taken, Taken, Taken, Taken, Fresh, Taken],
    },
];

static CELL: LazyLock<stand_ins::Cell> = LazyLock::new(|| Arc::new(RwLock::new(Tensor::ones(&[1]).unwrap())));

fn two_gpus() -> Machine {
    "sim:t4x2".parse().unwrap()
}

/// Returns the value in a data loading worker whose iterator was created in `started`.
fn in_worker(threads: bool, started: &mut dyn FnMut(&mut dyn FnMut()), read: fn() -> String) -> String {
    struct Reads(fn() -> String, Arc<Mutex<String>>);
    impl Dataset for Reads {
        type Sample = bool;

        fn len(&self) -> usize {
            1
        }

        fn get(&self, _: usize) -> Result<bool> {
            *self.1.lock().unwrap() = self.0();
            Ok(true)
        }
    }
    let found = Arc::<Mutex<String>>::default();
    let options = DataLoaderOptions { num_workers: 1, ..Default::default() };
    let mut loader = DataLoader::new(Reads(read, found.clone()), options).unwrap();
    loader.threads = threads;
    let mut batches = None;
    started(&mut || batches = Some(loader.iter()));
    batches.unwrap().next().unwrap().unwrap();
    found.lock().unwrap().clone()
}

fn in_rank(
    ranks: fn(usize) -> Result<Ranks>,
    started: &mut dyn FnMut(&mut dyn FnMut()),
    read: fn() -> String,
) -> String {
    let mut found = String::new();
    started(&mut || found = ranks(1).unwrap().run(|_| Ok(read())).unwrap().remove(0));
    found
}

/// Returns the value in the second run of a checkpoint.
fn again_in_checkpoint(started: &mut dyn FnMut(&mut dyn FnMut()), read: fn() -> String) -> String {
    let found = Arc::new(Mutex::new(Vec::new()));
    let mut result = None;
    started(&mut || {
        let found = found.clone();
        let x = Tensor::ones(&[1]).unwrap().requires_grad_(true).unwrap();
        let square = move |x: &Tensor| {
            found.lock().unwrap().push(read());
            x.square()
        };
        result = Some(checkpoint(square, &x).unwrap());
    });
    // Without a graph, the function runs only once.
    let again = result.filter(Tensor::requires_grad).map(|result| result.backward().unwrap());
    let found = found.lock().unwrap();
    assert_eq!(found.len(), if again.is_some() { 2 } else { 1 });
    match again {
        Some(()) => found[1].clone(),
        None => read(),
    }
}

fn in_backward(started: &mut dyn FnMut(&mut dyn FnMut()), read: fn() -> String) -> String {
    let found = Arc::<Mutex<String>>::default();
    let x = Tensor::ones(&[1]).unwrap().requires_grad_(true).unwrap();
    let hook = {
        let found = found.clone();
        move |_: &Tensor| {
            *found.lock().unwrap() = read();
            Ok(())
        }
    };
    x.register_post_accumulate_grad_hook(hook).unwrap();
    let y = x.square().unwrap();
    started(&mut || y.backward().unwrap());
    found.lock().unwrap().clone()
}

#[test]
fn each_kind_of_thread_finds_what_it_should_of_each_part() {
    for Part { name, read, change, finds } in PARTS {
        for ((start, run), expected) in STARTS.iter().zip(finds) {
            let (fresh, mut taken) = (read(), String::new());
            let found = run(
                &mut |inside| {
                    change(&mut || {
                        taken = read();
                        inside();
                    })
                },
                *read,
            );
            assert_ne!(taken, fresh, "{name} has changed");
            let finds = match found {
                found if found == taken => Taken,
                found if found == fresh => Fresh,
                _ => Own,
            };
            assert_eq!(finds, *expected, "{name} in {start}");
            assert_eq!(read(), fresh, "{name} is as before after {start}");
        }
    }
}
