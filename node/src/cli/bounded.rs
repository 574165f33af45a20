//! Reads a text that somebody names, and never more of it than such a text may have: whoever names a
//! device by mistake is told, before the memory is full.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The text of a file.
pub fn file(path: &Path, bytes_max: usize) -> io::Result<String> {
    text(File::open(path)?, bytes_max)
}

/// A whole text, if it is not longer than that.
pub fn text(from: impl Read, bytes_max: usize) -> io::Result<String> {
    let mut bytes = Vec::new();
    from.take(bytes_max as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > bytes_max {
        let told = format!("it has more than {}", size(bytes_max));
        return Err(io::Error::new(io::ErrorKind::InvalidData, told));
    }
    String::from_utf8(bytes)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
}

/// A limit as it is said: all of them are whole KiB or MiB.
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
    fn what_has_no_end_is_told_and_not_read() {
        let told = text(io::repeat(0), 4 << 20).unwrap_err().to_string();
        assert_eq!(told, "it has more than 4 MiB");
        let told = text(io::repeat(0xc3), 64 << 10).unwrap_err().to_string();
        assert_eq!(told, "it has more than 64 KiB", "before it is asked what it says");
        assert_eq!(text("whole".as_bytes(), 5).unwrap(), "whole");
        assert!(text("a bit more".as_bytes(), 5).is_err());
        assert!(text(&b"\xff"[..], 5).unwrap_err().to_string().contains("UTF-8"));
    }
}
