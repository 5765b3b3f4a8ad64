//! Tests of the binary as a reader runs it: its output and exit codes.

use std::process::{Command, Output};

fn lab(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lab-12")).args(arguments).output().unwrap()
}

fn file(name: &str, text: &str) -> String {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

#[test]
fn without_a_file_it_runs_an_example_and_says_how_to_go_on() {
    let output = lab(&[]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(
        text.starts_with("4 blocks of 256 threads: no error\nout[0] = 0, out[1] = 3, out[999] = 2997\n"),
        "{text}"
    );
    assert!(
        text.contains("ERROR SUMMARY: 0 errors") && text.contains("cargo run --bin lab-12 -- my.cu"),
        "{text}"
    );
}

#[test]
fn findings_end_with_1_and_bad_input_with_2() {
    let racy = file(
        "racy.cu",
        "__global__ void k(int *p) { p[0] = threadIdx.x; }\nint main() { int *p; cudaMalloc(&p, 4); k<<<1, 64>>>(p); cudaDeviceSynchronize(); }\n",
    );
    let output = lab(&[&racy]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text.contains("Error: Race reported between Write access at k(int *) in ")
            && text.contains("racy.cu:1:29"),
        "{text}"
    );
    assert_eq!(lab(&[&racy, "--check", "memcheck"]).status.code(), Some(0));
    let json = String::from_utf8(lab(&[&racy, "--format", "json"]).stdout).unwrap();
    assert!(json.contains("\"check\":\"racecheck\"") && json.contains("\"line\":1,\"column\":29"), "{json}");

    let wrong = file("wrong.cu", "int main() { return x; }\n");
    let cases: [(&[&str], &str); 19] = [
        (&[&wrong], "error: unknown name `x`"),
        (&["no.cu"], "error: the file no.cu cannot be read"),
        (&["--chek"], "error: unknown flag `--chek`"),
        (&["--check", "racechek"], "error: unknown check `racechek`"),
        (&["--format", "xml"], "error: unknown format `xml`"),
        (&["--check"], "error: `--check` needs a value"),
        (&["--counters", "--check", "all"], "error: `--check` and `--counters` are two runs"),
        (
            &["--counters", "--registers", "256"],
            "error: `--registers 256`: a thread takes 1 to 255 registers",
        ),
        (&["--registers", "8"], "error: `--registers` is for the occupancy that `--counters` shows"),
        (&["ladder"], "error: `ladder` needs a name: reduction or matmul"),
        (&["ladder", "scan"], "error: unknown ladder `scan`: the ladders are reduction, matmul"),
        (&["ladder", "matmul", "scan"], "error: `scan`: one ladder at a time"),
        (&["ladder", "matmul", "--counters"], "error: `ladder` takes no flags but `--gpu` and `--format`"),
        (&["--step", "--gpu", "sim:h200"], "error: `--step` shows one warp, which is the same on every card"),
        (
            &["ladder", "matmul", "--gpu", "sim:voodoo"],
            "error: invalid value 'sim:voodoo' for '--gpu <GPU>': unknown profile 'voodoo', expected one of t4, \
             rtx4090, h200, rtx5090, or FILE.profile\n",
        ),
        (
            &["ladder", "matmul", "--gpu", "quantum"],
            "error: invalid value 'quantum' for '--gpu <GPU>': expected auto | sim[:PROFILE]\n",
        ),
        (
            &["ladder", "matmul", "--gpu", "none"],
            "error: invalid value 'none' for '--gpu <GPU>': a modelled time needs a card, expected auto | sim[:PROFILE]\n",
        ),
        (
            &["ladder", "matmul", "--gpu", "sim:no.profile"],
            "error: invalid value 'sim:no.profile' for '--gpu <GPU>': no",
        ),
        (
            &["ladder", "matmul", "--gpu", "a\nb"],
            "error: invalid value 'a\\nb' for '--gpu <GPU>': expected auto",
        ),
    ];
    for (arguments, wanted) in cases {
        let output = lab(arguments);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text.starts_with(wanted), "{arguments:?}: {text}");
    }
}

#[test]
fn counters_are_a_table_or_json() {
    let output = lab(&["--counters"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0));
    // 4 blocks of 8 warps, and 1,000 of 1,024 threads: 32 warps read two arrays, the last one only 8 words of each.
    for line in [
        "add(const float *, const float *, float *, int): 1 launch of 4 blocks of 256 threads",
        "global loads: requests                      64  l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
        "global loads: sectors                      250  l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
        "divergent branches                           1  smsp__sass_branch_targets_threads_divergent.sum",
        "registers of a thread                  unknown  launch__registers_per_thread",
    ] {
        assert!(text.contains(line), "{text}");
    }
    let json = String::from_utf8(lab(&["--counters", "--registers=65", "--format", "json"]).stdout).unwrap();
    for part in [
        "\"name\":\"blocks by registers\",\"value\":3,",
        "\"name\":\"occupancy, %\",\"value\":75.0,",
        "{\"output\":\"4 blocks",
    ] {
        assert!(json.contains(part) && json.ends_with("]}]}\n"), "{json}");
    }
}

/// Occupancy, roof and time are those of the chosen card.
#[test]
fn counters_are_for_the_chosen_card() {
    let text = |gpu| {
        let output = lab(&["--counters", "--gpu", gpu]);
        assert_eq!(output.status.code(), Some(0));
        String::from_utf8(output.stdout).unwrap()
    };
    let row = |text: &str, words: &str| {
        let line = text
            .lines()
            .find(|line| line.trim_start().starts_with(words))
            .unwrap_or_else(|| panic!("{text}"));
        line.trim_start()[words.len()..].split_whitespace().next().unwrap().to_owned()
    };
    let [t4, h200] = ["auto", "sim:h200"].map(text);
    assert!(t4.contains("this card: Tesla T4 (simulated). The time is modelled, not measured.\n"), "{t4}");
    assert!(
        h200.contains("this card: NVIDIA H200 (simulated). The time is modelled, not measured.\n"),
        "{h200}"
    );
    assert_eq!([&t4, &h200].map(|text| row(text, "blocks by warps")), ["4", "8"]);
    // 1,000 operations on 12,000 bytes, at 320 and at 4,800 GB/s.
    assert_eq!([&t4, &h200].map(|text| row(text, "roof, TFLOP/s")), ["0.03", "0.40"]);
    let [t4, h200] = [t4, h200].map(|text| row(&text, "modelled time, µs").parse::<f64>().unwrap());
    assert!((2.5..4.0).contains(&t4) && (2.0..3.0).contains(&h200), "{t4} {h200}");
}

#[test]
fn a_ladder_is_a_table_or_json() {
    let output = lab(&["ladder", "reduction", "--gpu", "sim:rtx4090"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(
        text.starts_with("reduction: the sum of 16,777,216 floats; NVIDIA GeForce RTX 4090 (simulated)\n"),
        "{text}"
    );
    for word in ["modelled µs", "1. naive", "6. float4", "Times are modelled, not measured"] {
        assert!(text.contains(word), "{text}");
    }
    let json = String::from_utf8(lab(&["ladder", "reduction", "--format=json"]).stdout).unwrap();
    let start = "{\"ladder\":\"reduction\",\"card\":\"Tesla T4\",\"task\":\"the sum of 16,777,216 floats\",";
    assert!(json.starts_with(start) && json.ends_with("}}\n"), "{json}");
    assert_eq!(json.matches("{\"step\":").count(), 6, "{json}");
    assert!(
        json.contains("\"file\":\"reduction/6-vectorized.cu\"")
            && json.contains("\"barriers\":4718592,")
            && json.contains("\"modelled_microseconds\":"),
        "{json}"
    );
    assert_eq!(json.matches(['{', '[']).count(), json.matches(['}', ']']).count(), "{json}");
}

/// The course's kernels have the register counts of NVIDIA's compiler; a changed kernel has none.
#[test]
fn registers_of_the_courses_kernels_are_known() {
    let kernels = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernels");
    let program = "#include \"scaler.cu\"\nint main() { float *p; int *n; View v = {}; cudaMalloc(&p, 4); \
         cudaMalloc(&n, 4); cudaMemset(p, 0, 4); cudaMemset(n, 0, 4); \
         amp_update_scale<<<1, 32>>>(p, 0.0f, v, p, v, n, v, 1, 2.0, 0.5); return cudaDeviceSynchronize(); }\n";
    let source = std::fs::read_to_string(kernels.join("scaler.cu")).unwrap();
    for (folder, source, wanted) in
        [("same", source.clone(), "thread 7 "), ("other", source + "\n", "thread unknown ")]
    {
        let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
        std::fs::create_dir_all(&folder).unwrap();
        for header in std::fs::read_dir(&kernels).unwrap().map(|entry| entry.unwrap().path()) {
            if header.extension().is_some_and(|extension| extension == "cuh") {
                std::fs::copy(&header, folder.join(header.file_name().unwrap())).unwrap();
            }
        }
        std::fs::write(folder.join("scaler.cu"), source).unwrap();
        std::fs::write(folder.join("my.cu"), program).unwrap();
        let output = lab(&[&folder.join("my.cu").display().to_string(), "--counters"]);
        let text = String::from_utf8(output.stdout).unwrap();
        let line = text.lines().find(|line| line.contains("registers of a thread")).unwrap_or(&text);
        let words: Vec<&str> = line.split_whitespace().collect();
        assert!(words.join(" ").contains(wanted), "{text}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_closed_or_full_stdout_is_no_panic() {
    use std::process::Stdio;
    for arguments in [&[][..], &["--help"], &["--show"], &["--format", "json"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        for (to, code, wanted) in
            [(Stdio::from(writer), 0, ""), (Stdio::from(full), 2, "error: the output cannot be written")]
        {
            let lab = Command::new(env!("CARGO_BIN_EXE_lab-12")).args(arguments).stdout(to).output().unwrap();
            let text = String::from_utf8(lab.stderr).unwrap();
            assert_eq!(lab.status.code(), Some(code), "{arguments:?}: {text}");
            assert!(
                text.starts_with(wanted) && text.is_empty() == wanted.is_empty(),
                "{arguments:?}: {text}"
            );
        }
    }
}
