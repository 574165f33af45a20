//! libFuzzer driver of the target `import-lines`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| klnode_tests::fuzzing::run("import-lines", data));
