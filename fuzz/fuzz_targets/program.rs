#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hookspan_checks::program(data));
