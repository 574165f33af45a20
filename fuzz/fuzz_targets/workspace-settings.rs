//! Drives the target `workspace-settings` with libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| klnode_tests::fuzzing::run("workspace-settings", data));
