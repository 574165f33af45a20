//! The klnode program.

fn main() {}
