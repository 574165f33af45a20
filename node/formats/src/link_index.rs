//! Finds the entry that a link in a file leads to, and the relation of klnode that it states.
//!
//! Files spell a target as a relative path, a file name, a title or an id. A name that fits several
//! files leads nowhere: the link stays words.

use std::collections::HashMap;

/// The relation of a link without one, or with one that klnode does not know.
const RELATED: &str = "related";
/// Words of files for relations of klnode.
const RELATIONS: [(&str, &str); 24] = [
    ("related", RELATED),
    ("relates_to", RELATED),
    ("related_to", RELATED),
    ("see_also", RELATED),
    ("part_of", "part_of"),
    ("belongs_to", "part_of"),
    ("child_of", "part_of"),
    ("uses", "uses"),
    ("used", "uses"),
    ("calls", "uses"),
    ("depends_on", "depends_on"),
    ("depends", "depends_on"),
    ("requires", "depends_on"),
    ("needs", "depends_on"),
    ("causes", "causes"),
    ("caused", "causes"),
    ("leads_to", "causes"),
    ("supports", "supports"),
    ("supported", "supports"),
    ("confirms", "supports"),
    ("contradicts", "contradicts"),
    ("contradicted", "contradicts"),
    ("conflicts_with", "contradicts"),
    ("refutes", "contradicts"),
];

/// The relation of klnode for the word of a file.
pub fn relation(word: &str) -> &'static str {
    let word = word.trim().to_lowercase().replace([' ', '-'], "_");
    RELATIONS.iter().find(|(known, _)| *known == word).map_or(RELATED, |(_, relation)| relation)
}

/// A file part that links can lead to.
#[derive(Clone, Copy, Debug)]
pub struct LinkTarget<'a> {
    /// The id of its entry on the node.
    pub entry: &'a str,
    /// Its file, relative to the folder of all files.
    pub path: &'a str,
    /// Its line in the file.
    pub line: u64,
    /// The title of the entry, as the file has it.
    pub title: &'a str,
    /// Its id in the other tool.
    pub id: Option<&'a str>,
}

/// An entry, or the fact that several fit.
#[derive(Clone, Debug)]
enum Found {
    One(String),
    Several,
}

/// The names under which entries can be linked.
#[derive(Clone, Debug, Default)]
pub struct LinkIndex {
    /// The first entry of each file.
    files: HashMap<String, (u64, String)>,
    ids: HashMap<String, Found>,
    titles: HashMap<String, Found>,
    /// The paths of the files with a name.
    names: HashMap<String, Vec<String>>,
}

impl LinkIndex {
    /// Adds an entry.
    pub fn add(&mut self, target: LinkTarget<'_>) {
        let LinkTarget { entry, path, line, title, id } = target;
        let path = without_extension(path).to_lowercase();
        let name = path.rsplit('/').next().unwrap_or_default().to_owned();
        match self.files.get_mut(&path) {
            Some((first, of)) if line < *first => (*first, *of) = (line, entry.to_owned()),
            Some(_) => {}
            None => {
                self.names.entry(name).or_default().push(path.clone());
                self.files.insert(path, (line, entry.to_owned()));
            }
        }
        let put = |of: &mut HashMap<String, Found>, name: String| {
            let found = of.entry(name).or_insert_with(|| Found::One(entry.to_owned()));
            if !matches!(found, Found::One(one) if one == entry) {
                *found = Found::Several;
            }
        };
        put(&mut self.titles, title.trim().to_lowercase());
        if let Some(id) = id {
            put(&mut self.ids, id.to_owned());
        }
    }

    /// The entry to which a link in the file `from` leads; `None` if there is none, or several.
    pub fn resolve(&self, from: &str, target: &str) -> Option<&str> {
        let target = target.split('#').next().unwrap_or_default().trim();
        if target.is_empty() {
            return None;
        }
        let found = self.file(from, target);
        if found.is_some() {
            return found;
        }
        let names = [(&self.ids, target.to_owned()), (&self.titles, target.to_lowercase())];
        names.into_iter().find_map(|(of, name)| match of.get(&name) {
            Some(Found::One(entry)) => Some(entry.as_str()),
            _ => None,
        })
    }

    /// The first entry of the file that a link names: relative to its own folder, to a folder above
    /// it, or by its name alone.
    fn file(&self, from: &str, target: &str) -> Option<&str> {
        let from = from.to_lowercase();
        let target = without_extension(target).to_lowercase();
        let mut folder = from.rsplit_once('/').map_or("", |(folder, _)| folder);
        let entry = |path: &str| self.files.get(path).map(|(_, entry)| entry.as_str());
        loop {
            if let Some(found) = join(folder, &target).and_then(|path| entry(&path)) {
                return Some(found);
            }
            if folder.is_empty() {
                break;
            }
            folder = folder.rsplit_once('/').map_or("", |(above, _)| above);
        }
        let name = target.rsplit('/').next().unwrap_or_default();
        let end = format!("/{}", target.trim_start_matches("../").trim_start_matches("./"));
        let fits = |path: &&String| format!("/{path}").ends_with(&end);
        let mut fitting = self.names.get(name)?.iter().filter(fits);
        match (fitting.next(), fitting.next()) {
            (Some(path), None) => entry(path),
            _ => None,
        }
    }
}

/// The path without the extension of a note.
fn without_extension(path: &str) -> &str {
    path.strip_suffix(".md").or_else(|| path.strip_suffix(".mdc")).unwrap_or(path)
}

/// The path of a target below a folder; `None` if it leaves all folders.
fn join(folder: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in target.split('/').filter(|part| !part.is_empty() && *part != ".") {
        match part {
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index() -> LinkIndex {
        let mut index = LinkIndex::default();
        for (entry, path, line, title, id) in [
            ("1", "vault/Auth.md", 1, "Logging in", None),
            ("2", "vault/sub/Retry.md", 9, "Retry > Budgets", None),
            ("3", "vault/sub/Retry.md", 1, "Retry", None),
            ("4", "vault/a/Same.md", 1, "Same", None),
            ("5", "vault/b/Same.md", 1, "Same", None),
            ("6", "memory.jsonl", 1, "Batch size", Some("notes/batch")),
        ] {
            index.add(LinkTarget { entry, path, line, title, id });
        }
        index
    }

    #[test]
    fn a_link_leads_to_a_path_a_name_an_id_or_a_title() {
        let index = index();
        for (from, target, entry) in [
            ("vault/sub/x.md", "../Auth.md", Some("1")),
            ("vault/sub/x.md", "Auth", Some("1")),
            ("other/x.md", "auth", Some("1")),
            ("vault/x.md", "sub/Retry.md#part", Some("3")),
            ("vault/x.md", "Retry", Some("3")),
            ("vault/x.md", "logging in", Some("1")),
            ("vault/x.md", "notes/batch", Some("6")),
            ("vault/a/x.md", "Same", Some("4")),
            ("vault/x.md", "Same", None),
            ("vault/x.md", "b/Same", Some("5")),
            ("vault/x.md", "../../../etc/Auth.md", None),
            ("vault/x.md", "Nothing", None),
            ("vault/x.md", "#part", None),
        ] {
            assert_eq!(index.resolve(from, target), entry, "{from} {target}");
        }
    }

    #[test]
    fn relations_of_files_have_a_counterpart() {
        for (word, expect) in
            [("Depends on", "depends_on"), ("", "related"), ("owns", "related"), ("uses", "uses")]
        {
            assert_eq!(relation(word), expect);
        }
    }
}
