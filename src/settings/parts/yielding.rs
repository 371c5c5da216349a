//! Who yields when files that were read again contradict each other: fresh state before old, and of two fresh ones
//! the one that did not have the name before.

use std::path::PathBuf;

use super::{Clash, Part, Parts, Remark, Root};

/// One included file, read again.
#[derive(Debug)]
pub(in crate::settings) struct Again {
    /// What it holds now; none if that is wrong.
    pub(in crate::settings) fresh: Option<Part>,
    /// What it held.
    pub(in crate::settings) old: Option<Part>,
}

/// The root, as it is now, cannot be beside the others, which do not yield.
#[derive(Debug)]
pub(in crate::settings) struct Yields(pub(in crate::settings) Vec<Remark>);

/// A file on its way into the configuration.
struct Choice {
    part: Part,
    old: Option<Part>,
    is_fresh: bool,
}

/// Makes one configuration of the files: what they say, and what is wrong with those that keep their old state.
/// `before` is the root that is in force, if `root` is another.
pub(in crate::settings) fn unite(
    root: &Root,
    before: Option<&Root>,
    files: Vec<Again>,
) -> Result<(Parts, Vec<Remark>), Yields> {
    let mut choices: Vec<Choice> = files.into_iter().filter_map(Choice::of).collect();
    let mut kept = Vec::new();
    loop {
        let parts: Vec<&Part> = std::iter::once(&root.part).chain(choices.iter().map(|c| &c.part)).collect();
        if let Some(clash) = root.clashes(&parts).into_iter().next() {
            let loser = loser(&clash, root, before, &choices);
            let [one, other] = clash.sides;
            let side = if loser == other.part { other } else { one };
            if loser == 0 {
                return Err(Yields(vec![side.remark]));
            }
            kept.push(side.remark);
            yield_or_leave(&mut choices, loser - 1);
            continue;
        }
        let unknown = root.unknown(&parts);
        let is_new = |server: &str| {
            before.is_some_and(|before| !before.selections.iter().any(|selection| selection.server == server))
        };
        if unknown.iter().any(|(selection, _)| is_new(&selection.server)) {
            return Err(Yields(unknown.into_iter().map(|(_, remark)| remark).collect()));
        }
        // It was right once, and another file took the server away: it selects nothing there.
        kept.extend(unknown.into_iter().map(|(_, remark)| remark));
        break;
    }
    let included = choices.into_iter().map(|choice| choice.part).collect();
    Ok((Parts { root: root.clone(), included }, kept))
}

/// The number of the part that yields.
fn loser(clash: &Clash, root: &Root, before: Option<&Root>, choices: &[Choice]) -> usize {
    let template = |root: &Root| root.settings.names.template.clone();
    if clash.by_template && before.is_some_and(|before| template(before) != template(root)) {
        return 0;
    }
    let [one, other] = &clash.sides;
    let is_fresh = |part: usize| match part.checked_sub(1) {
        None => before.is_some(),
        Some(n) => choices.get(n).is_some_and(|choice| choice.is_fresh),
    };
    let had = |part: usize, server: &str| match part.checked_sub(1) {
        None => before.is_some_and(|before| before.part.names(server)),
        Some(n) => choices.get(n).and_then(|choice| choice.old.as_ref()).is_some_and(|old| old.names(server)),
    };
    let sides = if clash.told == 0 { [one, other] } else { [other, one] };
    let newcomer = sides.iter().find(|side| is_fresh(side.part) && !had(side.part, &side.server));
    let fresh = || sides.iter().find(|side| is_fresh(side.part));
    // Neither is: states of different times that never stood side by side. A file is left out, the root never.
    let last = || sides.iter().max_by_key(|side| side.part);
    newcomer.or_else(fresh).or_else(last).map_or(0, |side| side.part)
}

/// Back to the old state, or out if that is what it is in, or if it has none.
fn yield_or_leave(choices: &mut Vec<Choice>, n: usize) {
    let Some(choice) = choices.get_mut(n) else { return };
    match choice.old.clone().filter(|_| choice.is_fresh) {
        Some(old) => {
            choice.part = old;
            choice.is_fresh = false;
        }
        None => drop(choices.remove(n)),
    }
}

// === impl Choice ===

impl Choice {
    fn of(Again { fresh, old }: Again) -> Option<Self> {
        match fresh {
            Some(part) => Some(Self { part, old, is_fresh: true }),
            None => old.map(|old| Self { part: old.clone(), old: Some(old), is_fresh: false }),
        }
    }
}

// === impl Parts ===

impl Parts {
    /// What the file held when it was right.
    pub(in crate::settings) fn of(&self, file: &std::path::Path) -> Option<&Part> {
        self.included.iter().find(|part| part.file == file)
    }

    /// The included files.
    pub(in crate::settings) fn files(&self) -> Vec<PathBuf> {
        self.included.iter().map(|part| part.file.clone()).collect()
    }
}
