//! A small unified diff that shows a person which lines are about to change.
//!
//! One text was usually made from the other by a few insertions. The diff strips the common prefix
//! and suffix and compares the lines between them by longest common subsequence.

use std::fmt::Write;

/// Unchanged lines shown before and after a change.
const CONTEXT: usize = 3;
/// At most this many pairs of lines are compared; a larger middle is shown as replaced entirely.
const PAIRS_MAX: usize = 4_000_000;

#[derive(Clone, Copy, PartialEq, Eq)]
enum DiffLine {
    Same,
    Out,
    In,
}

/// The unified diff from `old` to `new`; empty if the texts are equal.
pub fn unified(name: &str, old: &str, new: &str) -> String {
    if old == new {
        return String::new();
    }
    let (old, new): (Vec<&str>, Vec<&str>) = (lines(old), lines(new));
    let script = script(&old, &new);
    let mut text = format!("--- {name}\n+++ {name}\n");
    let mut at = 0;
    while let Some(first) = script[at..].iter().position(|(change, _)| *change != DiffLine::Same) {
        let from = (at + first).saturating_sub(CONTEXT).max(at);
        let mut to = at + first;
        // Changes less than two contexts apart share a hunk.
        while let Some(next) = script[to..]
            .iter()
            .take(2 * CONTEXT + 1)
            .position(|(change, _)| *change != DiffLine::Same)
        {
            to += next + 1;
        }
        let to = (to + CONTEXT).min(script.len());
        put_hunk(&mut text, &script, from, to);
        at = to;
    }
    text
}

fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// The lines of both texts in order, each marked as kept, removed or added.
fn script<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<(DiffLine, &'a str)> {
    let start = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (old_rest, new_rest) = (&old[start..], &new[start..]);
    let end = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(a, b)| a == b).count();
    let (old_mid, new_mid) = (&old_rest[..old_rest.len() - end], &new_rest[..new_rest.len() - end]);
    let same = |line: &&'a str| (DiffLine::Same, *line);
    let mut script: Vec<_> = old[..start].iter().map(same).collect();
    if old_mid.len().saturating_mul(new_mid.len()) > PAIRS_MAX {
        script.extend(old_mid.iter().map(|line| (DiffLine::Out, *line)));
        script.extend(new_mid.iter().map(|line| (DiffLine::In, *line)));
    } else {
        middle(old_mid, new_mid, &mut script);
    }
    script.extend(old[old.len() - end..].iter().map(same));
    script
}

/// Compares the middle by longest common subsequence.
fn middle<'a>(old: &[&'a str], new: &[&'a str], script: &mut Vec<(DiffLine, &'a str)>) {
    let width = new.len() + 1;
    let mut longest = vec![0_u32; (old.len() + 1) * width];
    for a in (0..old.len()).rev() {
        for b in (0..new.len()).rev() {
            longest[a * width + b] = match old[a] == new[b] {
                true => longest[(a + 1) * width + b + 1] + 1,
                false => longest[(a + 1) * width + b].max(longest[a * width + b + 1]),
            };
        }
    }
    let (mut a, mut b) = (0, 0);
    while a < old.len() || b < new.len() {
        if a < old.len() && b < new.len() && old[a] == new[b] {
            script.push((DiffLine::Same, old[a]));
            (a, b) = (a + 1, b + 1);
        } else if b == new.len()
            || (a < old.len() && longest[(a + 1) * width + b] >= longest[a * width + b + 1])
        {
            script.push((DiffLine::Out, old[a]));
            a += 1;
        } else {
            script.push((DiffLine::In, new[b]));
            b += 1;
        }
    }
}

fn put_hunk(text: &mut String, script: &[(DiffLine, &str)], from: usize, to: usize) {
    let count = |part: &[(DiffLine, &str)], without: DiffLine| {
        part.iter().filter(|(change, _)| *change != without).count()
    };
    let part = &script[from..to];
    let (old, new) = (count(part, DiffLine::In), count(part, DiffLine::Out));
    // A hunk with no lines on one side names the line before it, as `diff -u` does.
    let first =
        |without: DiffLine, lines: usize| count(&script[..from], without) + usize::from(lines > 0);
    let (old_first, new_first) = (first(DiffLine::In, old), first(DiffLine::Out, new));
    let _ = writeln!(text, "@@ -{old_first},{old} +{new_first},{new} @@");
    for (change, line) in part {
        let mark = match change {
            DiffLine::Same => ' ',
            DiffLine::Out => '-',
            DiffLine::In => '+',
        };
        let line = line.trim_end_matches(['\r', '\n']);
        let shown: String = line
            .chars()
            .map(|c| if c.is_control() && c != '\t' { '\u{FFFD}' } else { c })
            .collect();
        let _ = writeln!(text, "{mark}{shown}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_insertion_is_shown_with_the_lines_around_it() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n";
        let new = "1\n2\n3\n4\nx\ny\n5\n6\n7\n8\n";
        assert_eq!(
            unified("f", old, new),
            "--- f\n+++ f\n@@ -2,6 +2,8 @@\n 2\n 3\n 4\n+x\n+y\n 5\n 6\n 7\n"
        );
        assert_eq!(unified("f", old, old), "");
        assert_eq!(unified("f", "", "a\n"), "--- f\n+++ f\n@@ -0,0 +1,1 @@\n+a\n");
    }

    #[test]
    fn distant_changes_get_separate_hunks() {
        let old: String = (0..30).map(|n| format!("{n}\n")).collect();
        let new = old.replace("\n2\n", "\ntwo\n").replace("\n27\n", "\n");
        let diff = unified("f", &old, &new);
        assert_eq!(diff.matches("@@ -").count(), 2, "{diff}");
        assert!(diff.contains("-2\n+two\n") && diff.contains("\n-27\n"), "{diff}");
    }
}
