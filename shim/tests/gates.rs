//! Checks counts that are the same on any machine. Times are measured in `benches/alternating.rs`.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Folder, drain, floor, program, skipped};

/// A body of 4 KiB: source text in a tool's input, with an escape every sixty bytes.
fn four_kibibytes() -> Vec<u8> {
    let line = "    let value = compute(&input, 42).unwrap_or_default();\\n";
    let mut body =
        br#"{"conversation_id":"5e1f","generation_id":"77aa","tool_input":{"content":""#.to_vec();
    while body.len() < 4_040 {
        body.extend_from_slice(line.as_bytes());
    }
    body.extend_from_slice(br#""},"hook_event_name":"preToolUse"}"#);
    body
}

/// Runs a tool on the program, with `body` in a file. Returns the tool's output, or says why it could not run.
fn under(tool: &str, arguments: &[&str], program: &Path, body: &[u8]) -> Option<String> {
    let folder = Folder::new();
    fs::write(folder.join("body"), body).unwrap();
    // The journal exists, as in every run except the first.
    fs::write(folder.join("journal"), b"").unwrap();
    let output = Command::new(tool)
        .args(arguments)
        .arg(program)
        .arg("--dir")
        .arg(folder.path())
        .arg("preToolUse")
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .stdin(fs::File::open(folder.join("body")).unwrap())
        .stdout(Stdio::null())
        .output();
    match output {
        Ok(output) if output.status.success() => {
            Some(String::from_utf8_lossy(&output.stderr).into_owned())
        }
        Ok(output) => {
            skipped(&format!("{tool} does not work here: {}", output.status));
            None
        }
        Err(error) => {
            skipped(&format!("{tool}: {error}"));
            None
        }
    }
}

/// The system calls of one run, without those at the beginning and end of any program. `None` if strace is missing.
fn system_calls(program: &Path) -> Option<Vec<String>> {
    Some(names_of_calls(&under("strace", &[], program, &four_kibibytes())?))
}

fn names_of_calls(trace: &str) -> Vec<String> {
    let calls = trace.lines().filter(|line| line.contains(" = ") && line.contains('('));
    let names = calls.filter_map(|line| line.split('(').next());
    names.filter(|name| !["execve", "exit_group"].contains(name)).map(str::to_owned).collect()
}

#[test]
fn nine_system_calls_are_enough_to_keep_and_answer_a_hook() {
    for _ in 0..5 {
        let Some(calls) = system_calls(&program()) else { return };
        // One run in sixteen checks the journal's size.
        let (looks, others): (Vec<_>, Vec<_>) =
            calls.into_iter().partition(|name| name.contains("fstat"));
        assert!(others.len() <= 9 && looks.len() <= 1, "{others:?} {looks:?}");
    }
}

/// The count if the program starts before its input arrives, and the writer closes its end directly after writing. The
/// kernel may wake the program between write and close, which costs further calls. On a busy machine it nearly always
/// does, so one run in a hundred is enough.
#[test]
fn nine_system_calls_are_enough_when_the_input_comes_late() {
    let mut fewest = usize::MAX;
    for _ in 0..100 {
        let Some(calls) = calls_with_late_input() else { return };
        assert!(calls.iter().any(|name| name.contains("poll")), "{calls:?}");
        fewest = fewest.min(calls.iter().filter(|name| !name.contains("fstat")).count());
        if fewest <= 9 {
            return;
        }
    }
    panic!("{fewest} system calls");
}

/// The system calls of a run whose input is written only after the program waits for it.
fn calls_with_late_input() -> Option<Vec<String>> {
    let folder = Folder::new();
    fs::write(folder.join("journal"), b"").unwrap();
    let trace = folder.join("trace");
    let mut strace = Command::new("strace");
    strace.arg("-o").arg(&trace).arg(program()).arg("--dir").arg(folder.path()).arg("preToolUse");
    let spawned = strace.stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
    let Ok(mut child) = spawned else {
        skipped("strace is not installed");
        return None;
    };
    let mut stdin = child.stdin.take().unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    while !fs::read_to_string(&trace).is_ok_and(|text| text.contains("poll(")) {
        assert!(Instant::now() < deadline, "it does not wait");
        std::thread::yield_now();
    }
    stdin.write_all(&four_kibibytes()).unwrap();
    drop(stdin);
    assert!(child.wait().unwrap().success());
    assert_eq!(folder.record().body, four_kibibytes());
    Some(names_of_calls(&fs::read_to_string(&trace).unwrap()))
}

/// Shows that the gate above can fail: a program with libc makes more calls, and all of them are counted.
#[test]
fn system_calls_of_another_program_are_counted() {
    let Some(calls) = system_calls(Path::new("/bin/true")) else { return };
    assert!(calls.len() > 9, "{calls:?}");
    let Some(calls) = system_calls(&drain()) else { return };
    assert_eq!(calls, ["read", "read", "write"]);
}

/// Each size takes another path: the first frame alone, several frames, the large buffer. Late input, a missing state
/// directory, and a file in its place (the hook is spilled) take further paths.
#[test]
fn the_shipped_program_makes_no_memory_error() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        return skipped("valgrind is not installed");
    }
    let folder = Folder::new();
    let sizes = [0, 1, 4_096, 65_536, 300_000].map(|size| (size, folder.path().to_path_buf()));
    fs::write(folder.join("file"), b"").unwrap();
    let odd = ["missing", "file", "file"].map(|name| (4_096, folder.join(name)));
    for (size, dir) in sizes.into_iter().chain(odd) {
        let body: Vec<u8> = four_kibibytes().into_iter().cycle().take(size).collect();
        let mut valgrind = Command::new("valgrind");
        valgrind.args(["--quiet", "--error-exitcode=9"]).arg(program()).arg("--dir").arg(dir);
        valgrind.arg("preToolUse").env("XDG_RUNTIME_DIR", folder.path());
        valgrind.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = valgrind.spawn().unwrap();
        child.stdin.take().unwrap().write_all(&body).unwrap();
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.is_empty(), "{size} bytes: {said}");
    }
    assert_eq!(folder.records().len(), 5);
    assert_eq!(fs::read_dir(folder.join("hookspan")).unwrap().count(), 1, "one spill file");
}

/// Instructions of one run, counted by a simulated processor. The number is the same on every machine. `None` if
/// valgrind is missing.
fn instructions(program: &Path, body: &[u8]) -> Option<u64> {
    let arguments = ["--tool=callgrind", "--callgrind-out-file=/dev/null"];
    let report = under("valgrind", &arguments, program, body)?;
    let line = report.lines().find(|line| line.contains("Collected")).unwrap();
    Some(line.rsplit(' ').next().unwrap().parse().unwrap())
}

#[test]
fn five_thousand_instructions_are_enough_around_the_body() {
    let Some(count) = instructions(&program(), b"") else { return };
    assert!(count <= 5_000, "{count}");
}

#[test]
fn twenty_five_thousand_instructions_are_enough_for_four_kibibytes() {
    let Some(count) = instructions(&program(), &four_kibibytes()) else { return };
    assert!(count <= 25_000, "{count}");
}

/// Shows that the gates above can fail: a program that only loops over the same calls has other counts.
#[test]
fn instructions_follow_what_is_done() {
    let (Some(exit), Some(drain), Some(empty), Some(full)) = (
        instructions(&floor(), b""),
        instructions(&drain(), b""),
        instructions(&program(), b""),
        instructions(&program(), &four_kibibytes()),
    ) else {
        return;
    };
    assert!(exit < drain && drain < empty, "{exit} {drain} {empty}");
    // Each byte is read twice: for the name, and for the checksum.
    assert!(full > empty + 4_096, "{empty} {full}");
}

#[test]
fn the_program_is_small_static_and_in_one_segment() {
    let bytes = fs::read(program()).unwrap();
    assert!(bytes.len() <= 32 << 10, "{} bytes", bytes.len());
    let word = |at: usize, len: usize| {
        bytes[at..at + len].iter().rev().fold(0_u64, |sum, byte| (sum << 8) | u64::from(*byte))
    };
    assert_eq!((&bytes[..4], bytes[4]), (&b"\x7fELF"[..], 2), "64 bits");
    let (table, size, count) = (word(32, 8), word(54, 2), word(56, 2));
    let header = |index: u64| usize::try_from(table + index * size).unwrap();
    let kinds: Vec<u64> = (0..count).map(|index| word(header(index), 4)).collect();
    const LOAD: u64 = 1;
    const INTERPRETER: u64 = 3;
    const STACK: u64 = 0x6474_e551;
    let loads: Vec<usize> = (0..count).map(header).filter(|at| word(*at, 4) == LOAD).collect();
    assert_eq!(loads.len(), 1, "{kinds:x?}");
    assert!(!kinds.contains(&INTERPRETER), "{kinds:x?}");
    const READ_EXECUTE: u64 = 5;
    const READ_WRITE: u64 = 6;
    assert_eq!(word(loads[0] + 4, 4), READ_EXECUTE, "nothing is writable");
    assert_eq!(word(loads[0] + 32, 8), word(loads[0] + 40, 8), "no memory beyond the file");
    let stack = (0..count).map(header).find(|at| word(*at, 4) == STACK).unwrap();
    assert_eq!(word(stack + 4, 4), READ_WRITE, "the stack is not executable");
}

#[test]
fn no_instruction_asks_which_processor_it_is() {
    let Ok(output) = Command::new("objdump").arg("-d").arg(program()).output() else {
        return skipped("objdump is not installed");
    };
    let listing = String::from_utf8_lossy(&output.stdout);
    assert!(listing.contains("syscall") || listing.contains("svc"), "a listing");
    assert!(!listing.contains("cpuid"));
}

/// Minor page faults of one run: the difference in the count for this process's children.
fn page_faults(program: &Path, folder: &Folder) -> u64 {
    let sum = || -> u64 {
        let stat = fs::read_to_string("/proc/thread-self/stat").unwrap();
        stat.rsplit(')').next().unwrap().split_ascii_whitespace().nth(8).unwrap().parse().unwrap()
    };
    let before = sum();
    let status = Command::new(program)
        .arg("--dir")
        .arg(folder.path())
        .arg("preToolUse")
        .env_clear()
        .stdin(fs::File::open(folder.join("body")).unwrap())
        .stdout(Stdio::null())
        .status();
    assert!(status.unwrap().success());
    sum() - before
}

#[test]
fn three_page_faults_more_than_exiting_are_enough() {
    // Other tests of this process start children, too. So the counting runs in a separate process, which this variable
    // marks.
    const ALONE: &str = "HOOKSPAN_TEST_ALONE";
    if std::env::var_os(ALONE).is_none() {
        let name = "gates::three_page_faults_more_than_exiting_are_enough";
        let mut alone = Command::new(std::env::current_exe().unwrap());
        let output = alone.args(["--exact", name]).env(ALONE, "1").output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        return assert!(output.status.success() && text.contains("1 passed"), "{text}");
    }
    let folder = Folder::new();
    fs::write(folder.join("body"), four_kibibytes()).unwrap();
    let median = |program: &Path| {
        let mut counts: Vec<u64> = (0..51).map(|_| page_faults(program, &folder)).collect();
        counts.sort_unstable();
        counts[25]
    };
    let (least, ours) = (median(&floor()), median(&program()));
    assert!(ours <= least + 3, "{ours} against {least}");
}
