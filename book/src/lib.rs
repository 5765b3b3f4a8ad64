//! The book: its chapters, the preprocessor that puts tested code and output into them, the builder and
//! the local server. No chapter is written yet.
