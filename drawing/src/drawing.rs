//! A picture in all its forms.

/// A picture for pages, and the same for terminals if it can be drawn in letters.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawing {
    pub svg: String,
    /// The same for a phone, if the letters of the other could not be read there.
    pub narrow: Option<String>,
    pub text: Option<String>,
}

/// How wide a picture is on a page, and how wide on a phone. The one is drawn larger than that, the other as it is.
const WIDTHS: [f64; 2] = [600.0, 320.0];
/// Columns of a terminal that a picture takes.
pub(crate) const COLUMNS: usize = 80;

impl Drawing {
    /// Drawn twice: for a page, and for a phone.
    pub(crate) fn of(draw: impl Fn(f64) -> String) -> Drawing {
        let [svg, narrow] = WIDTHS.map(draw);
        Drawing { svg, narrow: Some(narrow), text: None }
    }

    /// With what a terminal shows.
    pub(crate) fn with_text(self, text: String) -> Drawing {
        Drawing { text: Some(text), ..self }
    }
}

/// Whether a picture of this width is for a phone.
pub(crate) fn is_narrow(width: f64) -> bool {
    width < WIDTHS[0]
}

/// What can only be drawn.
impl From<String> for Drawing {
    fn from(svg: String) -> Drawing {
        Drawing { svg, narrow: None, text: None }
    }
}
