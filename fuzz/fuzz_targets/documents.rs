//! libFuzzer driver of the target `documents`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| klnode_tests::fuzzing::run("documents", data));
