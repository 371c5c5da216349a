//! Tree to types: a serde deserializer over [`Node`], for trees that were checked before.

use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, VariantAccess,
    Visitor,
};
use serde::forward_to_deserialize_any;

use super::{Entry, Node, Value};

/// A tree and a type do not fit together; the check before should have seen it.
#[derive(Debug)]
pub(crate) struct Mismatch(String);

/// Stands where a mapping is wanted and nothing was written: `auth:` is `auth: {}`.
static NOTHING: Value = Value::Null;

#[derive(Clone, Copy)]
struct Reader<'a>(&'a Value);

struct Items<'a>(std::slice::Iter<'a, Node>);

struct Entries<'a> {
    rest: std::slice::Iter<'a, Entry>,
    value: &'a Value,
}

struct Variant<'a> {
    name: &'a str,
    content: &'a Value,
}

// === impl Node ===

impl Node {
    /// Turns the tree into `T`.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T, Mismatch> {
        T::deserialize(Reader(&self.value))
    }
}

// === impl Reader ===

impl<'a> Reader<'a> {
    fn text(self, wanted: &str) -> Result<&'a str, Mismatch> {
        if let Value::Text(text) = self.0 {
            Ok(&text.meant)
        } else {
            Err(Mismatch(format!("{wanted} is wanted")))
        }
    }

    fn parsed<T: std::str::FromStr>(self, wanted: &str) -> Result<T, Mismatch> {
        self.text(wanted)?.parse().map_err(|_| Mismatch(format!("{wanted} is wanted")))
    }

    fn entries(self, entries: &'a [Entry]) -> Entries<'a> {
        Entries { rest: entries.iter(), value: self.0 }
    }
}

macro_rules! numbers {
    ($($method:ident $visit:ident,)*) => { $(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
            visitor.$visit(self.parsed("a number")?)
        }
    )* };
}

impl<'de> Deserializer<'de> for Reader<'de> {
    type Error = Mismatch;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Text(text) => visitor.visit_borrowed_str(&text.meant),
            Value::List(items) => visitor.visit_seq(Items(items.iter())),
            Value::Map(entries) => visitor.visit_map(self.entries(entries)),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        visitor.visit_bool(self.parsed("true or false")?)
    }

    numbers! {
        deserialize_u8 visit_u8, deserialize_u16 visit_u16, deserialize_u32 visit_u32, deserialize_u64 visit_u64,
        deserialize_i8 visit_i8, deserialize_i16 visit_i16, deserialize_i32 visit_i32, deserialize_i64 visit_i64,
        deserialize_f32 visit_f32, deserialize_f64 visit_f64,
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        if matches!(self.0, Value::Null) { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Mismatch> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        if matches!(self.0, Value::Null) {
            return visitor.visit_seq(Items([].iter()));
        }
        self.deserialize_any(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        if matches!(self.0, Value::Null) {
            return visitor.visit_map(self.entries(&[]));
        }
        self.deserialize_any(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mismatch> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mismatch> {
        match self.0 {
            Value::Text(text) => visitor.visit_enum(Variant { name: &text.meant, content: &NOTHING }),
            Value::Map(entries) => match entries.as_slice() {
                [entry] => visitor.visit_enum(Variant { name: &entry.key, content: &entry.node.value }),
                _ => Err(Mismatch("exactly one key is wanted".to_owned())),
            },
            Value::Null | Value::List(_) => Err(Mismatch("a word is wanted".to_owned())),
        }
    }

    forward_to_deserialize_any! {
        i128 u128 char str string bytes byte_buf unit unit_struct tuple tuple_struct identifier ignored_any
    }
}

// === impl Items ===

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = Mismatch;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Mismatch> {
        self.0.next().map(|node| seed.deserialize(Reader(&node.value))).transpose()
    }
}

// === impl Entries ===

impl<'de> MapAccess<'de> for Entries<'de> {
    type Error = Mismatch;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Mismatch> {
        let Some(entry) = self.rest.next() else { return Ok(None) };
        self.value = &entry.node.value;
        seed.deserialize(StrDeserializer::new(&entry.key)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Mismatch> {
        seed.deserialize(Reader(self.value))
    }
}

// === impl Variant ===

impl<'de> EnumAccess<'de> for Variant<'de> {
    type Error = Mismatch;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Mismatch> {
        let name = seed.deserialize(StrDeserializer::new(self.name))?;
        Ok((name, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'de> {
    type Error = Mismatch;

    fn unit_variant(self) -> Result<(), Mismatch> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Mismatch> {
        seed.deserialize(Reader(self.content))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Mismatch> {
        Reader(self.content).deserialize_seq(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mismatch> {
        Reader(self.content).deserialize_map(visitor)
    }
}

// === impl Mismatch ===

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Mismatch {}

impl Error for Mismatch {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }
}
