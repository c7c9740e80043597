//! Paths without an allocator.

use core::ffi::CStr;

use rustix::io::Errno;

/// Maximum length of a path that the kernel accepts, including the NUL.
pub(crate) const PATH_BYTES: usize = 4_096;

/// A path or a name, at most `BYTES` long with its NUL.
pub(crate) struct PathBuffer<const BYTES: usize> {
    bytes: [u8; BYTES],
    len: usize,
}

impl<const BYTES: usize> PathBuffer<BYTES> {
    pub(crate) fn new() -> Self {
        Self { bytes: [0; BYTES], len: 0 }
    }

    pub(crate) fn push(&mut self, part: &[u8]) -> Result<(), Errno> {
        // The last byte stays zero.
        let room = self.bytes.get_mut(self.len..BYTES - 1).unwrap_or_default();
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

    pub(crate) fn push_decimal(&mut self, number: u32) -> Result<(), Errno> {
        if number >= 10 {
            self.push_decimal(number / 10)?;
        }
        self.push(&[b'0' + (number % 10) as u8])
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
            let mut path = PathBuffer::<20>::new();
            path.push_hex(number).unwrap();
            assert_eq!(path.as_c_str().unwrap().to_str().unwrap(), text);
        }
    }

    #[test]
    fn numbers_of_users_are_written_in_decimal() {
        for (number, text) in [(0, "0"), (10, "10"), (65_534, "65534"), (u32::MAX, "4294967295")] {
            let mut path = PathBuffer::<20>::new();
            path.push_decimal(number).unwrap();
            assert_eq!(path.as_c_str().unwrap().to_str().unwrap(), text);
        }
    }

    #[test]
    fn what_is_too_long_is_refused_and_changes_nothing() {
        let mut path = PathBuffer::<PATH_BYTES>::new();
        path.push(b"/").unwrap();
        assert_eq!(path.push(&[b'x'; PATH_BYTES - 1]), Err(Errno::NAMETOOLONG));
        path.push(&[b'x'; PATH_BYTES - 2]).unwrap();
        assert_eq!(path.as_c_str().unwrap().to_bytes().len(), PATH_BYTES - 1);
    }
}
