"""Writes the labelled evaluation sets from held-out and unseen sources.

    python sets.py --work DIR --out ../sets

One JSON object per line. An entry has id, title and content. A query has query and relevant (ids);
one with no right answer has none: "near-topic" (its entry was taken out, its neighbours are there) or
"off-topic" (it comes from another world). `dev` files may be tuned on, `test` files may not.
"""

import argparse
import gzip
import hashlib
import json
import random
import re
from pathlib import Path

import harvest

SEED = 20261114
ENDING = 120  # characters at the end of a text that tell copies
NEAR_SHARE = 0.12  # of the items of a set: asked for, but not in it
LEISURE = ("games", "science", "sound", "education", "hamradio", "gnome", "graphics", "electronics")
SOFTWARE = re.compile(r"librar|tool|file|utilit|\bAPI|module|bindings|data|Python|convert|encrypt|package", re.I)
PER_PLACE = range(4, 13)  # neighbours in one module: fewer are too easy, more drown the rest


def key(text):
    return hashlib.sha256(text.encode()).hexdigest()


def letters(text):
    return re.sub(r"\W+", " ", text).strip().lower()


class Trained:
    """What training has read, so that no question or answer of a set is a copy of it."""

    def __init__(self, pairs):
        self.questions, self.endings = set(), set()
        with gzip.open(pairs, "rt", encoding="utf-8", newline="\n") as lines:
            for _, split, _, question, answer in (line.rstrip("\n").split("\t") for line in lines):
                if split == "train":
                    self.questions |= {letters(question), letters(re.split(r"(?<=[.!?])\s", answer)[0])}
                    self.endings.add(letters(answer)[-ENDING:])

    def unseen(self, items):
        """Leaves out copies: crates borrow from each other, packages share boilerplate."""
        for one in items:
            if letters(one["query"]) not in self.questions and letters(one["content"])[-ENDING:] not in self.endings:
                yield one


def neighbourhoods(items, entries_max, per_package_max=200):
    """A reproducible choice of whole modules, so that every entry has neighbours like it."""
    places, queries = {}, set()
    for one in items:
        if one["query"].lower() not in queries:
            queries.add(one["query"].lower())
            places.setdefault(one["place"], []).append(one)
    chosen, packages = [], {}
    for place in sorted(places, key=key):
        package = place.replace(".", ":").replace("/", ":").split(":")[0]
        here = sorted(places[place], key=lambda one: key(one["title"]))[: PER_PLACE.stop - 1]
        if len(here) < PER_PLACE.start or packages.get(package, 0) + len(here) > per_package_max:
            continue
        packages[package] = packages.get(package, 0) + len(here)
        chosen += here
        if len(chosen) >= entries_max:
            break
    return chosen


def rows_of(items, off_topic, queries_max):
    """Entries, then queries: answerable ones, near-topic ones, off-topic ones."""
    order = random.Random(SEED)
    items = sorted(items, key=lambda one: key(one["title"] + one["query"]))
    for at, one in enumerate(items):
        one["id"] = f"e{at}"
    near = [one for one in items if order.random() < NEAR_SHARE]
    gone = {one["id"] for one in near}
    kept = [one for one in items if one["id"] not in gone]
    rows = [{"id": one["id"], "title": one["title"], "content": one["content"]} for one in kept]
    for one in order.sample(kept, min(queries_max, len(kept))):
        rows.append({"query": one["query"], "relevant": [one["id"]]})
        rows += extra_queries(one, kept)
    rows += [{"query": one["query"], "relevant": [], "none": "near-topic"} for one in near[: queries_max // 5]]
    rows += [{"query": text, "relevant": [], "none": "off-topic"} for text in off_topic]
    return rows


def extra_queries(one, kept):
    """For lessons about errors: also asked for by symbol and by path, one in four each."""
    if "symbol" not in one:
        return
    turn = int(key(one["title"])[:8], 16) % 4
    if turn == 0 and len(one["symbol"]) > 5:
        same = [other["id"] for other in kept if other.get("symbol") == one["symbol"]]
        yield {"query": one["symbol"], "relevant": same}
    if turn == 1:
        path = "/".join(one["place"].split("/")[-2:])
        same = [other["id"] for other in kept if other["place"].endswith(path)]
        yield {"query": f"{path}:{int(key(path)[:6], 16) % 900}", "relevant": same}


def quoted(items):
    """Every other lesson quotes its message, as people do; the rest only describe what the call does."""
    for one in items:
        if int(key(one["title"])[8:10], 16) % 2:
            one["content"] = harvest.excerpt(f"Fails with: {one['query']}. {one['content']}")
            one["query"] = one["query"].replace("7", "12").replace("user_id", "account").replace("main", "worker")
        yield one


def write(path, rows):
    with open(path, "w", encoding="utf-8", newline="\n") as out:
        for row in rows:
            out.write(json.dumps(row, ensure_ascii=False) + "\n")
    entries = sum("id" in row for row in rows)
    none = sum("none" in row for row in rows)
    print(f"{path.name}: {entries} entries, {len(rows) - entries - none} queries, {none} without an answer")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    work = asked.work
    sizes = {"dev": (1000, 400), "test": (3000, 1000)}
    unseen = Trained(work / "pairs.tsv.gz").unseen
    codes = list(harvest.error_code_items(work / "rust-docs" / "error_codes"))
    packages = {split: list(unseen(harvest.debian_items(work / "debian", split))) for split in sizes}
    python = neighbourhoods(unseen(harvest.python_items(work / "pypi")), sizes["test"][0])
    for split, (entries_max, queries_max) in sizes.items():
        rust = neighbourhoods(unseen(harvest.rust_items(work / "crates", split)), entries_max)
        odd = [one for at, one in enumerate(codes) if (at % 3 == 0) == (split == "dev")]
        raises = list(harvest.rust_raises(work / "crates", split))
        raises += list(harvest.python_raises(work / "pypi"))[:: 4] if split == "test" else []
        lessons = neighbours_of_errors(quoted(unseen(harvest.raise_items(raises))), entries_max // 2)
        # Another world for each: package synopses of leisure and science, or an interface's fine print.
        # The unseen source lends nothing to a set that may be tuned on.
        leisure = sample(one["query"] for one in packages[split] if one["place"] in LEISURE and not SOFTWARE.search(one["query"]))
        fine_print = sample(one["query"] for one in (rust if split == "dev" else python))
        write(asked.out / f"packages.{split}.jsonl", rows_of(packages[split][:entries_max], fine_print, queries_max))
        write(asked.out / f"rust.{split}.jsonl", rows_of(rust, leisure, queries_max))
        write(asked.out / f"errors.{split}.jsonl", rows_of(lessons + odd, leisure, queries_max))
    write(asked.out / "python.test.jsonl", rows_of(python, leisure, sizes["test"][1]))


def neighbours_of_errors(items, entries_max):
    """Lessons with distinct questions; several of one file stay together."""
    places, queries = {}, set()
    for one in items:
        if one["query"].lower() not in queries:
            queries.add(one["query"].lower())
            places.setdefault(one["place"], []).append(one)
    return [one for place in sorted(places, key=key) for one in places[place][:6]][:entries_max]


def sample(texts, count=100):
    return sorted(set(texts), key=key)[:count]


if __name__ == "__main__":
    main()
