//! Checks the formats read from a journal: headers, metadata, losses.

use arbitrary::{Arbitrary, Unstructured};
use hookspan_shim::frame::{Decoded, HEADER_BYTES, Header, seal};
use hookspan_shim::losses::Loss;
use hookspan_shim::record::{METADATA_MAX, Metadata, Stamp, TEXT_MAX, encode, set_hints};

#[derive(Arbitrary, Debug)]
struct Given<'a> {
    wall_ns: u64,
    boottime_ns: u64,
    pid: u32,
    hints: (u8, u8),
    id: u64,
    flags: u8,
    texts: Vec<(u8, &'a [u8])>,
    body: &'a [u8],
}

/// Reads the bytes as each of the formats, and writes the result again.
pub fn record(data: &[u8]) {
    decode_anything(data);
    if let Ok(given) = Given::arbitrary_take_rest(Unstructured::new(data)) {
        write_and_read(&given);
    }
}

fn decode_anything(data: &[u8]) {
    if let Some(Decoded::Header(header)) = data.first_chunk::<HEADER_BYTES>().map(Header::decode) {
        // A valid header can be written in one way only.
        assert_eq!(Some(&header.encode()), data.first_chunk());
        let _ = header.matches(data.get(HEADER_BYTES..).unwrap_or_default());
    }
    if let Some(metadata) = Metadata::decode(data) {
        let bytes: usize = metadata.texts().map(|text| text.bytes.len() + 4).sum();
        assert!(bytes <= data.len());
        for text in metadata.texts() {
            assert!(metadata.text(text.tag).is_some());
        }
    }
    if let Some(bytes) = data.first_chunk()
        && let Some(loss) = Loss::decode(bytes)
    {
        assert_eq!(&loss.encode(), bytes);
    }
}

fn write_and_read(given: &Given<'_>) {
    let stamp = Stamp {
        wall_ns: given.wall_ns,
        boottime_ns: given.boottime_ns,
        pid: given.pid,
        host: given.hints.0,
        event: given.hints.1,
    };
    // Tag 0 is the padding.
    let texts: Vec<(u8, &[u8])> =
        given.texts.iter().copied().filter(|(tag, _)| *tag != 0).collect();
    let mut frame = vec![0xAA; HEADER_BYTES + METADATA_MAX];
    let place = frame.get_mut(HEADER_BYTES..).unwrap_or_default();
    let unset = Stamp { host: 0, event: 0, ..stamp };
    let Some(meta_bytes) = encode(place, &unset, &texts) else { panic!("room for any metadata") };
    set_hints(place, stamp.host, stamp.event);
    frame.truncate(HEADER_BYTES + usize::from(meta_bytes));
    frame.extend_from_slice(given.body);
    seal(&mut frame, given.id, 0, meta_bytes, given.flags);

    let Some((header, payload)) = frame.split_first_chunk::<HEADER_BYTES>() else { return };
    let Decoded::Header(header) = Header::decode(header) else { panic!("a header") };
    assert!(header.matches(payload));
    assert_eq!((header.id, header.flags, header.seq), (given.id, given.flags, 0));
    let (metadata, body) = payload.split_at(header.meta_bytes.into());
    assert_eq!(body, given.body);
    let Some(metadata) = Metadata::decode(metadata) else { panic!("metadata") };
    assert_eq!(metadata.stamp, stamp);
    // Each stored text is a beginning of the given text, and is marked if it was cut.
    let mut given_texts = texts.iter().filter(|(_, text)| !text.is_empty());
    for kept in metadata.texts() {
        let Some((tag, text)) = given_texts.next() else { panic!("a text from nowhere") };
        assert_eq!(kept.tag, *tag);
        assert!(text.starts_with(kept.bytes));
        assert!(kept.bytes.len() <= TEXT_MAX);
        assert_eq!(kept.cut, kept.bytes.len() < text.len());
    }
}
