//! A small unified diff, so that a person sees what is about to change.
//!
//! Two texts of which one was made from the other by a few insertions: the lines that both begin and
//! end with are found, and what lies between is compared line by line.

use std::fmt::Write;

/// Lines that are shown around a change.
const CONTEXT: usize = 3;
/// Pairs of lines that are compared; beyond that all between is shown as replaced.
const PAIRS_MAX: usize = 4_000_000;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    Same,
    Out,
    In,
}

/// What changes from one text to the other; empty if nothing does.
pub fn unified(name: &str, old: &str, new: &str) -> String {
    if old == new {
        return String::new();
    }
    let (old, new): (Vec<&str>, Vec<&str>) = (lines(old), lines(new));
    let script = script(&old, &new);
    let mut text = format!("--- {name}\n+++ {name}\n");
    let mut at = 0;
    while let Some(first) = script[at..].iter().position(|(change, _)| *change != Change::Same) {
        let from = (at + first).saturating_sub(CONTEXT).max(at);
        let mut to = at + first;
        // Changes that are near each other are shown together.
        while let Some(next) = script[to..]
            .iter()
            .take(2 * CONTEXT + 1)
            .position(|(change, _)| *change != Change::Same)
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

/// The lines of both texts in order, with what becomes of each.
fn script<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<(Change, &'a str)> {
    let start = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (old_rest, new_rest) = (&old[start..], &new[start..]);
    let end = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(a, b)| a == b).count();
    let (old_mid, new_mid) = (&old_rest[..old_rest.len() - end], &new_rest[..new_rest.len() - end]);
    let same = |line: &&'a str| (Change::Same, *line);
    let mut script: Vec<_> = old[..start].iter().map(same).collect();
    if old_mid.len().saturating_mul(new_mid.len()) > PAIRS_MAX {
        script.extend(old_mid.iter().map(|line| (Change::Out, *line)));
        script.extend(new_mid.iter().map(|line| (Change::In, *line)));
    } else {
        middle(old_mid, new_mid, &mut script);
    }
    script.extend(old[old.len() - end..].iter().map(same));
    script
}

/// By the longest common subsequence.
fn middle<'a>(old: &[&'a str], new: &[&'a str], script: &mut Vec<(Change, &'a str)>) {
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
            script.push((Change::Same, old[a]));
            (a, b) = (a + 1, b + 1);
        } else if b == new.len()
            || (a < old.len() && longest[(a + 1) * width + b] >= longest[a * width + b + 1])
        {
            script.push((Change::Out, old[a]));
            a += 1;
        } else {
            script.push((Change::In, new[b]));
            b += 1;
        }
    }
}

fn put_hunk(text: &mut String, script: &[(Change, &str)], from: usize, to: usize) {
    let count = |part: &[(Change, &str)], without: Change| {
        part.iter().filter(|(change, _)| *change != without).count()
    };
    let part = &script[from..to];
    let (old, new) = (count(part, Change::In), count(part, Change::Out));
    // A hunk without lines on one side stands after the line before it.
    let first =
        |without: Change, lines: usize| count(&script[..from], without) + usize::from(lines > 0);
    let (old_first, new_first) = (first(Change::In, old), first(Change::Out, new));
    let _ = writeln!(text, "@@ -{old_first},{old} +{new_first},{new} @@");
    for (change, line) in part {
        let mark = match change {
            Change::Same => ' ',
            Change::Out => '-',
            Change::In => '+',
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
    fn changes_far_apart_are_hunks_of_their_own() {
        let old: String = (0..30).map(|n| format!("{n}\n")).collect();
        let new = old.replace("\n2\n", "\ntwo\n").replace("\n27\n", "\n");
        let diff = unified("f", &old, &new);
        assert_eq!(diff.matches("@@ -").count(), 2, "{diff}");
        assert!(diff.contains("-2\n+two\n") && diff.contains("\n-27\n"), "{diff}");
    }
}
