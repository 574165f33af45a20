"""Writes labelled sets of compiler messages as users see them, and of questions in the READMEs of crates.

    python messages.py --crates DIR --out ../sets

`compiler`: the message that rustc prints for the first failing example of an error code, without the code; the
answer is the explanation of that code. `readmes`: headings of READMEs that are questions, with their sections; DIR
holds unpacked crates. Both are split by name, so that no code and no family of crates is in two splits.
"""

import argparse
import os
import re
import subprocess
import tempfile
import tomllib
from pathlib import Path

from harvest import permissive
from questions import ASKED, CHARACTERS, QUESTION, clean, rows_of
from sets import key, letters, write

CODES = range(1, 806)


def explanation(code):
    made = subprocess.run(["rustc", "--explain", code], capture_output=True, text=True)
    return made.stdout if made.returncode == 0 else ""


def message(code, text, folder):
    """What rustc says about the first example of the explanation that fails; None if it says something else."""
    found = re.search(r"^```\n(.*?)^```", text, re.M | re.S)
    if not found:
        return None
    path = folder / "example.rs"
    path.write_text(found[1] if "fn main" in found[1] else found[1] + "\nfn main() {}\n")
    command = ["rustc", "--edition", "2021", "--emit=metadata", "-o", folder / "out", path]
    # Some examples use unstable features, which a stable compiler knows but does not allow.
    said = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "RUSTC_BOOTSTRAP": "1"}).stderr
    found = re.search(r"^error\[" + code + r"\]: (.+)", said, re.M)
    return found[1] if found else None


def compiler_items():
    with tempfile.TemporaryDirectory() as folder:
        for number in CODES:
            code = f"E{number:04}"
            text = explanation(code)
            if "no longer emitted" in text or len(text) < CHARACTERS.start:
                continue
            yield {"title": f"rustc {code}", "content": clean(text), "query": message(code, text, Path(folder)), "place": code}


def markdown_items(crate, text):
    above = {}
    for part in re.split(r"^(?=#{1,5} )", text, flags=re.M):
        head, _, body = part.partition("\n")
        level, head = len(head) - len(head.lstrip("#")), re.sub(r"[`*#\[\]]|\(http\S+\)", "", head).strip()
        body = clean(re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", body))
        above = {at: one for at, one in above.items() if at < level}
        is_question = len(head.split()) > 2 and len(head) < 160 and bool(ASKED.search(head) or QUESTION.search(head))
        if len(body) >= CHARACTERS.start and level:
            title = " › ".join([crate, *list(above.values())[-1:], *([] if is_question else [head])])
            yield {"title": title[:120], "content": body, "query": head if is_question else None, "place": crate}
        if not is_question:
            above[level] = head


def readme_items(crates):
    seen, asked = set(), set()
    for folder in sorted(crates.iterdir()):
        crate = re.sub(r"-\d+\..*$", "", folder.name)
        manifest = tomllib.loads((folder / "Cargo.toml").read_text(encoding="utf-8"))
        if not permissive(manifest.get("package", {}).get("license", "")):
            continue
        for path in sorted(folder.glob("*.md")) + sorted(folder.glob("doc*/**/*.md")):
            if re.search(r"change|release|license|security|contribut|conduct", path.name, re.I):
                continue
            items = list(markdown_items(crate, path.read_text(encoding="utf-8", errors="replace")))
            # Other sections count only where some heading is a question; elsewhere they would drown the answers.
            for one in items if any(one["query"] for one in items) else []:
                ending, question = letters(one["content"])[-120:], letters(one["query"] or "")
                if ending not in seen and not (question and question in asked):
                    seen.add(ending)
                    asked.add(question)
                    yield one


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--crates", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    everyday = (Path(__file__).parent / "everyday.txt").read_text().splitlines()
    for name, items in (("readmes", list(readme_items(asked.crates))), ("compiler", list(compiler_items()))):
        for split in ("dev", "test"):
            # The family of a crate is its name up to the first hyphen.
            is_dev = [int(key(one["place"].split("-")[0])[:4], 16) % 2 == 0 for one in items]
            chosen = [one for one, dev in zip(items, is_dev) if dev == (split == "dev")]
            write(asked.out / f"{name}.{split}.jsonl", rows_of(chosen, everyday[split == "test" :: 2]))


if __name__ == "__main__":
    main()
