//! What a lab said, as the tests of labs look at it. Each uses what it needs.
#![allow(dead_code)]

use labs::{Event, Value, render_text, without_measured};

/// What is printed, with `…` for every figure that a real clock gave.
pub fn shown(events: &[Event]) -> String {
    render_text::render(&without_measured(events))
}

/// The values of the figures of a name, in order.
pub fn numbers(events: &[Event], name: &str) -> Vec<f64> {
    let figures = events.iter().flat_map(Event::figures).filter(|figure| figure.name == name);
    let values = figures.map(|figure| match figure.value {
        Value::Int(count) => count as f64,
        Value::Float(value) => value,
        Value::Text(_) => panic!("{name} is no number"),
    });
    values.collect()
}

/// The pictures, as a page has them.
pub fn pictures(events: &[Event]) -> Vec<&str> {
    let pictures = events.iter().filter_map(|event| match event {
        Event::Picture { drawing, .. } => Some(drawing.svg.as_str()),
        _ => None,
    });
    pictures.collect()
}
