//! Checks a value against a JSON schema. The tests of the command line use it as well.

use serde_json::Value;

/// Whether `value` fits, by the part of JSON Schema that the generated schemas use; any other
/// keyword is an error, and so is a key of an object that its schema does not describe: what is
/// written must be documented. `root` is where references begin.
///
/// # Errors
/// The first rule that is broken.
pub fn fits(root: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    let Some(object) = schema.as_object() else {
        return Ok(());
    };
    let items = || value.as_array().into_iter().flatten();
    for (keyword, rule) in object {
        let fits_all = |rules: &Value| {
            rules
                .as_array()
                .unwrap()
                .iter()
                .map(|r| fits(root, r, value))
                .collect::<Vec<_>>()
        };
        let good = match keyword.as_str() {
            "$schema" | "title" | "description" | "$defs" | "format" | "default" => true,
            "$ref" => {
                let pointer = rule.as_str().unwrap().trim_start_matches('#');
                return fits(root, root.pointer(pointer).unwrap(), value);
            }
            "type" => match rule {
                Value::Array(types) => types.iter().any(|t| has_type(t, value)),
                one => has_type(one, value),
            },
            "required" => rule
                .as_array()
                .unwrap()
                .iter()
                .all(|k| value.get(k.as_str().unwrap()).is_some()),
            "properties" => {
                for (key, rule) in rule.as_object().unwrap() {
                    value.get(key).map_or(Ok(()), |v| fits(root, rule, v))?;
                }
                let others = object.contains_key("additionalProperties");
                let keys = value.as_object().into_iter().flatten();
                let mut keys = keys.map(|(key, _)| key);
                match keys.find(|key| !others && rule.get(key).is_none()) {
                    Some(key) => return Err(format!("`{key}` is not described")),
                    None => true,
                }
            }
            "additionalProperties" => {
                value
                    .as_object()
                    .into_iter()
                    .flatten()
                    .try_for_each(|(_, v)| fits(root, rule, v))?;
                true
            }
            "items" => {
                items().try_for_each(|v| fits(root, rule, v))?;
                true
            }
            "minItems" => items().count() as u64 >= rule.as_u64().unwrap(),
            "maxItems" => items().count() as u64 <= rule.as_u64().unwrap(),
            "minimum" => value.as_f64().is_none_or(|v| v >= rule.as_f64().unwrap()),
            "maximum" => value.as_f64().is_none_or(|v| v <= rule.as_f64().unwrap()),
            "const" => rule == value,
            "enum" => rule.as_array().unwrap().contains(value),
            "anyOf" | "oneOf" => fits_all(rule).iter().any(Result::is_ok),
            other => return Err(format!("keyword `{other}` is not known here")),
        };
        if !good {
            return Err(format!("{value} breaks {keyword}: {rule}"));
        }
    }
    Ok(())
}

fn has_type(name: &Value, value: &Value) -> bool {
    match name.as_str().unwrap() {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    }
}
