"""Reads documented items and error messages out of held-out sources, for the evaluation sets.

Only packages whose declared licence is permissive are read; the texts are short excerpts.
"""

import ast
import email
import re
import tomllib
import zipfile
from html.parser import HTMLParser

from pairs import ITEM, SENTENCE, debian_packages, family, first_and_rest, flat, plain, prose_of_doc, rust_docs, split_of

PERMISSIVE = re.compile(r"\b(MIT|Apache|BSD|ISC|Zlib|0BSD|Unlicense|CC0|BSL|Boost)", re.I)
COPYLEFT = re.compile(r"\b(A?GPL|LGPL|MPL|EPL|CDDL|EUPL)|General Public|Mozilla", re.I)
CONTENT_CHARS_MAX = 320
QUERY_CHARS = range(20, 200)


def permissive(licence):
    """`MIT OR GPL-3.0` is: one may choose. `GPL-3.0` is not."""
    choices = re.split(r"\bOR\b|/", licence)
    return any(PERMISSIVE.search(one) and not COPYLEFT.search(one) for one in choices)


def excerpt(text, limit=CONTENT_CHARS_MAX):
    """The text up to the last word that fits."""
    return text if len(text) <= limit else text[:limit].rsplit(" ", 1)[0]


def item(place, title, first, rest, words_min=5):
    """One candidate: where it stands, its entry, and the question it answers; None when too thin."""
    words = len(first.split())
    if len(rest) < 40 or len(first) not in QUERY_CHARS or words < words_min:
        return None
    return {"place": place, "title": title, "content": excerpt(rest), "query": first.rstrip(".:")}


def debian_items(folder, split, per_source_max=3):
    """Packages whose packaging is under a permissive licence; siblings of one source are hard neighbours."""
    allowed = {line.split("\t")[0] for line in (folder / "licences.tsv").read_text().split("\n")}
    counts, seen = {}, set()
    for source, section, package, synopsis, description in debian_packages(folder):
        # A packaged crate repeats the crate's own README, which training may have read.
        if source not in allowed or source.startswith("rust-") or split_of(f"debian:{source}") != split:
            continue
        if counts.get(source, 0) == per_source_max:
            continue
        found = item(section, package, flat(synopsis), description, words_min=3)
        # What differs only in brackets ("(Python 3)", "(documentation)") is one package to a reader.
        alike = found and {re.sub(r"\(.*?\)| - .*", "", found["query"]).strip().lower(), found["content"][:150].lower()}
        if found and not alike & seen and not package.endswith(("-doc", "-data", "-common", "-dbg")):
            seen |= alike
            counts[source] = counts.get(source, 0) + 1
            yield found


def crate_folders(folder, split):
    for crate in sorted(folder.iterdir()):
        manifest = tomllib.loads((crate / "Cargo.toml").read_text(encoding="utf-8"))
        licence = manifest.get("package", {}).get("license", "")
        if split_of(f"crates:{family(crate.name)}") == split and permissive(licence):
            yield crate


def rust_files(crate):
    for file in sorted(crate.rglob("*.rs")):
        inside = file.relative_to(crate)
        if inside.parts[0] == "src" and file.stat().st_size < 500_000:
            yield inside, file.read_text(encoding="utf-8", errors="replace")


def rust_items(folder, split):
    for crate in crate_folders(folder, split):
        for inside, source in rust_files(crate):
            module = "::".join([crate.name.replace("-", "_"), *inside.with_suffix("").parts[1:]])
            module = re.sub(r"::(mod|lib)$", "", module)
            for name, doc, _ in rust_docs(source):
                found = item(module, f"{module}::{name}", *first_and_rest(prose_of_doc(doc)))
                if found:
                    yield found


def wheels(folder):
    """The modules of each permissively licensed wheel: (package, path, syntax tree)."""
    for path in sorted(folder.glob("*.whl")):
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            about = next(name for name in names if name.count("/") == 1 and name.endswith("info/METADATA"))
            fields = email.message_from_bytes(archive.read(about))
            licence = " ".join(str(fields.get(key) or "")[:60] for key in ("License-Expression", "License"))
            licence += " ".join(one for one in fields.get_all("Classifier", []) if one.startswith("License"))
            if not PERMISSIVE.search(licence) or COPYLEFT.search(licence):
                continue
            for name in sorted(names):
                if name.endswith(".py") and not re.search(r"(^|/)(tests?|_vendor|vendor|testing)/|/test_", name):
                    try:
                        yield path.name.split("-")[0], name, ast.parse(archive.read(name))
                    except (SyntaxError, ValueError):
                        continue


def definitions(tree, prefix=""):
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield prefix + node.name, node
            if isinstance(node, ast.ClassDef):
                yield from definitions(node, f"{prefix}{node.name}.")


def python_prose(docstring):
    """The part of a docstring before its list of parameters, without its markup."""
    text = re.split(r"^\s*(:\w+|Args:|Parameters\b|Returns:?|Arguments:|Usage|>>>|\.\. )", docstring, maxsplit=1, flags=re.M)[0]
    return plain(re.sub(r":\w+:`~?([^`<]*)[^`]*`", r"\1", text))


def python_items(folder):
    for _, path, tree in wheels(folder):
        module = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        for name, node in definitions(tree):
            found = item(module, f"{module}.{name}", *first_and_rest(python_prose(ast.get_docstring(node) or "")))
            if found:
                yield found


class Prose(HTMLParser):
    """Text of the <p> elements inside <main>."""

    def __init__(self):
        super().__init__()
        self.inside, self.paragraphs = False, []

    def handle_starttag(self, tag, attrs):
        if tag == "p":
            self.inside = True
            self.paragraphs.append("")

    def handle_endtag(self, tag):
        self.inside = self.inside and tag != "p"

    def handle_data(self, data):
        if self.inside:
            self.paragraphs[-1] += data


def error_code_items(folder):
    """rustc's error index: the code and its explanation."""
    for file in sorted(folder.glob("E0*.html")):
        reader = Prose()
        text = file.read_text(encoding="utf-8")
        reader.feed(text[text.index("<main>") : text.index("</main>")])
        told = [flat(one) for one in reader.paragraphs if len(one) > 20 and "no longer emitted" not in one]
        if told:
            first, rest = first_and_rest("\n\n".join(told))
            found = item("rustc", f"error[{file.stem}]", first, rest)
            if found:
                yield found


SAMPLES = ["7", "config.toml", "user_id", "0x1f", "localhost:8080", "utf-8", "3.5", "main"]


def filled(message, salt):
    """A message as a user would see it: each placeholder replaced by a plausible value."""
    count = iter(range(salt, salt + 50))
    text = re.sub(r"\{[^{}]*\}|%\(?\w*\)?[srdifq]", lambda _: SAMPLES[next(count) % len(SAMPLES)], message)
    return flat(text.replace('\\"', '"').replace("\\n", " "))


RUST_MESSAGE = re.compile(r"(?:panic!|bail!|anyhow!|\.expect|\.context|Error::\w+|Err)\(\s*\"((?:[^\"\\]|\\.){20,160})\"")


def rust_raises(folder, split):
    """Documented functions of held-out crates and a message that each can end with."""
    for crate in crate_folders(folder, split):
        for inside, source in rust_files(crate):
            for block in re.split(r"\n\s*\n(?=\s*///)", source):
                docs = [line.strip()[3:].removeprefix(" ") for line in block.split("\n") if line.strip().startswith("///")]
                named = next((found for line in block.split("\n") if (found := ITEM.match(line.strip()))), None)
                message = RUST_MESSAGE.search(block)
                if docs and named and message:
                    yield f"{crate.name}/{inside}", named.group(1), flat(prose_of_doc("\n".join(docs))), message.group(1), "panic"


def python_raises(folder):
    """Documented Python functions and a message that each can raise."""
    for _, path, tree in wheels(folder):
        for name, node in definitions(tree):
            told = flat(python_prose(ast.get_docstring(node) or ""))
            for inner in ast.walk(node):
                if isinstance(inner, ast.Raise) and isinstance(inner.exc, ast.Call) and inner.exc.args:
                    literal = inner.exc.args[0]
                    if isinstance(literal, ast.Constant) and isinstance(literal.value, str) and 20 < len(literal.value) < 160:
                        yield path, name, told, literal.value, ast.unparse(inner.exc.func)
                        break


def raise_items(raises):
    """Lessons of the kind `this call fails so`, asked for by message, symbol or path."""
    for at, (path, name, told, message, error) in enumerate(raises):
        if len(told) < 60:
            continue
        about = SENTENCE.split(message)[0]
        yield {
            "place": path, "title": f"{name} in {path} ends with {error}", "content": excerpt(told),
            "query": f"{error}: {filled(about, at)}"[:180], "symbol": name.split(".")[-1],
        }
