//! XXH64, the checksum of frames.
//!
//! It is implemented here because a library would detect CPU features at every start, which costs time on every hook.
//! Source: <https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md>, "XXH64 Algorithm Description".

const PRIME_1: u64 = 0x9E37_79B1_85EB_CA87;
const PRIME_2: u64 = 0xC2B2_AE3D_27D4_EB4F;
const PRIME_3: u64 = 0x1656_67B1_9E37_79F9;
const PRIME_4: u64 = 0x85EB_CA77_C2B2_AE63;
const PRIME_5: u64 = 0x27D4_EB2F_1656_67C5;

/// The XXH64 of `bytes`.
#[must_use]
pub fn xxh64(bytes: &[u8], seed: u64) -> u64 {
    let mut rest = bytes;
    let mut hash = if bytes.len() >= 32 {
        let mut a = seed.wrapping_add(PRIME_1).wrapping_add(PRIME_2);
        let mut b = seed.wrapping_add(PRIME_2);
        let mut c = seed;
        let mut d = seed.wrapping_sub(PRIME_1);
        // Four variables and not an array: with size optimisation, the compiler would keep an array in memory.
        while let Some((w, after)) = rest.split_first_chunk::<32>() {
            let ([w0, w1, w2, w3], []) = w.as_chunks::<8>() else { break };
            a = round(a, u64::from_le_bytes(*w0));
            b = round(b, u64::from_le_bytes(*w1));
            c = round(c, u64::from_le_bytes(*w2));
            d = round(d, u64::from_le_bytes(*w3));
            rest = after;
        }
        let sum = a
            .rotate_left(1)
            .wrapping_add(b.rotate_left(7))
            .wrapping_add(c.rotate_left(12))
            .wrapping_add(d.rotate_left(18));
        [a, b, c, d].into_iter().fold(sum, merge)
    } else {
        seed.wrapping_add(PRIME_5)
    };
    hash = hash.wrapping_add(bytes.len() as u64);
    while let Some((word, after)) = rest.split_first_chunk::<8>() {
        hash ^= round(0, u64::from_le_bytes(*word));
        hash = hash.rotate_left(27).wrapping_mul(PRIME_1).wrapping_add(PRIME_4);
        rest = after;
    }
    if let Some((word, after)) = rest.split_first_chunk::<4>() {
        hash ^= u64::from(u32::from_le_bytes(*word)).wrapping_mul(PRIME_1);
        hash = hash.rotate_left(23).wrapping_mul(PRIME_2).wrapping_add(PRIME_3);
        rest = after;
    }
    for byte in rest {
        hash ^= u64::from(*byte).wrapping_mul(PRIME_5);
        hash = hash.rotate_left(11).wrapping_mul(PRIME_1);
    }
    avalanche(hash)
}

#[inline]
fn round(lane: u64, word: u64) -> u64 {
    lane.wrapping_add(word.wrapping_mul(PRIME_2)).rotate_left(31).wrapping_mul(PRIME_1)
}

fn merge(hash: u64, lane: u64) -> u64 {
    (hash ^ round(0, lane)).wrapping_mul(PRIME_1).wrapping_add(PRIME_4)
}

fn avalanche(mut hash: u64) -> u64 {
    hash = (hash ^ (hash >> 33)).wrapping_mul(PRIME_2);
    hash = (hash ^ (hash >> 29)).wrapping_mul(PRIME_3);
    hash ^ (hash >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The reference implementation's own sanity buffer and results (xxHash `tests/sanity_test.c`,
    /// `XSUM_XXH64_testdata`).
    #[test]
    fn published_vectors_hold() {
        let mut generator: u64 = 2_654_435_761;
        let buffer: Vec<u8> = (0..222)
            .map(|_| {
                let byte = (generator >> 56) as u8;
                generator = generator.wrapping_mul(11_400_714_785_074_694_797);
                byte
            })
            .collect();
        let prime = 2_654_435_761;
        for (len, seed, expected) in [
            (0, 0, 0xEF46_DB37_51D8_E999),
            (0, prime, 0xAC75_FDA2_929B_17EF),
            (1, 0, 0xE934_A84A_DB05_2768),
            (1, prime, 0x5014_6076_43A9_B4C3),
            (4, 0, 0x9136_A0DC_A574_57EE),
            (14, 0, 0x8282_DCC4_994E_35C8),
            (14, prime, 0xC3BD_6BF6_3DEB_6DF0),
            (222, 0, 0xB641_AE8C_B691_C174),
            (222, prime, 0x20CB_8AB7_AE10_C14A),
        ] {
            assert_eq!(xxh64(&buffer[..len], seed), expected, "{len} bytes, seed {seed}");
        }
        assert_eq!(xxh64(b"abc", 0), 0x44BC_2CF5_AD77_0999);
    }

    #[test]
    fn an_independent_implementation_agrees_on_every_length() {
        let bytes: Vec<u8> = (0..300_u32).map(|i| (i * 7 + (i >> 3)) as u8).collect();
        for len in 0..bytes.len() {
            for seed in [0, 1, u64::MAX] {
                let oracle = xxhash_rust::xxh64::xxh64(&bytes[..len], seed);
                assert_eq!(xxh64(&bytes[..len], seed), oracle, "{len} bytes, seed {seed}");
            }
        }
    }
}
