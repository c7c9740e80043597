//! Linux: system calls without libc. The shipped build also starts without a runtime.
//!
//! This file contains no unsafe code. Its two submodules hold the workspace's only unsafe code: `calls` makes system
//! calls that libraries offer only at extra cost, and `entry` starts the program with nothing but a stack pointer.

mod calls;
mod entry;

use core::ffi::CStr;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags, RenameFlags, fstat, open, renameat_with, symlink};
use rustix::io::{Errno, IoSlice, IoSliceMut, ReadWriteFlags, preadv2, pwritev2, read, write};
use rustix::pipe::fcntl_setpipe_size;

pub use self::calls::{clocks, exit, ignore_lease_signal, set_read_lease};
pub use self::entry::{answer_after_panic, drain, enter};
pub use crate::environment::Environment;
use crate::fallback::{APPEND, Places, STOP_TARGET};
use crate::path::{PATH_BYTES, PathBuffer};
use crate::program::{FRAME_BYTES, Invocation, LARGE_FRAME_BYTES, Place, Read, System};
use calls::{block_deadly_signals, boottime_ns, map_memory, never_close, stdin, stdout};

/// Size of the pipe for a large body: the largest size that Linux grants to any user by default.
const LARGE_PIPE_BYTES: usize = 1 << 20;
/// Maximum length of a file name in the state directory, including its NUL.
const NAME_BYTES: usize = 16;
/// Bytes of memory that [`start`] needs for the path of the state directory, followed by a frame.
pub const SCRATCH_BYTES: usize = PATH_BYTES + NAME_BYTES + 8 + FRAME_BYTES;

/// Runs the program. `scratch` has [`SCRATCH_BYTES`]. The clocks were read before anything else.
pub fn start(
    environment: &Environment<'_>,
    (wall_ns, boottime_ns): (u64, u64),
    pid: u32,
    id: u64,
    scratch: &mut [u8],
) {
    let invocation = Invocation {
        wall_ns,
        boottime_ns,
        pid,
        id,
        argument: environment.argument,
        cursor_version: environment.cursor_version,
        project_dir: environment.project_dir,
        transcript_path: environment.transcript_path,
        code_remote: environment.code_remote,
        pwd: environment.pwd,
    };
    // The path is stored directly before the frame. On a separate page it would cost one more page fault.
    let prefix_bytes = environment.state_dir().map_or(0, |parts| write_prefix(scratch, parts));
    let frame_at = (prefix_bytes + NAME_BYTES).next_multiple_of(8);
    let Some((path, buffer)) = scratch.split_at_mut_checked(frame_at) else { return };
    let mut system =
        Linux { path, prefix_bytes, environment, has_no_wait: true, stdout_is_taken: false };
    block_deadly_signals();
    crate::program::run(&mut system, &invocation, buffer);
}

/// Writes the state directory with a final slash. Returns its length, or 0 if the path is too long.
fn write_prefix(scratch: &mut [u8], (base, suffix): (&[u8], &[u8])) -> usize {
    let len = base.len() + suffix.len();
    let Some(place) = scratch.get_mut(..len).filter(|_| len < PATH_BYTES) else { return 0 };
    let (front, back) = place.split_at_mut(base.len());
    front.copy_from_slice(base);
    back.copy_from_slice(suffix);
    len
}

struct Linux<'a> {
    /// The state directory with its final slash, and room for a file name after it.
    path: &'a mut [u8],
    /// Length of the state directory; 0 if there is none.
    prefix_bytes: usize,
    environment: &'a Environment<'a>,
    /// The kernel supports reads without waiting on this kind of file.
    has_no_wait: bool,
    /// Standard output was closed at the start, and descriptor 1 became a file that this program opened.
    stdout_is_taken: bool,
}

impl Linux<'_> {
    /// The path of a file in the state directory.
    fn path_of(&mut self, name: &[u8]) -> Result<&CStr, Errno> {
        let place = self.path.get_mut(self.prefix_bytes..).unwrap_or_default();
        if self.prefix_bytes == 0 || place.len() <= name.len() {
            return Err(Errno::NOENT);
        }
        let (front, back) = place.split_at_mut(name.len());
        front.copy_from_slice(name);
        back.fill(0);
        CStr::from_bytes_until_nul(self.path).map_err(|_| Errno::INVAL)
    }

    /// Opens the journal in the usual case: it exists and is ours.
    ///
    /// `O_NOATIME` checks the owner at no cost, because only the owner of a file may use this flag. If another user
    /// placed a file here, opening it gives `EPERM`, whatever its mode. Root may use the flag on any file, so root's
    /// state directory must be root's own; the collector checks that. The directory is not checked here: other users
    /// cannot read or replace a journal of ours, no matter in which directory it is.
    fn open_journal(&mut self) -> Result<BorrowedFd<'static>, Errno> {
        let path = self.path_of(b"journal")?;
        let file = open(path, APPEND | OFlags::NOATIME, Mode::empty())?;
        Ok(self.keep_open(file))
    }

    /// All other cases: see [`crate::fallback`].
    #[cold]
    #[inline(never)]
    fn fall_back(&mut self, place: Place) -> Result<BorrowedFd<'static>, Errno> {
        let places = Places {
            state_dir: self.path.get(..self.prefix_bytes).unwrap_or_default(),
            home_bytes: self.environment.home_bytes(),
            run_time_dir: self.environment.runtime_dir,
            working_dir: self.environment.pwd,
        };
        let file = places.open(place)?;
        Ok(self.keep_open(file))
    }

    fn keep_open(&mut self, file: OwnedFd) -> BorrowedFd<'static> {
        self.stdout_is_taken |= file.as_raw_fd() == 1;
        never_close(file)
    }

    /// `Some` if the call did not have to wait.
    fn try_without_waiting(&mut self, into: &mut [u8]) -> Option<Read> {
        let mut slices = [IoSliceMut::new(into)];
        // Offset -1 means the file's own position.
        match preadv2(stdin(), &mut slices, u64::MAX, ReadWriteFlags::NOWAIT) {
            Ok(0) => Some(Read::End),
            Ok(count) => Some(Read::Bytes(count)),
            Err(Errno::AGAIN | Errno::INTR) => Some(Read::Nothing),
            Err(_) => {
                self.has_no_wait = false;
                None
            }
        }
    }
}

impl System for Linux<'_> {
    type File = BorrowedFd<'static>;

    fn boottime_ns(&mut self) -> u64 {
        boottime_ns()
    }

    fn read_now(&mut self, into: &mut [u8]) -> Read {
        if !self.has_no_wait {
            return Read::Nothing;
        }
        self.try_without_waiting(into).unwrap_or(Read::Nothing)
    }

    fn read_within(&mut self, into: &mut [u8], ms: u64) -> Read {
        let input = stdin();
        let mut waiting = [PollFd::from_borrowed_fd(input, PollFlags::IN | PollFlags::RDHUP)];
        match poll(&mut waiting, Some(&timespec(ms))) {
            Ok(0) => return Read::TimedOut,
            Err(Errno::INTR) => return Read::Nothing,
            // If the descriptor is bad, the next read reports it.
            _ => {}
        }
        let [waited] = &waiting;
        let gone = waited.revents().intersects(PollFlags::HUP | PollFlags::RDHUP);
        match read(input, &mut *into) {
            Ok(0) => Read::End,
            Ok(count) if gone && count < into.len() => Read::LastBytes(count),
            Ok(count) => Read::Bytes(count),
            Err(Errno::AGAIN | Errno::INTR) => Read::Nothing,
            Err(_) => Read::End,
        }
    }

    fn open(&mut self, place: Place) -> Result<Self::File, u32> {
        if place == Place::Journal
            && let Ok(journal) = self.open_journal()
        {
            return Ok(journal);
        }
        self.fall_back(place).map_err(number)
    }

    fn append(&mut self, file: &Self::File, bytes: &[u8]) -> Result<usize, u32> {
        loop {
            match write(file, bytes) {
                Err(Errno::INTR) => {}
                result => return result.map_err(number),
            }
        }
    }

    fn size(&mut self, file: &Self::File) -> Option<u64> {
        fstat(file).ok().and_then(|stat| u64::try_from(stat.st_size).ok())
    }

    #[cold]
    #[inline(never)]
    fn stop_journal(&mut self, journal: &Self::File) {
        let mut stop = PathBuffer::<PATH_BYTES>::new();
        let path = match self.path_of(b"journal") {
            Ok(path) if stop.push(path.to_bytes()).and(stop.push(b".stop")).is_ok() => path,
            _ => return,
        };
        if let Ok(stop) = stop.as_c_str() {
            stop_journal(path, stop, *journal);
        }
    }

    fn large_buffer(&mut self) -> Option<&'static mut [u8]> {
        // With the usual 64 KiB pipe, writer and reader would take turns waiting for each other. Files that are not
        // pipes refuse the call.
        let _ = fcntl_setpipe_size(stdin(), LARGE_PIPE_BYTES);
        map_memory(LARGE_FRAME_BYTES)
    }

    fn reply(&mut self, answer: &[u8], until_ns: u64) {
        if self.stdout_is_taken {
            return;
        }
        let output = stdout();
        let slices = [IoSlice::new(answer)];
        match pwritev2(output, &slices, u64::MAX, ReadWriteFlags::NOWAIT) {
            Ok(_) | Err(Errno::PIPE | Errno::BADF) => return,
            Err(_) => {}
        }
        // The pipe is full, or the file (such as a terminal) cannot be written without waiting.
        loop {
            let ms = until_ns.saturating_sub(boottime_ns()) / 1_000_000;
            let mut waiting = [PollFd::from_borrowed_fd(output, PollFlags::OUT)];
            match poll(&mut waiting, Some(&timespec(ms))) {
                Err(Errno::INTR) if ms > 0 => {}
                Ok(1..) => {
                    let _ = write(output, answer);
                    return;
                }
                _ => return,
            }
        }
    }
}

/// Exchanges `journal` with the link `stop`. If several programs do this at once, no exchange is undone.
#[cold]
pub fn stop_journal(journal: &CStr, stop: &CStr, open_journal: BorrowedFd<'_>) {
    let Ok(ours) = fstat(open_journal) else { return };
    for _ in 0..16 {
        match rustix::fs::lstat(journal) {
            Ok(now) if (now.st_dev, now.st_ino) == (ours.st_dev, ours.st_ino) => {}
            _ => return,
        }
        if renameat_with(CWD, journal, CWD, stop, RenameFlags::EXCHANGE) == Err(Errno::NOENT)
            && symlink(STOP_TARGET, stop).is_err()
        {
            return;
        }
    }
}

fn number(errno: Errno) -> u32 {
    errno.raw_os_error().unsigned_abs()
}

fn timespec(ms: u64) -> Timespec {
    Timespec { tv_sec: (ms / 1_000) as i64, tv_nsec: (ms % 1_000 * 1_000_000) as i64 }
}
