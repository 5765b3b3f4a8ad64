use crate::source::Span;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checks {
    pub memory: bool,
    pub init: bool,
    pub race: bool,
    pub sync: bool,
    pub leaks: bool,
}

impl Checks {
    pub const ALL: Checks = Checks { memory: true, init: true, race: true, sync: true, leaks: true };
    pub const MEMORY: Checks = Checks { memory: true, init: false, race: false, sync: false, leaks: false };

    /// Parses a list such as `memcheck,racecheck`.
    pub fn parse(text: &str) -> Result<Checks, String> {
        let mut checks = Checks { memory: true, init: false, race: false, sync: false, leaks: false };
        for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            match name {
                "memcheck" => checks.memory = true,
                "initcheck" => checks.init = true,
                "racecheck" => checks.race = true,
                "synccheck" => checks.sync = true,
                "leakcheck" => checks.leaks = true,
                "all" => checks = Checks::ALL,
                other => {
                    return Err(format!(
                        "unknown check `{other}`: expected memcheck, racecheck, initcheck, synccheck, leakcheck, or all"
                    ));
                }
            }
        }
        Ok(checks)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    Info,
    Warning,
    Error,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Thread {
    pub thread: [u32; 3],
    pub block: [u32; 3],
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    pub text: String,
    pub span: Option<Span>,
    pub thread: Option<Thread>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub check: &'static str,
    pub severity: Severity,
    /// For example `Invalid __global__ write of size 4 bytes`.
    pub title: String,
    /// The kernel with its parameters, or `main`.
    pub function: String,
    pub sites: Vec<Site>,
    pub notes: Vec<String>,
    /// The number of times that it was found at these positions.
    pub count: u64,
    pub is_fatal: bool,
}

/// Findings, merged if they have the same positions.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    pub all: Vec<Finding>,
    /// The number of findings beyond the limit.
    pub left_out: u64,
}

pub const MOST_FINDINGS: usize = 100;

impl Findings {
    pub fn add(&mut self, finding: Finding) {
        let count = self.all.len();
        let same = self.all.iter_mut().find(|known| {
            known.title == finding.title
                && known.function == finding.function
                && known.sites.len() == finding.sites.len()
                && known.sites.iter().zip(&finding.sites).all(|(a, b)| a.span == b.span && a.text == b.text)
        });
        match same {
            Some(known) => {
                known.count += finding.count;
                // The text comes from the most severe of them.
                if finding.severity > known.severity {
                    (known.severity, known.notes, known.sites) =
                        (finding.severity, finding.notes, finding.sites);
                }
            }
            None if count < MOST_FINDINGS => self.all.push(finding),
            None => self.left_out += 1,
        }
    }
}
