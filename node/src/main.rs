//! The klnode program: everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    klnode::wiring::main()
}
