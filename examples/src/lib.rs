//! Small programs that use klnode as a library; each is compiled and run in CI.
