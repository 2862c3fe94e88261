//! Keys of results that must be there, though their value may be `null`.

use serde::{Deserialize, Deserializer};

/// Reads an optional value whose key must be there.
pub(crate) fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    input: D,
) -> Result<Option<T>, D::Error> {
    Option::deserialize(input)
}

/// Makes every key required that has no default: `null` is a value, a missing key a mistake.
pub(crate) fn require_keys(schema: &mut schemars::Schema) {
    let Some(properties) = schema.get("properties").and_then(|p| p.as_object()) else {
        return;
    };
    let has_default = |rule: &serde_json::Value| rule.get("default").is_some();
    let keys = properties
        .iter()
        .filter(|(_, rule)| !has_default(rule))
        .map(|(key, _)| key.clone());
    let keys: Vec<String> = keys.collect();
    schema.insert("required".into(), keys.into());
}
