//! The klnode program: everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    klnode::main(klnode::built_in_transformer())
}
