//! libFuzzer driver of the target `compare`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| klnode_tests::fuzzing::run("compare", data));
