//! The functions of C that host code calls, one by one.

use super::calls::{Call, Host};
use super::random::Random;
use crate::ir::space;
use crate::run::interpreter::Stop;
use crate::run::launch::Machine;
use crate::run::memory::{ALLOCATED, OF_HOST, Owner, WRITTEN};

impl Host<'_> {
    pub(super) fn c_library(&mut self, machine: &mut Machine, call: Call) -> Result<u64, Stop> {
        let Call { name, operands, span } = call;
        let argument = |number| call.argument(number);
        Ok(match name {
            "malloc" | "calloc" => {
                let size =
                    if name == "malloc" { argument(0) } else { argument(0).saturating_mul(argument(1)) };
                let Some(at) = machine.heap.allocate(size.max(1), Owner::Host, name, span) else {
                    return Ok(0);
                };
                if name == "calloc" {
                    let offset = at - space::HEAP;
                    machine.heap.space.mark(offset, size, ALLOCATED | WRITTEN | OF_HOST);
                }
                at
            }
            "realloc" => self.reallocated(machine, call)?,
            "free" => {
                self.release(machine, call, &[Owner::Host]);
                0
            }
            "memset" => {
                let range = self.host_range(machine, call, argument(0), argument(2))?;
                machine.heap.space.bytes[range.clone()].fill(argument(1) as u8);
                machine.heap.space.states[range].iter_mut().for_each(|state| *state |= WRITTEN);
                argument(0)
            }
            "memcpy" | "memmove" => {
                let from = self.host_range(machine, call, argument(1), argument(2))?;
                let to = self.host_range(machine, call, argument(0), argument(2))?;
                machine.heap.space.bytes.copy_within(from, to.start);
                machine.heap.space.states[to].iter_mut().for_each(|state| *state |= WRITTEN);
                argument(0)
            }
            "exit" => return Err(Stop::Exit(argument(0) as i32)),
            "abort" => {
                return Err(self.fault(machine, span, "The program called `abort`".to_owned(), Vec::new()));
            }
            "rand" => u64::from(self.random.number()),
            "srand" => {
                self.random = Random::new(argument(0) as u32);
                0
            }
            // A fixed time, so that a program gives the same result every time.
            "time" => 1_700_000_000,
            "strcmp" => {
                let (a, b) = (machine.heap.text(argument(0)), machine.heap.text(argument(1)));
                match a.cmp(&b) {
                    std::cmp::Ordering::Less => u64::MAX,
                    std::cmp::Ordering::Equal => 0,
                    std::cmp::Ordering::Greater => 1,
                }
            }
            "strlen" => machine.heap.text(argument(0)).map_or(0, |text| text.len() as u64),
            "atoi" => {
                leading_number(&machine.heap.text(argument(0)).unwrap_or_default()) as i32 as u32 as u64
            }
            "atol" | "atoll" => leading_number(&machine.heap.text(argument(0)).unwrap_or_default()) as u64,
            "atof" => leading_float(&machine.heap.text(argument(0)).unwrap_or_default()).to_bits(),
            "puts" => {
                let text = machine.heap.text(argument(0)).unwrap_or_default();
                machine.print(&text);
                machine.print("\n");
                0
            }
            "putchar" => {
                machine.print(&((argument(0) as u8) as char).to_string());
                argument(0)
            }
            name if name.starts_with("__emulator_put_") => {
                let text = match name {
                    "__emulator_put_text" => machine.heap.text(argument(0)).unwrap_or_default(),
                    _ => super::output::shown(name, operands),
                };
                let last = operands.len().saturating_sub(3);
                machine.print(&super::output::padded(&text, &operands[last..]));
                0
            }
            "fflush" | "getenv" => 0,
            "__emulator_out_of_range" => {
                let title = format!("`at({})` of a vector of {} elements", argument(0), argument(1));
                return Err(self.fault(machine, span, title, Vec::new()));
            }
            _ => return self.cuda(machine, call),
        })
    }

    /// Moves an allocation: the old memory is never used again, so that later accesses to it are found.
    fn reallocated(&mut self, machine: &mut Machine, call: Call) -> Result<u64, Stop> {
        let (old, size) = (call.argument(0), call.argument(1));
        let known = machine.heap.at(old).map(|number| &machine.heap.allocations[number]);
        let kept =
            known.filter(|known| known.owner == Owner::Host && !known.is_freed).map(|known| known.size);
        if old != 0 && kept.is_none() {
            self.release(machine, call, &[Owner::Host]);
            return Ok(0);
        }
        let Some(new) = machine.heap.allocate(size.max(1), Owner::Host, call.name, call.span) else {
            return Ok(0);
        };
        if let Some(kept) = kept {
            let (from, to) = ((old - space::HEAP) as usize, (new - space::HEAP) as usize);
            let range = from..from + kept.min(size) as usize;
            machine.heap.space.bytes.copy_within(range.clone(), to);
            machine.heap.space.states.copy_within(range, to);
            self.release(machine, call, &[Owner::Host]);
        }
        Ok(new)
    }
}

/// The number at the start of a string, as `atoi` reads it.
fn leading_number(text: &str) -> i64 {
    let text = text.trim_start();
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    let number = digits[..end].parse().unwrap_or(0);
    if text.starts_with('-') { -number } else { number }
}

/// The number at the start of a string, as `atof` reads it.
fn leading_float(text: &str) -> f64 {
    let text = text.trim_start();
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || "+-.".contains(c))).unwrap_or(text.len());
    (1..=end.min(400)).rev().find_map(|end| text[..end].parse().ok()).unwrap_or(0.0)
}
