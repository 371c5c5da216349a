//! The known word that a mistyped one was meant to be.

/// The word of `known` that is nearest to `word`, if one is near enough to be meant.
pub(in crate::settings) fn nearest<'a>(
    word: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let plain = simplified(word);
    known
        .into_iter()
        .map(|candidate| (distance(&plain, &simplified(candidate)), candidate))
        .filter(|(distance, candidate)| *distance <= 1.max(candidate.len().min(word.len()) / 3))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// `public_url`, `public-url` and `PublicUrl` are all `publicUrl`.
fn simplified(word: &str) -> Vec<char> {
    word.chars().filter(|c| !matches!(c, '_' | '-')).flat_map(char::to_lowercase).take(64).collect()
}

/// Edits (insert, delete, replace, swap neighbours) between two words.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let at = |row: &[usize], n: usize| row.get(n).copied().unwrap_or(usize::MAX - 1);
            let replaced = at(&last, j) + usize::from(x != y);
            let mut best = replaced.min(at(&last, j + 1) + 1).min(at(&row, j) + 1);
            let swapped = i > 0 && j > 0 && a.get(i - 1) == Some(y) && b.get(j - 1) == Some(x);
            if swapped {
                best = best.min(at(&before, j - 1) + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last.last().copied().unwrap_or_default()
}
