use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{ALLOW, Folder, check, command, cursor_body, feed, program, wait};

#[test]
fn without_standard_output_the_answer_goes_nowhere_and_not_into_the_journal() {
    for closed in [">&-", "<&- >&-", "<&- >&- 2>&-"] {
        let folder = Folder::new();
        let mut shell = Command::new("sh");
        let line = format!("exec \"$0\" --dir \"$1\" preToolUse {closed}");
        shell.arg("-c").arg(line).arg(program()).arg(folder.path());
        shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        check(&feed(shell, b""), "");
        assert_eq!(folder.record().body, b"", "{closed}");
    }
}

#[test]
fn nobody_reading_the_answer_is_no_failure() {
    let folder = Folder::new();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut to_pipe = command(&folder, "stop");
    to_pipe.stdout(writer);
    check(&feed(to_pipe, &cursor_body("stop")), "");

    let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    drop(ours);
    let mut to_socket = command(&folder, "stop");
    to_socket.stdout(OwnedFd::from(theirs));
    check(&feed(to_socket, &cursor_body("stop")), "");
    assert_eq!(folder.records().len(), 2);
}

#[test]
fn an_output_that_takes_nothing_is_no_failure() {
    let folder = Folder::new();
    let mut to_full = command(&folder, "stop");
    to_full.stdout(OpenOptions::new().write(true).open("/dev/full").unwrap());
    check(&feed(to_full, &cursor_body("stop")), "");
    let mut to_read_only = command(&folder, "stop");
    to_read_only.stdout(File::open("/dev/null").unwrap());
    check(&feed(to_read_only, &cursor_body("stop")), "");
    assert_eq!(folder.records().len(), 2);
}

#[test]
fn a_full_pipe_is_waited_for_5_s_and_answered_when_it_is_emptied() {
    let folder = Folder::new();
    let blocked = |folder: &Folder| {
        let (reader, mut writer) = std::io::pipe().unwrap();
        writer.write_all(&[b'x'; 65_536]).unwrap();
        let mut command = command(folder, "preToolUse");
        command.stdin(Stdio::null()).stdout(writer);
        let start = Instant::now();
        (reader, command.spawn().unwrap(), start)
    };
    let (reader, child, start) = blocked(&folder);
    let ran = wait(child, start);
    drop(reader);
    check(&ran, "");
    assert!((4_900..9_000).contains(&ran.took.as_millis()), "{:?}", ran.took);

    let (mut reader, child, start) = blocked(&folder);
    std::thread::park_timeout(Duration::from_millis(300));
    let mut all = String::new();
    reader.read_to_string(&mut all).unwrap();
    assert!(all.ends_with(ALLOW) && all.len() == 65_536 + ALLOW.len());
    check(&wait(child, start), "");
}

#[test]
fn a_file_and_a_socket_get_the_answer() {
    let folder = Folder::new();
    let path = folder.join("answer");
    let mut to_file = command(&folder, "preToolUse");
    to_file.stdin(Stdio::null()).stdout(File::create(&path).unwrap());
    check(&feed(to_file, b""), "");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), ALLOW);

    let (mut ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    let mut to_socket = command(&folder, "preToolUse");
    to_socket.stdin(Stdio::null()).stdout(OwnedFd::from(theirs));
    let child = to_socket.spawn().unwrap();
    drop(to_socket);
    let mut answer = String::new();
    ours.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, ALLOW);
    check(&wait(child, Instant::now()), "");
}
