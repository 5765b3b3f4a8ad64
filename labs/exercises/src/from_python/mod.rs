//! Compile errors of programmers who come from Python: explains the idea behind an error, and gives the corrected line.
//!
//! [`KINDS`] is the table. Each kind recognises its errors by the compiler's message and by the student's text, and
//! corrects that text. An error that is not clearly of a kind keeps the compiler's message.

mod arguments;
mod blocks;
mod grammar;
pub mod imports;
mod names;
mod numbers;
mod owners;
mod results;
mod returned;
mod source;
mod tensors;
mod types;
mod words;

use std::ops::Range;

use crate::compile_error::{CompileError, Edit};
use crate::verdict::Diagnosis;
use source::Source;

/// A kind of mistake.
pub struct Kind {
    pub id: &'static str,
    /// Half a sentence: "a `?` is missing".
    pub says: &'static str,
    /// The difference from Python.
    pub idea: &'static str,
    find: fn(&CompileError, &Source) -> Option<Mistake>,
}

/// The place of a mistake, and edits that fix it. Without edits, only the student knows the right line.
pub struct Mistake {
    at: usize,
    edits: Vec<Edit>,
}

/// The explanation of a mistake.
pub struct Explained {
    pub kind: &'static Kind,
    pub line: u32,
    /// The student's line.
    pub wrong: String,
    /// The corrected lines.
    pub right: Vec<String>,
    /// The whole corrected file.
    pub mended: String,
}

/// An error is explained by the first kind that recognises it.
pub const KINDS: [Kind; 26] = [
    Kind {
        id: "comment",
        says: "a comment begins with `//`",
        idea: "In Rust `#` begins an attribute, such as `#[test]`. Comments begin with `//`.",
        find: grammar::comment,
    },
    Kind {
        id: "closure",
        says: "code that you pass to a function needs `||` in front",
        idea: "`with torch.no_grad():` is a function in Rust. Its argument is a closure, the code to run: \
               `no_grad(|| model.forward(&x))?`. Python's `lambda x: …` is `|x| …`.",
        find: blocks::closure,
    },
    Kind {
        id: "block",
        says: "a block needs braces",
        idea: "Rust ignores indentation. A block begins with `{`, without a colon, and ends with `}`. `elif` is \
               `else if`. A function begins with `fn`, and states the types of its arguments and of its result.",
        find: blocks::block,
    },
    Kind {
        id: "logic",
        says: "logic is written with `&&`, `||`, and `!`",
        idea: "`&&` is Python's `and`, `||` is `or`, `!` is `not`, and `==` is `is`.",
        find: grammar::logic,
    },
    Kind {
        id: "tuple",
        says: "a tuple needs parentheses",
        idea: "Several values at once are a tuple: `(x, y)`, on both sides of the `=`. A batch from a \
               `DataLoader` is an array instead: `[x, y]`.",
        find: grammar::tuple,
    },
    Kind {
        id: "word",
        says: "this is Python's word, not Rust's",
        idea: "Rust says `true` for `True`, `println!(\"{x}\")` for `print(x)`, `x.len()` for `len(x)`, `0..n` \
               for `range(n)`, `list.push(x)` for `list.append(x)`, `use` for `import`, and `drop(x)` for `del \
               x`.",
        find: words::python,
    },
    Kind {
        id: "text",
        says: "a string needs double quotes and no `f`",
        idea: "Single quotes hold one character. `println!` and `format!` fill in `{x}` as an f-string does, and \
               their first argument must be a string. Print a list with `{x:?}`.",
        find: grammar::text,
    },
    Kind {
        id: "keyword",
        says: "Rust has no keyword arguments",
        idea: "Arguments go by position. A function with many settings takes a struct of options, in which \
               `..Default::default()` stands for the settings that you leave alone.",
        find: arguments::keyword,
    },
    Kind {
        id: "pair",
        says: "options stand in a pair with the last argument",
        idea: "Most calls leave the options out. If you need some, they come in parentheses with the last argument: \
               `Tensor::zeros((&[2, 3], device))?`, `scores.cross_entropy((&y, options))?`.",
        find: arguments::unpaired,
    },
    Kind {
        id: "device",
        says: "a device is not a string",
        idea: "Devices are `Device::Cpu`, `Device::cuda(0)`, and the `device` that your function is given. \
               `Device::cuda_if_available()` is a GPU if there is one.",
        find: tensors::device,
    },
    Kind {
        id: "path",
        says: "a path is written with `::`, not with dots",
        idea: "A dot leads to a method of a value; `::` leads into a module or a type. Nothing begins with \
               `torch`: it is `Tensor::randn`, `nn::Linear::new`, and `cuda::synchronize`.",
        find: names::path,
    },
    Kind {
        id: "call",
        says: "a model or a type cannot be called",
        idea: "Call a method of the model instead: `model.forward(&x)?`. A type has a function that makes a \
               value: `nn::Linear::new(3, 1)?`, or `nn::MSELoss::default()` for the usual settings.",
        find: names::called,
    },
    Kind {
        id: "import",
        says: "a `use` is missing",
        idea: "`use todevice::prelude::*;` brings in the names that nearly every program needs. Any other name \
               needs its own `use` at the top of the file, like an `import`.",
        find: imports::missing,
    },
    Kind {
        id: "let",
        says: "a `let` is missing",
        idea: "`let` makes a variable; `=` alone changes one that exists. A second `let` with the same name \
               makes a new variable, possibly of another type: `let x = x.to(device)?;`.",
        find: owners::undeclared,
    },
    Kind {
        id: "parentheses",
        says: "a method call needs parentheses",
        idea: "Many of PyTorch's attributes are methods here: `x.shape()`, `x.device()`, `p.grad()`. A method is \
               called with parentheses, even without arguments.",
        find: names::uncalled,
    },
    Kind {
        id: "no-question-mark",
        says: "this `?` is not needed",
        idea: "`?` belongs after a call that returns a `Result`. This call cannot fail, so it returns the value \
               itself.",
        find: returned::needless,
    },
    Kind {
        id: "ok",
        says: "a `Result` must be returned",
        idea: "A function or closure that uses `?` returns a `Result`. Its value is its last expression, without \
               a semicolon: `Ok(value)`, or `Ok(())` if there is nothing to return.",
        find: returned::not_returned,
    },
    Kind {
        id: "question-mark",
        says: "a `?` is missing",
        idea: "A call that can fail returns a `Result`: the value or an error. `?` takes out the value, or \
               returns the error to the caller. Nearly everything that a tensor does can fail, even `+`.",
        find: results::missing,
    },
    Kind {
        id: "number",
        says: "numbers of different types do not mix",
        idea: "Rust never converts a number silently: `2` is an integer, `2.0` is a float, and a length is a \
               `usize`. Write the `.0`, or convert with `as f64` or `as usize`.",
        find: numbers::mixed,
    },
    Kind {
        id: "operator",
        says: "there is no such operator here",
        idea: "Tensors have `+`, `-`, `*`, and `/`, which return a `Result`. `x += y` is `x = (&x + &y)?`, `x ** \
               2` is `x.pow(2.0)?`, `a @ b` is `a.matmul(&b)?`, `x[0]` is `x.get(0)?`, and the number in a loss \
               is `loss.item()?`.",
        find: tensors::operator,
    },
    Kind {
        id: "moved",
        says: "the value has moved",
        idea: "Each value has one owner. Assigning it, or passing it on without `&`, gives it away. Lend it with \
               `&`, or keep a `.clone()`: the clone of a tensor copies no numbers, and both names share them, as \
               in Python.",
        find: owners::moved,
    },
    Kind {
        id: "borrow",
        says: "a `&` is missing",
        idea: "The function only needs to look at the value. `&x` lends it `x`, and you still have `x` \
               afterwards. Python lends everything, so it needs no sign.",
        find: owners::not_lent,
    },
    Kind {
        id: "no-borrow",
        says: "this `&` is not needed",
        idea: "The function takes the value itself, as all functions take their options: \
               `optim::SGD::new(parameters, options)?`. If you need the value again, pass on a `.clone()`.",
        find: owners::lent,
    },
    Kind {
        id: "borrow-mut",
        says: "a `&mut` is missing",
        idea: "`&` lends a value to be read, and `&mut` lends it to be changed. The function and its caller both \
               say so: `scaler.step(&mut optimizer)?`.",
        find: owners::not_lent_mutably,
    },
    Kind {
        id: "mut",
        says: "a `mut` is missing",
        idea: "A variable cannot change unless its `let` says `mut`. Methods that change a value, such as `push` \
               and `step`, need it too.",
        find: owners::not_mutable,
    },
    Kind {
        id: "semicolon",
        says: "a `;` is missing",
        idea: "A line break does not end a statement in Rust; a `;` does. Only the last expression of a block, \
               which is the value of the block, goes without.",
        find: grammar::unended,
    },
];

/// Explains the first error in a student's text, if it is of a known kind.
pub fn explain(text: &str, errors: &[&CompileError]) -> Option<Explained> {
    let source = Source::new(text);
    let found =
        |error: &CompileError| KINDS.iter().find_map(|kind| Some((kind, (kind.find)(error, &source)?)));
    // After a syntax error the compiler guesses, so later errors may only be consequences.
    let is_grammar = errors.iter().any(|error| error.code().is_empty());
    let errors =
        errors.iter().filter(|error| !is_grammar || error.code().is_empty() || error.code() >= "E0758");
    let found = errors.map(|error| (error, found(error)));
    let found = found.map(|(error, found)| {
        let line = found.as_ref().map_or(error.line(), |(_, mistake)| source.line(mistake.at));
        (line, found)
    });
    let mut found: Vec<_> = found.collect();
    // Consequences of a mistake are often reported before it.
    found.sort_by_key(|(line, _)| *line);
    let mut found = found.into_iter();
    let (line, first) = found.next()?;
    let (kind, mut mistake) = first?;
    // Another error of this kind on the same line. All `use` lines count as one place.
    let is_import = kind.id == "import";
    for (_, other) in found.take_while(|(other, _)| *other == line || is_import) {
        // Converting a value to a result is done only once.
        let is_same = |other: &Kind| other.id == kind.id && kind.id != "ok";
        if let Some((_, other)) = other.filter(|(other, _)| is_same(other)) {
            mistake = mistake.and(other);
        }
    }
    let (mended, right) = source.edited(&mistake.edits);
    let wrong = source.slice(source.line_range(mistake.at)).trim().to_owned();
    Some(Explained { kind, line, wrong, right, mended })
}

impl Explained {
    /// The diagnosis for a verdict.
    pub fn diagnosis(&self) -> Diagnosis {
        let right: Vec<String> = self.right.iter().map(|line| format!("`{line}`")).collect();
        Diagnosis::new(
            &format!("compile-{}", self.kind.id),
            format!("It does not compile: {}.", self.kind.says),
        )
        .seen(format!("`{}`", self.wrong))
        .expected(right.join(" "))
        .idea(self.kind.idea)
        .at(Some(self.line))
    }
}

impl Mistake {
    fn at(at: usize) -> Mistake {
        Mistake { at, edits: Vec::new() }
    }

    /// A mistake at the first of some edits.
    fn of(edits: Vec<Edit>) -> Mistake {
        let at = edits.iter().map(|(range, _)| range.start).min().unwrap_or(0);
        Mistake { at, edits }
    }

    /// Adds an edit that inserts a text.
    fn edit(self, at: usize, text: impl Into<String>) -> Mistake {
        self.replace(at..at, text)
    }

    fn replace(mut self, range: Range<usize>, text: impl Into<String>) -> Mistake {
        let text = text.into();
        if !range.is_empty() || !text.is_empty() {
            self.edits.push((range, text));
        }
        self
    }

    fn all(mut self, edits: Vec<Edit>) -> Mistake {
        self.edits.extend(edits);
        self
    }

    /// Combines two mistakes. Duplicate edits are applied once, and overlapping ones are dropped.
    fn and(mut self, other: Mistake) -> Mistake {
        for edit in other.edits {
            let (range, _) = &edit;
            let overlaps = |(known, _): &Edit| known.start < range.end && range.start < known.end;
            if !self.edits.contains(&edit) && !self.edits.iter().any(overlaps) {
                self.edits.push(edit);
            }
        }
        self
    }
}
