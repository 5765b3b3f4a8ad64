//! The CUDA C++ sources (`*.cu`) of every kernel the tensor crate launches on a real GPU, embedded as
//! text. None is written yet: so far the tensor crate computes on the CPU.
