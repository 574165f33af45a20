//! Drives the target `tool-calls` with libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| klnode_tests::fuzzing::run("tool-calls", data));
