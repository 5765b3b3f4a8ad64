//! Stepping through a warp: the tables that a reader sees, and the JSON of the page.

use lab_12::step::{self, FIRST, Wanted};

fn program(name: &str) -> String {
    let path = format!("{}/tests/steps/{name}.cu", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap()
}

fn steps(name: &str, wanted: Wanted, is_json: bool) -> String {
    let said = step::step(&format!("{name}.cu"), &program(name), &|_| None, wanted, is_json);
    assert_eq!(said.errors, "");
    said.output
}

#[test]
fn each_step_has_its_lanes_and_changes() {
    insta::assert_snapshot!("divergence", steps("divergence", FIRST, false));
    insta::assert_snapshot!("loops", steps("loops", FIRST, false));
    insta::assert_snapshot!("functions", steps("functions", FIRST, false));
    insta::assert_snapshot!("shared", steps("shared", Wanted { block: [1, 0, 0], warp: 1, ..FIRST }, false));
    insta::assert_snapshot!("shuffles", steps("shuffles", Wanted { warp: 1, ..FIRST }, false));
    insta::assert_snapshot!("error", steps("error", FIRST, false));
}

#[test]
fn the_json_holds_only_changes() {
    insta::assert_snapshot!("json", steps("divergence", FIRST, true).replace("},{", "},\n{"));
    insta::assert_snapshot!("json_of_an_error", steps("error", FIRST, true).replace("},{", "},\n{"));
}

/// The recording stops, and the run soon after.
#[test]
fn an_endless_kernel_shows_its_first_steps() {
    let text = steps("endless", Wanted { launch: 2, ..FIRST }, false);
    assert_eq!(text.lines().filter(|line| line.contains("while (*flag == 0)")).count(), 2000);
    assert!(text.ends_with("\nThese are the first 2000 steps; there are more.\n"));
}

#[test]
fn options_and_what_they_ask_for_are_checked() {
    assert_eq!(step::options("").unwrap(), FIRST);
    let wanted = Wanted { launch: 2, block: [3, 1, 0], warp: 4 };
    assert_eq!(step::options(" launch=2; block=3,1 ;warp=4").unwrap(), wanted);
    for (text, why) in [
        ("lane=3", "unknown option `lane`: expected block, warp, or launch"),
        ("block=a", "`a` is not a block: write x,y,z, such as 0,0,0"),
        ("block=1,2,3,4", "`1,2,3,4` is not a block: write x,y,z, such as 0,0,0"),
        ("warp=-1", "`-1` is not a warp: warps count from 0"),
        ("launch=0", "`0` is not a launch: launches count from 1"),
    ] {
        assert_eq!(step::options(text).unwrap_err(), why);
    }
    for (name, wanted, why) in [
        (
            "shared",
            Wanted { block: [2, 0, 0], ..FIRST },
            "there is no block 2,0,0: launch 1 has the blocks 0,0,0 to 1,0,0",
        ),
        (
            "shared",
            Wanted { warp: 2, ..FIRST },
            "there is no warp 2: the blocks of launch 1 have the warps 0 to 1",
        ),
        ("loops", Wanted { warp: 1, ..FIRST }, "there is no warp 1: the blocks of launch 1 have one warp: 0"),
        (
            "loops",
            Wanted { launch: 2, ..FIRST },
            "there is no launch 2: the program launches one kernel: launch 1",
        ),
    ] {
        let said = step::step("my.cu", &program(name), &|_| None, wanted, false);
        assert_eq!((said.errors, said.code), (format!("error: {why}\n"), 2));
    }
    let twice = "__global__ void k() {}\nint main() { k<<<1, 1>>>(); k<<<1, 1>>>(); }";
    let said = step::step("my.cu", twice, &|_| None, Wanted { launch: 3, ..FIRST }, false);
    assert_eq!(
        said.errors,
        "error: there is no launch 3: the program launches kernels 2 times: launches 1 to 2\n"
    );
    let ends = "__global__ void k() {}\nint main() { int n = 0; n = 1 / n; k<<<1, 1>>>(); }";
    let said = step::step("my.cu", ends, &|_| None, FIRST, false);
    assert_eq!(
        said.errors,
        "error: the program ended before launch 1: Floating-point exception at my.cu:2:31\n"
    );
    let said = step::step("my.cu", "int main() { return x; }", &|_| None, FIRST, true);
    assert!(said.output.starts_with("{\"errors\":[{\"message\":\"unknown name `x`\"") && said.code == 2);
}
