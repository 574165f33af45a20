//! Properties of editing, checked on random documents, and the layout of an edit.

use super::*;
use quickcheck::{Arbitrary, Gen, quickcheck};

const PATH: [&str; 2] = ["mcpServers", "klnode"];

fn entry() -> Literal {
    let args = ["mcp", "--home", "/home/a b/\"k\""].map(Literal::text).to_vec();
    Literal::object([("command", Literal::text("/usr/bin/klnode")), ("args", Literal::List(args))])
}

/// A random document with comments, trailing commas and mixed white space.
#[derive(Clone, Debug)]
struct Document {
    text: String,
    has_others: bool,
}

impl Arbitrary for Document {
    fn arbitrary(source: &mut Gen) -> Self {
        let newline = *source.choose(&["\n", "\n", "\r\n"]).expect("three");
        let mut writer = Writer { source, newline, text: String::new() };
        if writer.chance(4) {
            writer.text.push('\u{FEFF}');
        }
        writer.trivia();
        let servers = u8::arbitrary(writer.source) % 4;
        let before = u8::arbitrary(writer.source) % 3;
        writer.object(usize::from(before), (servers > 0).then(|| usize::from(servers) - 1), 2);
        writer.trivia();
        let text = writer.text;
        Self { text, has_others: servers > 1 }
    }
}

struct Writer<'a> {
    source: &'a mut Gen,
    newline: &'static str,
    text: String,
}

impl Writer<'_> {
    fn chance(&mut self, of: u8) -> bool {
        u8::arbitrary(self.source) % of == 0
    }

    fn trivia(&mut self) {
        for _ in 0..u8::arbitrary(self.source) % 3 {
            let piece = *self
                .source
                .choose(&[
                    "",
                    " ",
                    "\t",
                    "    ",
                    "\n",
                    "\n  ",
                    "// a, \"b\": {\n",
                    "/* } */",
                    "/*\n*/",
                ])
                .expect("nine");
            self.text.push_str(&piece.replace('\n', self.newline));
        }
    }

    /// Writes an object with `plain` members and, if `servers` is given, `mcpServers` with that
    /// many members.
    fn object(&mut self, plain: usize, servers: Option<usize>, depth: usize) {
        let place = usize::from(u8::arbitrary(self.source)) % (plain + 1);
        let total = plain + usize::from(servers.is_some());
        self.text.push('{');
        for number in 0..total {
            self.trivia();
            match servers.filter(|_| number == place) {
                Some(servers) => {
                    self.text.push_str("\"mcpServers\"");
                    self.colon();
                    self.object(servers, None, depth - 1);
                }
                None => {
                    self.text.push_str(&format!("\"k{number}\\u0020\""));
                    self.colon();
                    self.value(depth);
                }
            }
            self.trivia();
            if number + 1 < total || self.chance(4) {
                self.text.push(',');
            }
        }
        self.trivia();
        self.text.push('}');
    }

    fn colon(&mut self) {
        self.trivia();
        self.text.push(':');
        self.trivia();
    }

    fn value(&mut self, depth: usize) {
        match u8::arbitrary(self.source) % 6 {
            0 if depth > 0 => {
                let members = usize::from(u8::arbitrary(self.source) % 3);
                self.object(members, None, depth - 1);
            }
            1 => self.text.push_str("[1, /* x */ \"//\",]"),
            2 => self.text.push_str("-1.5e3"),
            3 => self.text.push_str("null"),
            4 => self.text.push_str("[]"),
            _ => self.text.push_str("\"\u{e9}\\\" {\""),
        }
    }
}

fn json(text: &str) -> Value {
    parse(text).unwrap_or_else(|problem| panic!("{problem:?} in {text:?}")).unwrap().to_json(text)
}

#[test]
fn an_insertion_is_one_piece_of_text() {
    fn law(document: Document) {
        let text = document.text;
        let put_in = put(&text, &PATH, &entry()).unwrap();
        let same = text.bytes().zip(put_in.bytes()).take_while(|(a, b)| a == b).count();
        let is_insertion = (0..=same).any(|at| put_in.as_bytes().ends_with(&text.as_bytes()[at..]));
        assert!(is_insertion, "{text:?} became {put_in:?}");
        let mut expected = json(&text);
        expected["mcpServers"]["klnode"] = entry().to_json();
        assert_eq!(json(&put_in), expected, "{text:?}");
        assert_eq!(put(&put_in, &PATH, &entry()).unwrap(), put_in, "a second time changes nothing");
    }
    quickcheck(law as fn(Document));
}

#[test]
fn inserting_and_removing_restores_every_byte() {
    fn law(document: Document) {
        let text = document.text;
        let put_in = put(&text, &PATH, &entry()).unwrap();
        let out = remove(&put_in, &PATH, Some(&text)).unwrap().expect("it is there");
        assert_eq!(out, text, "from {put_in:?}");
        let unaided = remove(&put_in, &PATH, None).unwrap().expect("it is there");
        assert!(json(&unaided)["mcpServers"].get("klnode").is_none());
        if document.has_others {
            assert_eq!(unaided, text, "from {put_in:?}");
        }
    }
    quickcheck(law as fn(Document));
}

#[test]
fn any_item_can_be_removed() {
    fn law(document: Document, number: usize) {
        let text = document.text;
        let root = parse(&text).unwrap().unwrap();
        if root.items().is_empty() {
            return;
        }
        let number = number % root.items().len();
        let out = without_item(&text, &root, number);
        let mut expected = json(&text);
        expected.as_object_mut().unwrap().remove(&root.items()[number].key);
        assert_eq!(json(&out), expected, "{text:?} became {out:?}");
    }
    quickcheck(law as fn(Document, usize));
}

#[track_caller]
fn check(text: &str, expected: &str) {
    let value = Literal::object([("command", Literal::text("k"))]);
    assert_eq!(put(text, &PATH, &value).unwrap(), expected);
}

#[test]
fn an_edit_follows_the_documents_layout() {
    check(
        "",
        "{\n  \"mcpServers\": {\n    \"klnode\": {\n      \"command\": \"k\"\n    }\n  }\n}\n",
    );
    check(
        "// mine\n{\n\t\"a\": 1, // one\n}\n",
        "// mine\n{\n\t\"mcpServers\": {\n\t\t\"klnode\": {\n\t\t\t\"command\": \"k\"\n\t\t}\n\t},\n\t\"a\": 1, // one\n}\n",
    );
    check(
        "{\r\n    \"mcpServers\": {}\r\n}",
        "{\r\n    \"mcpServers\": {\r\n        \"klnode\": {\r\n            \"command\": \"k\"\r\n        }\r\n    }\r\n}",
    );
    check("{\"a\":1}", "{\"mcpServers\": {\"klnode\": {\"command\": \"k\"}}, \"a\":1}");
    check(
        "{\"mcpServers\": {\"klnode\": {\"command\": \"old\", \"env\": {}}}}",
        "{\"mcpServers\": {\"klnode\": {\"command\": \"k\", \"env\": {}}}}",
    );
}

#[test]
fn a_wrong_type_and_a_duplicate_name_are_refused() {
    for (text, at, what) in [
        ("[]", 0, "The document is an array; it must be an object"),
        ("{\"mcpServers\": []}", 15, "`mcpServers` is an array; it must be an object"),
        ("{\"mcpServers\": {\"klnode\": 1}}", 26, "`mcpServers.klnode` is a number"),
        ("{\"mcpServers\": {}, \"mcpServers\": {}}", 19, "`mcpServers` is defined a second time"),
    ] {
        let problem = put(text, &PATH, &entry()).unwrap_err();
        assert_eq!(problem.at, at, "{text}: {problem:?}");
        assert!(problem.what.starts_with(what), "{text}: {problem:?}");
    }
}
