//! Files that are refused while the others are looked at.

use crate::failure::Failure;
use crate::how::Color;
use crate::output;

/// What was refused, each told at once.
#[derive(Default)]
pub struct Refused {
    count: usize,
}

impl Refused {
    /// What there is; a refusal is told and counted.
    pub fn of<T>(&mut self, result: Result<T, Failure>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(failure) => {
                let colour = output::colour(Color::Auto, &std::io::stderr());
                crate::stderr(&failure.text(colour));
                self.count += 1;
                None
            }
        }
    }

    /// Whether anything was.
    pub fn any(&self) -> bool {
        self.count > 0
    }

    /// A line for the end of a table; nothing if nothing was.
    pub fn summary(&self) -> String {
        match self.count {
            0 => String::new(),
            1 => "refused: one file, said on standard error; its rows are not here\n".into(),
            n => format!("refused: {n} files, said on standard error; their rows are not here\n"),
        }
    }

    /// The end of the command.
    ///
    /// # Errors
    /// If anything was refused.
    pub fn end(&self) -> Result<(), Failure> {
        match self.count {
            0 => Ok(()),
            _ => Err(Failure::Told),
        }
    }
}
