//! Protobuf's wire format, read without any description of messages, so that the field numbers in a
//! file can be held against the published ones.

/// A message: its fields in order.
#[derive(Clone, Debug)]
pub struct Message {
    fields: Vec<(u32, Value)>,
}

#[derive(Clone, Debug)]
enum Value {
    Number(u64),
    Bytes(Vec<u8>),
}

impl Message {
    /// Takes bytes apart.
    pub fn read(mut bytes: &[u8]) -> Self {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let key = varint(&mut bytes);
            let value = match key & 7 {
                0 => Value::Number(varint(&mut bytes)),
                2 => {
                    let length = varint(&mut bytes) as usize;
                    let (inside, rest) = bytes.split_at(length);
                    bytes = rest;
                    Value::Bytes(inside.to_vec())
                }
                other => panic!("a field of wire type {other}"),
            };
            fields.push(((key >> 3) as u32, value));
        }
        Self { fields }
    }

    /// All messages in a field.
    pub fn messages(&self, field: u32) -> impl Iterator<Item = Message> {
        self.fields
            .iter()
            .filter_map(move |(f, value)| match value {
                Value::Bytes(bytes) if *f == field => Some(Message::read(bytes)),
                _ => None,
            })
    }

    /// The only field that is a message, and its number.
    pub fn only_message(&self) -> (u32, Message) {
        let mut inner = self.fields.iter().filter_map(|(f, value)| match value {
            Value::Bytes(bytes) => Some((*f, Message::read(bytes))),
            Value::Number(_) => None,
        });
        let first = inner.next().expect("a message");
        assert!(inner.next().is_none());
        first
    }

    /// Whether a field is there.
    pub fn has(&self, field: u32) -> bool {
        self.fields.iter().any(|(f, _)| *f == field)
    }

    /// A number; zero if it is not there.
    pub fn number(&self, field: u32) -> u64 {
        let found = self.fields.iter().find_map(|(f, value)| match value {
            Value::Number(number) if *f == field => Some(*number),
            _ => None,
        });
        found.unwrap_or(0)
    }

    /// A text; empty if it is not there.
    pub fn text(&self, field: u32) -> String {
        let found = self.fields.iter().find_map(|(f, value)| match value {
            Value::Bytes(bytes) if *f == field => Some(String::from_utf8(bytes.clone()).unwrap()),
            _ => None,
        });
        found.unwrap_or_default()
    }
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first().expect("a whole number");
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return value;
        }
    }
    panic!("a number of more than 64 bits");
}
