//! Reads a text with a limit on its length, so that a device named by mistake does not fill the
//! memory.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Reads a file of at most `bytes_max` bytes.
pub fn file(path: &Path, bytes_max: usize) -> io::Result<String> {
    text(File::open(path)?, bytes_max)
}

/// Reads a text of at most `bytes_max` bytes; a longer one is an error.
pub fn text(from: impl Read, bytes_max: usize) -> io::Result<String> {
    let mut bytes = Vec::new();
    from.take(bytes_max as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > bytes_max {
        let message = format!("it has more than {}", size(bytes_max));
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    String::from_utf8(bytes)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
}

/// A limit for a message. All limits are whole KiB or MiB.
fn size(bytes: usize) -> String {
    match bytes >> 20 {
        0 => format!("{} KiB", bytes >> 10),
        mib => format!("{mib} MiB"),
    }
}

#[cfg(test)]
mod tests {
    use super::text;
    use std::io;

    #[test]
    fn an_endless_input_is_refused() {
        let told = text(io::repeat(0), 4 << 20).unwrap_err().to_string();
        assert_eq!(told, "it has more than 4 MiB");
        let told = text(io::repeat(0xc3), 64 << 10).unwrap_err().to_string();
        assert_eq!(told, "it has more than 64 KiB", "before the encoding is checked");
        assert_eq!(text("whole".as_bytes(), 5).unwrap(), "whole");
        assert!(text("a bit more".as_bytes(), 5).is_err());
        assert!(text(&b"\xff"[..], 5).unwrap_err().to_string().contains("UTF-8"));
    }
}
