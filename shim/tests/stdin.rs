use std::fs::File;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use hookspan_shim::frame::{CUT, NO_EOF};
use hookspan_shim::program::{FRAME_BYTES, LARGE_FRAME_BYTES};

use crate::support::{
    ALLOW, Folder, NEUTRAL, check, command, cursor_body, feed, program, run, wait,
};

#[test]
fn any_bytes_are_kept_as_they_came() {
    let utf16: Vec<u8> = "\u{feff}{\"hook_event_name\":\"preToolUse\"}"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let with_bom = [b"\xef\xbb\xbf".as_slice(), &cursor_body("preToolUse"), b"\r\n"].concat();
    let deep = b"[".repeat(1_000_000);
    for (body, answer) in [
        (&b""[..], NEUTRAL),
        (&with_bom, ALLOW),
        (&utf16, NEUTRAL),
        (b"{\"conversation_id\":\"c\",\"text\":\"\xe4\xb8", NEUTRAL),
        (b"\xff\xfe\x00\x01\x02", NEUTRAL),
        (b"\xffHSJ\xffHSJ\x01\x01", NEUTRAL),
        (b"{\"a\":\"\\ud83d\"}", NEUTRAL),
        (&[0; 70_000], NEUTRAL),
        (&deep, NEUTRAL),
    ] {
        let folder = Folder::new();
        check(&run(&folder, "stop", body), answer);
        let record = folder.record();
        assert!(record.body == body, "{} bytes", body.len());
        assert_eq!(record.flags, 0);
    }
}

#[test]
fn bodies_at_every_edge_of_a_frame_are_kept_whole() {
    let folder = Folder::new();
    let first = FRAME_BYTES - 40 - 32;
    let (small, large) = (FRAME_BYTES - 40, LARGE_FRAME_BYTES - 40);
    let edges = [
        first - 1,
        first,
        first + 1,
        first + small,
        first + 3 * small,
        first + 3 * small + 1,
        first + 3 * small + large,
        first + 3 * small + large + 1,
    ];
    for size in edges {
        let body: Vec<u8> = (0..size).map(|i| (i * 7 + (i >> 8)) as u8).collect();
        check(&run(&folder, "stop", &body), NEUTRAL);
        let record = folder.records().pop().unwrap();
        assert!(record.body == body, "{size} bytes");
    }
}

#[test]
fn ten_megabytes_are_kept_and_sixteen_are_the_most() {
    let folder = Folder::new();
    let ten: Vec<u8> = (0..10 << 20).map(|i: u32| (i ^ (i >> 11)) as u8).collect();
    let ran = run(&folder, "preToolUse", &ten);
    check(&ran, ALLOW);
    assert!(folder.record().body == ten);

    let twenty: Vec<u8> = (0..20 << 20).map(|i: u32| (i ^ (i >> 11)) as u8).collect();
    let exact = &twenty[..16 << 20];
    check(&run(&folder, "stop", &twenty), NEUTRAL);
    check(&run(&folder, "stop", exact), NEUTRAL);
    let records = folder.records();
    assert!(records[1].body == exact && records[2].body == exact);
    assert_eq!((records[1].flags, records[2].flags), (CUT, 0));
}

/// Writes `parts` with pauses and then leaves standard input open.
#[track_caller]
fn left_open(body: &[u8], answer: &str, expected: std::ops::Range<u64>) {
    let folder = Folder::new();
    let start = Instant::now();
    let mut child = command(&folder, "stop").spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(body).unwrap();
    let ran = wait(child, start);
    drop(stdin);
    check(&ran, answer);
    let took = u64::try_from(ran.took.as_millis()).unwrap();
    assert!(expected.contains(&took), "{took} ms, expected {expected:?}");
    let record = folder.record();
    assert!(record.body == body);
    assert_eq!(record.flags, NO_EOF);
}

#[test]
fn an_open_input_with_a_complete_value_is_left_after_50_ms() {
    left_open(&cursor_body("preToolUse"), ALLOW, 45..1_900);
}

#[test]
fn an_open_input_with_nothing_is_left_after_2_s() {
    left_open(b"", NEUTRAL, 1_990..4_500);
}

#[test]
fn an_open_input_with_half_a_value_is_left_after_5_s() {
    left_open(b"{\"conversation_id\":\"c\",", NEUTRAL, 4_900..9_000);
}

#[test]
fn a_large_open_input_that_ends_in_a_brace_is_left_after_250_ms() {
    let body = format!("{{\"conversation_id\":\"{}\"}}\n", "x".repeat(50_000));
    left_open(body.as_bytes(), NEUTRAL, 240..2_000);
}

#[test]
fn a_writer_that_pauses_is_waited_for() {
    let folder = Folder::new();
    let body = cursor_body("preToolUse");
    let start = Instant::now();
    let mut child = command(&folder, "stop").spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    for part in body.chunks(body.len() / 3) {
        pause(Duration::from_millis(400));
        stdin.write_all(part).unwrap();
    }
    // A host that writes its newline separately must not find the pipe closed.
    stdin.write_all(b"\n").unwrap();
    drop(stdin);
    check(&wait(child, start), ALLOW);
    let record = folder.record();
    assert_eq!((record.body, record.flags), ([body, b"\n".to_vec()].concat(), 0));
}

#[test]
fn an_endless_trickle_ends_after_5_s() {
    let folder = Folder::new();
    let start = Instant::now();
    let mut child = command(&folder, "stop").spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || {
        while stdin.write_all(b"{").is_ok() {
            pause(Duration::from_millis(10));
        }
    });
    let ran = wait(child, start);
    writer.join().unwrap();
    check(&ran, NEUTRAL);
    assert!((4_900..9_000).contains(&ran.took.as_millis()), "{:?}", ran.took);
    assert_eq!(folder.record().flags, NO_EOF);
}

#[test]
fn an_endless_flood_ends_after_5_s() {
    let folder = Folder::new();
    let mut command = command(&folder, "stop");
    command.stdin(File::open("/dev/zero").unwrap());
    let ran = feed(command, b"");
    check(&ran, NEUTRAL);
    assert!((4_900..9_000).contains(&ran.took.as_millis()), "{:?}", ran.took);
    let record = folder.record();
    assert_eq!((record.flags, record.body.len()), (NO_EOF | CUT, 16 << 20));
}

#[test]
fn inputs_that_are_no_pipes_are_read() {
    let folder = Folder::new();
    let file = folder.join("body");
    std::fs::write(&file, cursor_body("preToolUse")).unwrap();
    let mut from_file = command(&folder, "stop");
    from_file.stdin(File::open(&file).unwrap());
    check(&feed(from_file, b""), ALLOW);

    let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    let mut from_socket = command(&folder, "stop");
    from_socket.stdin(std::os::fd::OwnedFd::from(theirs));
    (&ours).write_all(&cursor_body("preToolUse")).unwrap();
    drop(ours);
    check(&feed(from_socket, b""), ALLOW);

    let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    theirs.set_nonblocking(true).unwrap();
    let mut unblocked = command(&folder, "stop");
    unblocked.stdin(std::os::fd::OwnedFd::from(theirs));
    let start = Instant::now();
    let child = unblocked.spawn().unwrap();
    drop(unblocked);
    pause(Duration::from_millis(100));
    (&ours).write_all(&cursor_body("preToolUse")).unwrap();
    drop(ours);
    check(&wait(child, start), ALLOW);

    let mut nothing = command(&folder, "preToolUse");
    nothing.stdin(Stdio::null());
    check(&feed(nothing, b""), ALLOW);
    let mut directory = command(&folder, "preToolUse");
    directory.stdin(File::open("/").unwrap());
    check(&feed(directory, b""), ALLOW);
    assert_eq!(folder.records().len(), 5);
}

#[test]
fn without_any_standard_input_the_argument_is_answered() {
    let folder = Folder::new();
    for closed in ["<&-", "<&- 2>&-"] {
        let mut shell = Command::new("sh");
        let line = format!("exec \"$0\" --dir \"$1\" preToolUse {closed}");
        shell.arg("-c").arg(line).arg(program()).arg(folder.path());
        shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        check(&feed(shell, b""), ALLOW);
    }
    assert_eq!(folder.records().len(), 2);
}

#[test]
fn a_here_document_arrives_through_every_shell_there_is() {
    let body = "{\"conversation_id\":\"c\",\"text\":\"$(id) \\\\ \u{4e2d}\u{6587} `x`\"}";
    for shell in ["sh", "dash", "bash", "zsh"] {
        if Command::new(shell).args(["-c", ":"]).status().is_err() {
            crate::support::skipped(&format!("no {shell} here"));
            continue;
        }
        let folder = Folder::new();
        for (start, repeat) in [("exec ", 1), ("", 1), ("exec ", 300)] {
            let body = body.repeat(repeat);
            let line = format!(
                "{start}{} --dir {} preToolUse <<'CURSOR_HOOK_EOF'\n{body}\nCURSOR_HOOK_EOF\n",
                program().display(),
                folder.path().display()
            );
            let mut command = Command::new(shell);
            command.args(["-c", &line]);
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
            check(&feed(command, b""), ALLOW);
            let kept = folder.records().pop().unwrap().body;
            assert_eq!(String::from_utf8(kept).unwrap(), format!("{body}\n"), "{shell}");
        }
    }
}

/// Lets time pass. In these tests the pause itself is the input.
fn pause(time: Duration) {
    std::thread::park_timeout(time);
}
