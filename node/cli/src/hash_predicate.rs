//! `klnode generate predicate`: a hash predicate for a file, or for some of its lines.

use super::{Reply, VerbError};
use klnode_git::GitCheckout;
use klnode_scoring::predicate::{Checkout, Params, Predicate, ReadFailure};
use serde::Serialize;
use std::path::Path;

/// The place to hash.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A file that git tracks, and after `:` a line number or a range, as in src/lib.rs:10-24.
    #[arg(value_name = "FILE[:LINES]")]
    pub place: String,
}

/// The JSON form of the answer.
#[derive(Serialize)]
struct HashReply {
    predicate: String,
}

impl Args {
    pub(super) fn run(&self) -> Result<Reply, VerbError> {
        let wrong = |why: &str| {
            VerbError::Input(format!("Cannot make a predicate for {}: {why}.", self.place))
        };
        let whole = Path::new(&self.place);
        // Predicates write lines behind `#`, compilers and grep behind `:`; both are accepted.
        let (file, lines) = match self.place.rsplit_once([':', '#']) {
            // The separator is part of the file name.
            Some(_) if whole.exists() => (whole, None),
            Some((file, lines)) => {
                let lines = line_range(lines).ok_or_else(|| {
                    wrong("lines are written as one number (:10) or as a range (:10-24)")
                })?;
                (Path::new(file), Some(lines))
            }
            None => (whole, None),
        };
        // Folders of the path may be symbolic links. The file may not: a check follows no link.
        let name = file.file_name().ok_or_else(|| wrong("it names no file"))?;
        let folder = Path::new(".").join(file.parent().unwrap_or(Path::new("")));
        let folder = std::fs::canonicalize(folder).map_err(|error| wrong(&error.to_string()))?;
        let checkout =
            GitCheckout::open(&folder).map_err(|error| VerbError::Input(error.to_string()))?;
        let found = folder.join(name);
        let path = found.strip_prefix(checkout.path()).ok().and_then(Path::to_str);
        let path = path.ok_or_else(|| wrong("its name is not UTF-8"))?;
        let content = checkout.read(path, Params::default().file_bytes_max);
        let content = content.map_err(|why| wrong(unreadable(why)))?;
        let predicate = Predicate::of_content(path, lines, &content, |it| checkout.digest(it));
        let predicate = predicate.ok_or_else(|| {
            wrong("the file has no such lines, or no predicate can contain its name")
        })?;
        let predicate = predicate.to_string();
        let text = format!("{predicate}\n");
        Ok(Reply::new(&HashReply { predicate }, text))
    }
}

/// Parses one line number, or the first and the last of a range.
fn line_range(text: &str) -> Option<(u32, u32)> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    Some((first.parse().ok()?, last.parse().ok()?))
}

fn unreadable(why: ReadFailure) -> &'static str {
    match why {
        ReadFailure::Missing => "there is no such file",
        ReadFailure::TooLarge => "the file has more than 1 MiB, the most that a check reads",
        ReadFailure::NotAFile => "it is not a plain file that git tracks",
        ReadFailure::Failed => "the file cannot be read",
    }
}
