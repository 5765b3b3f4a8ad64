//! The final assessment as a student and a teacher use it.

use exercises::assessment::{Draw, FAULTS, KINDS, SEEDS, UNITS};

use crate::program::{Done, Folder};

const SEED: u64 = 41;

/// The last act, done.
const FAST: &str = "    let rate = SGDOptions { lr: 0.1, momentum: 0.9, ..Default::default() };
    let mut optimizer = optim::SGD::new(model.parameters(), rate)?;
    let (x, y) = (x.to(device)?, y.to(device)?);
    for _epoch in 0..3 {
        for (x, y) in x.split(64, 0)?.iter().zip(y.split(64, 0)?) {
            let loss = model.forward(x)?.cross_entropy(&y)?;
            optimizer.zero_grad();
            loss.backward()?;
            optimizer.step()?;
        }
    }
";

/// A program with a fast `fit`.
fn fast(text: &str) -> String {
    let (before, fit) = text.split_at(text.rfind("    let lr = ").unwrap());
    format!("{before}{FAST}{}", &fit[fit.rfind("    Ok(model)").unwrap()..])
}

/// A program whose functions do something else: each body is replaced by what `body` makes of the function's name.
fn with_bodies(text: &str, body: impl Fn(&str) -> Option<&'static str>) -> String {
    let mut text = text.to_owned();
    for unit in UNITS {
        let Some(new) = body(unit.name) else { continue };
        let start = text.find(&format!("pub fn {}(", unit.name)).unwrap();
        let open = start + text[start..].find(" {\n").unwrap() + 3;
        let end = open + text[open..].find("\n}\n").unwrap();
        text.replace_range(open..end, new);
    }
    text
}

fn points(done: &Done) -> f64 {
    let (before, _) = done.out.split_once(" of 100 points").unwrap_or_else(|| panic!("{done:?}"));
    before.rsplit(' ').next().unwrap().parse().unwrap()
}

#[test]
fn a_program_is_written_looked_at_mended_and_reported() {
    let folder = Folder::new("the assessed");
    let done = folder.run(&["final", "--seed", &SEED.to_string()]);
    assert!(done.code == 0 && done.out.contains("You pass with 60 of 100 points"), "{done:?}");
    let draw = Draw::of(SEED);
    assert_eq!(folder.read("final.rs"), draw.file());

    // Nothing done, nothing earned.
    let done = folder.run(&["check", "final"]);
    assert!(done.code == 1 && points(&done) == 0.0, "{done:?}");
    assert!(done.out.contains("correctness   0 of 5 fixed"), "{done:?}");
    assert!(folder.run(&["report"]).out.contains("not yet, 0 of 100 points"));
    let open = folder.run(&["report", "--format", "csv"]).out;
    assert!(open.contains("final-01,") && open.contains("open; read again: "), "{open}");

    // One function is shown with all that was seen of it.
    let done = folder.run(&["final", "upload"]);
    for words in ["upload on Tesla T4 (simulated)", "copies to the GPU   9", "µs, modelled", "KiB at most"] {
        assert!(done.out.contains(words), "{words}: {done:?}");
    }

    folder.write("final.rs", &fast(&draw.mended()));
    let done = folder.run(&["check", "final.rs"]);
    assert!(done.code == 0 && points(&done) == 100.0, "{done:?}");
    for words in ["races         2 of 2 fixed", "the host launches", "the last act asks for 20 times"] {
        assert!(done.out.contains(words), "{words}: {done:?}");
    }
    for (format, words) in [
        ("text", "Objectives met"),
        ("csv", "\nfinal,The final assessment,true,\"100 of 100 points"),
        ("json", "\"points\": 100"),
        ("junit", "<testcase name=\"final-01\""),
        ("result", "\"name\": \"final The final assessment\""),
    ] {
        let out = folder.run(&["report", "--format", format]).out;
        assert!(out.contains(words) && !out.contains("read again: "), "{format}: {out}");
    }
}

#[test]
fn constants_deleted_training_and_another_students_program_do_not_pay() {
    let (folder, teacher) = (Folder::new("the idle"), Folder::new("their assessor"));
    let grade = |text: &str| {
        folder.write("final.rs", text);
        let path = folder.0.display().to_string();
        let words = ["grade", &path, "--seed", "7", "--of-final", &SEED.to_string()];
        // Nothing else is in the folder, so most of the time goes to the final assessment.
        let done = teacher.run(&words);
        assert_eq!(done.code, 0, "{done:?}");
        points(&done)
    };
    let mended = Draw::of(SEED).mended();
    // All else is mended, but nothing is learned.
    let deleted = with_bodies(&mended, |name| match name {
        "train" => Some(
            "    let _ = (model, optimizer, scaler, loader, weights);\n    Tensor::zeros_with(&[], device)",
        ),
        "accumulate" => Some(
            "    let _ = (model, optimizer, scaler, batches, weights);\n    Tensor::zeros_with(&[], device)",
        ),
        _ => None,
    });
    assert_eq!(grade(&deleted), 0.0);
    let constants = with_bodies(&mended, |name| match name {
        "train" | "accumulate" | "fine_tune" => Some("    Tensor::full(&[], (0.5, device))"),
        "evaluate" => {
            Some("    let _ = device;\n    println!(\"passed: 100 of 100 points\");\n    Ok([1.0, 0.01])")
        }
        "predict" => Some("    let _ = device;\n    Tensor::zeros(&[x.sizes()[0]])?.to(DType::I64)"),
        "center" => Some("    Tensor::ones_with(&[8], device)"),
        "normalize" | "augment" | "recall" | "confusion" => Some("    todo!()"),
        "keep_best" => Some("    best.0 = score;\n    Ok(())"),
        "average" => Some("    Ok(mean.unwrap_or_default())"),
        "checkpoint" => Some("    Ok(Vec::new())"),
        "resume" => Some("    Ok(7)"),
        "restore" | "upload" => Some("    Ok(())"),
        "download" => Some("    Ok(vec![1.0; 6])"),
        _ => None,
    });
    assert_eq!(grade(&constants), 0.0);
    // Another student's program, mended, and fast.
    let other = fast(&Draw::of(SEED + 1).mended());
    let earned = grade(&other);
    assert!(earned <= 50.0, "{earned}");
}

#[test]
fn what_is_wrong_with_a_file_or_a_seed_is_one_line() {
    let folder = Folder::new("the mistaken");
    let one_line = |words: &[&str], says: &str| {
        let done = folder.run(words);
        assert!(done.code == 2 && done.err.lines().count() == 1 && done.err.contains(says), "{done:?}");
    };
    for seed in ["1000", "abc", "-1", "7.0", ""] {
        for words in [&["final", "--seed", seed][..], &["grade", ".", "--of-final", seed]] {
            one_line(words, "expected a seed from 0 to 999");
        }
    }
    let done = folder.run(&["final", "nothing"]);
    assert!(done.code == 2 && done.err.lines().all(|line| line.chars().count() <= 80), "{done:?}");
    assert!(
        done.err.contains("the program has no function `nothing`; it has\n  network, loader"),
        "{done:?}"
    );
    let path = folder.0.display().to_string();
    one_line(&["grade", &path, "--of-final", "x"], "--of-final");
    assert!(folder.names().iter().all(|name| name == "progress.json"), "{:?}", folder.names());
    one_line(&["check", "final"], "`cargo course final` begins the assessment");
    folder.run(&["final", "--seed", "7"]);
    one_line(&["final", "--seed", "8"], "has the program of seed 7: move this file to begin with seed 8");
    one_line(&["run", "final", "--gpu", "none"], "leave out --gpu and --size");
    one_line(&["hint", "final"], "it has no hints and no solution");
    folder.write("final.rs", &Draw::of(7).file().replacen("seed 7.", "seed 8.", 1));
    one_line(&["check", "final"], "the first line names seed 8, but the program has seed 7");
    folder.write("final.rs", "// seed 7\n// mine\n");
    let done = folder.run(&["reset", "final"]);
    assert!(done.code == 0 && done.out.contains("Your version: "), "{done:?}");
    assert_eq!(folder.read("final.rs"), Draw::of(7).file());
    assert_eq!(folder.read("final.rs.yours-1"), "// seed 7\n// mine\n");
    folder.write("final.rs", "fn mine() {}\n");
    one_line(&["check", "final"], "its first line has to end in \"the program of seed N.\"");
    folder.write("final.rs", "// seed 7\nfn mine() {");
    let done = folder.run(&["check", "final"]);
    assert!(done.code == 1 && done.out.starts_with("not yet: It does not compile"), "{done:?}");
    folder.write("final.rs", "// seed 7\nfn mine() {}\n");
    let done = folder.run(&["check", "final"]);
    assert!(done.code == 1 && done.out.contains("The check cannot call your code"), "{done:?}");
    assert!(done.out.contains("in `final.rs`") && !done.out.contains("`student`"), "{done:?}");
    folder.write("progress.json", r#"{ "to-device-progress": 1, "final": [] }"#);
    one_line(&["report"], "progress.json: `final` is not the result of the final assessment");
}

/// The sections that a report names exist.
#[test]
fn every_kind_of_fault_names_an_objective_and_a_heading_of_the_book() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for kind in KINDS {
        let (chapter, words) = kind.objective;
        let all = questions::objectives(root, chapter).unwrap();
        let found = all.iter().filter(|objective| objective.starts_with(words)).count();
        assert_eq!(found, 1, "{}: chapter {chapter}, {words}", kind.id);
        let (page, heading) = kind.section;
        let text = std::fs::read_to_string(root.join(format!("book/chapters/{page}.md"))).unwrap();
        assert!(text.lines().any(|line| line.trim_start_matches('#').trim() == heading), "{page}: {heading}");
    }
}

#[test]
fn nothing_in_a_program_names_a_fault() {
    for seed in (0..SEEDS).step_by(97) {
        let text = Draw::of(seed).file();
        for words in FAULTS.iter().map(|fault| fault.kind).chain(["TODO", "FIXME", "BUG", "numbers()"]) {
            // A single word may be a name of PyTorch's.
            let is_ours = words.contains(|letter: char| !letter.is_ascii_lowercase());
            assert!(!is_ours || !text.contains(words), "seed {seed}: {words}");
        }
        let comments = |text: &str| {
            text.lines().filter(|line| line.contains("//")).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(comments(&text), comments(&Draw::of(seed).mended()), "seed {seed}");
    }
}

#[test]
fn a_function_without_an_end_costs_its_own_points_only() {
    let folder = Folder::new("the endless");
    let mended = fast(&Draw::of(SEED).mended());
    let endless = with_bodies(&mended, |name| (name == "accumulate").then_some("    loop {}"));
    folder.write("final.rs", &endless);
    let done = folder.run(&["check", "final"]);
    let out = done.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(out.contains("`accumulate` on sim:t4: it did not end after 10 seconds of computing"), "{done:?}");
    let is_broken = Draw::of(SEED).fault("accumulate").is_none();
    let broken = if is_broken { "broken since 1: accumulate " } else { "broken since none " };
    assert!(out.contains(broken) && !out.contains("earn nothing"), "{done:?}");
    // Two faults' worth less at most, and the parts are the whole.
    let (_, parts) = out.split_once(broken).unwrap();
    let (parts, _) = parts.split_once(" for the last act").unwrap();
    let parts: f64 = parts.split_whitespace().filter_map(|word| word.parse::<f64>().ok()).sum();
    assert!(points(&done) >= 60.0 && points(&done) == parts, "{done:?}");
}
