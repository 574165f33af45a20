//! libFuzzer driver of the target `stored-values`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| klnode_tests::fuzzing::run("stored-values", data));
