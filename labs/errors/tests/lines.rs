//! Whatever breaks the lines of a message, or stands before them, no sentence has a wrong number or name.

use errors::explain;

/// A message of each kind that reads numbers or names.
const MESSAGES: [&str; 27] = [
    "RuntimeError: The size of tensor a (128) must match the size of tensor b (64) at non-singleton dimension 10",
    "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu! (when checking argument for argument mat1 in method wrapper_CUDA_addmm)",
    "RuntimeError: Expected all tensors to be on the same device, but got index is on cpu, different from other tensors on cuda:0 (when checking argument in method wrapper_CUDA__index_select)",
    "RuntimeError: Attempting to deserialize object on CUDA device 12 but torch.cuda.device_count() is 10. Please use torch.load with map_location to map your storages to an existing device.",
    "IndexError: index 110 is out of bounds for dimension 0 with size 100",
    "IndexError: Target 110 is out of bounds.",
    "RuntimeError: mat1 and mat2 shapes cannot be multiplied (6400x128 and 2048x10)",
    "RuntimeError: Given groups=1, weight of size [64, 128, 3, 3], expected input[1, 32, 28, 28] to have 128 channels, but got 32 channels instead",
    "RuntimeError: Expected one of cpu, cuda, ipu, xpu device type at start of device string: cuda0",
    "RuntimeError: Invalid device string: 'cuda:first'",
    "The NVIDIA driver on your system is too old (found version 11040). Please update your GPU driver",
    "[enforce fail at alloc_cpu.cpp:124] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate 400000000000 bytes. Error code 12 (Cannot allocate memory)",
    "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation: [torch.cuda.FloatTensor [64, 128]], which is output 0 of ReluBackward0, is at version 12; expected version 10 instead. Hint: enable anomaly detection",
    "RuntimeError: Expected to have finished reduction in the prior iteration before starting a new one. Parameter indices which did not receive grad for rank 10: 10 11 12 123\n In addition, you can set the environment variable",
    "NVIDIA Graphics Device with CUDA capability sm_120 is not compatible with the current PyTorch installation.\nThe current PyTorch install supports CUDA capabilities sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 compute_86.\nIf you want to use the GPU",
    "NVIDIA Graphics Device with CUDA capability sm_35 is not compatible with the current PyTorch installation.\nThe current PyTorch install supports CUDA capabilities sm_100 sm_120.\nIf you want to use the GPU",
    "Found GPU0 NVIDIA GeForce GTX 1080 which is of compute capability (CC) 6.1.\nThe following list shows the CCs this version of PyTorch was built for and the hardware CCs it supports:\n- 7.5 which supports hardware CC >=7.5,<8.0",
    "ImportError: libcudart.so.11.0: cannot open shared object file: No such file or directory",
    "RuntimeError: expected scalar type Half but found Float",
    "RuntimeError: mat1 and mat2 must have the same dtype, but got BFloat16 and Double",
    "RuntimeError: Error(s) in loading state_dict for Net: size mismatch for fc.weight: copying a param with shape torch.Size([10, 512]) from checkpoint, the shape in current model is torch.Size([100, 512]).",
    "Duplicate GPU detected : rank 10 and rank 12 both on CUDA device 5000",
    "The server socket has failed to listen on any local network address. port: 29500, useIpv6: false, code: -98, name: EADDRINUSE",
    "[Rank 2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=71, OpType=ALLREDUCE, NumelIn=1024, NumelOut=1024, Timeout(ms)=600000) ran for 600029 milliseconds before timing out.",
    "WeightsUnpickler error: Unsupported global: GLOBAL train.Config was not an allowed global by default.",
    "Weights only load failed. WeightsUnpickler error: Unsupported operand 149",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB. GPU 0 has a total capacity of 14.58 GiB of which 318.56 MiB is free. Process 2112 has 10.00 GiB memory in use. Including non-PyTorch memory, this process has 4.27 GiB memory in use. Of the allocated memory 4.00 GiB is allocated by PyTorch, and 20.00 MiB is reserved by PyTorch but unallocated.",
];

fn numbers(text: &str) -> Vec<String> {
    explain(text).unwrap_or_else(|| panic!("{text}")).numbers
}

/// What is said of a changed message is said of the message itself.
fn check(message: &str, changed: &str) {
    let close = |text: &str| text.replace(' ', "");
    let whole = close(&numbers(message).join("\n"));
    for sentence in explain(changed).map_or(Vec::new(), |explained| explained.numbers) {
        // A part that cannot be read is left out.
        for part in sentence.split(". ") {
            assert!(whole.contains(&close(part)), "{part}\nis not in\n{whole}\nof\n{changed}");
        }
    }
}

#[test]
fn a_line_that_ends_anywhere_makes_no_wrong_number() {
    for message in MESSAGES {
        assert!(!numbers(message).is_empty(), "{message}");
        for (at, _) in message.char_indices() {
            let (before, after) = message.split_at(at);
            check(message, &format!("{before}\n{after}"));
            // Other forms at some letters: all of them at each take seconds.
            if at % 4 > 0 {
                continue;
            }
            check(
                message,
                &match at / 4 % 6 {
                    0 => format!("{before}\r\n{after}"),
                    1 => format!("{before}\n> {after}"),
                    2 => format!("{before}\n    {after}"),
                    3 => format!("    {before}\n    {after}"),
                    4 => format!("[rank0]: {before}\n[rank0]: {after}"),
                    _ => format!("# {}", format!("{before}\n{after}").replace('\n', "\n# ")),
                },
            );
        }
    }
}

#[test]
fn a_line_that_ends_between_two_words_keeps_most_numbers() {
    for (message, sentence) in [
        ("RuntimeError: mat1 and mat2 shapes cannot be multiplied (64x512 and\n2048x10)", "rows of 2048"),
        (
            "The size of tensor a\n(3) must match the size of tensor\nb (4) at non-singleton dimension\n1",
            "the size 3 and the second 4",
        ),
        ("found at least two devices, cuda:0\nand cpu!", "on cuda:0, and another on cpu"),
        (
            "did not receive grad for rank 0: 0 1 2\n In addition, Expected to have finished reduction in the prior iteration before starting a new one",
            "parameters 0, 1 and 2",
        ),
    ] {
        let said = numbers(message).join("\n");
        assert!(said.contains(sentence), "{said}\nof\n{message}");
    }
}

/// A message in two lines, as a log with this before each of them has it.
#[test]
fn what_a_log_writes_before_each_line_is_no_part_of_the_message() {
    const MESSAGE: [&str; 4] = [
        "Traceback (most recent call last):",
        "  File \"train.py\", line 12, in <module>",
        "RuntimeError: The size of tensor a (3) must match the size of",
        "tensor b (128) at non-singleton dimension 1",
    ];
    for prefix in [
        "[default0]:",
        "[default12]: ",
        "[rank0]:",
        "(RayTrainWorker pid=1234) ",
        "(RayTrainWorker pid=1234, ip=10.0.0.2) ",
        "trainer-1  | ",
        "2026-11-28T06:49:26.1234567Z ",
        "2026-11-28 06:49:26,123 ",
        "2026-11-28 06:49:26 - ERROR - ",
        "2026-11-28 06:49:26.123 | ERROR | ",
        "2026-11-28 06:49:26+01:00 ERROR: ",
        "[2026-11-28 06:49:26,123] [ERROR] ",
        "[2026-11-28 06:49:26] ",
        "E1128 06:49:26.123000 1404 torch/distributed/elastic/multiprocessing/api.py:984] ",
        "  12 | ",
        "0: ",
        "13: ",
        "Nov 28 06:49:26 node7 python[1234]: ",
        "Nov  8 06:49:26 node7 train: ",
        "# ",
        "// ",
        "+ ",
        "> ",
        "&gt; ",
        "2026-11-28T06:49:26Z trainer-1 | [rank0]: ",
        "[default0]:[rank0]: ",
        "> # ",
        "06:49:26 ERROR ",
        "2026-11-28T06:49:26.123456789Z stderr F ",
        "[1,0]<stderr>:",
        "pod/train-0 ",
        "ERROR:root:",
        "(EngineCore pid=123) ERROR 11-28 06:49:26 [core.py:700] ",
        "| ",
        "- ",
        " * ",
    ] {
        let lines: Vec<String> = MESSAGE.iter().map(|line| format!("{prefix}{line}")).collect();
        for end in ["\n", "\r\n", "\n\n"] {
            let said = numbers(&lines.join(end));
            assert_eq!(
                said,
                ["In dimension 1, counted from 0, the first tensor has the size 3 and the second 128."],
                "{prefix}"
            );
        }
        // A number in the prefix is none of the message, either.
        let memory = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity\nof \
                      23.65 GiB of which\n1.66 GiB is free.";
        let lines: Vec<String> = memory.lines().map(|line| format!("{prefix}{line}")).collect();
        assert_eq!(numbers(&lines.join("\n")), numbers(memory), "{prefix}");
    }
}

/// A prefix is one only if each line has it.
#[test]
fn what_stands_before_one_line_only_stays() {
    for message in [
        "0: RuntimeError: The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension\n1",
        "# RuntimeError: The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension\n1",
    ] {
        assert_eq!(
            numbers(message),
            ["In dimension 1, counted from 0, the first tensor has the size 3 and the second 4."]
        );
    }
    // A log's date in the middle of a number's place gives no number.
    for date in ["12:22:11 ", "2024-03-04 12:22:11 ", "7 "] {
        let message = format!(
            "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0;\n{date}7.43 GiB total capacity; 6.50 GiB already allocated)"
        );
        let said = numbers(&message).join("\n");
        assert!(!said.contains("117.43") && !said.contains("77.43"), "{said}");
    }
}

/// Words that two lines of a message begin with are no prefix.
#[test]
fn lines_of_a_message_may_begin_alike() {
    for (message, kind) in [
        ("CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported", "gpu0002"),
        ("CUDA error: out of memory\nCUDA error: out of memory", "gpu0002"),
        ("Torch not compiled with CUDA enabled\nTorch not compiled with CUDA enabled", "not-compiled"),
        ("RuntimeError: CUDA out of memory.\nRuntimeError: CUDA out of memory.", "gpu0002"),
        ("é: CUDA error: out of memory\nè: CUDA error: out of memory", "gpu0002"),
    ] {
        assert_eq!(explain(message).map(|explained| explained.kind.id), Some(kind), "{message}");
    }
}

#[test]
fn the_names_that_html_has_for_letters_are_read() {
    let said = numbers(
        "RuntimeError: Expected one of cpu, cuda device type at start of device string:&nbsp;&#39;gpu&#39;",
    );
    assert_eq!(said, ["`gpu` is not the name of a device."]);
    let said = explain("CUDA error: Assertion `t &gt;= 0 &amp;&amp; t &lt; n_classes` failed.").unwrap();
    assert_eq!(said.kind.id, "device-assert");
}

/// What a log puts into the middle of a message is no part of a name or a number.
#[test]
fn what_a_log_puts_into_a_message_is_not_shown_as_its_own() {
    const JUNK: &str = "\n2026-11-28 06:49:26,123 - ERROR - ";
    for message in MESSAGES {
        for (at, _) in message.match_indices(' ') {
            let changed = format!("{}{JUNK}{}", &message[..at], &message[at + 1..]);
            // One sentence has all that is known of the memory, so it may have less.
            match message.contains("OutOfMemory") {
                true => assert!(!numbers(&changed).join(" ").contains("2026"), "{changed}"),
                false => check(message, &changed),
            }
        }
    }
    // A line's end that JSON has written out may be a terminal's.
    let said = numbers(
        r#"{"msg": "RuntimeError: The size of tensor a (1\n28) must match the size of tensor b (64) at non-singleton dimension 1"}"#,
    );
    assert!(said.is_empty(), "{said:?}");
}
