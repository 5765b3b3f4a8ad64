//! What is no command gets one line, on what would be right.

use crate::program::Folder;

#[test]
fn one_line_says_what_would_be_right() {
    let folder = Folder::new("wrong words");
    for (words, what) in [
        (&["check", "02-bach"][..], "there is no exercise `02-bach`"),
        (&["check", "bat"], "did you mean `02-batch`?"),
        (&["check", "99"], "`cargo course list` shows all"),
        (&["hint", "02-batch", "4"], "4"),
        (&["quiz", "two"], "`two` is not a chapter: type a number such as 03"),
        (&["quiz", "77"], "no chapter 77 with questions"),
        (&["read", "77"], "`77` is not a chapter: type a number such as 03"),
        (&["explain", "segmentation", "fault"], "unknown message"),
        (&["grade", "nowhere"], "nowhere: there is no such folder"),
        (&["report", "--format", "xml"], "junit"),
        (&["chek"], "check"),
        (&["check", "--all"], "you have not begun any exercise"),
    ] {
        let done = folder.run(words);
        assert!(done.code == 2 && done.out.is_empty(), "{words:?}: {done:?}");
        assert!(done.err.starts_with("error: ") && done.err.lines().count() == 1, "{words:?}: {}", done.err);
        assert!(done.err.contains(what), "{words:?}: {}", done.err);
    }
}

#[test]
fn progress_that_cannot_be_read_is_refused_and_stays() {
    let folder = Folder::new("broken progress");
    folder.write("progress.json", "{ half of it");
    let done = folder.run(&["list"]);
    assert!(
        done.code == 2 && done.err.contains("progress.json: this is not a progress file of the course"),
        "{done:?}"
    );
    assert_eq!(folder.read("progress.json"), "{ half of it");
}

#[cfg(unix)]
#[test]
fn a_folder_that_cannot_be_written_to_is_told() {
    use std::fs;
    let folder = Folder::new("readers");
    fs::write(folder.0.join("file"), "").unwrap();
    let done = crate::program::done(
        std::process::Command::new(env!("CARGO_BIN_EXE_course"))
            .arg("--work")
            .arg(folder.0.join("file/below"))
            .arg("list"),
    );
    assert!(
        done.code == 2 && done.err.starts_with("error: --work ") && done.err.lines().count() == 1,
        "{done:?}"
    );
}

#[test]
fn errors_are_explained_by_code_and_by_words() {
    let folder = Folder::new("errors");
    for (words, what) in [
        (&["explain", "gpu0001"][..], "GPU0001: Expected all tensors to be on the same device"),
        (&["explain", "RuntimeError: Expected all tensors to be on the same device, but found"], "GPU0001"),
        (&["explain", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate"], "GPU0002"),
        (&["explain", "AssertionError: Torch not compiled with CUDA enabled"], "Install the build for CUDA"),
    ] {
        let done = folder.run(words);
        assert!(done.code == 0 && done.out.contains(what), "{words:?}: {done:?}");
        assert!(!done.out.contains("{{") && !done.out.contains("]("), "{}", done.out);
        // Code and output stay as they are.
        let is_prose = |line: &&str| !line.starts_with("    ");
        assert!(done.out.lines().filter(is_prose).all(|line| line.chars().count() <= 80), "{}", done.out);
    }
    let done = folder.run(&["completions", "bash"]);
    assert!(done.code == 0 && done.out.contains("watch"));
}
