"""Writes labelled sets of questions that people ask, from chapters of documentation whose headings are questions.

    python questions.py --work DIR --out ../sets        # the sets that may be committed
    python questions.py --work DIR --out DIR/sets --all # also from sources whose licence forbids excerpts here

A question is a heading; its answer is the section below it, under the title of the page or chapter, without the
heading. Sections without a question are entries too: a store holds much that was not asked for. The sources of a
`dev` set and of a `test` set are different programs. See sets.py for the format.
"""

import argparse
import gzip
import html
import json
import random
import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path

from sets import key, letters, write

SEED = 20261118
NEAR_SHARE = 0.15
CHARACTERS = range(120, 1500)  # of an answer; a longer one is cut at a paragraph
QUESTION = re.compile(
    r"^(how (do|can|to|does|should|is|are)\b|why\b|what\b|can i\b|is (there|it)\b|when\b|where\b|which\b|do(es)? |should )", re.I
)
ASKED = re.compile(r"\?\W*$")
# Package, files below /usr/share/doc, licence of the documentation; the last two decide what may be committed.
PERMISSIVE = {
    "dev": [
        ("python-sqlalchemy-doc", "python-sqlalchemy-doc/html/faq/*.html", "MIT"),
        ("python-django-doc", "python-django-doc/html/faq/*.html", "BSD-3-Clause"),
        ("python-django-doc", "python-django-doc/html/howto/*.html", "BSD-3-Clause"),
        ("zsh-doc", "zsh-common/html/FAQ0*.html", "free with its notice"),
    ],
    "test": [
        ("python3.11-doc", "python3.11/html/faq/*.html", "PSF-2.0"),
        ("sqlite3-doc", "sqlite3/*.html", "public domain"),
        ("apache2-doc", "apache2-doc/manual/en/ssl/*.html", "Apache-2.0"),
        ("apache2-doc", "apache2-doc/manual/en/howto/*.html", "Apache-2.0"),
        ("apache2-doc", "apache2-doc/manual/en/misc/*.html", "Apache-2.0"),
    ],
}
OTHERS = {
    "dev": [
        ("perl-doc", "../perl/*/pod/perlfaq?.pod", "Artistic"),
        ("debian-faq", "debian/FAQ/*.en.html", "GPL"),
        ("git-doc", "git-doc/gitfaq.html", "GPL"),
    ],
    "test": [
        ("r-doc-html", "r-doc-html/manual/R-FAQ.html", "GPL"),
        ("r-doc-html", "r-doc-html/manual/R-exts.html", "GPL"),
        ("emacs-common", "../info/emacs/efaq.info.gz", "GFDL"),
    ],
}


class Page(HTMLParser):
    """Splits a page into (level, heading, text); code keeps its lines."""

    BLOCKS = {"p", "div", "li", "pre", "tr", "dd", "br", "table", "ul", "ol", "section", "blockquote"}
    SKIPPED = {"script", "style", "nav", "head", "title"}

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.sections, self.level, self.skipped, self.open = [[0, "", ""]], 0, 0, False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        if tag in self.SKIPPED:
            self.skipped += 1
        elif re.fullmatch("h[1-6]", tag) or tag == "dt":
            self.sections.append([7 if tag == "dt" else int(tag[1]), "", ""])
            self.open = True
        elif tag in self.BLOCKS and not self.open:
            self.sections[-1][2] += "\n"

    def handle_endtag(self, tag):
        if tag in self.SKIPPED:
            self.skipped = max(self.skipped - 1, 0)
        elif re.fullmatch("h[1-6]", tag) or tag == "dt":
            self.open = False
        elif tag in ("p", "pre") and not self.open:
            self.sections[-1][2] += "\n"

    def handle_data(self, data):
        if not self.skipped:
            self.sections[-1][1 if self.open else 2] += data


def pod_sections(text):
    """The same from Perl's documentation format."""
    text = re.sub(r"[A-WYZ]<<? ?(.*?) ?>?>", lambda m: m[1].split("|")[0], re.sub(r"X<[^>]*>", "", text))
    for part in re.split(r"^=head", text, flags=re.M)[1:]:
        head, _, body = part.partition("\n\n")
        yield int(head[0]), head[2:].replace("\n", " "), re.sub(r"^=(over|item|back|cut|for|begin|end).*", "", body, flags=re.M)


def info_sections(text):
    """The same from an Info file: an underlined heading begins a section."""
    for part in re.split(r"\x1f\n", text)[1:]:
        found = re.search(r"^(.+)\n([*=\-.])\2{3,}\n", part, flags=re.M)
        if found:
            yield "*=-.".index(found[2]) + 1, re.sub(r"^[\d.]+ ", "", found[1]), part[found.end():]


def sections_of(path):
    raw = gzip.open(path, "rb").read() if path.suffix == ".gz" else path.read_bytes()
    text = raw.decode("utf-8", "replace")
    if path.suffix == ".pod":
        return list(pod_sections(text))
    return list(info_sections(text)) if ".info" in path.name else Page(text).sections


def clean(text):
    text = re.sub(r"[¶\xa0]", " ", html.unescape(text)).replace("\r", "")
    text = re.sub(r"[ \t]+\n", "\n", re.sub(r"\n{3,}", "\n\n", text)).strip()
    while len(text) > CHARACTERS.stop:
        text = text[: max(text.rfind("\n\n", 0, CHARACTERS.stop), CHARACTERS.stop - 400)].rstrip()
    return text


def heading(text):
    text = re.sub(r"\s+", " ", text.replace("¶", " ").replace("top", " ") if "¶" in text else text).strip(" \t:.")
    return re.sub(r"^((\d+|Q)[.:)])+\d*\.?\s*", "", text).strip()


def items_of(package, path):
    """Sections of a file, each under the headings above it that are no question."""
    above, page = {}, path.stem.split(".")[0]
    for level, head, body in sections_of(path):
        head, body = heading(head), clean(body)
        above = {at: one for at, one in above.items() if at < level}
        is_question = len(head) < 160 and bool(ASKED.search(head) or QUESTION.search(head)) and len(head.split()) > 2
        if len(body) >= CHARACTERS.start and not re.search(r"^(table of contents|contents)$", head, re.I):
            titles = [one for _, one in sorted(above.items())]
            title = " › ".join([package.removesuffix("-doc"), *titles[-2:], *([] if is_question else [head])])
            yield {"title": title[:120] or page, "content": body, "query": head if is_question else None, "place": package}
        if not is_question and head:
            above[level] = head


def harvest(work, sources):
    found, seen, asked = [], set(), set()
    for package, pattern, _ in sources:
        root = work / "docs" / package / "usr/share/doc"
        for path in sorted(root.glob(pattern)):
            for one in items_of(package, path):
                ending, question = letters(one["content"])[-120:], letters(one["query"] or "")
                if ending in seen or (question and question in asked):
                    continue
                seen.add(ending)
                asked.add(question)
                found.append(one)
    return found


def rows_of(items, off_topic):
    order = random.Random(SEED)
    items = sorted(items, key=lambda one: key(one["title"] + one["content"]))
    questions = [one for one in items if one["query"]]
    # As many other sections as answers: a larger share would hide the answers in reference chapters.
    others = [one for one in items if not one["query"]][: 2 * len(questions)]
    near = [one for one in questions if order.random() < NEAR_SHARE]
    kept = sorted([one for one in questions if one not in near] + others, key=lambda one: key(one["content"]))
    for at, one in enumerate(kept):
        one["id"] = f"q{at}"
    rows = [{"id": one["id"], "title": one["title"], "content": one["content"]} for one in kept]
    rows += [{"query": one["query"], "relevant": [one["id"]]} for one in kept if one["query"]]
    rows += [{"query": one["query"], "relevant": [], "none": "near-topic"} for one in near]
    return rows + [{"query": text, "relevant": [], "none": "off-topic"} for text in off_topic]


def unpack(work, sources):
    for package in sorted({one for one, _, _ in sources}):
        folder = work / "docs" / package
        if folder.exists():
            continue
        (work / "download").mkdir(parents=True, exist_ok=True)
        subprocess.run(["apt-get", "download", package], cwd=work / "download", check=True)
        archive = next((work / "download").glob(f"{package}_*.deb"))
        folder.mkdir(parents=True)
        subprocess.run(["dpkg-deb", "-x", archive, folder], check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--all", action="store_true")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    everyday = (Path(__file__).parent / "everyday.txt").read_text().splitlines()
    for name, sources in (("questions", PERMISSIVE), *([("manuals", OTHERS)] if asked.all else [])):
        for split, chosen in sources.items():
            unpack(asked.work, chosen)
            write(asked.out / f"{name}.{split}.jsonl", rows_of(harvest(asked.work, chosen), everyday[split == "test" :: 2]))


if __name__ == "__main__":
    main()
