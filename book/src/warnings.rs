//! Captures mdBook's warnings, so that they can fail the build.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

#[derive(Clone, Default)]
pub struct Warnings {
    kept: Arc<Mutex<Vec<String>>>,
}

impl Warnings {
    pub fn during<T>(work: impl FnOnce() -> T) -> (T, Vec<String>) {
        let warnings = Warnings::default();
        let done = tracing::subscriber::with_default(warnings.clone(), work);
        let kept = warnings.kept.lock().unwrap_or_else(PoisonError::into_inner).clone();
        (done, kept)
    }
}

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata) -> bool {
        *metadata.level() <= Level::WARN && metadata.target().starts_with("mdbook")
    }

    fn event(&self, event: &Event) {
        let mut message = Message::default();
        event.record(&mut message);
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).push(message.text);
    }

    fn new_span(&self, _: &Attributes) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[derive(Default)]
struct Message {
    text: String,
}

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            self.text = format!("{value:?}");
        }
    }
}
