//! Reading what Redis answers: whatever it is, it never breaks the reader.

use redis::Value;

use super::state::Why;

/// A number.
pub(super) fn number(value: &Value) -> Option<i64> {
    match value {
        Value::Int(number) => Some(*number),
        Value::BulkString(bytes) => std::str::from_utf8(bytes).ok()?.parse().ok(),
        _ => None,
    }
}

/// Bytes.
pub(super) fn bytes(value: Value) -> Option<Vec<u8>> {
    match value {
        Value::BulkString(bytes) => Some(bytes),
        Value::SimpleString(text) => Some(text.into_bytes()),
        _ => None,
    }
}

/// A list.
pub(super) fn list(value: Value) -> Result<Vec<Value>, Why> {
    match value {
        Value::Array(items) | Value::Set(items) => Ok(items),
        _ => Err(Why::Unexpected),
    }
}

/// A name and a value.
pub(super) type Pair = (Vec<u8>, Vec<u8>);

/// Names and values that stand in turn.
pub(super) fn pairs(value: Value) -> Result<Vec<Pair>, Why> {
    let mut items = list(value)?.into_iter();
    let mut pairs = Vec::with_capacity(items.len() / 2);
    while let Some(name) = items.next() {
        let pair = (bytes(name), items.next().and_then(bytes));
        let (Some(name), Some(value)) = pair else { return Err(Why::Unexpected) };
        pairs.push((name, value));
    }
    Ok(pairs)
}

/// All texts in it, at any depth.
pub(super) fn words(value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    collect(value, &mut found);
    found
}

/// The text it begins with.
pub(super) fn first_word(value: &Value) -> Option<String> {
    words(value).into_iter().next()
}

fn collect(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::BulkString(bytes) => found.push(String::from_utf8_lossy(bytes).into_owned()),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => found.push(text.clone()),
        Value::Array(items) | Value::Set(items) => items.iter().for_each(|item| collect(item, found)),
        Value::Map(pairs) => pairs.iter().for_each(|(key, value)| {
            collect(key, found);
            collect(value, found);
        }),
        _ => {}
    }
}
