//! Writes and reads the journal's frames by their description in ARCHITECTURE.md, because the harness uses none of the
//! product's code.

use xxhash_rust::xxh64::xxh64;

/// Bytes of a header.
pub const HEADER: usize = 40;
/// Start of the machine that wrote these records, in nanoseconds since 1970.
const BOOTED_NS: u64 = 1_700_000_000_000_000_000;
/// First bytes of every frame.
pub const MAGIC: [u8; 4] = *b"\xffHSJ";

/// A record in one frame, as a shim would write it.
#[must_use]
pub fn record(id: u64, wall_ns: u64, event: &str, body: &[u8]) -> Vec<u8> {
    let mut payload = Vec::new();
    payload.extend(wall_ns.to_le_bytes());
    // The steady clock advances like the wall clock. Otherwise durations would be those of the steady clock.
    payload.extend(wall_ns.saturating_sub(BOOTED_NS).to_le_bytes());
    payload.extend([0; 8]);
    payload.extend([1, 0]);
    payload.extend((event.len() as u16).to_le_bytes());
    payload.extend(event.as_bytes());
    payload.resize(payload.len().next_multiple_of(8), 0);
    let metadata = payload.len() as u16;
    payload.extend(body);
    let mut frame = Vec::from(MAGIC);
    frame.extend([1, 1]);
    frame.extend(metadata.to_le_bytes());
    frame.extend(id.to_le_bytes());
    frame.extend(0_u32.to_le_bytes());
    frame.extend((payload.len() as u32).to_le_bytes());
    frame.extend(xxh64(&payload, id).to_le_bytes());
    let check = xxh64(&frame, 0) as u32;
    frame.extend(check.to_le_bytes());
    frame.extend([0; 4]);
    frame.extend(payload);
    frame
}

/// Payloads found by a reader that trusts every length: the negative control.
#[must_use]
pub fn trusting(file: &[u8]) -> Vec<&[u8]> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(header) = file.get(at..at + HEADER) {
        if header[..4] != MAGIC {
            at += 1;
            continue;
        }
        let length = u32::from_le_bytes([header[20], header[21], header[22], header[23]]) as usize;
        found.extend(file.get(at + HEADER..at + HEADER + length));
        at += HEADER + length;
    }
    found
}

/// The fingerprint by which a stored position identifies a segment.
#[must_use]
pub fn fingerprint(file: &[u8]) -> Option<u64> {
    Some(xxh64(file.get(..HEADER)?, 0))
}
