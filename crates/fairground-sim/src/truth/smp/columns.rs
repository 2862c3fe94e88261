//! The columns that the rows of a CSV file may have: those of the type that a row is read into. A
//! row with another one is refused as it is read; this is for a file that has a head alone.

use serde::de::value::Error;
use serde::de::{DeserializeOwned, Deserializer, Error as _, Visitor};

/// The fields of a structure; `None` of what is none.
pub(super) fn of<T: DeserializeOwned>() -> Option<&'static [&'static str]> {
    let mut found = None;
    // It ends with an error once the names are told.
    let _ = T::deserialize(Asked(&mut found));
    found
}

/// Asks a type for its fields.
struct Asked<'a>(&'a mut Option<&'static [&'static str]>);

impl<'de> Deserializer<'de> for Asked<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("no structure"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Error> {
        *self.0 = Some(fields);
        Err(Error::custom("asked for its fields"))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}
