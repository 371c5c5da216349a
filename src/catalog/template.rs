//! Matching URIs against URI templates (RFC 6570), so that an expanded one finds its server (case-G13).

/// A URI template, read for matching.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// One byte that must stand there.
    Byte(u8),
    /// Any number of bytes that an expression may expand to.
    Any(Reach),
}

/// What an expression can expand to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// `{var}`: no reserved characters, so no slash (RFC 6570 section 3.2.2).
    Segment,
    /// `{+var}`, `{/var}`, `{?var}` and the like.
    Anything,
}

// === impl Template ===

impl Template {
    /// Reads a template; a brace that is not closed is taken as text.
    pub fn parse(template: &str) -> Self {
        let mut parts = Vec::new();
        let mut rest = template;
        while let Some((before, after)) = rest.split_once('{') {
            let Some((expression, behind)) = after.split_once('}') else { break };
            parts.extend(before.bytes().map(Part::Byte));
            let segment = expression.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_' || c == '%');
            parts.push(Part::Any(if segment { Reach::Segment } else { Reach::Anything }));
            rest = behind;
        }
        parts.extend(rest.bytes().map(Part::Byte));
        Self { parts }
    }

    /// Whether `uri` can be an expansion of it. Takes `uri` length times template length steps at most.
    pub fn matches(&self, uri: &str) -> bool {
        // The set of parts that may come next, as in a finite automaton: no backtracking, so no hostile template
        // or URI can make it slow.
        let end = self.parts.len();
        let mut next = vec![false; end + 1];
        self.enter(0, &mut next);
        for byte in uri.bytes() {
            let mut after = vec![false; end + 1];
            for (at, part) in self.parts.iter().enumerate() {
                if !next.get(at).is_some_and(|b| *b) {
                    continue;
                }
                match part {
                    Part::Byte(expected) if *expected == byte => self.enter(at + 1, &mut after),
                    Part::Any(Reach::Segment) if byte != b'/' => self.enter(at, &mut after),
                    Part::Any(Reach::Anything) => self.enter(at, &mut after),
                    Part::Byte(_) | Part::Any(Reach::Segment) => {}
                }
            }
            next = after;
        }
        next.last().is_some_and(|b| *b)
    }

    /// How much of it is fixed text; of two templates that match, the more specific one is meant.
    pub fn specificity(&self) -> usize {
        self.parts.iter().filter(|p| matches!(p, Part::Byte(_))).count()
    }

    /// Marks part `at` as possible, and what follows it if it may be empty.
    fn enter(&self, at: usize, set: &mut [bool]) {
        let mut at = at;
        loop {
            if let Some(mark) = set.get_mut(at) {
                *mark = true;
            }
            match self.parts.get(at) {
                Some(Part::Any(_)) => at += 1,
                _ => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// case-G13: expanded URIs are recognised; a segment does not swallow slashes.
    #[test]
    fn recognises_expansions() {
        for (template, uri, expected) in [
            ("db://{t}/rows/{id}", "db://a/rows/1", true),
            ("db://{t}/rows/{id}", "db://a/b/rows/1", false),
            ("db://{t}/rows/{id}", "db://a/cols/1", false),
            ("file:///{+path}", "file:///a/b/c", true),
            ("x://a{?q,r}", "x://a?q=1&r=2", true),
            ("x://a{/s*}", "x://a/b/c", true),
            ("x://{a}{b}", "x://", true),
            ("x://plain", "x://plain", true),
            ("x://{open", "x://{open", true),
        ] {
            assert_eq!(Template::parse(template).matches(uri), expected, "{template} {uri}");
        }
    }

    #[test]
    fn hostile_templates_take_bounded_time() {
        let template = Template::parse(&"{a}".repeat(500));
        assert!(!template.matches(&format!("{}/", "a".repeat(5_000))));
    }

    #[test]
    fn the_more_specific_template_has_more_text() {
        assert!(
            Template::parse("db://{t}/rows/{id}").specificity()
                > Template::parse("db://{+all}").specificity()
        );
    }
}
