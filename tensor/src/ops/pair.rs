use std::fmt;

use crate::options::AndOptions;

/// A value for both height and width, or one for each: `2.into()`, `(3, 2).into()`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pair<T = usize> {
    /// The same value for height and width.
    Both(T),
    /// The value for the height, then for the width.
    Each(T, T),
}

impl<T: Copy> Pair<T> {
    /// Returns the values for height and width.
    pub fn values(self) -> [T; 2] {
        match self {
            Pair::Both(value) => [value; 2],
            Pair::Each(height, width) => [height, width],
        }
    }
}

impl<T> From<T> for Pair<T> {
    fn from(value: T) -> Pair<T> {
        Pair::Both(value)
    }
}

impl<T> From<(T, T)> for Pair<T> {
    fn from((height, width): (T, T)) -> Pair<T> {
        Pair::Each(height, width)
    }
}

impl<O: Default> AndOptions<Pair, O> for usize {
    fn split(self) -> (Pair, O) {
        (self.into(), O::default())
    }
}

impl<O: Default> AndOptions<Pair, O> for (usize, usize) {
    fn split(self) -> (Pair, O) {
        (self.into(), O::default())
    }
}

impl<O: Default> AndOptions<Pair, O> for Pair {
    fn split(self) -> (Pair, O) {
        (self, O::default())
    }
}

/// A known size, where `None` is also possible.
impl From<usize> for Pair<Option<usize>> {
    fn from(size: usize) -> Pair<Option<usize>> {
        Pair::Both(Some(size))
    }
}

impl From<(usize, usize)> for Pair<Option<usize>> {
    fn from((height, width): (usize, usize)) -> Pair<Option<usize>> {
        Pair::Each(Some(height), Some(width))
    }
}

/// As Python prints it: `2`, `(3, 2)`.
impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pair::Both(value) => write!(f, "{value}"),
            Pair::Each(height, width) => write!(f, "({height}, {width})"),
        }
    }
}

impl fmt::Display for Pair<Option<usize>> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |size: &Option<usize>| size.map_or("None".to_string(), |size| size.to_string());
        match self {
            Pair::Both(size) => f.write_str(&text(size)),
            Pair::Each(height, width) => write!(f, "({}, {})", text(height), text(width)),
        }
    }
}
