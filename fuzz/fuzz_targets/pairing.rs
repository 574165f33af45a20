//! libFuzzer driver of the target `pairing`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| klnode_tests::fuzzing::run("pairing", data));
