use labs::Listed;

/// The lab and the flags of a command, such as `cargo run --bin lab-03 -- --gpu none`.
pub fn of_command(command: &str) -> Option<(&'static Listed, Vec<&str>)> {
    let rest = command.strip_prefix("cargo run --bin ")?;
    let (name, flags) = rest.split_once(" -- ").unwrap_or((rest, ""));
    let name = if name == "doctor" { "lab-00" } else { name };
    Some((Listed::named(name)?, flags.split_whitespace().collect()))
}

/// The run without flags.
pub fn by_default(lab: &Listed) -> &'static str {
    match lab.name {
        "lab-00" => "on your computer",
        _ => "on a simulated Tesla T4",
    }
}

/// The page with the whole source of a lab, relative to the chapters folder.
pub fn source_page(lab: &Listed) -> String {
    format!("labs/{}.md", lab.name)
}

#[cfg(test)]
mod tests {
    use crate::Course;
    use crate::output::check;
    use labs::{LABS, render_text, without_measured};

    /// The flags that a caption leaves out affect only warnings.
    #[test]
    fn a_reader_sees_what_the_book_shows() {
        for lab in &LABS {
            for run in lab.runs.iter().filter(|run| !run.steady.is_empty()) {
                let captured = (lab.run)(run.flags);
                assert_eq!(captured.exit_code, 0);
                let output: Vec<_> =
                    captured.events.into_iter().filter(|event| !event.is_trouble()).collect();
                let printed = render_text::render(&without_measured(&output));
                let snapshot = lab.snapshot(run);
                assert_eq!(check(&Course::here().read(&snapshot).unwrap(), &printed), Ok(()), "{snapshot}");
            }
        }
    }
}
