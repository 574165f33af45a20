//! libFuzzer driver of the target `hook-input`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| klnode_tests::fuzzing::run("hook-input", data));
