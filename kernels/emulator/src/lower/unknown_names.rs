//! Errors about names that are not declared, with the similar ones that are.

use super::Lower;
use crate::source::{Error, Result};

impl Lower<'_> {
    pub fn unknown<T>(&self, name: &str) -> Result<T> {
        if super::builtins::is_known(name) {
            return self.error(format!("the function `{name}` can only be called"));
        }
        if let Some(why) = crate::source::headers::refused(name) {
            return self.error(format!("`{name}` is not part of the subset: {why}"));
        }
        if let Some(why) = crate::source::headers::refused_of_std(name) {
            return self.error(format!("`std::{name}` is not part of the subset; {why}"));
        }
        if let Some(header) = crate::source::headers::of_name(name) {
            let error = Error::new(self.span, format!("unknown name `{name}`"));
            return Err(error.help(format!("write `#include <{header}>`")));
        }
        let error = Error::new(self.span, format!("unknown name `{name}`")).label("not found in this scope");
        Err(match (crate::source::foreign::help(name), self.similar(name)) {
            (Some(help), _) => error.help(help),
            (None, Some(other)) => error.help(format!("did you mean `{other}`?")),
            (None, None) => error,
        })
    }

    /// A known name that differs by a letter or two.
    pub fn similar(&self, name: &str) -> Option<String> {
        let frame = self.frames.last()?;
        let local = frame.scopes.iter().flat_map(|scope| scope.keys());
        let global = self
            .tree
            .namespaces
            .iter()
            .flat_map(|namespace| namespace.functions.keys().chain(namespace.variables.keys()));
        let mut best: Option<(usize, String)> = None;
        let most = if name.len() < 6 { 1 } else { 2 };
        if name.len() < 3 {
            return None;
        }
        let variables = ["threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize"].map(str::to_owned);
        let built_in = super::builtins::names().chain(variables).filter(|known| known.len() >= 3);
        let all =
            local.chain(global).filter(|name| name.len() >= 3).map(|name| name.to_string()).chain(built_in);
        for known in all {
            let distance = distance(name, &known);
            let closer = best
                .as_ref()
                .is_none_or(|(least, text)| distance < *least || distance == *least && known < *text);
            if distance > 0 && distance <= most && closer {
                best = Some((distance, known));
            }
        }
        best.map(|(_, known)| known)
    }
}

/// The edit distance between two names.
pub(super) fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > 2 || a.len() > 40 {
        return 9;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut corner = row[0];
        row[0] = i;
        for j in 1..=b.len() {
            let change = corner + usize::from(a[i - 1] != b[j - 1]);
            corner = row[j];
            row[j] = change.min(row[j] + 1).min(row[j - 1] + 1);
        }
    }
    row[b.len()]
}
