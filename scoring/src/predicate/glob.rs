//! Paths in predicates: the allowed syntax, and which tracked files a path matches.
//!
//! Separate from parsing, since this is the first of two barriers around a checkout: a path that
//! leads out of it, or into git's own folder, is refused. The second barrier is that a checkout is
//! asked only for paths it has listed itself. Paths are not decoded, expanded or normalised here.

/// Maximum length of a path in bytes.
const PATH_BYTES_MAX: usize = 512;

/// Maximum number of wildcards in one path.
const WILDCARDS_MAX: usize = 8;

/// A path or path pattern that stays inside the checkout.
///
/// `*` matches any part of a name, `?` one character of it, and `**` any number of folders.
/// Brackets and braces are ordinary characters: folders called `[id]` exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Glob {
    text: String,
}

impl Glob {
    /// Checks the path. The error names the expected syntax.
    pub(super) fn new(text: &str) -> Result<Self, &'static str> {
        if let Some(expected) = refusal(text) {
            return Err(expected);
        }
        let is_partial = |name: &str| name.contains("**") && name != "**";
        if text.split('/').any(is_partial) {
            return Err("`**` between slashes, as a whole name");
        }
        let wildcards =
            text.split('/').map(|name| if name == "**" { 1 } else { name.matches(WILD).count() });
        if wildcards.sum::<usize>() > WILDCARDS_MAX {
            return Err("at most 8 wildcards");
        }
        Ok(Glob { text: text.to_owned() })
    }

    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the path has no wildcard, so that it names exactly one file.
    pub(super) fn is_plain(&self) -> bool {
        !self.text.contains(WILD)
    }

    /// Literal prefix of every matching path.
    pub(super) fn prefix(&self) -> &str {
        self.text.split(WILD).next().unwrap_or_default()
    }

    /// Last component of the path.
    pub(super) fn file_name(&self) -> &str {
        self.text.rsplit('/').next().unwrap_or_default()
    }

    /// Whether the path matches; always false for a path that predicates may not name.
    pub(super) fn matches(&self, path: &str) -> bool {
        let last = self.file_name();
        let may = last.contains(WILD) || path.ends_with(last);
        may && names_match(&self.text, path) && refusal(path).is_none()
    }
}

const WILD: [char; 2] = ['*', '?'];

/// Expected syntax if the path is refused; `None` if it is allowed.
fn refusal(path: &str) -> Option<&'static str> {
    if path.is_empty() {
        return Some("a path");
    }
    if path.len() > PATH_BYTES_MAX {
        return Some("a path of at most 512 bytes");
    }
    if let Some(expected) = path.chars().find_map(refused_char) {
        return Some(expected);
    }
    if path.starts_with('/') {
        return Some("a path relative to the checkout, without a `/` in front");
    }
    path.split('/').find_map(refused_name)
}

fn refused_char(c: char) -> Option<&'static str> {
    match c {
        '\\' => Some("a path with forward slashes"),
        ':' => Some("a path without a colon: neither a drive nor a stream"),
        '"' => Some("a path without quotation marks inside"),
        // Characters that some file systems fold into `.`, `/` or `\`.
        '\u{2024}'..='\u{2026}'
        | '\u{2044}'
        | '\u{2215}'
        | '\u{2216}'
        | '\u{29f5}'
        | '\u{29f8}'
        | '\u{29f9}'
        | '\u{fe52}'
        | '\u{fe68}'
        | '\u{ff0e}'
        | '\u{ff0f}'
        | '\u{ff3c}' => Some("a path without look-alikes of `.`, `/` or a backslash"),
        // Characters that some file systems ignore and that readers cannot see.
        '\u{ad}'
        | '\u{34f}'
        | '\u{61c}'
        | '\u{180e}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}' => Some("a path without invisible characters"),
        c if c.is_control() => Some("a path without control characters"),
        _ => None,
    }
}

fn refused_name(name: &str) -> Option<&'static str> {
    // `git~1` is the short (8.3) name that Windows may give to `.git`.
    let short = name.get(..4).filter(|start| start.eq_ignore_ascii_case("git~"));
    let is_short = short.is_some() && name[4..].starts_with(|c: char| c.is_ascii_digit());
    if name.is_empty() {
        Some("a path to a file, without empty names (a folder is `folder/**`)")
    } else if name == "." || name == ".." {
        Some("a path without `.` or `..`")
    } else if name.ends_with(['.', ' ']) || name.starts_with(' ') {
        Some("a path without a dot at the end of a name or a space at either end")
    } else if name.eq_ignore_ascii_case(".git") || is_short {
        Some("a path outside of `.git`")
    } else {
        None
    }
}

/// Matches component by component. Backtracking to the last `**` alone is enough: the components
/// between two of them may as well match as early as possible. So the cost is at most the product
/// of both lengths.
fn names_match(glob: &str, path: &str) -> bool {
    let wanted: Vec<&str> = glob.split('/').collect();
    let given: Vec<&str> = path.split('/').collect();
    let (mut at, mut here) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while here < given.len() {
        if wanted.get(at) == Some(&"**") {
            retry = Some((at + 1, here));
            at += 1;
        } else if wanted.get(at).is_some_and(|name| name_matches(name, given[here])) {
            at += 1;
            here += 1;
        } else if let Some((after, taken)) = retry {
            retry = Some((after, taken + 1));
            at = after;
            here = taken + 1;
        } else {
            return false;
        }
    }
    // Only a trailing `**` may remain unmatched here, and it needs at least one component.
    at == wanted.len()
}

/// Matches one component in the same way, character by character.
fn name_matches(wanted: &str, given: &str) -> bool {
    if !wanted.contains(WILD) {
        return wanted == given;
    }
    let (mut wants, mut rest) = (wanted.chars(), given.chars());
    let mut retry = None;
    while !rest.as_str().is_empty() {
        let mut next_wants = wants.clone();
        let mut next_rest = rest.clone();
        match (next_wants.next(), next_rest.next()) {
            (Some('*'), _) => {
                retry = Some((next_wants.clone(), rest.clone()));
                wants = next_wants;
            }
            (Some(want), Some(c)) if want == '?' || want == c => {
                wants = next_wants;
                rest = next_rest;
            }
            _ => {
                let Some((after, taken)) = &mut retry else { return false };
                taken.next();
                wants = after.clone();
                rest = taken.clone();
            }
        }
    }
    wants.all(|want| want == '*')
}
