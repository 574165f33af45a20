//! The klnode program, built for the suite: tests can only locate programs of their own package.

use std::process::ExitCode;

fn main() -> ExitCode {
    // Most tests are not about the transformer, and its vectors would arrive at any time.
    let has_transformer = std::env::var_os("KLNODE_TEST_TRANSFORMER").is_some();
    klnode::main(has_transformer.then(klnode::built_in_transformer).flatten())
}
