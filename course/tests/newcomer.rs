//! A newcomer's first ten minutes.

use std::fmt::Write;

use crate::program::Folder;

#[test]
fn the_first_ten_minutes() {
    let folder = Folder::new("a newcomer");
    let mut told = String::new();
    let mut run = |words: &[&str], code: i32| {
        let done = folder.run(words);
        assert_eq!((done.code, done.err.as_str()), (code, ""), "{words:?}: {}", done.out);
        let prompt = ["course"].iter().chain(words).copied().collect::<Vec<_>>().join(" ");
        let _ = writeln!(told, "$ {prompt}\n{}", folder.plain(&done.out));
    };
    run(&[], 0);
    run(&["show", "02-batch"], 0);
    run(&["check", "02-batch"], 1);
    run(&["hint", "02-batch"], 0);
    let begun = folder.read("02-batch.rs");
    folder.write(
        "02-batch.rs",
        &begun.replace("x, y) in batches {\n", "x, y) in batches {\n        let x = x.to(device)?;\n"),
    );
    run(&["check", "02-batch"], 1);
    folder.write(
        "02-batch.rs",
        &begun.replace(
            "x, y) in batches {\n",
            "x, y) in batches {\n        let (x, y) = (x.to(device)?, y.to(device)?);\n",
        ),
    );
    run(&["check", "02-batch"], 0);
    run(&["list", "batch"], 0);
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("newcomer", told);
    });
}

#[test]
fn what_was_done_is_kept_and_a_file_of_ones_own_too() {
    let folder = Folder::new("a student");
    assert_eq!(folder.run(&["hint", "02-batch", "2"]).code, 0);
    assert_eq!(folder.run(&["show", "02-batch"]).code, 0);
    folder.write("02-batch.rs", "// mine\n");
    let done = folder.run(&["reset", "02-batch"]);
    assert_eq!(done.code, 0, "{}", done.err);
    assert_eq!(folder.read("02-batch.rs.yours-1"), "// mine\n");
    assert!(folder.read("02-batch.rs").contains("pub fn train"));
    let solution = folder.run(&["solution", "02-batch"]).out;
    folder.write("02-batch.rs", &solution);
    assert_eq!(folder.run(&["check", "02-batch"]).code, 0);
    assert!(folder.read("progress.json").contains("\"hints\": 2"));
    // Renamed, it is begun anew, and what was passed stays passed.
    std::fs::rename(folder.0.join("02-batch.rs"), folder.0.join("old.rs")).unwrap();
    let done = folder.run(&["check", "02-batch"]);
    assert!(done.code == 1 && done.out.contains("in its original form"), "{}", done.out);
    assert!(folder.run(&["list", "--done"]).out.contains("02-batch"));
}

#[test]
fn the_questions_of_a_chapter_are_asked_and_answered() {
    let folder = Folder::new("quizzes");
    let done = folder.tell(&["quiz", "2"], "x\na\n\nb\n");
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    assert!(done.out.contains("`x` is not a possible answer: type a letter from a to "), "{}", done.out);
    assert!(done.out.contains(" of 2 right\n"), "{}", done.out);
    assert_eq!(folder.read("progress.json").matches("\"right\"").count(), 2);
    // Two of the five objectives were asked for.
    assert!(done.out.contains(" of 1   State the golden rule and its few exceptions.\n"), "{}", done.out);
    assert!(done.out.contains(" of 1   Find the one tensor that is somewhere else.\n"), "{}", done.out);
    assert_eq!(done.out.matches("\nskipped  ").count(), 3, "{}", done.out);
}

#[test]
fn an_open_question_is_compared_with_a_good_answer() {
    let folder = Folder::new("open questions");
    let skips = "\n".repeat(6);
    let done = folder
        .tell(&["quiz", "5"], &format!("{skips}It is not mine.\nI close it.\n\ny\nwhat?\nn\ny\nYes\nn\n"));
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    for part in [
        "\nA good answer:\n",
        "Your answer earns 3 of 5 points.\n",
        "\n0 of 1 right\n",
        "\nskipped  Read the table of nvidia-smi, field by field.\n",
        "\n0 of 1   Find out who holds the memory of your GPU, and decide what to do about…\n",
        "\nRead again:\n\n   Find out who holds the memory of your GPU",
    ] {
        assert!(done.out.contains(part), "{part} is missing in\n{}", done.out);
    }
    assert!(done.out.lines().all(|line| line.chars().count() <= 80), "{}", done.out);
    let kept = folder.read("progress.json");
    assert!(
        kept.contains("\"said\": \"It is not mine.\\nI close it.\"") && kept.contains("\"points\": 3"),
        "{kept}"
    );

    // With every point there is nothing to read again; whoever writes nothing has skipped it.
    let done = folder.tell(&["quiz", "5"], &format!("{skips}All.\n\ny\ny\ny\ny\ny\n"));
    assert!(done.out.contains("\n1 of 1 right\n") && !done.out.contains("Read again"), "{}", done.out);
    let done = folder.tell(&["quiz", "5"], &format!("{skips}\n"));
    assert!(done.out.contains("\n0 of 0 right\n") && !done.out.contains("A good answer"), "{}", done.out);
}

#[test]
fn every_exercise_is_listed_and_has_its_task_and_three_hints() {
    let folder = Folder::new("readers of hints");
    let list = folder.run(&["list"]).out;
    let mut told = format!("{list}\n");
    for line in list.lines().take_while(|line| !line.is_empty()) {
        let id = line.split_whitespace().next().unwrap();
        if id == "final" {
            continue; // It has neither a task nor hints.
        }
        told += &format!("$ course show {id}\n{}\n", folder.plain(&folder.run(&["show", id]).out));
        for number in ["1", "2", "3"] {
            let hint = folder.run(&["hint", id, number]).out;
            let body: Vec<&str> = hint.lines().skip(2).take_while(|line| !line.is_empty()).collect();
            told += &format!("hint {number}: {}\n", body.join("\n        "));
        }
        told += "\n";
    }
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("exercises", told);
    });
    assert!(list.ends_with(&format!("\n0 of {} passed\n", list.lines().count() - 3)), "{list}");
}

#[test]
fn a_run_shows_what_the_machine_saw_and_judges_nothing() {
    let folder = Folder::new("runners");
    let solution = folder.run(&["solution", "02-batch"]).out;
    folder.write(
        "02-batch.rs",
        &solution.replace("        losses.push", "        println!(\"a batch\");\n        losses.push"),
    );
    let done = folder.run(&["run", "02-batch", "--gpu", "sim:h200", "--seed", "4"]);
    assert_eq!((done.code, done.err.as_str()), (0, ""), "{}", done.out);
    for what in ["Your code prints:\n  a batch\n", "copies to the GPU   12, ", "modelled"] {
        assert!(done.out.contains(what), "{what}: {}", done.out);
    }
    assert!(!folder.0.join("progress.json").exists());
    // Each `item()` waits for its copy, as the timeline shows.
    let done = folder.run(&["run", "03-item"]);
    for what in
        ["copies to the host  12, ", "calls that wait     12\n", "memory of cuda:0    ", "░ the host waits"]
    {
        assert!(done.out.contains(what), "{what}: {}", done.out);
    }
    // Ranks are programs of their own: their memory is not this one's, and their clocks may be behind.
    folder.write("10-average.rs", &folder.run(&["solution", "10-average"]).out);
    let done = folder.run(&["run", "10-average"]);
    assert!(done.out.contains("sent between GPUs   6, 336 bytes\n"), "{}", done.out);
    assert!(!done.out.contains("memory of cuda") && done.out.contains("µs, modelled"), "{}", done.out);
    let done = folder.run(&["run", "02-batch", "--gpu", "real"]);
    assert!(done.code == 2 && done.err.lines().count() == 1, "{done:?}");
}

/// Whatever the moment at which it is killed, the progress of before or of after is there.
#[test]
fn progress_survives_being_killed() {
    let folder = Folder::new("the killed");
    assert_eq!(folder.run(&["hint", "02-batch"]).code, 0);
    for microseconds in (0..40).map(|k| k * 150) {
        let mut child =
            folder.command(&["hint", "02-batch", "2"]).stdout(std::process::Stdio::null()).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_micros(microseconds));
        child.kill().unwrap();
        child.wait().unwrap();
        let done = folder.run(&["list", "--open"]);
        assert_eq!((done.code, done.err.as_str()), (0, ""), "{microseconds} µs");
    }
    assert!(folder.read("progress.json").contains("\"hints\""));
    assert_eq!(folder.run(&["hint", "02-batch"]).code, 0);
    assert_eq!(folder.names(), ["progress.json"], "what the killed left is gone");
}

/// A disk without room is told, and what was kept stays.
#[cfg(unix)]
#[test]
fn progress_survives_a_full_disk() {
    let folder = Folder::new("the full disk");
    assert_eq!(folder.run(&["hint", "02-batch"]).code, 0);
    let before = folder.read("progress.json");
    // No file may grow: what the kernel says of a full disk comes of it, too, as an error of the write.
    let program = env!("CARGO_BIN_EXE_course");
    let mut shell = std::process::Command::new("sh");
    shell
        .args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$0\" --work \"$1\" hint 02-batch 3", program])
        .arg(&folder.0);
    let done = crate::program::done(&mut shell);
    assert!(done.code == 0 && done.out.contains("Hint 3 of 3"), "{done:?}");
    assert!(done.err.starts_with("warning: your progress was not saved: "), "{done:?}");
    assert_eq!(folder.read("progress.json"), before);
}
