//! Programs that run labs or examine the same machines, and the experiments of pages.

#[cfg(not(target_family = "wasm"))]
pub mod calibrate;
pub mod doctor;
pub mod model;
#[cfg(not(target_family = "wasm"))]
mod report;
#[cfg(not(target_family = "wasm"))]
pub mod sensitivity;
#[cfg(not(target_family = "wasm"))]
pub mod verify;
pub mod what_if;
