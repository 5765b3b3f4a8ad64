//! `book build` and the folder that it puts the pages into: nothing in it is lost that this program did not write.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use book::folder::Folder;
use book::links;
use tempfile::{TempDir, tempdir};

const LIST: &str = ".to-device-book";

fn pages(pairs: &[(&str, &str)]) -> BTreeMap<String, Vec<u8>> {
    pairs.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec())).collect()
}

/// Puts pages into a folder, as `book build` does.
fn fill(folder: &Path, pairs: &[(&str, &str)]) -> Result<(), String> {
    let (folder, pages) = (Folder::open(folder)?, pages(pairs));
    folder.check(&pages)?;
    folder.fill(&pages)
}

/// The files of a folder, less the list.
fn files(folder: &TempDir) -> BTreeMap<String, Vec<u8>> {
    let mut files = links::files(folder.path()).unwrap();
    files.remove(LIST);
    files
}

const FIRST: [(&str, &str); 3] = [("index.html", "one"), ("labs/lab-03.html", "two"), (".nojekyll", "")];

/// A folder with a first build in it.
fn built() -> TempDir {
    let folder = tempdir().unwrap();
    fill(folder.path(), &FIRST).unwrap();
    assert_eq!(files(&folder), pages(&FIRST));
    folder
}

#[test]
fn a_folder_that_is_not_there_is_made_and_filled() {
    let folder = tempdir().unwrap();
    fill(&folder.path().join("a/b"), &FIRST).unwrap();
    assert_eq!(fs::read(folder.path().join("a/b/labs/lab-03.html")).unwrap(), b"two");
}

#[test]
fn a_folder_with_something_else_in_it_is_refused_as_it_is() {
    let folder = tempdir().unwrap();
    for file in [".nojekyll", "thesis.txt"] {
        fs::write(folder.path().join(file), "years of work").unwrap();
        let before = files(&folder);
        let error = fill(folder.path(), &FIRST).unwrap_err();
        let what = "has files that `book build` did not write: name another folder";
        assert_eq!(error, format!("{} {what}", folder.path().display()));
        assert_eq!(files(&folder), before);
    }
}

#[test]
fn the_next_build_replaces_the_first_and_keeps_what_was_put_beside_it() {
    let folder = built();
    fs::write(folder.path().join("CNAME"), "example.org").unwrap();
    fs::write(folder.path().join("labs/notes.txt"), "mine").unwrap();
    fill(folder.path(), &[("index.html", "one, anew"), ("a/b/c.html", "three")]).unwrap();
    let kept = [("CNAME", "example.org"), ("labs/notes.txt", "mine")];
    let new = [("index.html", "one, anew"), ("a/b/c.html", "three")];
    assert_eq!(files(&folder), pages(&[kept, new].concat()));
    fill(folder.path(), &[("index.html", "one, anew")]).unwrap();
    assert!(!folder.path().join("a").exists(), "a folder that is left empty is gone");
    assert_eq!(fs::read(folder.path().join("labs/notes.txt")).unwrap(), b"mine");
}

#[test]
fn a_file_that_somebody_changed_is_neither_replaced_nor_deleted() {
    let folder = built();
    fs::write(folder.path().join("labs/lab-03.html"), "two, with my notes").unwrap();
    let before = links::files(folder.path()).unwrap();
    let error = fill(folder.path(), &[("index.html", "anew"), ("labs/lab-03.html", "anew")]).unwrap_err();
    let what =
        "labs/lab-03.html has changed since `book build` wrote it: move it away, or name another folder";
    assert!(error.ends_with(what), "{error}");
    assert_eq!(links::files(folder.path()).unwrap(), before);
    // No page any more: it may stay.
    fill(folder.path(), &[("index.html", "anew")]).unwrap();
    assert_eq!(files(&folder), pages(&[("index.html", "anew"), ("labs/lab-03.html", "two, with my notes")]));
}

#[test]
fn a_file_of_others_where_a_page_belongs_is_not_replaced() {
    let folder = built();
    fs::write(folder.path().join("path.html"), "mine").unwrap();
    for page in ["path.html", "path.html/x.html", "labs"] {
        let before = links::files(folder.path()).unwrap();
        let error = fill(folder.path(), &[(page, "theirs")]).unwrap_err();
        let what =
            "was not written by `book build`, and a page belongs there: move it away, or name another folder";
        assert!(error.ends_with(&format!("{page} {what}")), "{error}");
        assert_eq!(links::files(folder.path()).unwrap(), before);
    }
}

#[test]
fn a_build_that_was_interrupted_is_finished_by_the_next() {
    let second = [("index.html", "anew"), ("path.html", "three")];
    // What a list with both builds is followed by, cut off at every place.
    for done in 0..=4 {
        let folder = built();
        let first = fs::read_to_string(folder.path().join(LIST)).unwrap();
        let other = tempdir().unwrap();
        fill(other.path(), &second).unwrap();
        let lines = fs::read_to_string(other.path().join(LIST)).unwrap();
        let both = first + lines.split_once('\n').unwrap().1;
        fs::write(folder.path().join(LIST), both).unwrap();
        fs::write(folder.path().join(".to-device-book.part"), "ane").unwrap();
        let steps: [&dyn Fn(&Path); 4] = [
            &|folder| fs::write(folder.join("index.html"), "anew").unwrap(),
            &|folder| fs::write(folder.join("path.html"), "three").unwrap(),
            &|folder| fs::remove_file(folder.join(".nojekyll")).unwrap(),
            &|folder| fs::remove_file(folder.join("labs/lab-03.html")).unwrap(),
        ];
        steps[..done].iter().for_each(|step| step(folder.path()));
        fill(folder.path(), &second).unwrap();
        assert_eq!(files(&folder), pages(&second), "after {done} steps");
    }
}

#[test]
fn a_list_that_leads_out_of_the_folder_is_refused() {
    let outside = tempdir().unwrap();
    let thesis = outside.path().join("thesis.txt");
    fs::write(&thesis, "one").unwrap();
    let folder = outside.path().join("pages");
    fill(&folder, &FIRST).unwrap();
    let list = fs::read_to_string(folder.join(LIST)).unwrap();
    let of_one = list.lines().find_map(|line| line.strip_suffix(" index.html")).unwrap();
    for path in ["../thesis.txt", "labs/../../thesis.txt", thesis.to_str().unwrap(), ""] {
        fs::write(folder.join(LIST), format!("{list}{of_one} {path}\n")).unwrap();
        let error = fill(&folder, &[("index.html", "one")]).unwrap_err();
        let what = "has a list with an invalid line (.to-device-book:5): name another folder";
        assert!(error.ends_with(what), "{error}");
    }
    for list in ["", "a list of mine\n", "\u{0}"] {
        fs::write(folder.join(LIST), list).unwrap();
        let error = fill(&folder, &FIRST).unwrap_err();
        assert!(error.contains("has a file .to-device-book that `book build` did not write"), "{error}");
    }
    assert_eq!(fs::read(thesis).unwrap(), b"one");
}

#[cfg(unix)]
#[test]
fn links_are_not_followed() {
    use std::os::unix::fs::symlink;

    let (folder, outside) = (built(), tempdir().unwrap());
    fs::write(outside.path().join("lab-03.html"), "two").unwrap();
    fs::remove_dir_all(folder.path().join("labs")).unwrap();
    symlink(outside.path(), folder.path().join("labs")).unwrap();
    // Neither deleted nor replaced behind the link.
    let error = fill(folder.path(), &FIRST).unwrap_err();
    assert!(error.contains("labs/lab-03.html has changed since"), "{error}");
    fs::remove_file(folder.path().join("index.html")).unwrap();
    symlink(outside.path().join("lab-03.html"), folder.path().join("index.html")).unwrap();
    assert!(
        fill(folder.path(), &[("index.html", "anew")]).unwrap_err().contains("index.html has changed since")
    );
    fill(folder.path(), &[("path.html", "three")]).unwrap();
    assert_eq!(fs::read(outside.path().join("lab-03.html")).unwrap(), b"two");
}

/// The binary with a folder; what it says on stderr, and its exit code.
fn book(folder: &Path) -> (String, Option<i32>) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_book"));
    let output = command.args(["build", "--dest-dir"]).arg(folder).output().unwrap();
    (String::from_utf8(output.stderr).unwrap(), output.status.code())
}

#[test]
fn the_binary_refuses_an_impossible_folder_in_one_line_with_exit_code_2() {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("thesis.txt"), "years of work").unwrap();
    for wrong in ["", "thesis.txt", "thesis.txt/pages"] {
        let (error, code) = book(&folder.path().join(wrong));
        assert!(error.starts_with("error: ") && error.ends_with(": name another folder\n"), "{error}");
        assert_eq!((error.lines().count(), code), (1, Some(2)), "{error}");
    }
    assert_eq!(book(Path::new("")).1, Some(2));
}

#[test]
fn a_closed_pipe_ends_the_binary_quietly() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    for flags in [&["--help"][..], &["--version"], &["build", "--help"], &["serve", "--port", "0"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_book"));
        let output = command.args(flags).stdout(writer.try_clone().unwrap()).output().unwrap();
        assert_eq!((&*output.stderr, output.status.code()), (&b""[..], Some(0)), "{flags:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error() {
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    for flags in [&["--help"][..], &["serve", "--port", "0"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_book"));
        let output = command.args(flags).stdout(full.try_clone().unwrap()).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.starts_with("error: the output cannot be written: "), "{error}");
        assert_eq!((error.lines().count(), output.status.code()), (1, Some(1)), "{flags:?}");
    }
}

#[test]
fn wrong_flags_get_one_line_and_exit_code_2() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().port().to_string();
    for (wrong, right) in [
        (&[][..], "build, serve"),
        (&["biuld"], "'build'"),
        (&["build", "--dest"], "--dest-dir"),
        (&["serve", "--port", "65536"], "65536"),
        (&["serve", "--port", &taken], "try --port"),
        (&["build", "--course", "nowhere"], "nowhere"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_book")).args(wrong).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.starts_with("error: ") && error.contains(right), "{wrong:?}: {error}");
        assert_eq!((error.lines().count(), output.status.code()), (1, Some(2)), "{wrong:?}: {error}");
    }
}
