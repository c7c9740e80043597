//! System calls that no safe crate offers without libc or extra cost, and the standard streams.
//!
//! - `clock_gettime`: rustix looks for the vDSO first, which costs more than the call itself.
//! - `rt_sigprocmask`, `rt_sigaction`, `fcntl(F_SETLEASE)`, `exit_group`: rustix has none of them without libc.
//! - Descriptors that stay open until the process ends, and memory that is never unmapped: each saves a call.

#![expect(unsafe_code, reason = "system calls of a program without libc; argued block by block")]

use core::arch::asm;

use rustix::fd::{AsRawFd, BorrowedFd, IntoRawFd, OwnedFd};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};

/// Nanoseconds of the wall clock and of `CLOCK_BOOTTIME`.
#[must_use]
pub fn clocks() -> (u64, u64) {
    (clock_ns(CLOCK_REALTIME), boottime_ns())
}

/// `CLOCK_BOOTTIME` in nanoseconds.
pub(super) fn boottime_ns() -> u64 {
    clock_ns(CLOCK_BOOTTIME)
}

/// Standard input.
pub(super) fn stdin() -> BorrowedFd<'static> {
    // SAFETY: nothing closes descriptor 0. If it was closed at the start, calls on it fail or reach a file that this
    // program opened.
    unsafe { BorrowedFd::borrow_raw(0) }
}

/// Standard output. The caller makes sure that descriptor 1 is not a file that we opened.
pub(super) fn stdout() -> BorrowedFd<'static> {
    // SAFETY: nothing closes descriptor 1 either.
    unsafe { BorrowedFd::borrow_raw(1) }
}

/// Keeps a descriptor open until the process ends, which saves a call.
pub(super) fn never_close(file: OwnedFd) -> BorrowedFd<'static> {
    // SAFETY: nothing owns the descriptor any more, so nothing closes it.
    unsafe { BorrowedFd::borrow_raw(file.into_raw_fd()) }
}

/// Zeroed memory of this size, with its pages already present; `None` if the system has none.
pub(super) fn map_memory(bytes: usize) -> Option<&'static mut [u8]> {
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    let flags = MapFlags::PRIVATE | MapFlags::POPULATE;
    // SAFETY: a new private mapping. Nothing else refers to it, and it is never unmapped.
    unsafe {
        let none = core::ptr::null_mut();
        let start = mmap_anonymous(none, bytes, protection, flags).ok()?;
        Some(core::slice::from_raw_parts_mut(start.cast(), bytes))
    }
}

/// Takes or drops a read lease on a file that is open for reading: `F_SETLEASE` with `F_RDLCK` or `F_UNLCK`.
///
/// The kernel grants a lease only if no process, not even a stopped one, has the file open for writing. A process that
/// later opens the file for writing waits until the lease is dropped or `lease-break-time` has passed. The kernel then
/// sends `SIGIO` to this process, whose default action ends the process. So ignore or handle `SIGIO` first.
///
/// # Errors
///
/// `EAGAIN`: a writer has the file open. Any other error: the file system or the system has no leases.
pub fn set_read_lease(file: BorrowedFd<'_>, take: bool) -> Result<(), Errno> {
    const F_SETLEASE: usize = 1_024;
    let kind = if take { 0 } else { 2 };
    let fd = usize::try_from(file.as_raw_fd()).map_err(|_| Errno::BADF)?;
    // SAFETY: the call reads no memory.
    let result = unsafe { syscall4(NR_FCNTL, [fd, F_SETLEASE, kind, 0]) };
    if result < 0 { Err(Errno::from_raw_os_error(-result as i32)) } else { Ok(()) }
}

/// Ignores `SIGIO` in this process. Call it before [`set_read_lease`].
pub fn ignore_lease_signal() {
    const SIGIO: usize = 29;
    const SIG_IGN: usize = 1;
    // The kernel's structure begins with the handler. Flags and mask are empty.
    let action = [SIG_IGN, 0, 0, 0];
    // SAFETY: the call reads the structure, which is at most as long as these four words.
    unsafe { syscall4(NR_RT_SIGACTION, [SIGIO, (&raw const action) as usize, 0, 8]) };
}

const CLOCK_REALTIME: usize = 0;
const CLOCK_BOOTTIME: usize = 7;

/// A clock in nanoseconds; 0 if the kernel does not have that clock.
fn clock_ns(clock: usize) -> u64 {
    let mut time = [0_u64; 2];
    // SAFETY: the call fills sixteen bytes at the address of an array of that size.
    unsafe { syscall4(NR_CLOCK_GETTIME, [clock, (&raw mut time) as usize, 0, 0]) };
    let [seconds, nanoseconds] = time;
    seconds.wrapping_mul(1_000_000_000).wrapping_add(nanoseconds)
}

/// Blocks the two signals that a write may raise: SIGPIPE (nobody reads the answer) and SIGXFSZ (a limit on file
/// sizes). Their default action ends the process, but the host must see exit code 0.
pub(super) fn block_deadly_signals() {
    const SIG_BLOCK: usize = 0;
    let set: u64 = 1 << (13 - 1) | 1 << (25 - 1);
    // SAFETY: the call reads the eight bytes of the set, and its size argument is eight.
    unsafe { syscall4(NR_RT_SIGPROCMASK, [SIG_BLOCK, (&raw const set) as usize, 0, 8]) };
}

#[cfg(target_arch = "x86_64")]
const NR_RT_SIGPROCMASK: usize = 14;
#[cfg(target_arch = "x86_64")]
const NR_RT_SIGACTION: usize = 13;
#[cfg(target_arch = "x86_64")]
const NR_FCNTL: usize = 72;
#[cfg(target_arch = "x86_64")]
const NR_CLOCK_GETTIME: usize = 228;
#[cfg(target_arch = "x86_64")]
const NR_EXIT_GROUP: usize = 231;
#[cfg(target_arch = "aarch64")]
const NR_RT_SIGPROCMASK: usize = 135;
#[cfg(target_arch = "aarch64")]
const NR_RT_SIGACTION: usize = 134;
#[cfg(target_arch = "aarch64")]
const NR_FCNTL: usize = 25;
#[cfg(target_arch = "aarch64")]
const NR_CLOCK_GETTIME: usize = 113;
#[cfg(target_arch = "aarch64")]
const NR_EXIT_GROUP: usize = 94;

/// Makes one system call with up to four arguments.
///
/// # Safety
///
/// The arguments, above all pointers, must be what the call expects.
unsafe fn syscall4(number: usize, arguments: [usize; 4]) -> isize {
    let [a, b, c, d] = arguments;
    let result: isize;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: this follows the kernel's calling convention. The call changes rcx and r11.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d,
            lateout("rcx") _, lateout("r11") _,
            options(nostack, preserves_flags)
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: this follows the kernel's calling convention.
    unsafe {
        asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") a as isize => result,
            in("x1") b, in("x2") c, in("x3") d,
            options(nostack, preserves_flags)
        );
    }
    result
}

/// Ends the process with code 0.
pub fn exit() -> ! {
    loop {
        // SAFETY: the call reads no memory and does not return.
        unsafe { syscall4(NR_EXIT_GROUP, [0; 4]) };
    }
}
