//! A device without a model, for programs whose time does not matter.

use super::device::{Answer, Card, Device};
use crate::ir::{Global, Program};
use crate::run::counters::Counters;
use crate::run::launch::Shape;

/// Its memory is unlimited, and its work takes no time.
#[derive(Default)]
pub struct Untimed {
    handles: u64,
}

impl Untimed {
    fn handle(&mut self) -> Answer<u64> {
        self.handles += 1;
        Ok(self.handles)
    }
}

impl Device for Untimed {
    fn card(&self) -> Card {
        let (name, memory) = ("Tesla T4 (emulated)".to_owned(), 15_655_829_504);
        Card { name, memory, major: 7, minor: 5, multiprocessors: 40, threads_of_multiprocessor: 1024 }
    }
    fn memory(&self) -> Answer<(u64, u64)> {
        Ok((self.card().memory, self.card().memory))
    }
    fn malloc(&mut self, _bytes: u64) -> Answer<u64> {
        Ok(0)
    }
    fn free(&mut self, _at: u64) -> Answer<()> {
        Ok(())
    }
    fn malloc_host(&mut self, _bytes: u64) -> Answer<u64> {
        Ok(0)
    }
    fn free_host(&mut self, _at: u64) -> Answer<()> {
        Ok(())
    }
    fn variable(&mut self, _variable: &Global) -> Answer<u64> {
        Ok(0)
    }
    fn write(&mut self, _stream: u64, _to: u64, _bytes: &[u8], _pinned: Option<u64>) -> Answer<()> {
        Ok(())
    }
    fn read(&mut self, _stream: u64, _from: u64, _bytes: &mut [u8], _pinned: Option<u64>) -> Answer<()> {
        Ok(())
    }
    fn copy(&mut self, _stream: u64, _to: u64, _from: u64, _bytes: u64) -> Answer<()> {
        Ok(())
    }
    fn set(&mut self, _stream: u64, _at: u64, _value: u8, _bytes: u64) -> Answer<()> {
        Ok(())
    }
    fn launch(&mut self, _: u64, _: &Program, _: Shape, _: &[u8], _: Option<&Counters>) -> Answer<()> {
        Ok(())
    }
    fn synchronize(&mut self, _stream: Option<u64>) -> Answer<()> {
        Ok(())
    }
    fn create_stream(&mut self, _is_blocking: bool) -> Answer<u64> {
        self.handle()
    }
    fn destroy_stream(&mut self, _stream: u64) -> Answer<()> {
        Ok(())
    }
    fn stream_has_run(&mut self, _stream: u64) -> Answer<bool> {
        Ok(true)
    }
    fn create_event(&mut self) -> Answer<u64> {
        self.handle()
    }
    fn destroy_event(&mut self, _event: u64) -> Answer<()> {
        Ok(())
    }
    fn record(&mut self, _event: u64, _stream: u64) -> Answer<()> {
        Ok(())
    }
    fn wait(&mut self, _stream: u64, _event: u64) -> Answer<()> {
        Ok(())
    }
    fn synchronize_event(&mut self, _event: u64) -> Answer<()> {
        Ok(())
    }
    fn event_has_run(&mut self, _event: u64) -> Answer<bool> {
        Ok(true)
    }
    fn elapsed(&mut self, _start: u64, _end: u64) -> Answer<f32> {
        Ok(0.0)
    }
}
