//! Errors that end a program early, and other reports.

use super::block::{Block, Warp};
use super::checks::Site;
use super::interpreter::{Runner, Stop};
use super::launch::{fatal, thread};
use crate::ir::{Bin, LANES};

impl Runner<'_> {
    /// Checks a divisor. Division by 0 is undefined in C++, and a GPU continues with some number.
    pub fn check_divisor(&mut self, block: &Block, warp: &Warp, mask: u32, pc: u32, op: Bin, b: u32) {
        let wide = op.widths().1 == 2;
        let is_zero = |lane: usize| match wide {
            true => warp.registers.row::<u64>(b)[lane] == 0,
            false => warp.registers.row::<u32>(b)[lane] == 0,
        };
        let any = (0..LANES).fold(false, |any, lane| any | is_zero(lane));
        if !any {
            return;
        }
        let found = (0..LANES).find(|lane| mask >> lane & 1 != 0 && is_zero(*lane));
        let Some(lane) = found else { return };
        let site = self.site_of("at", pc, block, warp, lane);
        let title = "Integer division by zero".to_owned();
        let mut finding = fatal("memcheck", title, &self.program.name, vec![site], Vec::new());
        finding.severity = super::checks::Severity::Warning;
        finding.is_fatal = false;
        self.machine.findings.add(finding);
    }

    pub fn site(&self, text: &str, pc: u32) -> Site {
        Site { text: text.to_owned(), span: Some(self.program.spans[pc as usize]), thread: None }
    }

    pub fn site_of(&self, text: &str, pc: u32, block: &Block, warp: &Warp, lane: usize) -> Site {
        let by = thread(&self.shape, block.index, warp.number * 32 + lane as u32);
        Site { thread: (!self.is_host).then_some(by), ..self.site(text, pc) }
    }

    pub fn assertion(&mut self, block: &Block, warp: &Warp, pc: u32, lane: usize, text: u32) -> Stop {
        let title = format!("Assertion `{}` failed", self.program.texts[text as usize]);
        let site = self.site_of("at", pc, block, warp, lane);
        let check = if self.is_host { "host" } else { "assert" };
        self.machine.findings.add(fatal(check, title, &self.program.name, vec![site], Vec::new()));
        if self.is_host { Stop::HostFault } else { Stop::Assert }
    }

    pub fn trapped(&mut self, block: &Block, warp: &Warp, pc: u32, mask: u32, text: u32) -> Stop {
        let title = format!("The kernel ended itself ({})", self.program.texts[text as usize]);
        let site = self.site_of("at", pc, block, warp, mask.trailing_zeros() as usize);
        self.machine.findings.add(fatal("trap", title, &self.program.name, vec![site], Vec::new()));
        Stop::LaunchFailure
    }

    pub fn out_of_budget(&mut self, block: &Block, warp: &Warp, pc: u32) -> Stop {
        let lane = warp.groups.last().map_or(0, |group| group.mask.trailing_zeros() as usize).min(31);
        let site = self.site_of("still running at", pc, block, warp, lane);
        let count = super::amounts::thousands(self.machine.budget);
        self.stopped(site, &format!("{count} warp instructions"))
    }

    pub fn out_of_output(&mut self, pc: u32) -> Stop {
        let most = super::amounts::thousands(super::launch::MOST_OUTPUT as u64);
        self.stopped(self.site("printing at", pc), &format!("{most} bytes of output"))
    }

    pub fn stopped(&mut self, site: Site, limit: &str) -> Stop {
        let what = if self.is_host { "program" } else { "kernel" };
        let title =
            format!("Stopped after {limit}: the {what} loops forever, or takes too long for this emulator");
        let check = if self.is_host { "host" } else { "timeout" };
        self.machine.findings.add(fatal(check, title, &self.program.name, vec![site], Vec::new()));
        if self.is_host { Stop::HostFault } else { Stop::Timeout }
    }
}
