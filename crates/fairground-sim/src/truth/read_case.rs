//! From the text of a `case.json` to a case that makes sense.

use super::case::{Case, FORMAT};
use super::limits;

/// What is wrong with a JSON file, behind the path of the key, if it is within one.
pub(super) fn placed(wrong: serde_path_to_error::Error<serde_json::Error>) -> String {
    let path = wrong.path().to_string();
    let what = wrong.into_inner();
    match path.as_str() {
        "." => what.to_string(),
        _ => format!("{path}: {what}"),
    }
}

impl Case {
    /// Reads a case.
    ///
    /// # Errors
    /// A sentence with the path of the key, line and column.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut json = serde_json::Deserializer::from_str(text);
        let case: Self = serde_path_to_error::deserialize(&mut json).map_err(placed)?;
        json.end().map_err(|e| e.to_string())?;
        let numbers = serde_json::from_str(text).map_err(|e| e.to_string())?;
        limits::small_numbers(&numbers)?;
        if case.format != FORMAT {
            return Err(format!("format: '{}' is not '{FORMAT}'", case.format));
        }
        limits::check(&case)?;
        Ok(case)
    }
}
