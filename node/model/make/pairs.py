"""Extracts text pairs from the fetched packages: what someone might ask, and the text that answers.

    python pairs.py --work DIR      reads DIR/{crates,npm,debian}, writes DIR/pairs.tsv.gz

Each row: source, split (train, dev or test), group, question, answer. A group (a family of crates,
a source package) lies in one split as a whole, so nothing held out has a sibling in training.
"""

import argparse
import gzip
import hashlib
import html
import io
import json
import re
from multiprocessing import Pool
from pathlib import Path

PER_PACKAGE_MAX = 2000  # generated bindings would otherwise drown the rest
QUESTION_CHARS_MAX, ANSWER_CHARS_MAX = 300, 1200
# Percent of families held out for (dev, test): enough Debian ones that a set of permissively licensed
# packages still has thousands of rows.
HELD_OUT = {"debian": (6, 16), "crates": (4, 10), "npm": (0, 0)}

FENCE = re.compile(r"(```|~~~).*?(\1|\Z)", re.S)
LINK = re.compile(r"!?\[([^\]\n]*)\](\([^)\n]*\)|\[[^\]\n]*\])?")
TAG = re.compile(r"<[^<>\n]{1,200}>")
URL = re.compile(r"https?://\S+")
SPACE = re.compile(r"\s+")
SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z`(])|\n\s*\n")
ITEM = re.compile(
    r"^(?:pub(?:\([^)]*\))?\s+)?(?:default\s+)?(?:async\s+|unsafe\s+|const\s+|extern\s+\"[^\"]*\"\s+)*"
    r"(?:fn|struct|enum|union|trait|mod|type|const|static|macro_rules!)\s+(\w+)"
)
MEMBER = re.compile(r"^(?:pub(?:\([^)]*\))?\s+)?([A-Za-z_]\w*)\s*(?:[:({,=]|$)")
ERROR = re.compile(r"#\[error\(\s*\"((?:[^\"\\]|\\.)*)\"")
JSDOC = re.compile(r"/\*\*(.*?)\*/\s*\n([^\n]*)", re.S)
JS_NAME = re.compile(
    r"^\s*(?:export\s+|declare\s+|default\s+|static\s+|readonly\s+|abstract\s+|public\s+|protected\s+|async\s+)*"
    r"(?:(?:function|class|interface|type|enum|const|let|var|namespace)\s+)?([A-Za-z_$][\w$]*)"
)


def split_of(group):
    """Which split a family of packages belongs to, by the hash of its name."""
    slot = int(hashlib.sha256(group.encode()).hexdigest(), 16) % 100
    dev, test = HELD_OUT[group.partition(":")[0]]
    return "dev" if slot < dev else "test" if slot < dev + test else "train"


def family(name):
    """`tokio-util` and `tokio_stream` are of one family."""
    return re.split(r"[-_/]", name.lstrip("@"))[0]


def plain(markdown):
    """Prose of a Markdown text: no code blocks, links as their words, no tags."""
    text = FENCE.sub("\n\n", markdown)
    text = LINK.sub(r"\1", text)
    text = URL.sub(" ", TAG.sub(" ", text))
    lines = [line for line in text.split("\n") if not line.lstrip().startswith(("|", "[", "<", "    "))]
    return html.unescape("\n".join(lines)).replace("`", "").replace("**", "")


def flat(text):
    return SPACE.sub(" ", text).strip()


def prose_of_doc(markdown):
    """The part of a doc comment before its first heading."""
    text = FENCE.sub("\n\n", markdown)
    return plain(re.split(r"^#+ ", text, maxsplit=1, flags=re.M)[0])


def first_and_rest(text):
    parts = SENTENCE.split(text.strip(), maxsplit=1)
    return flat(parts[0]), flat(parts[1]) if len(parts) > 1 else ""


def sections(markdown):
    """Heading and prose of each section of a README."""
    pieces = re.split(r"^#{1,4} +(.+)$", FENCE.sub("\n\n", markdown), flags=re.M)
    for heading, body in zip(pieces[1::2], pieces[2::2]):
        yield flat(plain(heading)).strip("# "), flat(plain(body))


def rust_docs(source):
    """(name, doc, error message) of each documented item in a Rust file."""
    doc, message = [], None
    for line in source.split("\n"):
        line = line.strip()
        if line.startswith("///") and not line.startswith("////"):
            doc.append(line[3:].removeprefix(" "))
            continue
        if line.startswith("#["):
            found = ERROR.match(line)
            message = found.group(1) if found else message
            continue
        if not line or line.startswith("//"):
            continue
        if doc or message:
            found = ITEM.match(line) or MEMBER.match(line)
            if found:
                yield found.group(1), "\n".join(doc), message
        doc, message = [], None


def module_doc(source):
    lines = [line.strip() for line in source.split("\n") if line.strip().startswith("//!")]
    return "\n".join(line[3:].removeprefix(" ") for line in lines)


def words_of(name):
    return flat(re.sub(r"(?<=[a-z0-9])(?=[A-Z])|_", " ", name))


def doc_pairs(kind, path, name, doc):
    first, rest = first_and_rest(prose_of_doc(doc))
    if len(rest) >= 40:
        yield kind, first, f"{path} {rest}"
    if len(first) >= 20:
        yield kind + "-name", f"{words_of(path)} {words_of(name)}", f"{first} {rest}"


def crate_pairs(folder):
    """All pairs of one crate."""
    for file in sorted(folder.rglob("*.rs")):
        inside = file.relative_to(folder).parts
        if inside[0] in ("tests", "benches", "examples") or file.stat().st_size > 2_000_000:
            continue
        source = file.read_text(encoding="utf-8", errors="replace")
        module = file.parent.name if file.stem in ("mod", "lib", "main") else file.stem
        yield from doc_pairs("rust", module, module, module_doc(source))
        for name, doc, message in rust_docs(source):
            yield from doc_pairs("rust", module, name, doc)
            if message and len(message) > 15:
                said = re.sub(r"\{[^}]*\}", " ", message)
                yield "rust-error", f"{words_of(module)} {words_of(name)} {flat(prose_of_doc(doc))}", said
    yield from readme_pairs(folder)


def readme_pairs(folder):
    for file in sorted(folder.glob("*")):
        if file.name.lower() != "readme.md" or not file.is_file():
            continue
        readme = file.read_text(encoding="utf-8", errors="replace")
        for heading, body in sections(readme):
            if len(body) >= 60:
                yield "readme", heading, body
                first, rest = first_and_rest(body)
                if len(rest) >= 60:
                    yield "readme-body", f"{heading} {first}", rest


def npm_pairs(folder):
    """All pairs of one npm package: its README and the comments of its type declarations."""
    manifest = folder / "package.json"
    if manifest.exists():
        about = json.loads(manifest.read_text(encoding="utf-8", errors="replace")).get("description") or ""
        yield "npm-about", f"{folder.name} {about}", next(
            (body for file in sorted(folder.glob("*")) if file.name.lower() == "readme.md"
             for _, body in sections(file.read_text(encoding="utf-8", errors="replace")) if len(body) > 60), "")
    yield from readme_pairs(folder)
    for file in sorted(folder.rglob("*.d.ts")):
        if "node_modules" in file.parts or file.stat().st_size > 4_000_000:
            continue
        for comment, following in JSDOC.findall(file.read_text(encoding="utf-8", errors="replace")):
            doc = "\n".join(line.strip().removeprefix("*").strip() for line in comment.split("\n"))
            doc = re.sub(r"\{@\w+ ([^}]*)\}", r"\1", re.split(r"^@", doc, maxsplit=1, flags=re.M)[0])
            named = JS_NAME.match(following)
            if named:
                yield from doc_pairs("npm", file.name.removesuffix(".d.ts"), named.group(1), doc)


def stanzas(path):
    """The stanzas of a Debian index file, each as a dictionary."""
    stanza, key = {}, None
    for line in io.open(path, encoding="utf-8"):
        line = line.rstrip("\n")
        if not line:
            if stanza:
                yield stanza
            stanza, key = {}, None
        elif line[0] in " \t":
            stanza[key] += "\n" + line[1:]
        else:
            key, _, value = line.partition(":")
            stanza[key] = value.strip()
    if stanza:
        yield stanza


def debian_packages(folder):
    """(source package, section, package, synopsis, description) of each package."""
    long = {one["Description-md5"]: one["Description-en"] for one in stanzas(folder / "Translation-en")}
    for one in stanzas(folder / "Packages"):
        text = long.get(one.get("Description-md5"), "")
        synopsis, _, description = text.partition("\n")
        description = flat(re.sub(r"^\.$", "", description, flags=re.M))
        source = one.get("Source", one["Package"]).split(" ")[0]
        yield source, one.get("Section", ""), one["Package"], synopsis, description


def bounded(kind_pairs):
    """Trims, drops the trivial, and stops at the limit of one package."""
    kept = 0
    for kind, question, answer in kind_pairs:
        question, answer = flat(question)[:QUESTION_CHARS_MAX], flat(answer)[:ANSWER_CHARS_MAX]
        if len(question) < 8 or len(answer) < 25 or question == answer:
            continue
        yield kind, question, answer
        kept += 1
        if kept == PER_PACKAGE_MAX:
            return


def one_package(job):
    ecosystem, name, folder = job
    extract = crate_pairs if ecosystem == "crates" else npm_pairs
    group = f"{ecosystem}:{family(name)}"
    return [(kind, split_of(group), group, q, a) for kind, q, a in bounded(extract(Path(folder)))]


def debian_rows(folder):
    for source, _, package, synopsis, description in debian_packages(folder):
        if source.startswith("rust-"):
            continue  # the crates themselves are read already
        for row in bounded([("debian", synopsis, f"{package} {description}")]):
            yield row[0], split_of(f"debian:{source}"), f"debian:{source}", *row[1:]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    work = parser.parse_args().work
    jobs = [(eco, folder.name, str(folder)) for eco in ("crates", "npm") for folder in sorted((work / eco).iterdir())]
    rows, questions, answers = [], set(), set()
    with Pool(2) as pool:
        batches = list(pool.imap(one_package, jobs, chunksize=8))
    batches.append(list(debian_rows(work / "debian")))
    for row in (row for batch in batches for row in batch):
        # A text that occurs twice would be its own negative.
        if row[3] in questions or row[4] in answers:
            continue
        questions.add(row[3])
        answers.add(row[4])
        rows.append(row)
    body = "".join("\t".join(row) + "\n" for row in rows).encode()
    with gzip.GzipFile(work / "pairs.tsv.gz", "wb", mtime=0, compresslevel=4) as out:
        out.write(body)
    counts = {}
    for row in rows:
        counts[row[0], row[1]] = counts.get((row[0], row[1]), 0) + 1
    for key, count in sorted(counts.items()):
        print(*key, count)
    print("rows", len(rows), "sha256", hashlib.sha256(body).hexdigest())


if __name__ == "__main__":
    main()
