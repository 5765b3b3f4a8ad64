//! A compile error of somebody who comes from Python, in the terminal.

use crate::program::Folder;

#[test]
fn check_and_run_show_the_idea_and_the_right_line() {
    let folder = Folder::new("a user of Python");
    let solution = folder.run(&["solution", "01-one-by-one"]).out;
    folder.write("01-one-by-one.rs", &solution.replace("x.to(device)?", "x.to(device)"));
    for command in ["check", "run"] {
        let done = folder.run(&[command, "01-one-by-one"]);
        assert_eq!(done.code, 1, "{done:?}");
        for what in [
            "It does not compile: a `?` is missing.",
            "expected  `let x = x.to(device)?;`",
            "where     line 8",
            "idea      A call that can fail returns a `Result`",
            // Below that, the compiler's own words.
            "cannot multiply",
            "01-one-by-one.rs:8\n",
        ] {
            assert!(done.out.contains(what), "{command}: {what}\n{}", done.out);
        }
    }
}
