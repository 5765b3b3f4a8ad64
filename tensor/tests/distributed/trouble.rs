//! Errors between ranks, and their messages.

use crate::each_case::each_case;
use std::sync::mpsc;
use std::time::Duration;

use todevice::distributed::{self as dist, DistributedError, InitOptions, MeetingError, Ranks, ReduceOp};
use todevice::time::sleep;
use todevice::{Device, Error, Result, Tensor, cuda};

use super::machine;

/// Runs a program on ranks with and without GPUs, and returns the errors of each rank.
fn fails(size: usize, program: impl Fn(usize, Device) -> Result<()> + Sync) -> Vec<Error> {
    let run = |text: String, backend: &'static str| {
        let outcome = machine(&text).enter(|| {
            dist::spawn(size, |rank| {
                let device = if backend == "gloo" { Device::Cpu } else { Device::cuda(rank) };
                if device.is_cuda() {
                    cuda::set_device(rank)?;
                }
                dist::init_process_group(backend)?;
                program(rank, device)
            })
        });
        outcome.expect_err("it is to fail")
    };
    vec![
        run(format!("sim:t4x{size}"), "nccl"),
        run("none".to_owned(), "gloo"),
        run("sim:t4".to_owned(), "gloo"),
    ]
}

fn meeting(error: &Error) -> &MeetingError {
    match error.refusal() {
        Some(DistributedError::Meeting(meeting)) => meeting,
        _ => panic!("{error}"),
    }
}

#[test]
fn a_rank_that_skips_a_collective_is_named() {
    for error in fails(3, |rank, device| {
        let x = Tensor::ones((&[4], device))?;
        dist::all_reduce(&x, ReduceOp::Sum)?;
        if rank != 1 {
            dist::all_reduce(&x, ReduceOp::Sum)?;
        }
        x.sum()?.item().map(drop)
    }) {
        let text = error.to_string();
        let first = text.lines().next().unwrap();
        assert_eq!(first, "rank 1 has ended without calling a collective that others wait in", "{text}");
        let MeetingError::Stuck(stuck) = meeting(&error) else { panic!("{text}") };
        assert_eq!(stuck.waits.iter().map(|wait| wait.rank).collect::<Vec<_>>(), [0, 2]);
        for wait in &stuck.waits {
            assert_eq!((&wait.what[..], &wait.missing[..]), ("ALLREDUCE number 2", &[1][..]));
            assert!(wait.called.unwrap().file().ends_with("trouble.rs"));
        }
        assert!(text.contains("trouble.rs:"), "{text}");
    }
}

#[test]
fn a_deadlock_is_named_at_once() {
    for error in fails(2, |rank, device| {
        let x = Tensor::zeros((&[1], device))?;
        // Each waits for the other to send first.
        dist::recv(&x, 1 - rank)?;
        x.item()?;
        dist::send(&x, 1 - rank)
    }) {
        let text = error.to_string();
        assert!(text.starts_with("deadlock: every rank waits for another one\n"), "{text}");
        assert!(
            text.contains("rank 0 waits in SEND/RECV number 1") && text.contains("rank 1 waits in"),
            "{text}"
        );
    }
}

/// Two groups, in a different order on each rank: NCCL would hang.
#[test]
fn two_groups_in_two_orders_are_a_deadlock_on_the_host() {
    let error = machine("none").enter(|| {
        dist::spawn(2, |rank| {
            dist::init_process_group("gloo")?;
            let groups = [dist::new_group(&[0, 1])?, dist::new_group(&[0, 1])?];
            let x = Tensor::ones(&[1])?;
            for group in [rank, 1 - rank] {
                let options =
                    dist::CollectiveOptions { group: Some(groups[group].clone()), ..Default::default() };
                dist::all_reduce(&x, (ReduceOp::Sum, options))?.wait()?;
            }
            Ok(())
        })
    });
    assert!(error.unwrap_err().to_string().starts_with("deadlock"));
}

#[test]
fn a_rank_that_dies_is_the_cause() {
    for error in fails(3, |rank, device| {
        let x = Tensor::ones((&[4], device))?;
        if rank == 2 {
            x.reshape(&[3])?;
        }
        dist::all_reduce(&x, ReduceOp::Sum)?;
        x.sum()?.item().map(drop)
    }) {
        let Error::Rank(rank) = &error else { panic!("{error}") };
        assert_eq!(rank.rank, 2);
        let text = error.to_string();
        assert!(text.starts_with("shape '[3]' is invalid for input of size 4"), "{text}");
        assert!(text.ends_with("process 2 of 3 terminated with this error"), "{text}");
    }
    for error in fails(2, |rank, device| {
        assert!(rank == 0, "one and one is {}", 1 + rank);
        let x = Tensor::ones((&[4], device))?;
        dist::all_reduce(&x, ReduceOp::Sum)?;
        let error = x.sum()?.item().unwrap_err();
        assert!(
            error.to_string().starts_with("rank 1 has panicked, and others wait for it: one and one is 2")
        );
        Err(error)
    }) {
        assert!(error.to_string().starts_with("a rank panicked: one and one is 2"), "{error}");
    }
}

/// All threads of the pool wait for ranks whose computations use several threads. None of them is free to help.
#[test]
fn ranks_started_by_the_jobs_of_a_thread_pool_end() {
    let (done, ends) = mpsc::channel();
    let job = move || {
        let losses = machine("none").enter(|| {
            dist::spawn(2, |_| {
                let x = Tensor::ones(&[512, 512])?;
                x.matmul(&x)?.mean()?.item()
            })
        });
        done.send(losses.unwrap()).unwrap();
    };
    let jobs = 4 * rayon::current_num_threads();
    (0..jobs).for_each(|_| rayon::spawn(job.clone()));
    for _ in 0..jobs {
        assert_eq!(ends.recv_timeout(Duration::from_secs(120)).expect("ranks wait for ever"), [512.0; 2]);
    }
}

/// Each rank needs two open files, and a system may limit their number.
#[test]
#[cfg(unix)]
fn more_ranks_than_files_is_an_error() {
    let test = "distributed::trouble::helper_with_more_ranks_than_files";
    let output = std::process::Command::new("sh")
        .args(["-c", "ulimit -n 40; exec \"$0\" --exact \"$1\" --ignored --nocapture --test-threads=1"])
        .args([std::env::current_exe().unwrap().as_os_str(), test.as_ref()])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let expected = "64 ranks need two open files each, and the system allows no more: ";
    assert!(output.status.success() && text.contains(expected), "{output:?}");
}

#[test]
#[ignore = "the test above runs it by itself"]
fn helper_with_more_ranks_than_files() {
    if let Err(error) = machine("none").enter(|| dist::spawn(64, |_| Ok(()))) {
        println!("{error}");
    }
}

/// If several ranks fail, the first error is reported, however fast the threads of the others are.
#[test]
fn of_several_errors_the_first_is_told() {
    each_case([2, 3].repeat(150), |size| -> Result<()> {
        let error = machine("none").enter(|| dist::spawn(size, |_rank| Tensor::ones(&[4])?.reshape(&[3])));
        let Err(Error::Rank(rank)) = error else { panic!("no rank has failed") };
        assert_eq!(rank.rank, 0);
        Ok(())
    });
}

#[test]
fn different_collectives_in_one_place_are_found() {
    for error in fails(2, |rank, device| {
        let x = Tensor::ones((&[4 + rank], device))?;
        dist::all_reduce(&x, ReduceOp::Sum)?;
        x.sum()?.item().map(drop)
    }) {
        assert!(
            error.to_string().starts_with(
                "Detected mismatch between collectives on ranks. Rank 1 is running collective: \
                 CollectiveFingerPrint(SequenceNumber=1, OpType=ALLREDUCE, TensorShape=[5]"
            ),
            "{error}"
        );
    }
    for error in fails(2, |rank, device| {
        let x = Tensor::ones((&[4], device))?;
        match rank {
            0 => dist::all_reduce(&x, ReduceOp::Sum)?,
            _ => dist::broadcast(&x, 0)?,
        };
        x.sum()?.item().map(drop)
    }) {
        assert!(error.to_string().contains("OpType=BROADCAST"), "{error}");
    }
}

#[test]
fn a_rank_that_is_too_slow_is_a_timeout() {
    each_case(["sim:t4x2", "sim:t4"], |text| -> Result<()> {
        let backend = if text == "sim:t4" { "gloo" } else { "nccl" };
        let error = machine(text)
            .enter(|| {
                dist::spawn(2, |rank| {
                    let device = if backend == "gloo" { Device::Cpu } else { Device::cuda(rank) };
                    let timeout = Some(Duration::from_secs(10));
                    dist::init_process_group((backend, InitOptions { timeout }))?;
                    let x = Tensor::ones((&[4], device))?;
                    sleep(Duration::from_secs(9 * rank as u64));
                    dist::all_reduce(&x, ReduceOp::Sum)?;
                    x.sum()?.item()?; // Nine seconds are within the limit.
                    sleep(Duration::from_secs(11 * rank as u64));
                    dist::all_reduce(&x, ReduceOp::Sum)?;
                    x.sum()?.item().map(drop)
                })
            })
            .unwrap_err();
        let text = error.to_string();
        let expected = match backend {
            "gloo" => {
                "[/pytorch/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 10000ms for recv"
            }
            _ => {
                "[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=2, OpType=ALLREDUCE, NumelIn=4, \
                 NumelOut=4, Timeout(ms)=10000) ran for 10000 milliseconds before timing out."
            }
        };
        assert!(text.starts_with(expected), "{text}");
        assert!(text.contains("rank 1 was slow: it came 1"), "{text}");
        Ok(())
    });
}

#[test]
fn what_ranks_need_is_asked_for() -> Result<()> {
    assert!(refused!(dist::init_process_group("nccl"), DistributedError::NoRank));
    assert!(refused!(dist::get_rank(), DistributedError::NotInitialized));
    assert!(refused!(dist::spawn(0, |_| Ok(())), DistributedError::NoRanks));
    machine("sim:t4x2").enter(|| {
        dist::spawn(2, |rank| {
            assert!(refused!(dist::init_process_group("mpi"), DistributedError::UnknownBackend(_)));
            dist::init_process_group("nccl")?;
            assert!(refused!(dist::init_process_group("nccl"), DistributedError::InitializedTwice));
            let on_host = Tensor::ones(&[2, 3])?;
            assert!(refused!(dist::all_reduce(&on_host, ReduceOp::Sum), DistributedError::NoBackend { .. }));
            let turned = on_host.cuda()?.t()?;
            assert!(refused!(dist::all_reduce(&turned, ReduceOp::Sum), DistributedError::NotContiguous));
            assert!(refused!(dist::send(&turned.t()?, rank), DistributedError::SameRank { .. }));
            assert!(refused!(dist::broadcast(&turned.t()?, 2), DistributedError::InvalidRoot { .. }));
            Ok(())
        })
    })?;
    // Both forgot `set_device`.
    let error = machine("sim:t4x2").enter(|| {
        dist::spawn(2, |_| {
            dist::init_process_group("nccl")?;
            dist::all_reduce(&Tensor::ones(&[1])?.cuda()?, ReduceOp::Sum)
        })
    });
    let text = error.unwrap_err().to_string();
    assert!(text.starts_with("Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 0"), "{text}");
    Ok(())
}

#[test]
fn without_threads_a_phase_may_not_wait_for_one_that_has_not_begun() -> Result<()> {
    machine("sim:t4x2").enter(|| {
        let ranks = Ranks::in_turns(2)?;
        let error = ranks.run(|rank| {
            cuda::set_device(rank)?;
            dist::init_process_group("nccl")?;
            let x = Tensor::ones((&[1], Device::cuda(rank)))?;
            dist::all_reduce(&x, ReduceOp::Sum)?;
            x.item()
        });
        let text = error.unwrap_err().to_string();
        assert!(
            text.starts_with("rank 0 waits in ALLREDUCE number 1 for rank 1, which has not begun this phase"),
            "{text}"
        );
        Ok(())
    })
}

/// With modelled times, and with real ones: there only the time during which a rank itself ran counts.
#[test]
fn a_rank_of_gloo_that_comes_too_late_is_named() {
    each_case(["none", "sim:t4"], |gpu| -> Result<()> {
        let late = |sleeps: [u64; 2], between: bool| {
            machine(gpu).enter(|| {
                dist::spawn(2, |rank| {
                    let timeout = Some(Duration::from_millis(200));
                    dist::init_process_group(("gloo", InitOptions { timeout }))?;
                    let x = Tensor::ones(&[1])?;
                    if between {
                        dist::all_reduce(&x, ReduceOp::Sum)?;
                    }
                    sleep(Duration::from_millis(sleeps[rank]));
                    dist::all_reduce(&x, ReduceOp::Sum)?;
                    x.item()
                })
            })
        };
        for between in [false, true] {
            let text = late([0, 400], between).unwrap_err().to_string();
            let (how, lines) = (if gpu == "none" { "measured" } else { "modelled" }, text.lines());
            let lines: Vec<&str> = lines.collect();
            let expected = "[/pytorch/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 200ms for recv \
                            operation to complete";
            assert_eq!(lines[0], expected, "{gpu}");
            let slow = lines[1].strip_prefix("   = rank 1 was slow: it came ");
            let (after, place) =
                slow.and_then(|slow| slow.split_once(" ms ")).unwrap_or_else(|| panic!("{text}"));
            // On a busy computer rank 0 may be late itself.
            assert!(after.parse::<u64>().is_ok_and(|ms| ms > 200), "{text}");
            assert!(place.starts_with(&format!("({how}) after rank 0, at ")), "{text}");
            // Ranks that work simultaneously do not wait for each other, even if this computer runs them one after the
            // other.
            assert_eq!(late([150, 150], between).unwrap(), [2.0 + 2.0 * f64::from(between); 2]);
        }
        Ok(())
    });
}

/// Each rank's message is gloo's: those that waited report the direction, and the late one that its connection was
/// closed.
#[test]
fn every_rank_of_gloo_says_what_it_waited_for() {
    type Call = fn(usize, &Tensor) -> Result<()>;
    let cases: [(Call, usize, [&str; 3]); 7] = [
        (|_, x| dist::all_reduce(x, ReduceOp::Sum).map(drop), 1, ["recv", "late", "send"]),
        (|_, x| dist::all_reduce(x, ReduceOp::Sum).map(drop), 0, ["late", "send", "recv"]),
        (|_, x| dist::all_gather(x).map(drop), 1, ["send", "late", "recv"]),
        (|_, x| dist::broadcast(x, 0).map(drop), 0, ["late", "recv", "recv"]),
        (|_, x| dist::broadcast(x, 1).map(drop), 2, ["recv", "send", "late"]),
        (|_, _| dist::barrier(), 1, ["send", "late", "recv"]),
        (
            |rank, x| {
                if rank == 0 {
                    dist::send(x, 2)
                } else if rank == 2 {
                    dist::recv(x, 0)
                } else {
                    Ok(())
                }
            },
            2,
            ["send", "", "late"],
        ),
    ];
    each_case(["none", "sim:t4"], |gpu| -> Result<()> {
        for (call, late, expected) in cases {
            let said = machine(gpu).enter(|| {
                dist::spawn(3, |rank| {
                    let timeout = Some(Duration::from_millis(100));
                    dist::init_process_group(("gloo", InitOptions { timeout }))?;
                    let x = Tensor::ones(&[1000])?;
                    sleep(Duration::from_millis(if rank == late { 250 } else { 0 }));
                    Ok(call(rank, &x).err().map(|error| error.to_string()))
                })
            });
            for (said, expected) in said.unwrap().iter().zip(expected) {
                let first = said.as_ref().and_then(|said| said.lines().next()).unwrap_or_default();
                let waited = |line: usize| {
                    let file = "[/pytorch/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc";
                    format!("{file}:{line}] Timed out waiting 100ms for {expected} operation to complete")
                };
                let expected = match expected {
                    "send" => waited(129),
                    "recv" => waited(78),
                    "late" => {
                        "[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:547] Connection closed by peer"
                            .to_owned()
                    }
                    other => other.to_owned(),
                };
                assert_eq!(first, expected, "{gpu}, rank {late} is late");
            }
        }
        Ok(())
    });
    // The cause is that ranks waited, even if the late one is the first to fail.
    let error = machine("sim:t4").enter(|| {
        dist::spawn(2, |rank| {
            dist::init_process_group(("gloo", InitOptions { timeout: Some(Duration::from_millis(100)) }))?;
            sleep(Duration::from_millis(if rank == 0 { 250 } else { 0 }));
            dist::all_reduce(&Tensor::ones(&[4])?, ReduceOp::Sum)
        })
    });
    let text = error.unwrap_err().to_string();
    assert!(
        text.contains(".cc:78] Timed out waiting 100ms for recv") && text.contains("process 1 of 2"),
        "{text}"
    );
}

#[test]
fn groups_of_different_members_do_not_meet() {
    // As in PyTorch: the one waits for a rank that is not in its view of the group.
    for error in fails(2, |rank, device| {
        let members: &[usize] = if rank == 0 { &[0] } else { &[0, 1] };
        let group = Some(dist::new_group(members)?);
        let x = Tensor::full(&[1], (rank as f64, device))?;
        let options = dist::CollectiveOptions { group, async_op: false };
        dist::all_reduce(&x, (ReduceOp::Sum, options))?.wait()?;
        assert_eq!((rank, x.item()?), (0, 0.0));
        Ok(())
    }) {
        let text = error.to_string();
        assert!(
            text.starts_with("rank 0 has ended without calling a collective that others wait in\n"),
            "{text}"
        );
        assert!(text.contains("rank 1 waits in ALLREDUCE number 1"), "{text}");
    }
    // Groups of a single rank need no other ranks.
    each_case(["none", "sim:t4"], |gpu| -> Result<()> {
        let sums = machine(gpu).enter(|| {
            dist::spawn(2, |rank| {
                dist::init_process_group("gloo")?;
                let group = Some(dist::new_group(&[rank])?);
                let x = Tensor::full(&[1], (rank as f64, Device::Cpu))?;
                let options = dist::CollectiveOptions { group, async_op: false };
                dist::all_reduce(&x, (ReduceOp::Sum, options))?.wait()?;
                x.item()
            })
        });
        assert_eq!(sums.unwrap(), [0.0, 1.0]);
        Ok(())
    });
    for error in fails(2, |_, _| dist::new_group(&[0, 2]).map(drop)) {
        let text = "The new group's rank should be within the world_size set by init_process_group";
        assert_eq!(error.to_string().lines().next(), Some(text));
    }
}
