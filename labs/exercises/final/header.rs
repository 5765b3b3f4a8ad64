//! What a student reads at the top of the file.

pub const HEADER: &str = "\
// The final assessment. Twelve faults are planted in this program: five make it wrong,
// two waste memory, three waste time, and two are data races.
//
";
