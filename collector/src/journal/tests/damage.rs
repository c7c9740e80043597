//! Tests that one damaged frame costs nothing but itself.

use hookspan_shim::frame::{self, HEADER_BYTES, LAST};

use super::*;

/// The records of a file that is read once and counts as complete, and the counters.
fn read_file(bytes: &[u8]) -> (Vec<Record>, Counters) {
    let mut file = tempfile::tempfile().unwrap();
    std::io::Write::write_all(&mut file, bytes).unwrap();
    let mut segment = segment::Segment::new(file, 0);
    segment.no_writers = true;
    let mut assembler = assemble::Assembler::default();
    let (mut counters, mut found) = (Counters::default(), Counters::default());
    let mut records = Vec::new();
    let now = clock::instant();
    while segment
        .read(now, &mut counters, |frame| {
            assembler.take(1, frame, now, &mut found, &mut records);
            true
        })
        .unwrap()
    {}
    assembler.give_up_on(1, &mut found, &mut records);
    counters.records = found.records;
    counters.truncated = found.truncated;
    counters.duplicate = found.duplicate;
    counters.conflicting = found.conflicting;
    counters.evicted = found.evicted;
    counters.headless = found.headless;
    (records, counters)
}

/// The bytes of one record.
fn bytes_of(id: u64, body: &[u8]) -> Vec<u8> {
    let temp = tempfile::NamedTempFile::new().unwrap();
    write_to(temp.path(), id, body);
    fs::read(temp.path()).unwrap()
}

/// A frame of a record in several.
fn part(id: u64, seq: u32, body: &[u8], flags: u8) -> Vec<u8> {
    let mut bytes = vec![0; HEADER_BYTES];
    let mut meta_bytes = 0;
    if seq == 0 {
        let mut metadata = vec![0; record::METADATA_MAX];
        let stamp = record::Stamp { wall_ns: id, ..Default::default() };
        meta_bytes = record::encode(&mut metadata, &stamp, &[]).unwrap();
        bytes.extend_from_slice(&metadata[..meta_bytes.into()]);
    }
    bytes.extend_from_slice(body);
    frame::seal(&mut bytes, id, seq, meta_bytes, flags);
    bytes
}

fn three() -> ([Vec<u8>; 3], Vec<u8>) {
    let records = [bytes_of(1, b"first"), bytes_of(2, b"second"), bytes_of(3, b"third")];
    let file = records.concat();
    (records, file)
}

#[test]
fn any_flipped_bit_costs_the_record_it_is_in() {
    let ([first, second, _], file) = three();
    for bit in 0..file.len() * 8 {
        let mut damaged = file.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let at = bit / 8;
        let hit = usize::from(at >= first.len()) + usize::from(at >= first.len() + second.len());
        let mut expected = vec!["first", "second", "third"];
        expected.remove(hit);
        let (records, counters) = read_file(&damaged);
        // A changed version number makes a valid frame of an unknown version only if the checksum is changed
        // accordingly.
        assert_eq!(bodies(&records), expected, "bit {bit}");
        assert_eq!(counters.torn, 1, "bit {bit}");
    }
}

#[test]
fn a_file_cut_at_any_byte_delivers_what_is_whole() {
    let ([first, second, _], file) = three();
    for len in 0..=file.len() {
        let (records, counters) = read_file(&file[..len]);
        let ends = [first.len(), first.len() + second.len(), file.len()];
        let whole = ends.iter().filter(|end| **end <= len).count();
        assert_eq!(bodies(&records), ["first", "second", "third"][..whole], "{len} bytes");
        let rest = len - ends[..whole].last().copied().unwrap_or(0);
        assert_eq!(counters.torn, u64::from(rest > 0), "{len} bytes");
    }
}

#[test]
fn bytes_cut_out_anywhere_cost_one_record_and_no_neighbour() {
    let ([first, second, third], _) = three();
    for kept in 0..second.len() {
        let file = [&first[..], &second[..kept], &third[..]].concat();
        let (records, _) = read_file(&file);
        assert_eq!(bodies(&records), ["first", "third"], "{kept} bytes of the second");
    }
}

#[test]
fn a_header_across_two_reads_of_a_segment_without_writers_is_whole() {
    let (empty, last) = (bytes_of(1, b"").len(), bytes_of(2, b"last"));
    let large: Vec<u8> = (10..14).flat_map(|id| bytes_of(id, &[b'x'; 200_000])).collect();
    for before in 1..HEADER_BYTES {
        // The last record starts this number of bytes before the end of the reader's buffer.
        let fill = segment::READ_BYTES - before - large.len() - empty;
        let file = [&large[..], &bytes_of(20, &vec![b'x'; fill]), &last].concat();
        let (records, counters) = read_file(&file);
        assert_eq!((records.len(), counters.torn), (6, 0), "{before} bytes before the end");
    }
}

#[test]
fn a_hole_of_zeros_costs_what_it_covers() {
    let ([first, second, third], _) = three();
    for from in 0..second.len() {
        let mut holed = second.clone();
        holed[from..].fill(0);
        let (records, _) = read_file(&[&first[..], &holed, &third].concat());
        let survives = holed == second;
        assert_eq!(records.len(), if survives { 3 } else { 2 }, "from {from}");
    }
}

#[test]
fn frames_and_magic_inside_a_body_are_content() {
    let inner = bytes_of(9, b"inner");
    let bodies_sent: [Vec<u8>; 4] = [
        inner.clone(),
        [&frame::MAGIC[..], &inner[..50]].concat(),
        [inner.clone(), inner.clone(), frame::MAGIC.to_vec()].concat(),
        frame::MAGIC.repeat(100),
    ];
    let mut file = Vec::new();
    for (id, body) in (1..).zip(&bodies_sent) {
        file.extend(bytes_of(id, body));
    }
    let (records, counters) = read_file(&file);
    let found: Vec<_> = records.into_iter().map(|record| record.body).collect();
    assert_eq!(found, bodies_sent);
    assert_eq!(counters.torn, 0);
}

#[test]
fn a_frame_seen_half_written_is_waited_for_even_when_another_lies_inside() {
    let world = World::new();
    let mut follower = world.follow(&Position::default());
    let inner = bytes_of(9, b"inner");
    let outer = bytes_of(1, &[&inner[..], b" and the rest"].concat());
    let half = outer.len() - 5;
    let mut file = write::open(&world.dir.journal()).unwrap();
    std::io::Write::write_all(&mut file, &outer[..half]).unwrap();
    for _ in 0..3 {
        assert_eq!(follower.poll(10).records, []);
    }
    std::io::Write::write_all(&mut file, &outer[half..]).unwrap();
    let (records, _) = poll_until(&mut follower, |records, _| !records.is_empty());
    assert!(records[0].body.ends_with(b" and the rest"));
    assert_eq!(follower.counters().torn, 0);
}

#[test]
fn behind_a_torn_frame_the_next_writer_is_read_at_once_or_within_a_second() {
    let world = World::new();
    let mut follower = world.follow(&Position::default());
    let torn = bytes_of(1, &[7; 10_000]);
    let mut file = write::open(&world.dir.journal()).unwrap();
    std::io::Write::write_all(&mut file, &torn[..5_000]).unwrap();
    world.write(2, b"neighbour");
    let start = clock::instant();
    let (records, _) = poll_until(&mut follower, |records, _| !records.is_empty());
    assert_eq!(bodies(&records), ["neighbour"]);
    assert_eq!(follower.counters().torn, 1);
    let waited = clock::instant().duration_since(start);
    assert!(waited < Duration::from_secs(3), "{waited:?}");
}

#[test]
fn a_length_that_lies_is_not_followed() {
    let mut lying = part(1, 0, b"x", LAST);
    lying[20..24].copy_from_slice(&200_000_u32.to_le_bytes());
    let check = hookspan_shim::hash::xxh64(&lying[..32], 0) as u32;
    lying[32..36].copy_from_slice(&check.to_le_bytes());
    let (records, counters) = read_file(&[lying, bytes_of(2, b"next")].concat());
    assert_eq!(bodies(&records), ["next"]);
    assert_eq!(counters.torn, 1);
}

#[test]
fn frames_of_several_writers_alternate() {
    let file = [
        part(1, 0, b"a", 0),
        part(2, 0, b"x", 0),
        part(1, 1, b"b", 0),
        part(3, 0, b"whole", LAST),
        part(2, 1, b"y", LAST),
        part(1, 2, b"c", LAST),
    ]
    .concat();
    let (records, counters) = read_file(&file);
    assert_eq!(bodies(&records), ["whole", "xy", "abc"]);
    assert_eq!((counters.torn, counters.truncated), (0, 0));
}

#[test]
fn frames_out_of_order_and_twice_make_one_record() {
    let file = [
        part(1, 2, b"c", LAST),
        part(1, 0, b"a", 0),
        part(1, 0, b"a", 0),
        part(1, 0, b"z", 0),
        part(1, 1, b"b", 0),
    ]
    .concat();
    let (records, counters) = read_file(&file);
    assert_eq!(bodies(&records), ["abc"]);
    assert_eq!((counters.duplicate, counters.conflicting), (1, 1));
}

#[test]
fn a_record_without_its_end_is_kept_as_truncated() {
    let file = [part(1, 0, b"a", 0), part(1, 1, b"b", 0), part(1, 3, b"d", 0)].concat();
    let (records, counters) = read_file(&file);
    assert_eq!(bodies(&records), ["ab"]);
    assert_eq!(records[0].flags, FLAG_TRUNCATED);
    assert_eq!(counters.truncated, 1);
}

#[test]
fn a_record_without_its_beginning_is_counted() {
    let (records, counters) = read_file(&part(1, 1, b"b", LAST));
    assert_eq!(records, []);
    assert_eq!(counters.headless, 1);
}

/// A frame that a later version might write.
fn newer(body: &[u8]) -> Vec<u8> {
    let mut newer = part(1, 0, body, LAST);
    newer[4] = 2;
    let check = hookspan_shim::hash::xxh64(&newer[..32], 0) as u32;
    newer[32..36].copy_from_slice(&check.to_le_bytes());
    newer
}

#[test]
fn a_newer_shim_killed_in_mid_write_costs_its_neighbours_nothing() {
    let frame = newer(&[b'x'; 300]);
    let next: Vec<u8> = (2..=5).flat_map(|id| bytes_of(id, b"next")).collect();
    for kept in 36..frame.len() {
        let (records, counters) = read_file(&[&frame[..kept], &next].concat());
        assert_eq!(bodies(&records), ["next"; 4], "{kept} bytes of it");
        // A frame that reaches beyond the end is torn, no matter which version wrote it.
        assert_eq!(counters.newer + counters.torn, 1);
    }
}

#[test]
fn a_frame_of_a_newer_shim_is_skipped_whole() {
    let mut header = bytes_of(8, b"not ours to read");
    header[9] ^= 1;
    let newer = newer(&header);
    let (records, counters) = read_file(&[newer, bytes_of(2, b"next")].concat());
    assert_eq!(bodies(&records), ["next"]);
    assert_eq!((counters.newer, counters.torn), (1, 0));
}

#[test]
fn too_many_open_records_push_out_the_oldest() {
    let open: Vec<u8> = (1..=1_030).flat_map(|id| part(id, 0, b"begun", 0)).collect();
    let ends: Vec<u8> = (7..=1_030).flat_map(|id| part(id, 1, b" done", LAST)).collect();
    let (records, counters) = read_file(&[open, ends].concat());
    assert_eq!(counters.evicted, 6);
    assert_eq!(records.len(), 1_030);
    assert!(records[..6].iter().all(|record| record.flags == FLAG_TRUNCATED));
    assert!(records[6..].iter().all(|record| record.body == b"begun done"));
}

#[test]
fn too_many_open_bytes_push_out_the_oldest() {
    let big = vec![b'x'; 250_000];
    let open: Vec<u8> = (0..300).flat_map(|seq| part(1, seq, &big, 0)).collect();
    let (_, counters) = read_file(&open);
    assert_eq!(counters.evicted, 1);
}

#[test]
fn torn_bytes_are_kept_aside_once_and_go_when_something_is_deleted() {
    let world = World::new();
    let mut follower = world.follow(&Position::default());
    let torn = bytes_of(1, b"half of this prompt");
    let half = &torn[..torn.len() - 9];
    let mut file = write::open(&world.dir.journal()).unwrap();
    std::io::Write::write_all(&mut file, half).unwrap();
    world.write(2, b"neighbour");
    std::io::Write::write_all(&mut file, &[0; 300]).unwrap();
    world.write(3, b"behind a hole");
    let (records, _) = poll_until(&mut follower, |records, _| records.len() == 2);
    assert_eq!(bodies(&records), ["neighbour", "behind a hole"]);
    assert_eq!(follower.counters().torn, 2);
    let line = format!("journal, {} bytes at 0:\n", half.len());
    let kept = [line.as_bytes(), half, b"\n"].concat();
    assert!(fs::read(world.dir.torn()).unwrap() == kept, "zeros are not worth keeping");
    scrub::scrub(&world.dir, &Position::default(), &scrub::Lengths::default()).unwrap();
    assert!(!world.dir.torn().exists());
}
