//! libFuzzer driver of the target `predicates`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| klnode_tests::fuzzing::run("predicates", data));
