//! Tests of the figure sets of cards (in `todevice-figures`) and of hosts.

use crate::each_case::each_case;
use std::fs;

use todevice_figures::figure::Status;
use todevice_figures::figure_file::{FigureSet, LARGEST, figures, find, find_or_load, parse};
use todevice_figures::profile::{Profile, T4};

use super::host_profile::HostProfile;
use crate::base::topology::Link;

/// Every figure of a kind of set can be overridden by name, and each has a source.
fn every_figure_can_be_named<S: FigureSet + std::fmt::Debug>() {
    for set in S::built_in() {
        assert_eq!(format!("{set:?}").matches("Figure {").count(), S::NAMES.len(), "{}", set.key());
        assert!(figures(*set).all(|(_, figure)| !figure.source.is_empty()), "{}", set.key());
        assert!(find::<S>(set.key()).is_some_and(|found| found == *set));
    }
    let base = S::built_in()[0];
    for name in S::NAMES {
        let file = format!("like = {}\n{name} = 123.5 # seen\n", base.key());
        let set = parse::<S>("a.file", &file).unwrap();
        let figure = set.figure(name).unwrap();
        let expected = (123.5, base.figure(name).unwrap().unit, "seen", Status::Measured);
        assert_eq!((figure.value, figure.unit, figure.source, figure.status), expected, "{name}");
        let others = figures(&set).filter(|(other, _)| other != name);
        assert!(others.eq(figures(base).filter(|(other, _)| other != name)), "{name} alone");
    }
}

#[test]
fn what_a_file_names_replaces_the_figures_of_another_set() {
    let file =
        "like = pytorch # the only one\n\nlaunch = 7.5 # µs\nnode = 0\nstep=2 # assumed to be little\n";
    let host: HostProfile = parse("my.host", file).unwrap();
    let pytorch = find::<HostProfile>("pytorch").unwrap();
    assert_eq!((host.key, host.launch.value, host.launch.source), ("my.host", 7.5, "µs"));
    assert_eq!((host.node.value, host.node.source), (0.0, "a file of the user's"));
    assert_eq!((host.launch.status, host.step.status), (Status::Measured, Status::Guess));
    assert_eq!(host.dispatch, pytorch.dispatch);
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    let wrong = [
        ("", "it must begin with like = and one of laptop, pytorch"),
        ("launch = 5", "it must begin with like = and one of laptop, pytorch"),
        ("like = desktop", "like must be one of laptop, pytorch"),
        ("like = laptop\n\nfast", "line 3 must have the form name = value"),
        ("like = laptop\nlaunch = 5\nlaunch = 6", "line 3: launch occurs twice"),
        ("like = laptop\nlike = laptop", "line 2: like occurs twice"),
        ("like = laptop\nlaunch = fast", "line 2: launch must be a positive number"),
        ("like = laptop\nlaunch = 0", "line 2: launch must be a positive number"),
        ("like = laptop\nlaunch = -3", "line 2: launch must be a positive number"),
        ("like = laptop\nlaunch = inf", "line 2: launch must be a positive number"),
        ("like = laptop\nnode = -1", "line 2: node must be a positive number"),
    ];
    each_case(wrong, |(text, message)| {
        assert_eq!(parse::<HostProfile>("a.host", text).unwrap_err(), message, "{text}");
    });
    let unknown = parse::<HostProfile>("a.host", "like = laptop\nwarp = 9").unwrap_err();
    assert!(unknown.starts_with("line 2: unknown figure 'warp', expected one of launch, "), "{unknown}");
}

#[test]
fn only_a_file_of_bounded_size_is_read() {
    let refused = |path: &str| find_or_load::<HostProfile>(path).unwrap_err();
    let folder = std::env::temp_dir().join(format!("figures-{}", std::process::id()));
    let file = |name: &str| folder.join(name).display().to_string();
    // The folder stands for all irregular files: reading an endless device would never return.
    fs::create_dir_all(file("folder.host")).unwrap();
    fs::write(file("large.host"), vec![b'#'; LARGEST as usize + 1]).unwrap();
    fs::write(file("utf-16.host"), b"\xff\xfel\0i\0k\0e\0").unwrap();
    let refusals = ["folder.host", "large.host", "utf-16.host"].map(|name| refused(&file(name)));
    fs::remove_dir_all(&folder).unwrap();
    assert!(refusals[0].ends_with("folder.host: not a regular file"), "{refusals:?}");
    assert!(refusals[1].ends_with("large.host: larger than 1048576 bytes"), "{refusals:?}");
    assert!(refusals[2].ends_with("utf-16.host: not UTF-8 text"), "{refusals:?}");
}

#[test]
fn what_is_neither_built_in_nor_a_file_is_refused_with_what_there_is() {
    let message = |key: &str| find_or_load::<HostProfile>(key).unwrap_err();
    assert_eq!(message("fast"), "unknown host 'fast', expected one of laptop, pytorch, or FILE.host");
    assert!(message("none-there.host").starts_with("none-there.host: "));
    assert_eq!(find_or_load::<HostProfile>("laptop").unwrap().key, "laptop");
}

#[test]
fn every_figure_can_be_named_in_a_file() {
    every_figure_can_be_named::<Profile>();
    every_figure_can_be_named::<HostProfile>();
}

#[test]
fn a_file_may_name_the_card_and_its_generation() {
    let mut card = T4.clone();
    assert_eq!(card.set_word("name", "My card"), Some(Ok(())));
    assert_eq!(card.set_word("capability", "8.6"), Some(Ok(())));
    assert_eq!((card.name, card.major, card.minor), ("My card", 8, 6));
    assert_eq!(card.set_word("name", ""), Some(Err("the name is empty".to_owned())));
    let wrong = Some(Err("capability must have the form 9.0".to_owned()));
    assert_eq!(["9", "9.", "a.b"].map(|text| card.set_word("capability", text) == wrong), [true; 3]);
    assert_eq!(card.set_word("link", "NV4"), Some(Ok(())));
    assert_eq!(card.link, Link::Nv(4));
    let wrong = "link must be one of PIX, PXB, PHB, NODE, SYS, or NV and a number".to_owned();
    assert_eq!(card.set_word("link", "fast"), Some(Err(wrong)));
    assert_eq!(card.set_word("warp", "9"), None);
}
