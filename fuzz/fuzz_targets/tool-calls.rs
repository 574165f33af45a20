//! libFuzzer driver of the target `tool-calls`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| klnode_tests::fuzzing::run("tool-calls", data));
