//! Reading `Accept` and `Content-Type`, leniently (case-E01).

use http::HeaderMap;
use http::header::{ACCEPT, CONTENT_TYPE};

use crate::relay::Form;

/// What the caller's `Accept` allows; absent allows all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Accepts {
    pub(super) json: Grade,
    pub(super) sse: Grade,
}

/// How welcome a media type is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grade {
    Refused,
    Welcome,
}

// === impl Accepts ===

impl Accepts {
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let mut json = None;
        let mut sse = None;
        let mut any = false;
        for line in headers.get_all(ACCEPT) {
            any = true;
            let Ok(line) = line.to_str() else { continue };
            for range in line.split(',') {
                let (media, grade) = read(range);
                // The more specific range decides (RFC 9110 section 12.5.1).
                note(&mut json, media, "application/json", "application/*", grade);
                note(&mut sse, media, "text/event-stream", "text/*", grade);
            }
        }
        if !any {
            return Self { json: Grade::Welcome, sse: Grade::Welcome };
        }
        let settle = |noted: Option<(u8, Grade)>| noted.map_or(Grade::Refused, |(_, grade)| grade);
        Self { json: settle(json), sse: settle(sse) }
    }

    /// The forms of answer that are left, if any is.
    pub(super) fn form(self) -> Option<Form> {
        match (self.json, self.sse) {
            (Grade::Welcome, Grade::Welcome) => Some(Form::Either),
            (Grade::Welcome, Grade::Refused) => Some(Form::JsonOnly),
            (Grade::Refused, Grade::Welcome) => Some(Form::SseOnly),
            (Grade::Refused, Grade::Refused) => None,
        }
    }
}

/// Whether the body is said to be JSON. UTF-8 is the only encoding JSON has, so parameters say nothing new.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let mut lines = headers.get_all(CONTENT_TYPE).iter();
    let (Some(line), None) = (lines.next(), lines.next()) else { return false };
    let media = line.to_str().unwrap_or_default().split(';').next().unwrap_or_default();
    media.trim().eq_ignore_ascii_case("application/json")
}

fn read(range: &str) -> (&str, Grade) {
    let mut parts = range.split(';');
    let media = parts.next().unwrap_or_default().trim();
    let zero = parts.filter_map(|p| p.trim().split_once('=')).any(|(name, value)| {
        name.trim().eq_ignore_ascii_case("q") && value.trim().parse::<f32>().is_ok_and(|q| q <= 0.0)
    });
    (media, if zero { Grade::Refused } else { Grade::Welcome })
}

fn note(noted: &mut Option<(u8, Grade)>, media: &str, exact: &str, family: &str, grade: Grade) {
    let specificity = if media.eq_ignore_ascii_case(exact) {
        3
    } else if media.eq_ignore_ascii_case(family) {
        2
    } else if media == "*/*" || media == "*" {
        1
    } else {
        return;
    };
    if noted.is_none_or(|(before, _)| specificity >= before) {
        *noted = Some((specificity, grade));
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn form(lines: &[&str]) -> Option<Form> {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(ACCEPT, HeaderValue::from_str(line).expect("a value"));
        }
        Accepts::of(&headers).form()
    }

    /// case-E01: every way to write Accept that can be understood is.
    #[test]
    fn accept_is_read_leniently() {
        for both in [
            &["application/json, text/event-stream"][..],
            &["text/event-stream,application/json"],
            &["APPLICATION/JSON , Text/Event-Stream"],
            &["application/json", "text/event-stream"],
            &["application/json;q=0.5, text/event-stream;q=0.1"],
            &["*/*"],
            &["*"],
            &["text/html, */*;q=0.8"],
            &[],
        ] {
            assert_eq!(form(both), Some(Form::Either), "{both:?}");
        }
        assert_eq!(form(&["application/json"]), Some(Form::JsonOnly));
        assert_eq!(form(&["application/*"]), Some(Form::JsonOnly));
        assert_eq!(form(&["text/event-stream"]), Some(Form::SseOnly));
        assert_eq!(form(&["*/*, text/event-stream;q=0"]), Some(Form::JsonOnly));
        assert_eq!(form(&["text/html"]), None);
    }
}
