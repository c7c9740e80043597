//! Entry into the program without a runtime: no libc, no std, only a stack pointer.
//!
//! Unsafe code reads what the kernel left on the stack, and defines the memory functions that the compiler calls and
//! libc would provide ([`crate::entry`]).

#![expect(unsafe_code, reason = "the entry of a program without a runtime; argued block by block")]

use core::ffi::CStr;

use rustix::fs::{Mode, OFlags, open};
use rustix::io::{read, write};

use super::calls::{clocks, exit, stdin, stdout};
use super::{Environment, SCRATCH_BYTES, start};
use crate::reply::Verdict;
use crate::scan::Scan;

/// The program's entry in the shipped build.
///
/// # Safety
/// `stack` is the stack pointer that the kernel started the process with, `scratch` the start of [`SCRATCH_BYTES`]
/// unused bytes: see [`crate::entry`].
pub unsafe extern "C" fn enter(stack: *const usize, scratch: *mut u8) -> ! {
    let now = clocks();
    // SAFETY: this is the kernel's layout: the number of arguments, their pointers, a null, the variables' pointers, a
    // null, and pairs of numbers that end with AT_NULL. Strings end with a NUL and live as long as the process.
    let (environment, id) = unsafe {
        let mut environment = Environment::default();
        let count = *stack;
        let arguments = core::slice::from_raw_parts(stack.add(1), count);
        let given = match arguments {
            [_, flag, dir, rest @ ..] if text(*flag) == b"--dir" => {
                environment.dir = text(*dir);
                rest
            }
            [_, rest @ ..] => rest,
            [] => &[],
        };
        environment.argument = given.last().map_or(b"", |argument| text(*argument));
        let mut next = stack.add(count + 2);
        while *next != 0 {
            // The program uses few variables. Measuring the length of all of them would cost more than the rest of this
            // function.
            let start = *next as *const u8;
            if matches!(*start, b'C' | b'H' | b'P' | b'X')
                && matches!(*start.add(1), b'U' | b'O' | b'W' | b'D')
            {
                environment.take(text(*next));
            }
            next = next.add(1);
        }
        (environment, random_id(next.add(1)))
    };
    // SAFETY: the caller promises that these bytes exist and are unused. New stack memory is zero, and its content does
    // not matter.
    let scratch = unsafe { core::slice::from_raw_parts_mut(scratch, SCRATCH_BYTES) };
    start(&environment, now, 0, id, scratch);
    exit()
}

/// Eight of the sixteen random bytes that the kernel gives every process.
///
/// # Safety
/// `auxiliary` points to the vector of pairs.
unsafe fn random_id(mut auxiliary: *const usize) -> u64 {
    const AT_NULL: usize = 0;
    const AT_RANDOM: usize = 25;
    // SAFETY: the vector ends with AT_NULL. AT_RANDOM is the address of sixteen bytes.
    unsafe {
        while *auxiliary != AT_NULL {
            if *auxiliary == AT_RANDOM {
                return (*auxiliary.add(1) as *const u64).read_unaligned();
            }
            auxiliary = auxiliary.add(2);
        }
    }
    let (wall_ns, boottime_ns) = clocks();
    wall_ns ^ boottime_ns.rotate_left(32)
}

/// # Safety
///
/// `address` must point to bytes that end with a NUL and never change.
unsafe fn text(address: usize) -> &'static [u8] {
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(address as *const _) }.to_bytes()
}

/// Reads standard input to its end and answers. The benchmark uses it as the lower bound of any correct hook.
pub fn drain(buffer: &mut [u8]) {
    while read(stdin(), &mut *buffer).is_ok_and(|count| count > 0) {}
    let _ = write(stdout(), b"{}\n");
}

/// Runs on a panic in the shipped build: prints the answer for the name on the command line and exits with code 0. No
/// known input causes a panic.
#[cold]
pub fn answer_after_panic() -> ! {
    let mut line = [0; 1_024];
    let count = open(c"/proc/self/cmdline", OFlags::RDONLY, Mode::empty())
        .and_then(|file| read(&file, &mut line))
        .unwrap_or_default();
    let line = line.get(..count).unwrap_or_default();
    let argument = line.split(|byte| *byte == 0).rev().find(|part| !part.is_empty());
    let verdict = Verdict::of(Scan::default(), argument.unwrap_or_default(), true);
    let _ = write(stdout(), verdict.reply());
    exit()
}

/// Makes a freestanding program from a function like [`enter`]: defines the entry symbol with memory reserved below the
/// initial stack pointer, the functions that the compiler calls and libc would provide, and a panic handler.
///
/// Memory below the stack pointer costs a page fault only where it is used, and the compiler adds no stack probes.
#[macro_export]
macro_rules! entry {
    ($enter:path) => {
        #[cfg(target_arch = "x86_64")]
        core::arch::global_asm!(
            ".globl _start",
            "_start:",
            "mov rdi, rsp",
            "xor ebp, ebp",
            "sub rsp, {scratch}",
            "and rsp, -16",
            "mov rsi, rsp",
            "call {enter}",
            "ud2",
            scratch = const $crate::linux::SCRATCH_BYTES,
            enter = sym $enter,
        );
        #[cfg(target_arch = "aarch64")]
        core::arch::global_asm!(
            ".globl _start",
            "_start:",
            "mov x0, sp",
            "mov x29, xzr",
            "mov x30, xzr",
            "mov x9, {scratch}",
            "sub x1, x0, x9",
            "and x1, x1, #-16",
            "mov sp, x1",
            "bl {enter}",
            "brk 1",
            scratch = const $crate::linux::SCRATCH_BYTES,
            enter = sym $enter,
        );

        #[panic_handler]
        fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
            $crate::linux::answer_after_panic()
        }

        /// The memory functions. The compiler would turn a plain loop into a call of the very function that contains
        /// the loop. So x86_64 uses its string instructions, and other processors use volatile accesses.
        mod memory {
            #[unsafe(no_mangle)]
            unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, len: usize) -> *mut u8 {
                #[cfg(target_arch = "x86_64")]
                // SAFETY: the caller promises that both regions are valid and do not overlap.
                unsafe {
                    core::arch::asm!("rep movsb", inout("rcx") len => _, inout("rdi") to => _,
                        inout("rsi") from => _, options(nostack, preserves_flags));
                }
                #[cfg(not(target_arch = "x86_64"))]
                for index in 0..len {
                    // SAFETY: as above.
                    unsafe { to.add(index).write_volatile(from.add(index).read_volatile()) };
                }
                to
            }

            #[unsafe(no_mangle)]
            unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, len: usize) -> *mut u8 {
                // SAFETY: the caller promises that both regions are valid. The direction of the copy makes sure that
                // overlapping bytes are read before they are overwritten.
                unsafe {
                    if (to as usize).wrapping_sub(from as usize) >= len {
                        return memcpy(to, from, len);
                    }
                    for index in (0..len).rev() {
                        to.add(index).write_volatile(from.add(index).read_volatile());
                    }
                }
                to
            }

            #[unsafe(no_mangle)]
            unsafe extern "C" fn memset(to: *mut u8, byte: i32, len: usize) -> *mut u8 {
                #[cfg(target_arch = "x86_64")]
                // SAFETY: the caller promises that the region is valid.
                unsafe {
                    core::arch::asm!("rep stosb", inout("rcx") len => _, inout("rdi") to => _,
                        in("al") byte as u8, options(nostack, preserves_flags));
                }
                #[cfg(not(target_arch = "x86_64"))]
                for index in 0..len {
                    // SAFETY: as above.
                    unsafe { to.add(index).write_volatile(byte as u8) };
                }
                to
            }

            #[unsafe(no_mangle)]
            unsafe extern "C" fn memcmp(left: *const u8, right: *const u8, len: usize) -> i32 {
                for index in 0..len {
                    // SAFETY: the caller promises that both regions are valid.
                    let (a, b) = unsafe {
                        (left.add(index).read_volatile(), right.add(index).read_volatile())
                    };
                    if a != b {
                        return i32::from(a) - i32::from(b);
                    }
                }
                0
            }

            #[unsafe(no_mangle)]
            unsafe extern "C" fn bcmp(left: *const u8, right: *const u8, len: usize) -> i32 {
                // SAFETY: the same promise.
                unsafe { memcmp(left, right, len) }
            }

            #[unsafe(no_mangle)]
            unsafe extern "C" fn strlen(text: *const u8) -> usize {
                let mut len = 0;
                // SAFETY: the caller promises that a NUL follows.
                while unsafe { text.add(len).read_volatile() } != 0 {
                    len += 1;
                }
                len
            }
        }
    };
}
