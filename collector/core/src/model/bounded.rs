//! Text of bounded length.

/// Ids are compared and stored everywhere: a forged one must not be a megabyte.
pub(crate) const ID_BYTES: usize = 512;

/// Cuts on a character boundary.
pub(crate) fn cut(mut text: String, max: usize) -> String {
    text.truncate(cut_str(&text, max).len());
    text
}

/// Cuts on a character boundary.
#[inline]
pub(crate) fn cut_str(text: &str, max: usize) -> &str {
    if text.len() <= max {
        return text;
    }
    let boundary = (0..=max.min(text.len())).rev().find(|&at| text.is_char_boundary(at));
    boundary.and_then(|at| text.get(..at)).unwrap_or_default()
}
