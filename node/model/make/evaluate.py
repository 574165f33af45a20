"""Measures ranking on the labelled sets: BM25, the table's vectors, two fusions, the teacher.

    python evaluate.py --model ../table.bin --sets ../sets [--split test] [--teacher DIR]
    python evaluate.py --model ../table.bin --golden ../golden

The second form writes the reference values that the Rust tests compare against.
"""

import argparse
import json
import re
from pathlib import Path

import numpy as np

from table import Table

TOP = 10
COVERAGE = 1.5  # chosen on the dev sets


def load(path):
    entries, queries = [], []
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            (entries if "id" in row else queries).append(row)
    return entries, queries


def bm25_terms(text):
    """Lower-case words; identifiers whole as well as split."""
    out = []
    for word in re.findall(r"\w+", text):
        parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+", word)
        out += [word.lower()] + ([part.lower() for part in parts] if len(parts) > 1 else [])
    return out


class Bm25:
    """Okapi BM25 with k1 = 1.2 and b = 0.75."""

    def __init__(self, texts):
        self.postings, lengths = {}, []
        for row, text in enumerate(texts):
            terms = bm25_terms(text)
            lengths.append(len(terms))
            for term in terms:
                found = self.postings.setdefault(term, {})
                found[row] = found.get(row, 0) + 1
        self.norm = 1.2 * (0.25 + 0.75 * np.array(lengths) / max(np.mean(lengths), 1))

    def idf(self, term):
        found = len(self.postings.get(term, ()))
        return np.log(1 + (len(self.norm) - found + 0.5) / (found + 0.5))

    def ceiling(self, query):
        """What an entry would get that holds every word of the query without end."""
        return max(2.2 * sum(self.idf(term) for term in bm25_terms(query)), 1e-9)

    def scores(self, query):
        out = np.zeros(len(self.norm))
        for term in bm25_terms(query):
            for row, count in self.postings.get(term, {}).items():
                out[row] += self.idf(term) * count * 2.2 / (count + self.norm[row])
        return out


def min_max(scores):
    """Each query's scores from its lowest to its highest, as 0 to 1."""
    low, high = scores.min(1, keepdims=True), scores.max(1, keepdims=True)
    return (scores - low) / np.maximum(high - low, 1e-9)


def measures(scores, relevant):
    """Mean recall@10, nDCG@10 and reciprocal rank (of the first 100)."""
    recall, gain, rank = [], [], []
    for row, wanted in zip(scores, relevant):
        order = np.argsort(-row, kind="stable")[:100]
        hits = [place for place, found in enumerate(order) if found in wanted]
        top = [place for place in hits if place < TOP]
        recall.append(len(top) / min(len(wanted), TOP))
        ideal = sum(1 / np.log2(place + 2) for place in range(min(len(wanted), TOP)))
        gain.append(sum(1 / np.log2(place + 2) for place in top) / ideal)
        rank.append(1 / (hits[0] + 1) if hits else 0.0)
    return np.mean(recall), np.mean(gain), np.mean(rank)


def score_all(entries, queries, table, teacher):
    """Scores of every query against every entry, by method."""
    texts = [f"{one['title']}. {one['content']}" for one in entries]
    asked = [one["query"] for one in queries]
    keyword = Bm25(texts)
    out = {"BM25": np.stack([keyword.scores(one) for one in asked])}
    generation = table.generation(texts)
    out["table"] = table.embed(asked, generation) @ table.embed(texts, generation).T
    out["table + BM25"] = min_max(out["BM25"]) + min_max(out["table"])
    # How much of the query the words cover, beside how near the meaning is: both absolute.
    covered = out["BM25"] / np.array([[keyword.ceiling(one)] for one in asked])
    out["table + coverage"] = np.maximum(out["table"], 0) + COVERAGE * covered
    if teacher:
        out["MiniLM"] = teacher.encode(asked) @ teacher.encode(texts).T
        out["MiniLM + BM25"] = min_max(out["BM25"]) + min_max(out["MiniLM"])
    return out


def report(path, table, teacher):
    entries, queries = load(path)
    scores = score_all(entries, queries, table, teacher)
    row_of = {one["id"]: row for row, one in enumerate(entries)}
    answerable = [at for at, one in enumerate(queries) if one["relevant"]]
    relevant = [{row_of[name] for name in queries[at]["relevant"]} for at in answerable]
    print(f"\n{path.stem}: {len(entries)} entries, {len(answerable)} queries\n")
    print("| method | recall@10 | nDCG@10 | MRR |\n|---|---|---|---|")
    for method, all_scores in scores.items():
        print(f"| {method} | " + " | ".join(f"{value:.3f}" for value in measures(all_scores[answerable], relevant)) + " |")
    for method in ("table", "table + coverage"):
        print(f"\nbest score by {method}, quartiles: ", end="")
        best, told = scores[method].max(1), {}
        for kind in (None, "near-topic", "off-topic"):
            told[kind] = best[[at for at, one in enumerate(queries) if one.get("none") == kind]]
            print(kind or "answerable", np.round(np.percentile(told[kind], [25, 50, 75]), 3).tolist(), end="; ")
        print("told apart (AUC):", *(f"{kind} {auc(told[None], told[kind]):.3f}" for kind in ("near-topic", "off-topic")), flush=True)


def auc(higher, lower):
    """How often one of the first is above one of the second."""
    return (higher[:, None] > lower[None, :]).mean() + (higher[:, None] == lower[None, :]).mean() / 2


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--sets", type=Path)
    parser.add_argument("--split", default="test")
    parser.add_argument("--teacher", type=Path)
    parser.add_argument("--golden", type=Path)
    asked = parser.parse_args()
    table = Table.read(asked.model)
    if asked.golden:
        from golden import write_golden

        write_golden(table, asked.golden)
    if asked.sets:
        from minilm import MiniLm

        teacher = MiniLm(asked.teacher) if asked.teacher else None
        for path in sorted(asked.sets.glob(f"*.{asked.split}.jsonl")):
            report(path, table, teacher)


if __name__ == "__main__":
    main()
