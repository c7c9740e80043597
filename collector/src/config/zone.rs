//! Time zones by name, and the time zone of this machine.

use jiff::tz::{Offset, TimeZone};

use super::Misuse;

/// The zone of this machine (`TZ`, otherwise the system's setting), and its name. A machine without a setting counts as
/// UTC.
#[must_use]
pub(crate) fn of_this_machine() -> (TimeZone, String) {
    match TimeZone::try_system() {
        Ok(zone) => {
            let name = zone.iana_name().unwrap_or("the zone of this machine").to_owned();
            (zone, name)
        }
        Err(_) => (TimeZone::UTC, "UTC".to_owned()),
    }
}

/// Parses the name of a time zone: `Europe/Berlin`, `+02:00`, `UTC` or `local`.
///
/// # Errors
/// There is no such zone.
pub(crate) fn parse(text: &str) -> Result<(TimeZone, String), Misuse> {
    if text.eq_ignore_ascii_case("local") {
        return Ok(of_this_machine());
    }
    if text.eq_ignore_ascii_case("utc") || text.eq_ignore_ascii_case("z") {
        return Ok((TimeZone::UTC, "UTC".to_owned()));
    }
    let named = match offset(text) {
        Some(offset) => Ok(TimeZone::fixed(offset)),
        None => TimeZone::get(text),
    };
    named.map(|zone| (zone, text.to_owned())).map_err(|_| {
        Misuse(format!(
            "--timezone {text}: no such zone; write Europe/Berlin, +02:00, UTC or local"
        ))
    })
}

/// Parses `+02:00`, `+0200` or `+02`; at most 14 hours.
#[must_use]
pub(crate) fn offset(text: &str) -> Option<Offset> {
    let sign = match text.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let digits: String = text.chars().skip(1).filter(|c| *c != ':').collect();
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) || !matches!(digits.len(), 2 | 4) {
        return None;
    }
    let hours: i32 = digits.get(..2)?.parse().ok()?;
    let minutes: i32 = match digits.get(2..)? {
        "" => 0,
        minutes => minutes.parse().ok()?,
    };
    if hours > 14 || minutes > 59 {
        return None;
    }
    Offset::from_seconds(sign * (hours * 3_600 + minutes * 60)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_known_by_name_and_by_offset() {
        for text in ["Europe/Berlin", "America/New_York", "+02:00", "-0530", "+14", "UTC", "local"]
        {
            assert!(parse(text).is_ok(), "{text}");
        }
        for text in ["", "Berlin", "+25:00", "+2", "CEST", "../etc/passwd", "+02:60"] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains("Europe/Berlin"), "{text}: {error}");
        }
    }
}
