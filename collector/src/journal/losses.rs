//! Hooks that a shim could keep nowhere: the disk was full, the journal at its bound, the directory not writable.

use std::collections::BTreeMap;
use std::fs;
use std::io;

use hookspan_shim::losses::{LOSS_BYTES, LOSSES_MAX_BYTES, Loss};

use crate::dirs::StateDir;

/// Losses since the state directory was made, by reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Hooks lost; a lower bound when [`Losses::saturated`].
    pub total: u64,
    /// Hooks lost by reason: `journal_full`, `disk_full`, `read_only`, `permission`, `write_cut_short`, `damaged` (an entry
    /// that cannot be read) or `errno_N`.
    pub by_reason: BTreeMap<String, u64>,
    /// The file has reached its size limit and counts no further.
    pub saturated: bool,
    /// Bytes of body lost with them.
    pub bytes: u64,
}

/// Reads what shims have counted. No file is no loss.
///
/// # Errors
/// The file is there and cannot be read.
pub fn read(dir: &StateDir) -> io::Result<Losses> {
    let bytes = match fs::read(dir.losses()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Losses::default()),
        other => other?,
    };
    let mut losses =
        Losses { saturated: bytes.len() as u64 >= LOSSES_MAX_BYTES, ..Losses::default() };
    let (entries, _) = bytes.as_chunks::<LOSS_BYTES>();
    for entry in entries {
        let loss = Loss::decode(entry);
        losses.total += 1;
        losses.bytes += loss.map_or(0, |loss| loss.bytes.into());
        let reason = loss.map_or_else(|| "damaged".to_owned(), |loss| reason(loss.errno));
        *losses.by_reason.entry(reason).or_default() += 1;
    }
    Ok(losses)
}

/// Names an error number; they are the same on every Linux and, these, on every other Unix but one.
fn reason(errno: u32) -> String {
    match errno {
        0 => "write_cut_short".to_owned(),
        1 | 13 => "permission".to_owned(),
        27 => "file_size_limit".to_owned(),
        28 | 122 => "disk_full".to_owned(),
        30 => "read_only".to_owned(),
        40 => "journal_full".to_owned(),
        other => format!("errno_{other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_counted_by_reason() {
        let temp = tempfile::tempdir().unwrap();
        let dir = StateDir::at(temp.path());
        assert_eq!(read(&dir).unwrap(), Losses::default());
        let loss = |errno| Loss { wall_ns: 1, id: 2, errno, bytes: 10 }.encode();
        let mut file = [loss(28), loss(28), loss(40), loss(5)].concat();
        file.extend_from_slice(&[7; 32]);
        file.extend_from_slice(b"a torn one");
        fs::write(dir.losses(), file).unwrap();
        let losses = read(&dir).unwrap();
        assert_eq!((losses.total, losses.bytes, losses.saturated), (5, 40, false));
        let expected = [("damaged", 1), ("disk_full", 2), ("errno_5", 1), ("journal_full", 1)];
        assert_eq!(losses.by_reason, expected.map(|(name, n)| (name.to_owned(), n)).into());
    }
}
