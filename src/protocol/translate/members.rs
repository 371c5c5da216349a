//! Taking members out of an object, or putting one in, while every other byte of it stays.

use super::Change;
use crate::protocol::envelope::Span;
use crate::protocol::object::Object;

/// What to cut from `whole`, of which `raw` is an object and `object` the same read, so that the members that are
/// `doomed` are gone with the commas that held them.
pub(super) fn cut<'a>(
    whole: &[u8],
    raw: &'a str,
    object: &Object<'a>,
    doomed: impl Fn(&str) -> bool,
) -> Vec<Change> {
    let open = Span::of(raw, whole).start + 1;
    let mut cuts = Vec::new();
    // The end of the member before, and whether any before it stays.
    let (mut behind, mut stays) = (open, false);
    let mut leading = None;
    for (name, value) in object.iter() {
        let end = Span::of(value, whole).end;
        match (doomed(name), stays) {
            (true, true) => cuts.push((Span { start: behind, end }, String::new())),
            (true, false) => leading = Some(comma_behind(whole, end).unwrap_or(end)),
            (false, _) => stays = true,
        }
        behind = end;
    }
    cuts.extend(leading.map(|end| (Span { start: open, end }, String::new())));
    cuts
}

/// Puts `member`, written as it shall stand, first into `raw`, an object within `whole`.
pub(super) fn put_first(whole: &[u8], raw: &str, member: &str) -> Change {
    let at = Span::of(raw, whole).start + 1;
    let empty = raw.trim_start_matches('{').trim_start().starts_with('}');
    (Span { start: at, end: at }, format!("{member}{}", if empty { "" } else { "," }))
}

/// The place behind the comma that follows `end`, if one does.
fn comma_behind(whole: &[u8], end: usize) -> Option<usize> {
    let rest = whole.get(end..)?;
    let next = rest.iter().position(|b| !b.is_ascii_whitespace())?;
    (rest.get(next) == Some(&b',')).then_some(end + next + 1)
}

#[cfg(test)]
mod tests;
