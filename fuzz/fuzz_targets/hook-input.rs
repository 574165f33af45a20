//! Drives the target `hook-input` with libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| klnode_tests::fuzzing::run("hook-input", data));
