//! The files a student edits, one binary each. Nothing depends on this package: a syntax error in an
//! exercise must not stop the course from building. No exercise is written yet.
