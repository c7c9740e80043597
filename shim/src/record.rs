//! The metadata of a record: what the hook program knows in addition to the body. It is at the start of frame 0's
//! payload.
//!
//! wall ns u64, `CLOCK_BOOTTIME` ns u64, pid u32, host hint u8, event hint u8, zero u16; then texts of {tag u8, cut u8,
//! len u16, bytes}; padded with zeros to a multiple of eight.

/// The fixed part.
const FIXED_BYTES: usize = 24;
/// The most bytes kept of one text.
pub const TEXT_MAX: usize = 1_024;
/// Maximum size of all texts together, including the four bytes before each text.
pub const TEXTS_MAX: usize = 3_072;
/// The most bytes of metadata.
pub const METADATA_MAX: usize = FIXED_BYTES + TEXTS_MAX;

/// Tag of the event name on the hook's command line.
pub const ARGUMENT: u8 = 1;
/// Tag of `CURSOR_VERSION`.
pub const CURSOR_VERSION: u8 = 2;
/// Tag of `CURSOR_PROJECT_DIR`.
pub const PROJECT_DIR: u8 = 3;
/// Tag of `CURSOR_TRANSCRIPT_PATH`.
pub const TRANSCRIPT_PATH: u8 = 4;
/// Tag of `CURSOR_CODE_REMOTE`.
pub const CODE_REMOTE: u8 = 5;
/// Tag of `PWD`, which identifies the conversation for hooks without ids.
pub const PWD: u8 = 6;

/// The fixed part of the metadata.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// Nanoseconds since the Unix epoch when the program started.
    pub wall_ns: u64,
    /// `CLOCK_BOOTTIME` in nanoseconds when the program started; 0 if the system has no such clock.
    pub boottime_ns: u64,
    /// Process id, or 0 if reading it would cost a system call. The record's id already identifies the run.
    pub pid: u32,
    /// 0 unknown, 1 Cursor, 2 another host.
    pub host: u8,
    /// [`crate::event::Event`] as a number; 0 if the name is unknown.
    pub event: u8,
}

/// Writes metadata to the front of `out`. Returns its length, or `None` if `out` is shorter than [`METADATA_MAX`]. Each
/// text is cut to [`TEXT_MAX`]. If all texts together exceed [`TEXTS_MAX`], the last ones are cut further. Empty texts
/// are left out.
pub fn encode(out: &mut [u8], stamp: &Stamp, texts: &[(u8, &[u8])]) -> Option<u16> {
    let out = out.get_mut(..METADATA_MAX)?;
    let (fixed, mut rest) = out.split_first_chunk_mut::<FIXED_BYTES>()?;
    fixed[0..8].copy_from_slice(&stamp.wall_ns.to_le_bytes());
    fixed[8..16].copy_from_slice(&stamp.boottime_ns.to_le_bytes());
    fixed[16..20].copy_from_slice(&stamp.pid.to_le_bytes());
    fixed[20..24].copy_from_slice(&[stamp.host, stamp.event, 0, 0]);
    let mut len = FIXED_BYTES;
    for (tag, text) in texts {
        let room = rest.len().saturating_sub(4).min(TEXT_MAX);
        let kept = text.get(..room).unwrap_or(text);
        if kept.is_empty() {
            continue;
        }
        let (head, tail) = rest.split_first_chunk_mut::<4>()?;
        let [low, high] = (kept.len() as u16).to_le_bytes();
        *head = [*tag, u8::from(kept.len() < text.len()), low, high];
        let (place, after) = tail.split_at_mut_checked(kept.len())?;
        place.copy_from_slice(kept);
        rest = after;
        len += 4 + kept.len();
    }
    let padding = len.next_multiple_of(8) - len;
    rest.get_mut(..padding)?.fill(0);
    u16::try_from(len + padding).ok()
}

/// Sets the two hints in metadata that [`encode`] wrote. They are known only after the body was scanned.
pub fn set_hints(metadata: &mut [u8], host: u8, event: u8) {
    if let Some(place) = metadata.get_mut(20..22) {
        place.copy_from_slice(&[host, event]);
    }
}

/// Metadata as read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metadata<'a> {
    /// The fixed part.
    pub stamp: Stamp,
    texts: &'a [u8],
}

/// One text of the metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Text<'a> {
    /// [`ARGUMENT`] or another tag. Tags that this version does not know are passed on.
    pub tag: u8,
    /// The text was longer.
    pub cut: bool,
    /// Any bytes: environment variables need not be UTF-8.
    pub bytes: &'a [u8],
}

impl<'a> Metadata<'a> {
    /// Reads metadata; `None` if it is too short.
    #[must_use]
    pub fn decode(bytes: &'a [u8]) -> Option<Self> {
        let (fixed, texts) = bytes.split_first_chunk::<FIXED_BYTES>()?;
        let (words, _) = fixed.as_chunks::<8>();
        let [wall, boottime, [p0, p1, p2, p3, host, event, _, _]] = words else { return None };
        let stamp = Stamp {
            wall_ns: u64::from_le_bytes(*wall),
            boottime_ns: u64::from_le_bytes(*boottime),
            pid: u32::from_le_bytes([*p0, *p1, *p2, *p3]),
            host: *host,
            event: *event,
        };
        Some(Self { stamp, texts })
    }

    /// The texts, in the order in which they were written. Stops at the padding, or at a text that would be longer than
    /// the rest.
    pub fn texts(&self) -> impl Iterator<Item = Text<'a>> {
        let mut rest = self.texts;
        core::iter::from_fn(move || {
            let ([tag, cut, low, high], tail) = rest.split_first_chunk::<4>()?;
            let (bytes, after) =
                tail.split_at_checked(usize::from(u16::from_le_bytes([*low, *high])))?;
            rest = after;
            (*tag != 0).then_some(Text { tag: *tag, cut: *cut != 0, bytes })
        })
    }

    /// The text with this tag, or `None`.
    #[must_use]
    pub fn text(&self, tag: u8) -> Option<&'a [u8]> {
        self.texts().find(|text| text.tag == tag).map(|text| text.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAMP: Stamp = Stamp { wall_ns: 1, boottime_ns: 2, pid: 3, host: 1, event: 4 };

    fn encoded(texts: &[(u8, &[u8])]) -> Vec<u8> {
        let mut out = vec![0xAA; METADATA_MAX];
        let len = encode(&mut out, &STAMP, texts).unwrap();
        out.truncate(usize::from(len));
        out
    }

    #[test]
    fn metadata_reads_back_and_is_padded_to_eight() {
        let bytes = encoded(&[(ARGUMENT, b"stop"), (CURSOR_VERSION, b""), (PWD, b"/a\xff")]);
        assert_eq!(bytes.len() % 8, 0);
        let metadata = Metadata::decode(&bytes).unwrap();
        assert_eq!(metadata.stamp, STAMP);
        let texts: Vec<_> = metadata.texts().map(|text| (text.tag, text.bytes)).collect();
        assert_eq!(texts, [(ARGUMENT, &b"stop"[..]), (PWD, b"/a\xff")]);
    }

    #[test]
    fn long_texts_are_cut_and_say_so() {
        let long = vec![b'x'; 5_000];
        let bytes = encoded(&[(1, &long), (2, &long), (3, &long), (4, &long), (5, b"late")]);
        assert!(bytes.len() <= METADATA_MAX);
        let metadata = Metadata::decode(&bytes).unwrap();
        let texts: Vec<_> = metadata.texts().map(|t| (t.tag, t.cut, t.bytes.len())).collect();
        assert_eq!(texts, [(1, true, 1_024), (2, true, 1_024), (3, true, 1_012)]);
    }

    #[test]
    fn hints_are_set_afterwards() {
        let mut bytes = encoded(&[]);
        set_hints(&mut bytes, 2, 9);
        let stamp = Metadata::decode(&bytes).unwrap().stamp;
        assert_eq!(stamp, Stamp { host: 2, event: 9, ..STAMP });
    }

    #[test]
    fn an_unknown_tag_is_passed_on() {
        let bytes = encoded(&[(200, b"later")]);
        assert_eq!(Metadata::decode(&bytes).unwrap().text(200), Some(&b"later"[..]));
    }

    #[test]
    fn damaged_metadata_is_read_as_far_as_it_goes() {
        let mut bytes = encoded(&[(ARGUMENT, b"stop"), (PWD, b"/a")]);
        bytes[24 + 8 + 2] = 0xff;
        let texts: Vec<_> = Metadata::decode(&bytes).unwrap().texts().map(|t| t.tag).collect();
        assert_eq!(texts, [ARGUMENT]);
        assert_eq!(Metadata::decode(&bytes[..23]), None);
    }
}
