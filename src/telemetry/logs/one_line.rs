//! Text lines that stay one line each: what servers and callers say goes into some of them, and a line break or an
//! escape sequence in it must neither forge a line nor steer the terminal of who reads it.

use std::fmt;

use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// Formats as `F` does, with all control characters escaped but the line's own end.
pub(super) struct OneLine<F>(pub(super) F);

// === impl OneLine ===

impl<S, N, F> FormatEvent<S, N> for OneLine<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut line = String::new();
        self.0.format_event(context, Writer::new(&mut line), event)?;
        let line = line.strip_suffix('\n').unwrap_or(&line);
        for part in line.split_inclusive(char::is_control) {
            let mut text = part.chars();
            match text.next_back() {
                Some(last) if last.is_control() => {
                    write!(writer, "{}{}", text.as_str(), last.escape_default())?;
                }
                _ => writer.write_str(part)?,
            }
        }
        writer.write_char('\n')
    }
}
