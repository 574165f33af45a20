//! libFuzzer driver of the target `front-matter`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| klnode_tests::fuzzing::run("front-matter", data));
