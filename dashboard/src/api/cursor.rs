//! Opaque positions in a list. They are hexadecimal, so that a URL needs no escaping.

use crate::problem::Problem;

/// Encodes the parts of a position.
pub(super) fn encode(number: i64, text: &str) -> String {
    let plain = format!("{number}:{text}");
    plain.bytes().map(|byte| format!("{byte:02x}")).collect()
}

/// The inverse of [`encode`].
pub(super) fn decode(cursor: &str) -> Result<(i64, String), Problem> {
    let parse = || {
        let digits: Vec<u8> =
            cursor.chars().map(|c| c.to_digit(16)?.try_into().ok()).collect::<Option<_>>()?;
        let (pairs, []) = digits.as_chunks::<2>() else { return None };
        let plain = String::from_utf8(pairs.iter().map(|[h, l]| h << 4 | l).collect()).ok()?;
        let (number, text) = plain.split_once(':')?;
        Some((number.parse().ok()?, text.to_owned()))
    };
    parse().ok_or_else(Problem::bad_cursor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_reads_back_and_anything_else_is_refused() {
        let cursor = encode(-5, "a:b\nü");
        assert_eq!(decode(&cursor), Ok((-5, "a:b\nü".to_owned())));
        for bad in ["", "3", "zz", "2d35", "ff3a", "é", "3a41"] {
            assert_eq!(decode(bad), Err(Problem::bad_cursor()), "{bad}");
        }
    }
}
