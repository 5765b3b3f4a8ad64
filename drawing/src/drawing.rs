//! A picture in all its forms.

/// A picture for pages, and its text form for terminals if there is one.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawing {
    pub svg: String,
    /// The form for a phone, if the text of the other would be too small to read there.
    pub narrow: Option<String>,
    pub text: Option<String>,
}

/// The width of a picture on a page, and on a phone. A page enlarges it, a phone does not.
const WIDTHS: [f64; 2] = [600.0, 320.0];
/// The number of terminal columns of a picture.
pub(crate) const COLUMNS: usize = 80;

impl Drawing {
    /// Draws the picture twice: for a page and for a phone.
    pub(crate) fn of(draw: impl Fn(f64) -> String) -> Drawing {
        let [svg, narrow] = WIDTHS.map(draw);
        Drawing { svg, narrow: Some(narrow), text: None }
    }

    /// Adds the text form for a terminal.
    pub(crate) fn with_text(self, text: String) -> Drawing {
        Drawing { text: Some(text), ..self }
    }
}

/// Whether a picture of this width is for a phone.
pub(crate) fn is_narrow(width: f64) -> bool {
    width < WIDTHS[0]
}

/// A picture with no text form.
impl From<String> for Drawing {
    fn from(svg: String) -> Drawing {
        Drawing { svg, narrow: None, text: None }
    }
}
