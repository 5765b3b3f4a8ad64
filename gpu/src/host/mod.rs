//! The host that calls a GPU: its clock, memory and profile, and what each thread has of it.

pub mod ambient;
pub mod current_stream;
pub mod host_memory;
pub mod host_profile;
pub mod named_device;
pub mod scope;
pub mod thread;
pub mod time;
