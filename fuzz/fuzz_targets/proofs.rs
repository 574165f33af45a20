//! libFuzzer driver of the target `proofs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| klnode_tests::fuzzing::run("proofs", data));
