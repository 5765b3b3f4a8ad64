//! A name is found wherever the compiler sees it, and nowhere else: in random texts of which one knows what the compiler sees.

use exercises::rules;

/// The compiler sees the name in these.
const SEEN: [&str; 4] = ["unsafe", "r#unsafe", "unsafe{}", "\"\"r\"\\\" \" unsafe"];

/// And not in these, each of which is a whole token or a whole comment.
const HIDDEN: [&str; 22] = [
    "\"unsafe\"",
    "\"\\\" unsafe \\\\\"",
    "\"\n unsafe \\\n \"",
    "r\"unsafe\\\"",
    "r#\"\" unsafe \"#",
    "br##\"\"# unsafe\"##",
    "cr\"unsafe\"",
    "b\"unsafe\\\"\"",
    "c\"unsafe\"",
    // A suffix.
    "\"\"unsafe",
    "'x'unsafe",
    "b'\"'unsafe",
    "1unsafe",
    "0x1unsafe",
    "1.0unsafe",
    // Lifetimes.
    "'unsafe",
    "'r#unsafe",
    "// unsafe \" ' /*\n",
    "// \r unsafe\r\n",
    "/// unsafe\n",
    "/* unsafe \" ' /* */ // */",
    "/** unsafe\n */",
];

/// What surrounds them, with all that may confuse a reader.
const OTHER: [&str; 20] = [
    "\"\"r\"\\\" \"",
    "'\"'",
    "b'\"'",
    "'\\''",
    "'\\u{22}'",
    "'\\\\'",
    "'a",
    "'static",
    "b\"\\\"\"",
    "1e3",
    "1..",
    "::",
    "#",
    "x",
    "é",
    "{",
    "}",
    "!",
    "r#type",
    "_",
];

/// Blanks of Rust, and no others.
const BLANKS: [&str; 12] = [
    " ", "\n", "\t", "\r\n", "\r", "\u{b}", "\u{c}", "\u{85}", "\u{200e}", "\u{200f}", "\u{2028}", "\u{2029}",
];

/// Random numbers that are the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }

    fn of<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len())]
    }
}

#[test]
fn a_name_is_found_where_the_compiler_sees_it_and_on_its_line() {
    let mut random = Random(1);
    let mut found = 0;
    for _ in 0..10_000 {
        let mut text = "x".to_owned();
        let mut line = None;
        for _ in 0..2 + random.below(10) {
            text += random.of(&BLANKS);
            let kind = random.below(16);
            if kind == 0 && line.is_none() {
                line = Some(1 + text.matches('\n').count() as u32);
            }
            text += random.of(match kind {
                0 => &SEEN,
                1..8 => &HIDDEN,
                _ => &OTHER,
            });
        }
        let refused = rules::check("02-batch", &text, true).err().map(|diagnosis| diagnosis.line);
        assert_eq!(refused, line.map(Some), "{text:?}");
        found += usize::from(line.is_some());
    }
    assert!((3000..7000).contains(&found), "{found}");
}
