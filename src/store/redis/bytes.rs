//! Values as bytes: fixed numbers, and texts with their length before them.
//!
//! A codec of our own, since payloads are bytes of up to many megabytes that JSON would have to escape, and since
//! what is read must be bounded by what is there. Every stored value begins with the number of its format.

use super::super::StoreError;

/// The format that is written, and the only one that is read.
pub(super) const FORMAT: u8 = 1;

/// Writes a value.
#[derive(Debug, Default)]
pub(super) struct Writer(Vec<u8>);

/// Reads a value from its beginning.
#[derive(Debug)]
pub(super) struct Reader<'a>(&'a [u8]);

// === impl Writer ===

impl Writer {
    pub(super) fn new() -> Self {
        Self::default()
    }

    pub(super) fn byte(mut self, byte: u8) -> Self {
        self.0.push(byte);
        self
    }

    pub(super) fn number(mut self, number: u64) -> Self {
        self.0.extend(number.to_le_bytes());
        self
    }

    pub(super) fn fixed(mut self, bytes: &[u8]) -> Self {
        self.0.extend(bytes);
        self
    }

    pub(super) fn text(self, text: &str) -> Self {
        self.bytes(text.as_bytes())
    }

    pub(super) fn bytes(mut self, bytes: &[u8]) -> Self {
        // Nothing that is stored comes near 4 GiB: messages are bounded by the config, in a `usize` of memory.
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        self.0.extend(length.to_le_bytes());
        self.0.extend(bytes);
        self
    }

    pub(super) fn maybe(self, text: Option<&str>) -> Self {
        match text {
            Some(text) => self.byte(1).text(text),
            None => self.byte(0),
        }
    }

    pub(super) fn done(self) -> Vec<u8> {
        self.0
    }
}

// === impl Reader ===

impl<'a> Reader<'a> {
    pub(super) fn of(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// What stands behind the number of the format, if it is one that is known.
    pub(super) fn behind_format(bytes: &'a [u8]) -> Result<&'a [u8], StoreError> {
        match bytes.split_first() {
            Some((&FORMAT, rest)) => Ok(rest),
            _ => Err(StoreError::Unreadable),
        }
    }

    pub(super) fn byte(&mut self) -> Result<u8, StoreError> {
        self.array().map(|[byte]| byte)
    }

    pub(super) fn number(&mut self) -> Result<u64, StoreError> {
        self.array().map(u64::from_le_bytes)
    }

    pub(super) fn short(&mut self) -> Result<u32, StoreError> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], StoreError> {
        let (array, rest) = self.0.split_first_chunk().ok_or(StoreError::Unreadable)?;
        self.0 = rest;
        Ok(*array)
    }

    pub(super) fn bytes(&mut self) -> Result<&'a [u8], StoreError> {
        let length = usize::try_from(self.short()?).map_err(|_| StoreError::Unreadable)?;
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(StoreError::Unreadable)?;
        self.0 = rest;
        Ok(bytes)
    }

    pub(super) fn text(&mut self) -> Result<&'a str, StoreError> {
        std::str::from_utf8(self.bytes()?).map_err(|_| StoreError::Unreadable)
    }

    pub(super) fn maybe(&mut self) -> Result<Option<Box<str>>, StoreError> {
        match self.byte()? {
            0 => Ok(None),
            1 => Ok(Some(self.text()?.into())),
            _ => Err(StoreError::Unreadable),
        }
    }

    /// Whether nothing is left.
    pub(super) fn is_at_end(&self) -> bool {
        self.0.is_empty()
    }

    /// Nothing may be left: a longer value is one of another format.
    pub(super) fn end(self) -> Result<(), StoreError> {
        if self.0.is_empty() { Ok(()) } else { Err(StoreError::Unreadable) }
    }
}
