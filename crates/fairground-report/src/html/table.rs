//! Tables of the page.

use serde::Serialize;

/// A table.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Table {
    /// Anchor.
    pub id: String,
    /// What it is.
    pub caption: String,
    /// What to know about it.
    pub note: String,
    /// Heads.
    pub columns: Vec<Column>,
    /// Body.
    pub rows: Vec<Row>,
}

/// Head of a column.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Column {
    /// Its words.
    pub text: String,
    /// Longer words, shown when pointed at.
    pub title: String,
    /// Numbers stand right.
    pub right: bool,
    /// Left out on narrow screens.
    pub wide: bool,
}

/// A row.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Row {
    /// One for each column.
    pub cells: Vec<Cell>,
    /// The next row is about the same thing.
    pub joined: bool,
}

/// A cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Cell {
    /// What is shown.
    pub text: String,
    /// The exact value of what is shown, as the shortest decimal that reads back as it.
    pub value: Option<String>,
    /// Longer words, shown when pointed at.
    pub title: String,
    /// Class of its look.
    pub class: String,
    /// An interval, drawn.
    pub bar: Option<Bar>,
}

/// An interval as a drawing: 0 to 100 from left to right, no change in the middle.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Bar {
    /// Left end.
    pub x: String,
    /// Width.
    pub width: String,
    /// The mean.
    pub at: String,
}

impl From<Vec<Cell>> for Row {
    fn from(cells: Vec<Cell>) -> Self {
        Self {
            cells,
            joined: false,
        }
    }
}

impl Column {
    /// Of words.
    #[must_use]
    pub fn left(text: &str) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    /// Of numbers.
    #[must_use]
    pub fn right(text: &str) -> Self {
        Self {
            right: true,
            ..Self::left(text)
        }
    }

    /// With longer words.
    #[must_use]
    pub fn title(self, title: &str) -> Self {
        Self {
            title: title.into(),
            ..self
        }
    }

    /// For wide screens only.
    #[must_use]
    pub fn wide(self) -> Self {
        Self { wide: true, ..self }
    }
}

impl Cell {
    /// Words.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    /// A number as `text`.
    #[must_use]
    pub fn number(value: Option<f64>, text: String) -> Self {
        Self {
            text,
            value: value.filter(|v| v.is_finite()).map(|v| v.to_string()),
            ..Self::default()
        }
    }

    /// With a class.
    #[must_use]
    pub fn class(self, class: &str) -> Self {
        Self {
            class: class.into(),
            ..self
        }
    }

    /// With longer words.
    #[must_use]
    pub fn title(self, title: &str) -> Self {
        Self {
            title: title.into(),
            ..self
        }
    }
}

impl Bar {
    /// An interval of changes in percent on a scale from `-most` to `most`; what is beyond is cut.
    #[must_use]
    pub fn of(interval: [f64; 2], mean: f64, most: f64) -> Self {
        let place = |pct: f64| 50.0 + 50.0 * (pct / most).clamp(-1.0, 1.0);
        let [lo, hi] = interval.map(place);
        Self {
            x: format!("{lo:.2}"),
            // A narrow interval is still to be seen.
            width: format!("{:.2}", (hi - lo).max(0.8)),
            at: format!("{:.2}", place(mean)),
        }
    }
}
