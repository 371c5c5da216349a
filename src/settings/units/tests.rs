//! Durations and sizes as people write them.

use super::*;

#[test]
fn durations_are_read_and_printed_back() {
    for (text, millis) in [
        ("200ms", 200),
        ("30s", 30_000),
        ("10m", 600_000),
        ("4h", 14_400_000),
        ("7d", 604_800_000),
        ("0s", 0),
    ] {
        let span: Span = text.parse().unwrap();
        assert_eq!(span.0.as_millis(), millis, "{text}");
        assert_eq!(span.to_string(), text);
    }
    assert_eq!("1h30m".parse::<Span>().unwrap().to_string(), "90m");
    assert_eq!(" 5 s ".parse::<Span>().unwrap().to_string(), "5s");
}

#[test]
fn what_is_no_duration_is_refused() {
    for text in
        ["", "5", "s", "-5s", "5 min", "1.5h", "30m1h", "1h1h", "5S", "367d", "99999999999999999999s", "5sé"]
    {
        assert!(text.parse::<Span>().is_err(), "{text}");
    }
}

#[test]
fn sizes_are_read_and_printed_back() {
    for (text, bytes) in [("64KiB", 65_536), ("8MiB", 8 << 20), ("1GiB", 1 << 30), ("100", 100), ("0", 0)] {
        let size: Size = text.parse().unwrap();
        assert_eq!(size.0, bytes, "{text}");
        assert_eq!(size.to_string(), text);
    }
    assert_eq!("5 MB".parse::<Size>().unwrap().0, 5_000_000);
    assert_eq!("7B".parse::<Size>().unwrap().0, 7);
}

#[test]
fn what_is_no_size_is_refused() {
    for text in ["", "MiB", "-1", "1.5MiB", "8mib", "8M", "99999999999999999GiB"] {
        assert!(text.parse::<Size>().is_err(), "{text}");
    }
}
