//! The layers of a crate, called floors: a file imports only from lower floors and from its own room, never from above.

mod imports;
mod spine;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use imports::{arrows, circles, methods};

/// The rooms of a crate from the ground up, with their files and folders. A folder excludes files of other rooms.
type Rooms = Vec<(String, Vec<String>)>;

/// The compiler ensures that `gpu` does not depend on `tensor`.
const CRATES: [&str; 2] = ["gpu", "tensor"];

/// The rooms of a crate, from the tour in its `lib.rs`.
fn rooms(package: &str) -> Rooms {
    let text = std::fs::read_to_string(source(package).join("lib.rs")).unwrap();
    let table = text.lines().skip_while(|line| !line.starts_with("//! | room | files |")).skip(2);
    let rows = table.map_while(|line| line.strip_prefix("//! | "));
    let room = |row: &str| {
        let mut columns = row.split('|').map(str::trim);
        let (name, files) = (columns.next().unwrap(), columns.next().unwrap());
        (name.to_owned(), files.split('`').skip(1).step_by(2).map(str::to_owned).collect())
    };
    let rooms: Rooms = rows.map(room).collect();
    assert!(rooms.len() > 4, "{package}/src/lib.rs has no table of rooms");
    rooms
}

/// The maximum number of files in an import cycle. No cycle leaves its room.
const LARGEST_CIRCLE: usize = 8;

fn source(package: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(package).join("src")
}

/// The floor of a file's room, and the room's name.
fn room<'a>(rooms: &'a Rooms, file: &str) -> (usize, &'a str) {
    found(rooms, file)
        .unwrap_or_else(|| panic!("{file} is in no room: name one for it in the tour of lib.rs"))
}

fn found<'a>(rooms: &'a Rooms, file: &str) -> Option<(usize, &'a str)> {
    let length = |part: &String| {
        let is_in = file == *part || (part.ends_with('/') && file.starts_with(part));
        is_in.then_some(part.len())
    };
    let fits = rooms.iter().enumerate().filter_map(|(floor, (name, parts))| {
        let length = parts.iter().filter_map(length).max()?;
        Some((length, (floor, name.as_str())))
    });
    Some(fits.max()?.1)
}

/// The Rust files below a folder, by relative name.
fn files_below(folder: &Path) -> Vec<String> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            match path.extension() {
                _ if path.is_dir() => folders.push(path),
                Some(extension) if extension == "rs" => {
                    files.push(path.strip_prefix(folder).unwrap().to_str().unwrap().replace('\\', "/"));
                }
                _ => {}
            }
        }
    }
    files
}

#[test]
fn every_file_is_in_a_room_that_the_tour_names() {
    for package in CRATES {
        let rooms = rooms(package);
        let files = files_below(&source(package));
        let is_homeless = |file: &&String| *file != "lib.rs" && found(&rooms, file).is_none();
        // The tests of a top-level file are next to it.
        let homeless: Vec<&String> =
            files.iter().filter(is_homeless).filter(|file| !file.ends_with("/tests.rs")).collect();
        assert!(homeless.is_empty(), "{package}/src/lib.rs names no room of {homeless:?}");
        for (name, parts) in &rooms {
            let is_there = |part: &String| files.iter().any(|file| file.starts_with(part.as_str()));
            assert!(!parts.is_empty() && parts.iter().all(is_there), "{package}: {name} has {parts:?}");
        }
    }
}

/// A crate documents its public items, and hides all others.
#[test]
fn no_module_is_public_but_hidden() {
    for package in CRATES {
        for file in files_below(&source(package)) {
            let text = std::fs::read_to_string(source(package).join(&file)).unwrap();
            let lines: Vec<&str> = text.lines().map(str::trim).collect();
            let hidden = lines
                .windows(2)
                .find(|pair| pair[0].starts_with("#[doc(hidden)]") && pair[1].starts_with("pub mod "));
            assert_eq!(hidden, None, "{package}/src/{file}");
        }
    }
}

#[test]
fn imports_only_go_down() {
    let mut wrong = String::new();
    for package in CRATES {
        let (rooms, arrows) = (rooms(package), arrows(&source(package)));
        let found = arrows.values().map(BTreeSet::len).sum::<usize>();
        assert!(arrows.len() > 60 && found > 3 * arrows.len(), "{package}: imports are not found");
        let room = |file| room(&rooms, file);
        for (from, to) in &arrows {
            for to in to.iter().filter(|to| *to != "lib.rs" && room(to).0 > room(from).0) {
                let (above, below) = (room(to).1, room(from).1);
                let _ = writeln!(wrong, "{package}/src/{from} imports from {to}: {above} is above {below}");
            }
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

/// Methods of the standard library's types: a call of one of these names may not be ours.
const COMMON_METHODS: &str = "all any as_ref borrow build copy_within count elapsed elements expand file find flatten get get_mut index insert \
    into_iter is_empty is_finite is_none iter join len line load lock max min name next push read remove replace set shape split start sum to_vec write";

#[test]
fn methods_are_called_from_their_room_or_above() {
    let common: BTreeSet<&str> = COMMON_METHODS.split_whitespace().collect();
    let mut wrong = String::new();
    // `gpu` depends on the figures, which have no rooms.
    let mut below: BTreeSet<String> = methods(&source("gpu/figures")).defined.into_keys().collect();
    assert!(below.contains("time_of"), "methods are not found");
    for package in CRATES {
        let (rooms, methods) = (rooms(package), methods(&source(package)));
        let calls = methods.called.values().map(BTreeSet::len).sum::<usize>();
        assert!(calls > 1000, "{package}: calls are not found");
        for (file, called) in methods.called.iter().filter(|(file, _)| *file != "lib.rs") {
            for name in called.iter().filter(|name| !common.contains(name.as_str()) && !below.contains(*name))
            {
                // Several methods may share a name, and the one called is unknown: one that is not above is enough.
                let Some(defined) = methods.defined.get(name) else { continue };
                if defined.iter().all(|other| room(&rooms, other).0 > room(&rooms, file).0) {
                    let _ = writeln!(wrong, "{package}/src/{file} calls {name}(), of {defined:?}");
                }
            }
        }
        below.extend(methods.defined.into_keys());
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn circles_are_small_and_within_a_room() {
    let mut wrong = String::new();
    for package in CRATES {
        let rooms = rooms(package);
        for circle in circles(&arrows(&source(package))) {
            let rooms: BTreeSet<&str> = circle.iter().map(|file| room(&rooms, file).1).collect();
            if circle.len() > LARGEST_CIRCLE || rooms.len() > 1 {
                let _ = writeln!(wrong, "{package}: {} files of {rooms:?}: {circle:?}", circle.len());
            }
        }
    }
    // In other packages each folder is a room.
    for package in ["drawing", "labs", "book"] {
        for circle in circles(&arrows(&source(package))) {
            let rooms: BTreeSet<Option<&Path>> = circle.iter().map(|file| Path::new(file).parent()).collect();
            if circle.len() > LARGEST_CIRCLE || rooms.len() > 1 || rooms.contains(&Some(Path::new(""))) {
                let _ = writeln!(wrong, "{package}: {circle:?}");
            }
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

/// Only `lock.rs` decides whether a poisoned lock may still be used, for all locks alike.
#[test]
fn poisoned_locks_are_opened_in_one_file() {
    let source = source("gpu");
    let opens = |file: &&String| {
        std::fs::read_to_string(source.join(file)).unwrap().contains("PoisonError::into_inner")
    };
    let arrows = arrows(&source);
    assert_eq!(arrows.keys().filter(opens).collect::<Vec<_>>(), ["base/lock.rs"]);
}

/// Every way to name an item leads to the file that defines it.
#[test]
fn arrows_are_found_however_a_name_is_written() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("floors-{}", std::process::id()));
    let write = |file: &str, text: &str| {
        let path = folder.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("lib.rs", "mod a; mod b; mod c; pub use b::deep::Thing as Renamed;");
    write(
        "b/mod.rs",
        "pub mod deep; pub use deep::*; macro_rules! made { () => { $crate::c::f() } } pub(crate) use made;",
    );
    write("b/deep.rs", "macro_made!(k); pub struct Thing; pub fn g() {} fn h() { super::made!() }");
    write("c.rs", "pub fn f() {} #[cfg(test)] mod tests { use crate::a::X; }");
    let to = |text: &str| {
        write("a.rs", text);
        arrows(&folder)["a.rs"].iter().cloned().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(to("use crate::b::deep::Thing;"), "b/deep.rs");
    assert_eq!(to("use crate::{b::{self as other}, c}; fn x() { other::g(); c::f() }"), "b/deep.rs c.rs");
    assert_eq!(to("fn x() -> crate::Renamed { todo!() }"), "b/deep.rs");
    assert_eq!(to("use crate::b::deep::k;"), "b/deep.rs"); // a macro there makes it
    assert_eq!(to("use super::b::Thing as T;"), "b/deep.rs");
    assert_eq!(to("use crate::b::*; fn x() { g() }"), "b/deep.rs b/mod.rs");
    assert_eq!(to("fn x() { vec![crate::c::f()] }"), "c.rs");
    assert_eq!(to("use std::fmt; fn x() { fmt::g() } // crate::c::f()"), "");
    assert_eq!(to("#[cfg(test)] use crate::c::f; #[cfg(test)] mod tests { use crate::c::f; }"), "");
    assert_eq!(to("mod inner { pub fn y() { super::super::c::f() } }"), "c.rs");
    to(
        "impl X { fn x(&mut self) { self.y(1); z(); a.b.w::<u8>() } fn v<T: Fn() -> u8>(mut self, _: T) {} fn u(_: u8) {} }",
    );
    let names = |names: &BTreeSet<String>| names.iter().cloned().collect::<Vec<_>>().join(" ");
    let found = methods(&folder);
    assert_eq!(names(&found.defined.into_keys().collect()), "v x");
    assert_eq!(names(&found.called["a.rs"]), "w y");
    let all = arrows(&folder);
    assert_eq!(all["b/mod.rs"].iter().map(String::as_str).collect::<Vec<_>>(), ["b/deep.rs", "c.rs"]);
    assert_eq!(circles(&all), [BTreeSet::from(["b/deep.rs".to_owned(), "b/mod.rs".to_owned()])]);
    std::fs::remove_dir_all(&folder).unwrap();
}
