//! Part B: how the allocator thinks.

use std::cell::RefCell;

use drawing::MemoryMap;
use todevice::cuda;
use todevice::prelude::*;

use super::{the_cache, use_it};
use crate::{Figure, Kind, Lab, Prediction, Table, exact, row, text};

pub(super) fn sections(lab: &mut Lab) -> crate::Result<()> {
    free_is_not_returned(lab)?;
    blocks_and_segments(lab)?;
    fragmentation(lab)?;
    the_notebook(lab)
}

// ANCHOR: bytes
const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// A tensor of this many bytes. Its contents do not matter here.
fn bytes(bytes: usize, device: Device) -> Result<Tensor> {
    Tensor::empty((&[bytes / 4], device))
}
// ANCHOR_END: bytes

fn free_is_not_returned(lab: &mut Lab) -> crate::Result<()> {
    lab.section(8, "Three counts of memory");
    lab.think(
        "04-falls",
        "A tensor of 64 MiB is dropped. Which number falls: what tensors hold, what the program has reserved, or what \
         `nvidia-smi` shows?",
    );
    if !lab.has_gpu_to_show("three counts of memory, and when each falls.") {
        return Ok(());
    }
    let device = lab.device();
    cuda::empty_cache()?;
    let head = ["after", "allocated", "reserved", "in use on the GPU"];
    let table = RefCell::new(Table::new(head));
    let note = |what: &str| -> Result<()> {
        let [allocated, reserved, in_use] = three_counts()?;
        table.borrow_mut().rows.push(row![
            what,
            crate::bytes("allocated", allocated),
            crate::bytes("reserved", reserved),
            Figure { kind: Kind::Hardware, ..crate::bytes("in_use", in_use) }
        ]);
        Ok(())
    };
    note("nothing yet")?;
    // ANCHOR: free
    let x = bytes(64 * MIB, device)?;
    note("x = 64 MiB")?;
    drop(x);
    note("drop(x)")?;
    cuda::empty_cache()?;
    note("empty_cache()")?;
    // ANCHOR_END: free
    lab.table(table.into_inner());
    lab.prose(
        "Dropped memory goes back to the allocator, which keeps it for your next tensor. empty_cache() gives back to the GPU \
         what it can. You always find allocated ≤ reserved ≤ in use. The last also counts CUDA's own memory and what other \
         programs hold, and it is what nvidia-smi shows.",
    );
    one_tensor_is_left(lab)?;
    the_cache::why_there_is_one(lab)
}

// ANCHOR: ladder
/// The bytes that tensors hold, that the allocator has reserved from the driver, and
/// that the driver has given to all programs.
fn three_counts() -> Result<[u64; 3]> {
    let (free, total) = cuda::mem_get_info()?;
    Ok([cuda::memory_allocated(), cuda::memory_reserved(), total - free])
}
// ANCHOR_END: ladder

fn one_tensor_is_left(lab: &mut Lab) -> crate::Result<()> {
    let device = lab.device();
    let table = RefCell::new(Table::new(["after", "allocated", "reserved"]));
    let note = |what: &str| -> Result<()> {
        let [allocated, reserved, _] = three_counts()?;
        table.borrow_mut().rows.push(row![
            what,
            crate::bytes("allocated", allocated).unit("KiB"),
            crate::bytes("reserved", reserved).unit("KiB")
        ]);
        Ok(())
    };
    note("empty_cache()")?;
    let guess = lab.predict(
        Prediction::number(
            "04-left",
            "You make 4096 tensors of 512 bytes, 2048 KiB in all. You keep one, drop the others, and call `empty_cache()`. How \
             many of the 2048 KiB does your program still hold?",
        )
        .unit("KiB")
        .at_most(2048.0)
        .because("The driver takes back only whole segments. All 2048 KiB are in one segment, and a tensor still lives in it."),
    );
    let before = cuda::memory_reserved();
    // ANCHOR: pinned_segment
    let tensors: Vec<Tensor> =
        (0..4096).map(|_| bytes(512, device)).collect::<Result<_>>()?;
    note("4096 tensors of 512 bytes")?;
    let one = tensors[0].clone(); // the same memory
    drop(tensors);
    cuda::empty_cache()?;
    note("one is left, empty_cache()")?;
    // ANCHOR_END: pinned_segment
    let still_held = cuda::memory_reserved() - before;
    drop(one);
    cuda::empty_cache()?;
    note("that one dropped too, empty_cache()")?;

    // ANCHOR: mixed
    let tensors: Vec<Tensor> =
        (0..40).map(|_| bytes(2 * MIB, device)).collect::<Result<_>>()?;
    note("40 tensors of 2 MiB")?;
    let left: Vec<Tensor> = tensors.iter().step_by(10).cloned().collect();
    drop(tensors);
    note("4 are left")?;
    cuda::empty_cache()?;
    note("empty_cache()")?;
    // ANCHOR_END: mixed
    drop(left);
    lab.table(table.into_inner());
    lab.answer(guess, crate::bytes("still_held", still_held).unit("KiB").digits(0));
    lab.prose(
        "empty_cache() gives back only whole segments, those in which nothing lives. One tensor of 512 bytes holds a segment \
         of 2 MiB. Four tensors of 2 MiB, each in a different segment of 20 MiB, hold 80 MiB.",
    );
    cuda::empty_cache()?;
    Ok(())
}

fn blocks_and_segments(lab: &mut Lab) -> crate::Result<()> {
    lab.section(9, "Blocks and segments");
    lab.part("driver-asked");
    if !lab.has_gpu_to_show("a map of the memory.") {
        return Ok(());
    }
    let device = lab.device();
    // ANCHOR: sizes
    let sizes =
        [4, 1600, MIB, MIB + 4, 9 * MIB, 6 * MIB, 16 * MIB, 17 * MIB + 512 * KIB];
    let names = ["A", "B", "C", "D", "E", "F", "G", "H"];
    let mut grown = Vec::new();
    let mut tensors = Vec::new();
    for size in sizes {
        let (allocated, reserved) = (cuda::memory_allocated(), cuda::memory_reserved());
        tensors.push(bytes(size, device)?);
        grown.push((
            cuda::memory_allocated() - allocated,
            cuda::memory_reserved() - reserved,
        ));
    }
    // ANCHOR_END: sizes
    let mut table =
        Table::new(["tensor", "bytes asked for", "its block", "a new segment"]);
    for ((name, size), (block, segment)) in names.into_iter().zip(sizes).zip(grown) {
        table = table.row(row![
            name,
            exact("asked", size),
            exact("block", block),
            crate::bytes("segment", segment).unit("MiB").digits(0)
        ]);
    }
    lab.table(table);
    lab.prose(
        "A request is rounded up to a multiple of 512 bytes. Up to 1 MiB it comes from the small pool, whose segments have 2 MiB. Beyond \
         that it comes from the large pool, whose segments have 20 MiB, or, from 10 MiB on, the request's own size rounded up \
         to a multiple of 2 MiB. What is left of a block is cut off for the next request; in the large pool only if it is more than 1 MiB. So \
         H gets all of its segment. The driver is asked only if no free block is large enough.",
    );
    let named = |tensors: &[(&str, &Tensor)]| {
        tensors
            .iter()
            .fold(MemoryMap::now(), |map, (name, tensor)| map.name(name, [*tensor]))
    };
    let all: Vec<(&str, &Tensor)> = names.into_iter().zip(&tensors).collect();
    lab.picture(
        &named(&all),
        "Each bar is a segment, and the boxes in it are the blocks of the eight tensors.",
    );

    lab.part("pieces");
    // ANCHOR: merge
    tensors.remove(3); // D
    tensors.remove(1); // B
    tensors.remove(0); // A
    tensors.push(bytes(3 * MIB, device)?); // I
    // ANCHOR_END: merge
    let left: Vec<(&str, &Tensor)> =
        ["C", "E", "F", "G", "H", "I"].into_iter().zip(&tensors).collect();
    lab.picture(
        &named(&left),
        "The same segments after A, B and D were dropped and I was made.",
    );
    lab.prose(
        "A and B were neighbours, so their blocks merged into one. D's block is too small for I, which takes the smallest free \
         block that is large enough. The part that I does not need is cut off again.",
    );
    drop(tensors);
    cuda::empty_cache()?;
    Ok(())
}

fn fragmentation(lab: &mut Lab) -> crate::Result<()> {
    lab.section(10, "Fragmentation");
    if !lab.has_gpu_to_show("an allocation that fails although enough is free.") {
        return Ok(());
    }
    let guess = lab.predict(
        Prediction::yes_no(
            "04-room",
            "Your program may take 80 MiB. You make tensors of 2 MiB until no more fit, and drop every second one. Is there room for a tensor of 12 MiB?",
        )
        .because("An allocation needs its bytes in one piece, and no free piece is larger than 2 MiB."),
    );
    let device = lab.device();
    cuda::empty_cache()?;
    let (_, total) = cuda::mem_get_info()?;
    // ANCHOR: fragments
    // The memory in use (cuBLAS's workspace), and 80 MiB.
    let limit = cuda::memory_reserved() + 80 * MIB as u64;
    cuda::set_per_process_memory_fraction((limit as f64 + 0.5) / total as f64)?;

    let mut tensors = Vec::new();
    while let Ok(tensor) = bytes(2 * MIB, device) {
        tensors.push(tensor);
    }
    let made = tensors.len();
    let left: Vec<Tensor> = tensors.iter().step_by(2).cloned().collect();
    drop(tensors); // frees every second tensor

    let free = cuda::memory_reserved() - cuda::memory_allocated();
    let twelve = bytes(12 * MIB, device);
    // ANCHOR_END: fragments
    lab.figure(exact("tensors_made", made).label("Tensors of 2 MiB made"));
    lab.figure(exact("tensors_left", left.len()).label("Left"));
    lab.figure(crate::bytes("free_in_segments", free).label("Free in the segments"));
    match &twelve {
        Ok(_) => lab.print(text!("12 MiB: there was room")),
        Err(error) => lab.report(first_line(error)),
    }
    lab.answer(guess, twelve.is_ok());
    drop(twelve);
    let map = MemoryMap::now().name("2 MiB", &left);
    lab.picture(
        &map,
        "Segments of 20 MiB in which every second block of 2 MiB is free.",
    );
    lab.prose(
        "More is free than you ask for, but it lies in pieces of 2 MiB, and memory that is held cannot be moved. Nor can a \
         segment be given back while anything in it is alive. This is fragmentation.",
    );

    // ANCHOR: cures
    // Equal sizes fill the gaps.
    let equal: Result<Vec<Tensor>> =
        (left.len()..made).map(|_| bytes(2 * MIB, device)).collect();
    let equal_fit = equal.is_ok();
    drop(equal);
    let count = left.len();
    drop(left);

    // The large one comes first, while no small one exists.
    let large = bytes(12 * MIB, device);
    let small: Result<Vec<Tensor>> =
        (0..count).map(|_| bytes(2 * MIB, device)).collect();
    let large_first_fits = large.is_ok() && small.is_ok();
    drop((large, small));
    // ANCHOR_END: cures
    cuda::set_per_process_memory_fraction(1.0)?;
    cuda::empty_cache()?;

    let by_default = after_a_cut(device)?;
    // ANCHOR: max_split_size
    cuda::set_allocator_settings("max_split_size_mb:20")?;
    let with_max_split_size = after_a_cut(device)?;
    cuda::set_allocator_settings("")?;
    // ANCHOR_END: max_split_size
    let yes = |fits| if fits { "yes" } else { "no" };
    lab.table(
        Table::new(["what helps", "fits?"])
            .row(row![
                "as many tensors of 2 MiB as were dropped",
                exact("equal_fit", yes(equal_fit))
            ])
            .row(row![
                "all dropped, then the 12 MiB before those of 2 MiB",
                exact("large_first_fits", yes(large_first_fits))
            ]),
    );
    lab.table(
        Table::new([
            "64 MiB asked for again, with 12 MiB in between",
            "reserved for both",
        ])
        .row(row!["by default", crate::bytes("reserved_by_default", by_default)])
        .row(row![
            "max_split_size_mb:20",
            crate::bytes("reserved_with_max_split_size", with_max_split_size)
        ]),
    );
    lab.prose(
        "With max_split_size_mb, blocks of that size or more are never cut. The 12 MiB get a segment of their own, and the \
         block of 64 MiB is whole when you want it again.",
    );
    Ok(())
}

// ANCHOR: after_a_cut
/// Allocates 64 MiB, frees them, allocates 12 MiB, which may be cut from them, and
/// 64 MiB again. Returns the memory that is reserved for that.
fn after_a_cut(device: Device) -> Result<u64> {
    cuda::empty_cache()?;
    let before = cuda::memory_reserved();
    drop(bytes(64 * MIB, device)?);
    let twelve = bytes(12 * MIB, device)?;
    let again = bytes(64 * MIB, device)?;
    let reserved = cuda::memory_reserved() - before;
    drop((twelve, again));
    cuda::empty_cache()?;
    Ok(reserved)
}
// ANCHOR_END: after_a_cut

fn the_notebook(lab: &mut Lab) -> crate::Result<()> {
    lab.section(11, "The notebook");
    if !lab.has_gpu_to_show("every byte that a notebook shows.") {
        return Ok(());
    }
    let guess = lab.predict(
        Prediction::choice(
            "04-peak-twice",
            "A cell makes a tensor `x` of 300 × 300 × 300 floats, resets the peak, and prints the peak. You run the cell twice. What does it \
             print the second time?",
        )
        .or("one", "The bytes of one tensor.", "Two of them were alive when the peak was reset.")
        .or("two", "The bytes of two tensors.", "Two were alive for an instant, but the reset comes after it, when the first one is gone."),
    );
    let device = lab.device();
    cuda::empty_cache()?;
    // Memory of earlier sections, which a new notebook would not have: cuBLAS's workspace.
    let (allocated, reserved) = (cuda::memory_allocated(), cuda::memory_reserved());
    cuda::reset_peak_memory_stats();
    let mut table = Table::new(["cell", "shows"]);
    let mut shows =
        |cell: &str, bytes| table.rows.push(row![cell, exact("notebook", bytes)]);

    shows("In [3]  max_memory_allocated()", cuda::max_memory_allocated() - allocated);
    // ANCHOR: notebook
    drop(Tensor::zeros((&[1], device))?); // a small tensor, allocated and freed

    let mut x = Tensor::empty((&[300, 300, 300], device))?;
    shows("In [7]  memory_reserved()", cuda::memory_reserved() - reserved);

    use_it(&x);
    x = Tensor::empty((&[300, 300, 300], device))?; // the cell runs again
    let true_peak = cuda::max_memory_allocated() - allocated;
    cuda::reset_peak_memory_stats();
    let shown_peak = cuda::max_memory_allocated() - allocated;
    shows("In [16] reset, max_memory_allocated()", shown_peak);

    shows(
        "In [17] reset, max_memory_reserved()",
        cuda::max_memory_reserved() - reserved,
    );
    shows("In [18] memory_allocated()", cuda::memory_allocated() - allocated);
    // ANCHOR_END: notebook
    let map = MemoryMap::now().name("x", [&x]);
    lab.table(table);
    lab.picture(&map, "The segments at the end of the notebook.");
    // ANCHOR: notebook_bytes
    let cube: usize = 4 * 27_000_000;
    let block = cube.next_multiple_of(512);
    let segment = block.next_multiple_of(2 * MIB);
    let small_segment = 2 * MIB;
    // ANCHOR_END: notebook_bytes
    lab.table(
        Table::new(["where the bytes come from", ""])
            .row(row!["27,000,000 floats of 4 bytes", exact("cube_bytes", cube)])
            .row(row![
                "rounded up to a multiple of 512: a block",
                exact("cube_block", block)
            ])
            .row(row![
                "rounded up to a multiple of 2 MiB: its segment",
                exact("cube_segment", segment)
            ])
            .row(row![
                "and a small segment of 2 MiB",
                exact("cube_and_small", segment + small_segment)
            ])
            .row(row![
                "two segments, as the cell ran twice, and the small one",
                exact("two_and_small", 2 * segment + small_segment)
            ])
            .row(row![
                "the true peak: two blocks, for an instant",
                exact("true_peak", true_peak)
            ]),
    );
    lab.answer(guess, if shown_peak < 2 * block as u64 { "one" } else { "two" });
    lab.prose(
        "A reset sets the peak to what is there at that moment, and forgets the instant at which both tensors were alive. The \
         cells ran in the order of their numbers, not of the page. Nothing shows what was in the small segment; it was gone \
         by then.",
    );
    drop(x);
    cuda::empty_cache()?;
    Ok(())
}

fn first_line(error: &Error) -> String {
    let message = error.to_string();
    crate::frame::render_text::wrap(message.lines().next().unwrap_or_default())
}
