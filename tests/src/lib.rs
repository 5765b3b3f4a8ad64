//! Nothing here but tests, in `tests/`.
