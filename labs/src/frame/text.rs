//! A text with figures: `Epoch [1/3], Loss: 0.7559` prints as one line, but its loss stays a number.

use std::cell::RefCell;
use std::fmt::{self, Display, Write};

use super::figure::Figure;

/// Prose is wrapped at this width in every terminal, so that all readers see the same text.
pub(crate) const WIDTH: usize = 80;

/// Words and figures in reading order. Made from a string, or by [`text!`](crate::text!).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Text {
    pub parts: Vec<Part>,
    /// Whether times decided this text.
    pub raced: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    Words(String),
    Figure(Figure),
}

/// `format!` for a [`Text`]: each `{}` takes a [`Figure`], and `{:.2}` also sets its digits. All other values are
/// captured by name.
///
/// ```
/// use labs::{exact, text};
/// let (epoch, epochs, loss) = (1, 3, 0.755907);
/// let line = text!("Epoch [{epoch}/{epochs}], Loss: {:.4}", exact("loss", loss));
/// assert_eq!(line.printed(), "Epoch [1/3], Loss: 0.7559");
/// assert_eq!(line.figures().next(), Some(&exact("loss", 0.755907)));
/// ```
#[macro_export]
macro_rules! text {
    ($format:literal $(, $figure:expr)* $(,)?) => {{
        let figures = ::std::cell::RefCell::new(::std::vec::Vec::new());
        let template = ::std::format!($format $(, $crate::Slot::new($figure, &figures))*);
        $crate::Text::assemble(&template, figures.into_inner())
    }};
}

impl Text {
    /// Marks a text that times decided, so that it may differ on another machine.
    pub fn raced(self) -> Text {
        Text { raced: true, ..self }
    }

    pub fn printed(&self) -> String {
        let printed = |part: &Part| match part {
            Part::Words(words) => words.clone(),
            Part::Figure(figure) => figure.printed(),
        };
        self.parts.iter().map(printed).collect()
    }

    pub fn figures(&self) -> impl Iterator<Item = &Figure> {
        self.parts.iter().filter_map(|part| match part {
            Part::Figure(figure) => Some(figure),
            Part::Words(_) => None,
        })
    }

    pub(crate) fn figures_mut(&mut self) -> impl Iterator<Item = &mut Figure> {
        self.parts.iter_mut().filter_map(|part| match part {
            Part::Figure(figure) => Some(figure),
            Part::Words(_) => None,
        })
    }

    #[doc(hidden)]
    pub fn assemble(template: &str, figures: Vec<Figure>) -> Text {
        let mut figures = figures.into_iter();
        let mut parts = Vec::new();
        for (gap, words) in template.split(PLACE).enumerate() {
            if gap > 0 {
                parts.extend(figures.next().map(Part::Figure));
            }
            if !words.is_empty() {
                parts.push(Part::Words(words.to_owned()));
            }
        }
        Text { parts, raced: false }
    }
}

impl From<String> for Text {
    fn from(words: String) -> Text {
        Text { parts: vec![Part::Words(words)], raced: false }
    }
}

impl From<&str> for Text {
    fn from(words: &str) -> Text {
        Text::from(words.to_owned())
    }
}

/// U+FFFC, the Unicode object replacement character, which no text of ours contains.
const PLACE: char = '\u{FFFC}';

/// Replaces a figure while `format!` runs: writes [`PLACE`] to the string and the figure to a list.
#[doc(hidden)]
pub struct Slot<'a> {
    figure: Figure,
    figures: &'a RefCell<Vec<Figure>>,
}

impl<'a> Slot<'a> {
    pub fn new(figure: Figure, figures: &'a RefCell<Vec<Figure>>) -> Slot<'a> {
        Slot { figure, figures }
    }
}

impl Display for Slot<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut figure = self.figure.clone();
        if let Some(digits) = f.precision() {
            figure.digits = u8::try_from(digits).unwrap_or(u8::MAX);
        }
        self.figures.borrow_mut().push(figure);
        f.write_char(PLACE)
    }
}
