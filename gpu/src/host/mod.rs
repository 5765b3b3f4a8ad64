//! The host that drives a GPU: its clock, memory and profile, and the context of each thread.

#[cfg(test)]
mod figure_tests;
pub mod host_context;
pub mod host_memory;
pub mod host_profile;
pub mod named_device;
pub mod scope;
pub mod thread;
pub mod time;
