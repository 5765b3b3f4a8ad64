//! Programs beside the labs, and what a page lets its reader try: they run labs, or look at the same machines.

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
