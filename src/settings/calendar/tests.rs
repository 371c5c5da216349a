//! Dates as people write them.

use super::*;

fn seconds(text: &str) -> Option<u64> {
    parse(text).map(|at| at.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs())
}

#[test]
fn points_in_time_are_read() {
    for (text, unix) in [
        ("1970-01-01T00:00:00Z", 0),
        ("2000-02-29T12:00:00Z", 951_825_600),
        ("2027-01-31T12:00:00Z", 1_801_396_800),
        ("2027-01-31T14:00:00+02:00", 1_801_396_800),
        ("2027-01-31T11:30:00.250-00:30", 1_801_396_800),
        ("1970-01-01", 86_400),
        ("2100-03-01T00:00:00Z", 4_107_542_400),
    ] {
        assert_eq!(seconds(text), Some(unix), "{text}");
    }
}

#[test]
fn what_is_no_point_in_time_is_refused() {
    for text in [
        "",
        "2027",
        "2027-1-31",
        "2027-13-01",
        "2027-02-29",
        "2100-02-29",
        "2027-01-31T25:00:00Z",
        "2027-01-31T12:00:00",
        "2027-01-31T12:00Z",
        "31.01.2027",
        "1969-12-31",
        "2027-01-31Té",
    ] {
        assert_eq!(seconds(text), None, "{text}");
    }
}
