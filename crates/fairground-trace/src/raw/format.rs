//! A tracepoint's format file (`events/sched/NAME/format`).

/// Where a field is in a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Field {
    /// From the record's beginning, bytes.
    pub offset: usize,
    /// Bytes.
    pub size: usize,
    /// It says where the text is (`__data_loc`), not what it is.
    pub located: bool,
}

/// A format file, read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Format {
    /// Name of the tracepoint.
    pub name: String,
    /// Its number in records.
    pub id: u32,
    /// Fields by name.
    pub fields: Vec<(String, Field)>,
    /// Letter of each bit of `prev_state`, from the print format.
    pub state_letters: [u8; 16],
}

impl Format {
    /// Reads a format file; `None` without a name and a number.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut format = Self::default();
        let mut has_id = false;
        for line in text.lines() {
            let line = line.trim();
            if let Some(name) = line.strip_prefix("name:") {
                format.name = name.trim().to_string();
            } else if let Some(id) = line.strip_prefix("ID:") {
                format.id = id.trim().parse().ok()?;
                has_id = true;
            } else if let Some(field) = line.strip_prefix("field:") {
                format.fields.extend(parse_field(field));
            } else if let Some(print) = line.strip_prefix("print fmt:") {
                format.state_letters = letters(print);
            }
        }
        (has_id && !format.name.is_empty()).then_some(format)
    }

    /// A field by name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<Field> {
        let found = self.fields.iter().find(|(n, _)| n == name);
        found.map(|(_, field)| *field)
    }
}

/// `char prev_comm[16]; offset:8; size:16; signed:0;`, with tabs between.
pub fn parse_field(text: &str) -> Option<(String, Field)> {
    let mut parts = text.split(';').map(str::trim);
    let declaration = parts.next()?;
    let mut number = |key: &str| -> Option<usize> {
        let value = parts.next()?.strip_prefix(key)?;
        value.trim().parse().ok().filter(|n| *n <= 1 << 20)
    };
    let (offset, size) = (number("offset:")?, number("size:")?);
    let before = declaration.split('[').next()?;
    let located = declaration.contains("__data_loc");
    // `__data_loc char[] comm` has its name behind the brackets.
    let name = if located { declaration } else { before };
    let name = name.split_whitespace().last()?.trim_start_matches('*');
    let field = Field {
        offset,
        size,
        located,
    };
    Some((name.to_string(), field))
}

/// From `{ 0x0001, "S" }, { 0x0002, "D" }`; the letters of a newer kernel if there are none.
fn letters(print: &str) -> [u8; 16] {
    let mut letters = [0; 16];
    let mut any = false;
    for pair in print.split('{').skip(1) {
        let mut words = pair.split(['}', ',']).map(str::trim);
        let bits = words.next().and_then(number);
        let letter = words.next().and_then(|w| w.strip_prefix('"'));
        let (Some(bits), Some(letter)) = (bits, letter.and_then(|l| l.bytes().next())) else {
            continue;
        };
        if bits.is_power_of_two() && bits < 1 << 16 {
            letters[bits.trailing_zeros() as usize] = letter;
            any = true;
        }
    }
    if !any {
        letters[..8].copy_from_slice(b"SDTtXZPI");
    }
    letters
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_letters_and_number_are_read() {
        let f = Format::parse(
            "name: sched_switch\nID: 372\nformat:\n\
             \tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
             \tfield:__data_loc char[] comm;\toffset:24;\tsize:4;\tsigned:0;\n\
             print fmt: \"%s\", __print_flags(REC->x, \"|\", { 0x01, \"S\" }, { 32, \"X\" })\n",
        )
        .unwrap();
        assert_eq!((f.name.as_str(), f.id), ("sched_switch", 372));
        assert_eq!(f.field("prev_comm").unwrap().size, 16);
        assert!(f.field("comm").unwrap().located);
        assert_eq!((f.state_letters[0], f.state_letters[5]), (b'S', b'X'));
        assert!(Format::parse("name: x\nformat:").is_none());
    }
}
