//! The klnode program, built for the suite: a package's own programs are what its tests can find.

use std::process::ExitCode;

fn main() -> ExitCode {
    klnode::wiring::main()
}
