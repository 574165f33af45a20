//! Translates the prose conditions of GSD to predicates, where that is possible.
//!
//! A condition without a translation stays as words; the node shows words and checks them nowhere.

use crate::markdown_markup::is_path;

/// Holds in a repository of several packages: a workspace file of npm, pnpm, Go or Cargo, or of one of
/// the tools for such repositories.
const MONOREPO: &str = r#"(path:pnpm-workspace.yaml OR path:lerna.json OR path:nx.json OR path:turbo.json OR path:go.work OR text:package.json~"\"workspaces\"" OR text:Cargo.toml~"^\[workspace\]")"#;

/// The predicate for a condition, or its words.
pub(crate) fn translate(words: &str) -> String {
    let words = words.trim().trim_matches(['"', '\'', '`']).trim();
    let (not, rest) = match words.strip_prefix("NOT ").or_else(|| words.strip_prefix("not ")) {
        Some(rest) => ("NOT ", rest.trim()),
        None => ("", words),
    };
    match monorepo(rest).or_else(|| path(rest)).or_else(|| dependency(rest)) {
        Some(atom) => format!("{not}{atom}"),
        None => words.to_owned(),
    }
}

/// The predicate for the words `monorepo` and `a monorepo`; `None` for other words.
fn monorepo(words: &str) -> Option<String> {
    let name = words.strip_prefix("a ").unwrap_or(words);
    name.eq_ignore_ascii_case("monorepo").then(|| MONOREPO.to_owned())
}

/// `src/lib/auth.ts exists`, or the path alone.
fn path(words: &str) -> Option<String> {
    let name = words.strip_suffix(" exists").or_else(|| words.strip_suffix(" is present"));
    let name = name.unwrap_or(words).trim().trim_matches('`');
    let name = name.strip_prefix("file ").unwrap_or(name);
    let is_named = name.contains('/') || words.ends_with(" exists");
    (is_named && is_path(name)).then(|| format!("path:{name}"))
}

/// `prisma >= 4.0`, `next@14` or `uses react >= 18`.
fn dependency(words: &str) -> Option<String> {
    let words =
        words.strip_prefix("uses ").or_else(|| words.strip_prefix("requires ")).unwrap_or(words);
    let (kind, words) = match words.split_once(':') {
        Some((kind @ ("npm" | "cargo" | "pypi" | "go"), rest)) => (kind, rest.trim()),
        _ => ("npm", words),
    };
    let at = words.char_indices().skip(1).find(|(_, c)| "<>=^~".contains(*c) || *c == '@')?.0;
    let (name, bound) = (words[..at].trim(), words[at..].trim());
    let (operator, version) = bound.split_at(bound.find(|c: char| c.is_ascii_digit())?);
    let operator = match operator.trim() {
        "@" | "=" | "==" => "=",
        "^" => "^",
        "~" => "~",
        ">=" => ">=",
        ">" => ">",
        "<" => "<",
        "<=" => "<=",
        _ => return None,
    };
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-_./@".contains(c);
    let is_version = |c: char| c.is_ascii_digit() || c == '.';
    let version = version.trim().trim_end_matches(".x");
    let is_plain = !name.is_empty() && name.chars().all(is_name) && version.chars().all(is_version);
    (is_plain && !version.ends_with('.')).then(|| format!("dep:{kind}:{name}{operator}{version}"))
}

#[cfg(test)]
mod tests {
    use super::{MONOREPO, translate};

    #[test]
    fn conditions_become_predicates_where_possible() {
        for (words, predicate) in [
            ("prisma >= 4.0", "dep:npm:prisma>=4.0"),
            ("src/lib/auth.ts exists", "path:src/lib/auth.ts"),
            ("NOT monorepo", &format!("NOT {MONOREPO}")),
            ("NOT a service mesh", "NOT a service mesh"),
            ("NOT src/legacy/mod.rs exists", "NOT path:src/legacy/mod.rs"),
            ("cargo:tokio >= 1.40", "dep:cargo:tokio>=1.40"),
            ("uses react >= 18", "dep:npm:react>=18"),
            ("@scope/pkg >= 2", "dep:npm:@scope/pkg>=2"),
            ("the cache is warm", "the cache is warm"),
            ("../outside/a.rs exists", "../outside/a.rs exists"),
            ("a >= b", "a >= b"),
            ("", ""),
        ] {
            assert_eq!(translate(words), predicate, "{words}");
        }
    }
}
