//! Profiles in files: what `calibrate` has measured of a card, for `--gpu sim:FILE.profile`.
//!
//! A line is `name = value`; what follows a `#` is for people. Units are those of the built-in profiles: times in
//! microseconds, rates in billions a second. A figure that is not named is that of the profile after `like`.

use std::fs;
use std::sync::{Mutex, PoisonError};

use super::profile::{PROFILES, Profile};
use crate::figure::{Figure, Status};

/// How the name of such a file ends.
pub const ENDING: &str = ".profile";

/// Finds a figure by its name.
macro_rules! figures {
    ($($name:ident)*) => {
        const FIGURES: &[&str] = &[$(stringify!($name)),*];

        fn figure<'a>(profile: &'a mut Profile, name: &str) -> Option<&'a mut Figure> {
            match name {
                $(stringify!($name) => Some(&mut profile.$name),)*
                _ => None,
            }
        }
    };
}

figures!(
    multiprocessors threads_per_multiprocessor clock fp32 fp64 gemm_factor tensor_f16 tensor_bf16 tensor_tf32 tensor_factor dram dram_factor l2 memory context
    launch_latency kernel_gap smallest_kernel copy_latency pinned_to_device pinned_to_host pageable_to_device
    pageable_to_host peer malloc malloc_growth free
);

const TENSOR_CORES: [&str; 3] = ["tensor_f16", "tensor_bf16", "tensor_tf32"];

/// Those that have been read. A profile lives as long as the program, like the built-in ones.
static LOADED: Mutex<Vec<&'static Profile>> = Mutex::new(Vec::new());

/// One that has been read before.
pub fn find(path: &str) -> Option<&'static Profile> {
    let loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    loaded.iter().rev().find(|profile| profile.key == path).copied()
}

/// Reads a file. An error is one line that names it.
pub fn load(path: &str) -> Result<&'static Profile, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let profile = parse(path, &text).map_err(|error| format!("{path}: {error}"))?;
    if let Some(known) = find(path).filter(|known| **known == profile) {
        return Ok(known);
    }
    let profile: &'static Profile = Box::leak(Box::new(profile));
    LOADED.lock().unwrap_or_else(PoisonError::into_inner).push(profile);
    Ok(profile)
}

fn parse(path: &str, text: &str) -> Result<Profile, String> {
    let lines = text.lines().enumerate().filter_map(|(index, line)| {
        let content = line.split('#').next().unwrap_or_default().trim();
        (!content.is_empty()).then_some((index + 1, content))
    });
    let mut lines = lines.map(|(number, line)| match line.split_once('=') {
        Some((name, value)) => Ok((number, name.trim(), value.trim())),
        None => Err(format!("line {number} is not of the form name = value")),
    });

    let keys = || PROFILES.map(|profile| profile.key).join(", ");
    let base = match lines.next().transpose()? {
        Some((_, "like", key)) => Profile::find(key).ok_or_else(|| format!("like is one of {}", keys()))?,
        _ => return Err(format!("it begins with like = and one of {}", keys())),
    };
    let mut profile = Profile { key: leak(path), ..base.clone() };
    let mut seen = vec!["like"];
    for line in lines {
        let (number, name, value) = line?;
        if seen.contains(&name) {
            return Err(format!("line {number}: {name} is there twice"));
        }
        seen.push(name);
        match name {
            "name" if !value.is_empty() => profile.name = leak(value),
            "capability" => {
                let parts = value.split_once('.').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
                let wrong = || format!("line {number}: capability is of the form 9.0");
                (profile.major, profile.minor) = parts.ok_or_else(wrong)?;
            }
            _ => {
                let unknown =
                    || format!("line {number}: '{name}' is no figure; they are {}", FIGURES.join(", "));
                let figure = figure(&mut profile, name).ok_or_else(unknown)?;
                // A card may have no peers, and tensor cores that do not take a type.
                let may_lack = name == "peer" || TENSOR_CORES.contains(&name);
                let least = if may_lack { 0.0 } else { f64::MIN_POSITIVE };
                let value = value.parse::<f64>().ok().filter(|value| value.is_finite() && *value >= least);
                let value = value.ok_or_else(|| format!("line {number}: {name} is no positive number"))?;
                *figure = Figure {
                    value,
                    unit: figure.unit,
                    source: "a profile of the user's",
                    status: Status::Measured,
                };
            }
        }
    }
    Ok(profile)
}

fn leak(text: &str) -> &'static str {
    Box::leak(text.to_owned().into_boxed_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_file_names_replaces_the_figures_of_another_profile() {
        let text = "like = h200 # compute capability 9.0\n\nname = My card\ncapability = 8.6\ndram = 700.5 # GB/s\npeer = 0\n";
        let profile = parse("my.profile", text).unwrap();
        let h200 = Profile::find("h200").unwrap();
        assert_eq!((profile.key, profile.name), ("my.profile", "My card"));
        assert_eq!((profile.major, profile.minor), (8, 6));
        assert_eq!((profile.dram.value, profile.dram.unit), (700.5, h200.dram.unit));
        assert!(!profile.has_peers());
        assert_eq!(profile.fp32, h200.fp32);
    }

    #[test]
    fn every_figure_can_be_named() {
        for name in FIGURES {
            let profile = parse("a.profile", &format!("like = t4\n{name} = 123.5\n")).unwrap();
            assert_eq!(figure(&mut profile.clone(), name).unwrap().value, 123.5, "{name}");
            assert_ne!(profile, *PROFILES[0]);
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let wrong = [
            ("", "it begins with like = and one of t4, rtx4090, h200"),
            ("dram = 5", "it begins with like = and one of t4, rtx4090, h200"),
            ("like = t5", "like is one of t4, rtx4090, h200"),
            ("like = t4\n\nfast", "line 3 is not of the form name = value"),
            ("like = t4\ndram = 5\ndram = 6", "line 3: dram is there twice"),
            ("like = t4\nlike = t4", "line 2: like is there twice"),
            ("like = t4\ncapability = 9", "line 2: capability is of the form 9.0"),
            ("like = t4\ndram = fast", "line 2: dram is no positive number"),
            ("like = t4\ndram = 0", "line 2: dram is no positive number"),
            ("like = t4\ndram = -3", "line 2: dram is no positive number"),
            ("like = t4\ndram = inf", "line 2: dram is no positive number"),
        ];
        for (text, message) in wrong {
            assert_eq!(parse("a.profile", text).unwrap_err(), message, "{text}");
        }
        let unknown = parse("a.profile", "like = t4\nwarp = 9").unwrap_err();
        assert!(unknown.starts_with("line 2: 'warp' is no figure; they are multiprocessors, "), "{unknown}");
    }
}
