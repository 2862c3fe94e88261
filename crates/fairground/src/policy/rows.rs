//! How the rows of the table of decision points are written.

pub(super) fn switch(value: &str) -> Option<bool> {
    match value {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    }
}

pub(super) const fn on_off(value: bool) -> &'static str {
    if value { "on" } else { "off" }
}

/// A decision that is one of a few named values.
macro_rules! named {
    ($name:literal, $what:literal, $values:literal, $f:ident, $place:expr,
     $($text:literal => $value:expr),+ $(,)?) => {
        Decision {
            name: $name,
            what: $what,
            values: $values,
            get: |$f| {
                $(if $place == $value { return $text.to_string(); })+
                String::new()
            },
            set: |$f, v| {
                match v {
                    $($text => $place = $value,)+
                    _ => return false,
                }
                true
            },
        }
    };
}

/// A decision that is a switch.
macro_rules! flag {
    ($name:literal, $what:literal, $f:ident, $place:expr) => {
        Decision {
            name: $name,
            what: $what,
            values: "on, off",
            get: |$f| on_off($place).to_string(),
            set: |$f, v| switch(v).map(|on| $place = on).is_some(),
        }
    };
}

/// A decision that is a number within limits.
macro_rules! number {
    ($name:literal, $what:literal, $values:literal, $range:expr, $f:ident, $place:expr) => {
        Decision {
            name: $name,
            what: $what,
            values: $values,
            get: |$f| $place.to_string(),
            set: |$f, v| match v.parse() {
                Ok(n) if $range.contains(&n) => {
                    $place = n;
                    true
                }
                _ => false,
            },
        }
    };
}

pub(super) use {flag, named, number};
