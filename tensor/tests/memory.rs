//! `torch.cuda`'s memory functions: the statistics, the reports, and running out of memory.

use crate::each_case::each_case;
use todevice::cuda::{self, SegmentType};
use todevice::prelude::*;
use todevice::{Error, GpuError, GpuSpec, Machine, OutOfMemory};

fn on<R>(gpus: &str, test: impl FnOnce() -> Result<R>) -> R {
    gpus.parse::<Machine>().unwrap().enter(test).unwrap()
}

#[track_caller]
fn floats(count: usize) -> Result<Tensor> {
    Tensor::empty((&[count], Device::cuda(0)))
}

#[track_caller]
fn out_of_memory<T>(result: Result<T>) -> (OutOfMemory, String) {
    let Err(error) = result else { panic!("there was memory") };
    assert_eq!(error.code(), Some("GPU0002"));
    let report = error.report();
    let Error::Gpu(error) = error else { panic!("{error:?}") };
    let GpuError::OutOfDeviceMemory(memory) = *error else { panic!("{error:?}") };
    (*memory, report)
}

fn figures() -> [u64; 4] {
    [
        cuda::memory_allocated(),
        cuda::max_memory_allocated(),
        cuda::memory_reserved(),
        cuda::max_memory_reserved(),
    ]
}

#[test]
#[allow(deprecated)]
fn the_notebook_has_the_figures_of_the_document() {
    on("sim:t4", || {
        let rand = || Tensor::rand((&[300, 300, 300], Device::cuda(0)));
        assert_eq!(figures(), [0; 4]);
        // An earlier cell allocated something small, which has been freed.
        drop(floats(100)?);
        assert_eq!(figures(), [0, 512, 2_097_152, 2_097_152]);
        cuda::reset_max_memory_allocated();
        let mut x = rand()?;
        assert_eq!(
            (x.device().index(), figures()),
            (0, [108_000_256, 108_000_256, 111_149_056, 111_149_056])
        );
        assert_eq!(cuda::memory_cached(), 111_149_056);
        // The cell runs again: the new tensor is created before the old one is dropped.
        x = rand()?;
        assert_eq!(figures(), [108_000_256, 216_000_512, 220_200_960, 220_200_960]);
        assert_eq!((cuda::memory_cached(), cuda::max_memory_cached()), (220_200_960, 220_200_960));
        assert_eq!(x.sizes(), [300; 3]);
        // The third time there is room in the cache.
        x = rand()?;
        assert_eq!(figures(), [108_000_256, 216_000_512, 220_200_960, 220_200_960]);
        cuda::empty_cache()?;
        assert_eq!(figures(), [108_000_256, 216_000_512, 109_051_904, 220_200_960]);
        // Either way of resetting one peak resets all of them: so the document has a peak of 108000256.
        cuda::reset_max_memory_cached();
        assert_eq!(figures(), [108_000_256, 108_000_256, 109_051_904, 109_051_904]);
        drop(x);
        cuda::empty_cache()?;
        assert_eq!(cuda::memory_cached(), 0);
        Ok(())
    });
}

#[test]
fn the_summary_is_pytorchs_table() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/vectors/memory_summary_model.txt");
    let expected = std::fs::read_to_string(path).unwrap();
    on("sim:t4x2", || {
        drop(floats(100)?);
        let first = floats(27_000_000)?;
        let second = floats(27_000_000)?;
        drop(first);
        assert_eq!(cuda::memory_summary().trim_end(), expected.trim_end());
        assert_eq!(cuda::device(0, cuda::memory_summary)?, cuda::memory_summary());
        drop(second);
        let short = cuda::device(1, cuda::memory_summary_abbreviated)?;
        assert_eq!(short.lines().count(), 6 + 2 * 11 + 1);
        assert!(
            short.contains("|                  PyTorch CUDA memory summary, device ID 1                 |\n")
        );
        assert!(short.lines().all(|line| line.len() == 77) && !short.contains("pool"), "{short}");
        Ok(())
    });
}

#[test]
fn statistics_have_pytorchs_names() {
    on("sim:t4", || {
        let small = floats(100)?;
        let _large = floats(1 << 20)?;
        drop(small);
        let stats = cuda::memory_stats();
        assert_eq!(stats.len(), 122);
        each_case(
            [
                ("allocated_bytes.all.current", 4 << 20),
                ("allocated_bytes.all.peak", (4 << 20) + 512),
                ("allocated_bytes.small_pool.freed", 512),
                ("requested_bytes.small_pool.allocated", 400),
                ("reserved_bytes.large_pool.current", 20 << 20),
                ("inactive_split_bytes.large_pool.current", 16 << 20),
                ("segment.all.current", 2),
                ("num_device_alloc", 2),
                ("oversize_allocations.current", 0),
                ("max_split_size", -1),
            ],
            |(name, value)| {
                assert_eq!(stats.get(name), Some(&value), "{name}");
            },
        );
        cuda::reset_accumulated_memory_stats();
        cuda::reset_peak_memory_stats();
        let stats = cuda::memory_stats();
        let figures = ["current", "peak", "allocated", "freed"]
            .map(|what| stats[&format!("allocated_bytes.all.{what}")]);
        assert_eq!(figures, [4 << 20, 4 << 20, 0, 0]);
        assert_eq!(stats["num_device_alloc"], 0);
        Ok(())
    });
}

#[test]
fn every_device_has_figures_of_its_own() {
    on("sim:t4x2", || {
        let _x = Tensor::empty((&[1000], Device::cuda(1)))?;
        assert_eq!(figures(), [0; 4]);
        assert_eq!(cuda::device(1, figures)?, [4096, 4096, 2 << 20, 2 << 20]);
        assert_eq!(cuda::device(1, cuda::memory_stats)?["allocation.all.current"], 1);
        let (free, total) = cuda::device(1, cuda::mem_get_info)??;
        assert_eq!(cuda::mem_get_info()?, (free + (2 << 20), total));
        cuda::device(1, cuda::reset_peak_memory_stats)?;
        cuda::device(1, cuda::reset_accumulated_memory_stats)?;
        assert_eq!(cuda::device(1, cuda::memory_stats)?["num_device_alloc"], 0);
        cuda::device(1, || cuda::set_per_process_memory_fraction(0.5))??;
        assert_eq!(cuda::device(1, cuda::get_per_process_memory_fraction)??, 0.5);
        assert_eq!(cuda::get_per_process_memory_fraction()?, 1.0);
        assert!(cuda::device(2, cuda::memory_allocated).is_err());
        Ok(())
    });
}

#[test]
#[allow(deprecated)]
fn older_names_say_what_the_scope_of_a_device_says_and_refuse_as_pytorch_does() {
    on("sim:t4x2", || {
        let _x = Tensor::empty((&[1000], Device::cuda(1)))?;
        assert_eq!(cuda::memory_allocated_device(1)?, 4096);
        assert_eq!(cuda::max_memory_allocated_device(1)?, 4096);
        assert_eq!(cuda::memory_reserved_device(1)?, 2 << 20);
        assert_eq!(cuda::max_memory_reserved_device(1)?, 2 << 20);
        assert_eq!(cuda::memory_stats_device(1)?, cuda::device(1, cuda::memory_stats)?);
        assert_eq!(cuda::memory_summary_device(1, false)?, cuda::device(1, cuda::memory_summary)?);
        assert_eq!(cuda::memory_summary_device(1, true)?, cuda::device(1, cuda::memory_summary_abbreviated)?);
        assert_eq!(cuda::mem_get_info_device(1)?, cuda::device(1, cuda::mem_get_info)??);
        cuda::synchronize_device(1)?;
        cuda::reset_peak_memory_stats_device(1)?;
        cuda::reset_accumulated_memory_stats_device(1)?;
        assert_eq!(cuda::memory_stats_device(1)?["num_device_alloc"], 0);
        cuda::set_per_process_memory_fraction_device(0.5, 1)?;
        assert_eq!(cuda::get_per_process_memory_fraction_device(1)?, 0.5);
        assert_eq!(cuda::get_per_process_memory_fraction()?, 1.0);
        const STATS: &str = "Invalid device argument 2: did you call init?";
        const ALLOCATOR: &str = "Allocator not initialized for device 2: did you call init?";
        const DEVICE: &str = "CUDA error: invalid device ordinal";
        each_case(
            [
                (cuda::memory_allocated_device(2).map(drop), STATS),
                (cuda::max_memory_allocated_device(2).map(drop), STATS),
                (cuda::memory_reserved_device(2).map(drop), STATS),
                (cuda::max_memory_reserved_device(2).map(drop), STATS),
                (cuda::memory_stats_device(2).map(drop), STATS),
                (cuda::memory_summary_device(2, false).map(drop), STATS),
                (cuda::reset_peak_memory_stats_device(2), STATS),
                (cuda::reset_accumulated_memory_stats_device(2), STATS),
                (cuda::set_per_process_memory_fraction_device(0.5, 2), ALLOCATOR),
                (cuda::get_per_process_memory_fraction_device(2).map(drop), ALLOCATOR),
                (cuda::mem_get_info_device(2).map(drop), DEVICE),
                (cuda::synchronize_device(2), DEVICE),
                (cuda::set_device(2), DEVICE),
            ],
            |(refused, words)| {
                assert_eq!(refused.unwrap_err().to_string().lines().next(), Some(words));
            },
        );
        Ok(())
    });
}

#[test]
#[allow(deprecated)] // Includes the older names.
fn without_a_gpu_there_is_nothing_to_count() {
    on("none", || {
        assert_eq!(figures(), [0; 4]);
        assert_eq!((cuda::memory_allocated_device(7)?, cuda::max_memory_reserved_device(7)?), (0, 0));
        assert!(cuda::memory_stats_device(7)?.is_empty());
        assert!(cuda::memory_stats().is_empty() && cuda::memory_snapshot().is_empty());
        assert!(cuda::memory_summary().contains("| Allocated memory      |      0 B   |"));
        cuda::reset_accumulated_memory_stats();
        cuda::set_allocator_settings("max_split_size_mb:20")?;
        each_case(
            [
                cuda::mem_get_info_device(0).map(drop),
                cuda::set_per_process_memory_fraction(0.5),
                cuda::get_per_process_memory_fraction().map(drop),
            ],
            |refused| {
                assert!(
                    matches!(refused.as_ref().map_err(Error::gpu), Err(Some(GpuError::NoDriver))),
                    "{refused:?}"
                );
            },
        );
        Ok(())
    });
}

#[test]
fn a_snapshot_shows_segments_blocks_and_the_lines_they_come_from() {
    on("sim:t4x2", || {
        let small = floats(100)?;
        let line = line!() + 1;
        let kept = floats(200)?;
        let _large = floats(1 << 20)?;
        let _other = Tensor::empty((&[1], Device::cuda(1)))?;
        drop(small);
        let segments = cuda::memory_snapshot();
        let kinds: Vec<_> = segments.iter().map(|segment| (segment.device, segment.segment_type)).collect();
        assert_eq!(kinds, [(0, SegmentType::Small), (0, SegmentType::Large), (1, SegmentType::Small)]);
        let first = &segments[0];
        assert_eq!((first.total_size, first.stream), (2 << 20, 0));
        assert_eq!((first.allocated_size, first.active_size, first.requested_size), (1024, 1024, 800));
        let blocks: Vec<_> =
            first.blocks.iter().map(|block| (block.address - first.address, block.size)).collect();
        assert_eq!(blocks, [(0, 512), (512, 1024), (1536, (2 << 20) - 1536)]);
        let states = first.blocks.iter().map(|block| block.state.to_string()).collect::<Vec<_>>();
        assert_eq!(states, ["inactive", "active_allocated", "inactive"]);
        let place = first.blocks[1].place.unwrap();
        assert_eq!((place.file(), place.line()), (file!(), line));
        assert_eq!((first.blocks[0].place, kept.sizes()), (None, &[200][..]));
        Ok(())
    });
}

#[test]
fn a_snapshot_tells_the_block_of_a_tensor_and_the_workspace_of_cublas() {
    on("sim:t4", || {
        let x = Tensor::ones((&[4, 4], Device::cuda(0)))?;
        x.matmul(&x)?;
        let segments = cuda::memory_snapshot();
        let blocks = || segments.iter().flat_map(|segment| &segment.blocks);
        let of_x: Vec<u64> = blocks()
            .filter(|block| Some(block.address) == x.t().unwrap().storage_address())
            .map(|block| block.requested_size)
            .collect();
        let workspaces: Vec<u64> = blocks().filter(|block| block.workspace).map(|block| block.size).collect();
        assert_eq!((of_x, workspaces), (vec![64], vec![8_519_680]));
        assert_eq!(Tensor::ones(&[1])?.storage_address(), None);
        Ok(())
    });
}

/// Whatever allocates memory, the reported line is the user's own, never one of the library.
#[test]
fn every_block_knows_the_line_of_the_program() {
    on("sim:t4", || {
        let device = Device::cuda(0);
        let model = nn::Sequential::new((nn::Linear::new(8, 8)?, nn::ReLU, nn::Linear::new(8, 1)?));
        model.to(device)?;
        let mut optimizer = optim::Adam::new(model.parameters(), AdamOptions::default())?;
        let x = Tensor::randn(&[16, 8])?.to(device)?;
        let loss = model.forward(&x)?.square()?.mean()?;
        loss.backward()?;
        optimizer.step()?;
        let _more = (x.exp()?, (&x + &x)?, x.softmax(-1)?, x.sum()?, Tensor::rand((&[4], device))?);
        let segments = cuda::memory_snapshot();
        let blocks = segments.iter().flat_map(|segment| &segment.blocks);
        let places: Vec<_> = blocks.filter_map(|block| block.place).collect();
        assert!(places.len() > 20);
        for place in places {
            assert_eq!(place.file(), file!(), "{place}");
        }
        Ok(())
    });
}

// Limits and options.

#[test]
fn a_fraction_of_the_memory_can_be_set_as_the_limit() {
    on("sim:t4,mem=1GiB", || {
        assert_eq!(cuda::get_per_process_memory_fraction()?, 1.0);
        cuda::set_per_process_memory_fraction(0.5)?;
        assert_eq!(cuda::get_per_process_memory_fraction()?, 0.5);
        let held = floats(300 << 18)?;
        let (memory, report) = out_of_memory(floats(300 << 18));
        assert_eq!((memory.allowed, memory.tried), (Some(512 << 20), 300 << 20));
        assert!(
            memory.to_string().contains(
                "this process has 556.00 MiB memory in use. 512.00 MiB allowed; Of the allocated memory 300.00 MiB is"
            ),
            "{memory}"
        );
        assert!(report.contains("= fix: use a smaller batch"), "{report}");
        let (_, report) = out_of_memory(floats(600 << 18));
        assert!(report.ends_with("`: raise the limit"), "{report}");
        cuda::set_per_process_memory_fraction(1.0)?;
        drop((held, floats(300 << 18)?));
        each_case([(2.0, "2.0"), (-0.1, "-0.1"), (f64::NAN, "NaN")], |(fraction, text)| {
            let refused = cuda::set_per_process_memory_fraction(fraction).unwrap_err().to_string();
            assert_eq!(refused, format!("Invalid fraction value: {text}. Allowed range: 0~1"));
        });
        Ok(())
    });
}

#[test]
fn options_are_given_by_call_and_wrong_ones_change_nothing() {
    on("sim:t4,mem=1GiB", || {
        cuda::set_allocator_settings("max_split_size_mb:200,per_process_memory_fraction:0.5")?;
        assert_eq!(cuda::memory_stats()["max_split_size"], 200 << 20);
        assert_eq!(cuda::get_per_process_memory_fraction()?, 0.5);
        let oversize = floats(210 << 18)?;
        assert_eq!(cuda::memory_stats()["oversize_allocations.current"], 1);
        let refused = cuda::set_allocator_settings("max_split_size_mb:1").unwrap_err().to_string();
        assert_eq!(refused, "CachingAllocator option max_split_size_mb too small, must be >= 20");
        assert_eq!(cuda::memory_stats()["max_split_size"], 200 << 20);
        cuda::set_allocator_settings("")?;
        drop(oversize);
        assert_eq!(cuda::memory_stats()["max_split_size"], -1);
        assert_eq!(cuda::memory_stats()["oversize_allocations.current"], 0);
        Ok(())
    });
}

// Out of memory.

#[test]
fn the_report_says_who_holds_the_memory_and_the_program_goes_on() {
    on("sim:t4,mem=768MiB", || {
        let held: Vec<Tensor> = (0..3).map(|_| floats(50 << 18)).collect::<Result<_>>()?;
        let line = line!() - 1;
        let more = floats(200 << 18)?;
        let (memory, report) = out_of_memory(more.exp());
        let here = line!() - 1;
        let file = file!();
        let lines: Vec<&str> = report.lines().collect();
        assert_eq!(
            lines[0],
            "error[GPU0002]: CUDA out of memory. Tried to allocate 200.00 MiB. GPU 0 has a total capacity of \
             768.00 MiB of which 162.00 MiB is free. Including non-PyTorch memory, this process has 606.00 MiB \
             memory in use. Of the allocated memory 350.00 MiB is allocated by PyTorch, and 0 bytes is reserved by \
             PyTorch but unallocated. If reserved but unallocated memory is large try setting \
             PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for Memory \
             Management  (https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)"
        );
        assert!(
            lines[1].starts_with(&format!("  --> {file}:{here}:")) && lines[1].ends_with(": exp"),
            "{report}"
        );
        assert_eq!(
            lines[2..],
            [
                "   = held on GPU 0, by the line that asked for it:",
                &format!("     {file}:{}  1 block   200.00 MiB", line + 2),
                &format!("     {file}:{line}  3 blocks  150.00 MiB"),
                "   = fix: use a smaller batch, or drop what is no longer needed before this line;",
                "          in an evaluation, where nothing learns, run the forward pass in `no_grad(|| …)`",
            ]
        );
        assert_eq!((memory.device, memory.holders.len(), memory.holders[1].blocks), (0, 2, 3));
        // The program continues.
        drop(held);
        assert_eq!(more.exp()?.sizes(), [200 << 18]);
        assert_eq!(cuda::memory_stats()["num_ooms"], 1);
        Ok(())
    });
}

#[test]
fn a_long_report_ends_with_how_many_lines_more() {
    on("sim:t4,mem=512MiB", || {
        // All allocations on a line in a loop share one line of the table.
        let mut held = (0..3).map(|_| floats(2 << 18)).collect::<Result<Vec<_>>>()?;
        held.push(floats(11 << 18)?);
        held.push(floats(3 << 18)?);
        held.push(floats(4 << 18)?);
        held.push(floats(5 << 18)?);
        held.push(floats(7 << 18)?);
        held.push(floats(8 << 18)?);
        held.push(floats(9 << 18)?);
        let table = |report: &str| -> Vec<String> {
            let rows = report.lines().skip(3).take_while(|line| !line.contains("= fix"));
            rows.map(|row| row.split_whitespace().skip(1).collect::<Vec<_>>().join(" ")).collect()
        };
        let (_, report) = out_of_memory(floats(300 << 18));
        let sizes = ["11.00", "9.00", "8.00", "7.00", "", "5.00", "4.00", "3.00"];
        let mut rows = sizes.map(|mib| format!("1 block {mib} MiB"));
        rows[4] = "3 blocks 6.00 MiB".to_string();
        assert_eq!(table(&report), rows);
        held.push(floats(10 << 18)?);
        let (memory, report) = out_of_memory(floats(300 << 18));
        assert_eq!((table(&report).len(), memory.holders.len()), (8, 9));
        assert_eq!(table(&report)[7], "more 2 blocks 7.00 MiB", "{report}");
        assert!(report.contains("     2 more"), "{report}");
        Ok(())
    });
}

#[test]
fn what_cublas_holds_is_called_so_and_not_by_the_line_that_multiplied_first() {
    on("sim:t4,mem=512MiB", || {
        let x = floats(4)?;
        let line = line!() + 1;
        let product = x.reshape(&[2, 2])?.matmul(&x.reshape(&[2, 2])?)?;
        let (memory, report) = out_of_memory(floats(1 << 27));
        let held: Vec<(Option<u32>, u64)> = memory
            .holders
            .iter()
            .map(|holder| (holder.place.map(|place| place.line()), holder.bytes))
            .collect();
        assert_eq!(held[0], (None, 8_519_680));
        assert!(held[1..].contains(&(Some(line), 512)), "the product itself is that line's: {held:?}");
        assert!(report.contains("\n     cuBLAS workspace            1 block   8.12 MiB\n"), "{report}");
        assert_eq!(product.numel(), 4);
        Ok(())
    });
}

#[test]
fn an_empty_gpu_that_is_too_small_is_reported_as_such() {
    on("sim:t4,mem=512MiB", || {
        let (_, report) = out_of_memory(floats(1 << 28));
        assert!(report.contains("\n   = nothing is held on GPU 0\n"), "{report}");
        assert!(
            report.ends_with("the request is larger than the GPU's memory: allocate less at a time"),
            "{report}"
        );
        Ok(())
    });
}

#[test]
fn other_programs_take_their_part_of_a_gpu() {
    let free = |gpus: &str| on(gpus, || cuda::mem_get_info().map(|(free, _)| free));
    assert_eq!(free("sim:t4") - free("sim:t4,others=1GiB"), 1 << 30);
    on("sim:t4,mem=2GiB,others=1GiB", || {
        assert_eq!(cuda::mem_get_info()?, (768 << 20, 2 << 30));
        let (memory, _) = out_of_memory(floats(800 << 18));
        let sentence = memory.to_string();
        assert!(
            sentence.contains(
                "768.00 MiB is free. Process 2112 has 1024.00 MiB memory in use. Including non-PyTorch memory, this \
                 process has 256.00 MiB memory in use. Of the allocated"
            ),
            "{sentence}"
        );
        drop(floats(768 << 18)?);
        Ok(())
    });
    each_case(
        [
            (
                "sim:t4,mem=1GiB,others=768MiB",
                "others= is too large for 1024 MiB of memory: CUDA itself takes 256 MiB",
            ),
            ("sim:t4,mem=256MiB", "mem= is too small: CUDA itself takes 256 MiB"),
            (
                "sim:t4,others=1GB",
                "after others=, '1GB' is not a size of memory, expected one such as 512MiB or 16GiB",
            ),
            ("sim:t4,others=1GiB,others=1GiB", "others= occurs twice, expected it once"),
        ],
        |(text, why)| {
            let error = text.parse::<Machine>().unwrap_err().to_string();
            assert!(error.starts_with(why), "{error}");
        },
    );
    each_case(["sim:t4,others=1GiB", "sim:h200x2,mem=4GiB,others=1536MiB,seed=3"], |text| {
        assert_eq!(text.parse::<GpuSpec>().unwrap().to_string(), text);
    });
}

#[test]
fn without_the_cache_memory_is_the_drivers_and_a_program_computes_the_same() {
    on("sim:t4", || {
        let x = Tensor::arange(0, 1000, (1, (Device::cuda(0), DType::F32)))?;
        let product = || x.reshape(&[10, 100])?.mm(&x.reshape(&[100, 10])?)?.sum()?.item();
        let (expected, held) = (product()?, cuda::memory_reserved());
        cuda::caching_allocator_enable(false);
        let free = cuda::mem_get_info()?.0;
        assert_eq!(product()?, expected);
        let y = x.add(1.0)?;
        assert_eq!(cuda::memory_reserved(), held);
        assert!(cuda::mem_get_info()?.0 < free, "a tensor is memory of the driver's");
        // Any thread may drop a tensor.
        std::thread::spawn(move || drop(y)).join().unwrap();
        cuda::synchronize()?;
        assert_eq!(cuda::mem_get_info()?.0, free);
        let all = Tensor::empty((&[1 << 40], (Device::cuda(0), DType::U8))).unwrap_err().to_string();
        assert!(all.contains("CUDA out of memory. Tried to allocate 1024.00 GiB"), "{all}");
        cuda::caching_allocator_enable(true);
        assert_eq!(product()?, expected);
        Ok(())
    });
}
