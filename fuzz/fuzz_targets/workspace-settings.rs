//! libFuzzer driver of the target `workspace-settings`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| klnode_tests::fuzzing::run("workspace-settings", data));
