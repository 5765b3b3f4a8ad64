//! The numbers in out-of-memory messages are used.

use errors::explain;

fn said(message: &str) -> String {
    explain(message).unwrap().numbers.join("\n")
}

/// A message, and what must be said of it: who holds how much, whether it is fragmentation, and what to try first.
const MESSAGES: [(&str, &[&str]); 10] = [
    (
        "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 7.43 GiB total capacity; 6.50 GiB already allocated; \
         10.00 MiB free; 6.60 GiB reserved in total by PyTorch)",
        &[
            "asked for 20.00 MiB",
            "Of the 7.43 GiB on GPU 0, 6.50 GiB are tensors of your program",
            "102.40 MiB are kept by PyTorch",
            "839.92 MiB belong to CUDA itself or to other programs",
            "10.00 MiB are free",
            "Fragmentation is only part of the cause: 102.40 MiB",
            "Try first: halve the batch",
        ],
    ),
    (
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB. GPU 0 has a total capacty of 23.65 GiB of which \
         1.66 GiB is free. Including non-PyTorch memory, this process has 20.81 GiB memory in use. Of the allocated memory 12.09 GiB is \
         allocated by PyTorch, and 4.84 GiB is reserved by PyTorch but unallocated.",
        &[
            "12.09 GiB are tensors",
            "4.84 GiB are kept by PyTorch",
            "3.88 GiB belong to CUDA itself or to other libraries in your program",
            "Fragmentation is the cause: 4.84 GiB",
        ],
    ),
    (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 226.00 MiB. GPU 0 has a total capacity of 15.70 GiB of which \
         210.38 MiB is free. Including non-PyTorch memory, this process has 15.48 GiB memory in use. Of the allocated memory 14.81 GiB \
         is allocated by PyTorch, and 136.73 MiB is reserved by PyTorch but unallocated.",
        &["14.81 GiB are tensors", "Fragmentation is part of the cause", "halve the batch"],
    ),
    (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB. GPU 0 has a total capacity of 14.58 GiB of which \
         318.56 MiB is free. Process 2112 has 10.00 GiB memory in use. Including non-PyTorch memory, this process has 4.27 GiB memory \
         in use. Of the allocated memory 4.00 GiB is allocated by PyTorch, and 20.00 MiB is reserved by PyTorch but unallocated.",
        &[
            "10.00 GiB are held by process 2112, another program",
            "other programs hold 10.00 GiB",
            "Try first: find them with `nvidia-smi`",
        ],
    ),
    (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 16.00 MiB. GPU 0 has a total capacity of 512.00 MiB of which \
         202.00 MiB is free. Including non-PyTorch memory, this process has 310.00 MiB memory in use. 64.00 MiB allowed; Of the \
         allocated memory 40.70 MiB is allocated by PyTorch, and 13.30 MiB is reserved by PyTorch but unallocated.",
        &["a limit of 64.00 MiB", "Try first: raise the limit"],
    ),
    (
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 55.57 GiB. GPU 0 has a total capacty of 12.00 GiB of which \
         9.02 GiB is free. Of the allocated memory 984.52 MiB is allocated by PyTorch, and 463.48 MiB is reserved by PyTorch but \
         unallocated.",
        &["larger than the whole GPU", "Try first: look at the shapes"],
    ),
    (
        "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.32 GiB. GPU 3 has a total capacity of 79.10 GiB of \
         which 98.00 MiB is free. Process 387746 has 78.89 GiB memory in use. Of the allocated memory 76.12 GiB is allocated by PyTorch, \
         with 512.00 MiB allocated in private pools (e.g., CUDA Graphs), and 765.81 MiB is reserved by PyTorch but unallocated.",
        &[
            "Of the 79.10 GiB on GPU 3",
            "512.00 MiB are in pools of CUDA graphs",
            "Process 387746, which holds 78.89 GiB in all, is probably your own program",
            "Fragmentation is not the cause",
            "Try first: halve the batch",
        ],
    ),
    (
        "RuntimeError: CUDA out of memory. Tried to allocate 12.50 MiB (GPU 0; 10.92 GiB total capacity; 8.57 MiB already allocated; \
         9.28 GiB free; 4.68 MiB cached)",
        &["4.68 MiB are kept by PyTorch", "9.28 GiB are free, enough for the request", "page file"],
    ),
    (
        "RuntimeError: CUDA out of memory. Tried to allocate 264.00 MiB (GPU 0; 8.00 GiB total capacity; 788.51 MiB already allocated; \
         145.93 MiB free; 1.00 GiB reserved in total by PyTorch)",
        &["6.86 GiB of the memory are neither free nor PyTorch's", "which other program"],
    ),
    (
        "torch.cuda.OutOfMemoryError: HIP out of memory. Tried to allocate 20.00 MiB",
        &["20.00 MiB", "does not say who holds the rest"],
    ),
];

#[test]
fn an_out_of_memory_message_gets_sentences_on_its_numbers() {
    for (message, parts) in MESSAGES {
        let said = said(message);
        for part in parts {
            assert!(said.contains(part), "`{part}` is missing in\n{said}\nof\n{message}");
        }
        assert_eq!(said.matches("ragmentation is").count(), usize::from(!message.contains("HIP")), "{said}");
    }
}

#[test]
fn a_line_that_is_broken_anywhere_has_the_same_numbers() {
    for (message, _) in MESSAGES {
        for width in [80, 33, 7] {
            let letters: Vec<char> = message.chars().collect();
            let broken: Vec<String> = letters.chunks(width).map(|line| line.iter().collect()).collect();
            assert_eq!(said(&broken.join("\n")), said(message));
        }
    }
}

#[test]
fn numbers_that_make_no_sense_are_no_trouble() {
    for message in [
        "CUDA out of memory. Tried to allocate",
        "CUDA out of memory. Tried to allocate 99999999999999999999999999.00 GiB. GPU 99999999999999999999999 has a total capacity of",
        "CUDA out of memory. Tried to allocate 1.2.3 MiB. GPU 0 has a total capacity of é GiB of which … is free. Process has memory in use.",
        "CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; total capacity; already allocated; free; reserved in total by PyTorch)",
        "CUDA out of memory. Tried to allocate 5.00 MiB. processprocess 1 has 1 MiB process 2 has memory in use",
    ] {
        said(message);
    }
}

#[test]
fn in_a_container_the_process_that_can_hold_the_tensors_is_the_program_itself() {
    let said = said(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB. GPU 0 has a total capacity of 23.65 GiB of which \
         100.56 MiB is free. Process 11 has 3.00 GiB memory in use. Process 12 has 20.50 GiB memory in use. Of the allocated memory \
         19.00 GiB is allocated by PyTorch, and 200.00 MiB is reserved by PyTorch but unallocated.",
    );
    assert!(said.contains("3.00 GiB are held by process 11, another program"), "{said}");
    assert!(
        said.contains("Process 12, which holds 20.50 GiB in all, is probably your own program"),
        "{said}"
    );
    assert!(!said.contains("process 12, another") && !said.contains("23.50 GiB"), "{said}");
}

#[test]
fn the_date_of_a_log_is_no_gpu() {
    let said = said(
        "CUDA out of memory. Tried to allocate 20.00 MiB. GPU\n2024-03-04 12:22:11,222 [ERROR] 1 has a total capacity of 4.00 GiB",
    );
    assert!(!said.contains("2024"), "{said}");
}

#[test]
fn on_a_mac_the_fields_of_the_message_are_read() {
    let said = said(
        "RuntimeError: MPS backend out of memory (MPS allocated: 8.50 GB, other allocations: 560.00 MB, max allowed: 9.07 GB). \
         Tried to allocate 256.00 MB on private pool.",
    );
    for part in ["256.00 MiB more", "9.07 GiB that MPS allows", "8.50 GiB are held by PyTorch", "560.00 MiB"]
    {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!said.contains("does not say") && !said.contains("nvidia-smi"), "{said}");
}

#[test]
fn a_size_may_have_a_decimal_comma() {
    let said = said(
        "CUDA out of memory. Tried to allocate 2,00 GiB. GPU 0 has a total capacity of 23,65 GiB of which 1,50 GiB is free.",
    );
    assert!(said.contains("asked for 2.00 GiB") && said.contains("1.50 GiB are free"), "{said}");
}
