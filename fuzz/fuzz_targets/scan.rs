//! libFuzzer driver of the target `scan`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| klnode_tests::fuzzing::run("scan", data));
