//! Protobuf as bytes, put together in place: fields with a key before them, messages with their
//! length. Written by hand because an object with strings of its own for each event took longer
//! than all the rest of an export.

/// Bytes of a message.
#[derive(Debug, Default)]
pub struct Wire(pub Vec<u8>);

/// Kinds of fields on the wire.
const VARINT: u32 = 0;
const LENGTH: u32 = 2;

impl Wire {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// A number without a sign.
    pub fn number(&mut self, field: u32, value: impl Into<u64>) {
        self.varint((field << 3 | VARINT).into());
        self.varint(value.into());
    }

    /// An `int32` or `int64`: a negative one takes ten bytes.
    pub fn signed(&mut self, field: u32, value: impl Into<i64>) {
        self.number(field, value.into() as u64);
    }

    /// A text.
    pub fn text(&mut self, field: u32, text: &str) {
        self.bytes(field, text.as_bytes());
    }

    /// Bytes, or a message that is made already.
    pub fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.varint((field << 3 | LENGTH).into());
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    /// A message within this one.
    pub fn message(&mut self, field: u32, fill: impl FnOnce(&mut Self)) {
        self.varint((field << 3 | LENGTH).into());
        // Nearly all are shorter than 128 bytes, so that one byte holds the length.
        let place = self.0.len();
        self.0.push(0);
        fill(self);
        let length = self.0.len() - place - 1;
        if length < 0x80 {
            self.0[place] = length as u8;
            return;
        }
        let mut long = Self::default();
        long.varint(length as u64);
        self.0.splice(place..=place, long.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_those_of_protobuf() {
        let mut w = Wire::default();
        w.number(1, 150_u32);
        w.text(2, "ab");
        w.signed(3, -1);
        assert_eq!(w.0[..7], [0x08, 0x96, 0x01, 0x12, 2, b'a', b'b']);
        assert_eq!(w.0[7..], [&[0x18][..], &[0xff; 9], &[1]].concat());
    }

    #[test]
    fn a_message_has_its_length_before_it() {
        for length in [3, 126, 200, 20_000] {
            let mut w = Wire::default();
            w.message(4, |w| w.bytes(1, &vec![7; length]));
            let mut inner = Wire::default();
            inner.bytes(1, &vec![7; length]);
            let mut outer = Wire::default();
            outer.bytes(4, &inner.0);
            assert_eq!(w.0, outer.0, "{length}");
        }
    }
}
