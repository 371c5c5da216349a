//! Points in time as people write them: `2027-01-31` or `2027-01-31T12:00:00Z` (RFC 3339).

use std::time::{Duration, SystemTime};

/// Reads a point in time; a date alone means the end of that day, UTC.
pub(super) fn parse(text: &str) -> Option<SystemTime> {
    let (date, time) = match text.split_once(['T', 't', ' ']) {
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    let midnight = days(date)?.checked_mul(86_400)?;
    let seconds = match time {
        None => midnight.checked_add(86_400)?,
        Some(time) => {
            let (clock, offset) = split_offset(time)?;
            midnight.checked_add(seconds_of_day(clock)?)?.checked_sub(offset)?
        }
    };
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(u64::try_from(seconds).ok()?))
}

/// Days from 1970-01-01 to `YYYY-MM-DD`.
fn days(date: &str) -> Option<i64> {
    let mut parts = date.split('-');
    let (year, month, day) =
        (number(parts.next()?, 4)?, number(parts.next()?, 2)?, number(parts.next()?, 2)?);
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let longest = match month {
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        1..=12 => 31,
        _ => return None,
    };
    if parts.next().is_some() || !(1..=longest).contains(&day) || year < 1970 {
        return None;
    }
    // Years counted from March, so that the leap day is the last one.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let before_year = year * 365 + year / 4 - year / 100 + year / 400;
    let before_month = (153 * month + 2) / 5;
    Some(before_year + before_month + day - 1 - 719_468)
}

fn seconds_of_day(clock: &str) -> Option<i64> {
    // Fractions of a second matter to no expiry.
    let whole = clock.split_once('.').map_or(clock, |(whole, _)| whole);
    let mut parts = whole.split(':');
    let (hour, minute, second) =
        (number(parts.next()?, 2)?, number(parts.next()?, 2)?, number(parts.next()?, 2)?);
    let legal = parts.next().is_none() && hour < 24 && minute < 60 && second < 61;
    legal.then_some(hour * 3600 + minute * 60 + second)
}

/// The clock and the seconds by which it is ahead of UTC.
fn split_offset(time: &str) -> Option<(&str, i64)> {
    if let Some(clock) = time.strip_suffix(['Z', 'z']) {
        return Some((clock, 0));
    }
    let at = time.rfind(['+', '-'])?;
    let (clock, offset) = time.split_at_checked(at)?;
    let sign = if offset.starts_with('-') { -1 } else { 1 };
    let (hours, minutes) = offset.get(1..)?.split_once(':')?;
    Some((clock, sign * (number(hours, 2)? * 3600 + number(minutes, 2)? * 60)))
}

fn number(text: &str, digits: usize) -> Option<i64> {
    let legal = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
    if legal { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests;
