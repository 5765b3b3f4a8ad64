//! Tests of the emulator, in one binary.

mod course;
