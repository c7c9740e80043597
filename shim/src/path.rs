//! Paths where there is no allocator.

use core::ffi::CStr;

use rustix::io::Errno;

/// The longest path the kernel takes, its NUL included.
pub(crate) const PATH_BYTES: usize = 4_096;

/// A path built where there is no allocator.
pub(crate) struct PathBuffer {
    bytes: [u8; PATH_BYTES],
    len: usize,
}

impl PathBuffer {
    pub(crate) fn new() -> Self {
        Self { bytes: [0; PATH_BYTES], len: 0 }
    }

    pub(crate) fn push(&mut self, part: &[u8]) -> Result<(), Errno> {
        // The last byte stays zero.
        let room = self.bytes.get_mut(self.len..PATH_BYTES - 1).unwrap_or_default();
        room.get_mut(..part.len()).ok_or(Errno::NAMETOOLONG)?.copy_from_slice(part);
        self.len += part.len();
        Ok(())
    }

    pub(crate) fn push_hex(&mut self, number: u64) -> Result<(), Errno> {
        let digits = 16 - (number | 1).leading_zeros() / 4;
        for digit in (0..digits).rev() {
            let nibble = (number >> (4 * digit)) as u8 & 15;
            self.push(&[if nibble < 10 { b'0' + nibble } else { b'a' + nibble - 10 }])?;
        }
        Ok(())
    }

    pub(crate) fn as_c_str(&self) -> Result<&CStr, Errno> {
        CStr::from_bytes_until_nul(&self.bytes).map_err(|_| Errno::NAMETOOLONG)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_in_hexadecimal_without_leading_zeros() {
        for (number, text) in [(0, "0"), (15, "f"), (16, "10"), (u64::MAX, "ffffffffffffffff")] {
            let mut path = PathBuffer::new();
            path.push_hex(number).unwrap();
            assert_eq!(path.as_c_str().unwrap().to_str().unwrap(), text);
        }
    }

    #[test]
    fn what_is_too_long_is_refused_and_changes_nothing() {
        let mut path = PathBuffer::new();
        path.push(b"/").unwrap();
        assert_eq!(path.push(&[b'x'; PATH_BYTES - 1]), Err(Errno::NAMETOOLONG));
        path.push(&[b'x'; PATH_BYTES - 2]).unwrap();
        assert_eq!(path.as_c_str().unwrap().to_bytes().len(), PATH_BYTES - 1);
    }
}
