"""Chooses and measures the fusion of three signals, the probability of a hit and the grades of an answer.

    python fusion.py --model ../table.bin --transformer ../minilm.onnx --cache DIR --dev SET... [--test SET...]

Signals: words (BM25 as a share of its ceiling, function words of the question left out), table, transformer (best
passage). Weights and probabilities are fitted to the `--dev` sets; the `--test` sets are only reported. Vectors are
kept in the cache, because the transformer takes about 50 ms per passage. The Rust side is scoring/src/relevance.
"""

import argparse
import re
from pathlib import Path

import numpy as np
import onnxruntime
from evaluate import auc, load
from scipy.optimize import minimize
from table import Table

WORDS, TABLE = 0.3, 0.35  # weights; the transformer's is 1
PASSAGE, OVERLAP, WHOLE = 200, 40, 250  # tokens
PRIOR = 500  # documents whose word frequencies are those of the training corpus
TOP, SEED, RESAMPLES = 10, 20261118, 1000
KEPT_STRONG, KEPT = 0.88, 0.98  # of the questions whose answer is among the best three
FUNCTION_WORDS = re.search(r'ENGLISH: &str = "(.*?)";', (Path(__file__).parents[2] / "index/src/function_words.rs").read_text(), re.S)
NAME = re.compile(r"\w+(?:[:./\\>-]{1,2}\w+)*")
PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")


def fold(word):
    """As `fold_ending` of the keyword index."""
    if len(word) < 4 or not (word.isascii() and word.isalpha()) or word[-1] not in "sgde":
        return word
    if word.endswith("ies") and len(word) > 4:
        word = word[:-3] + "y"
    elif re.search("(sses|shes|ches|xes)$", word):
        word = word[:-2]
    elif word.endswith("s") and not re.search("(ss|us|is)$", word):
        word = word[:-1]
    for ending in ("ing", "ed"):
        stem = word.removesuffix(ending)
        if stem != word and len(stem) >= 3 and re.search("[aeiouy]", stem):
            word = stem[:-1] if stem[-1] == stem[-2] and stem[-1] not in "lsz" else stem
            break
    return word[:-1] if word.endswith("e") and len(word) >= 4 else word


def words_of(text):
    """About the words of the keyword index: names whole and split, endings folded."""
    for name in NAME.findall(text):
        parts = re.findall(r"\w+", name)
        whole = re.sub(r"(:\d+)+$", "", name)
        if len(parts) > 1 and (re.search(r"[:./\\>]", whole) or len(parts) <= 3):
            yield fold(whole.lower() if re.search(r"[:./\\>]", whole) else re.sub("[-_]", "", name).lower())
        for word in parts:
            split = PART.findall(word)
            yield fold(word.strip("_").replace("_", "").lower())
            yield from (fold(part.lower()) for part in split if len(split) > 1)


IGNORED = {fold(word) for word in FUNCTION_WORDS[1].replace("\\", " ").split()}


class Keywords:
    """BM25 with the node's parameters and its prior of word frequencies."""

    def __init__(self, texts, shares):
        self.postings, self.shares, lengths = {}, shares, []
        for row, text in enumerate(texts):
            found = list(words_of(text))
            lengths.append(len(found))
            for word in found:
                counts = self.postings.setdefault(word, {})
                counts[row] = counts.get(row, 0) + 1
        self.norm = 1.2 * (0.25 + 0.75 * np.array(lengths) / max(np.mean(lengths), 1))

    def idf(self, word):
        documents, holding = len(self.norm) + PRIOR, len(self.postings.get(word, ())) + round(PRIOR * self.shares.get(word, 0))
        return np.log(1 + (documents - holding + 0.5) / (holding + 0.5))

    def coverage(self, question, ignored):
        asked = set(words_of(question))
        asked = asked - ignored or asked
        out = np.zeros(len(self.norm))
        for word in asked:
            for row, count in self.postings.get(word, {}).items():
                out[row] += self.idf(word) * count * 2.2 / (count + self.norm[row])
        return np.clip(out / (2.2 * max(sum(map(self.idf, asked)), 3)), 0, 1)


class Set:
    """The signals of every question and entry of one labelled set."""

    def __init__(self, path, table, session, cache):
        self.name = path.stem
        self.entries, self.questions = load(path)
        row_of = {one["id"]: row for row, one in enumerate(self.entries)}
        self.relevant = [{row_of[one] for one in asked.get("relevant") or () if one in row_of} for asked in self.questions]
        self.kind = np.array([asked.get("none") or "" for asked in self.questions])
        texts, asked = [f"{one['title']}. {one['title']}. {one['content']}" for one in self.entries], [one["query"] for one in self.questions]
        shares = {}
        for token, count in zip(table.vocab, table.counts):
            if token.isalpha():
                shares[fold(token)] = min(shares.get(fold(token), 0) + float(count) / float(table.documents), 1)
        keywords = Keywords(texts, shares)
        self.all_words = np.stack([keywords.coverage(one, set()) for one in asked])
        self.words = np.stack([keywords.coverage(one, IGNORED) for one in asked])
        generation = table.generation(texts)
        self.table = np.clip(table.embed(asked, generation) @ table.embed(texts, generation).T, 0, 1)
        self.transformer = self.cosines(table.words.tokenizer, session, cache / f"{self.name}.npz")

    def cosines(self, tokenizer, session, cache):
        if not cache.exists():
            def vector(text):
                ids = tokenizer.encode(text, add_special_tokens=False).ids[:254]
                made = session.run(None, {"ids": np.array([101, *ids, 102])})[0]
                return made / np.linalg.norm(made)

            parts = [(row, part) for row, one in enumerate(self.entries) for part in passages(tokenizer, one["content"])]
            np.savez(cache, owner=[row for row, _ in parts], qv=[vector(one["query"]) for one in self.questions],
                     pv=[vector(f"{self.entries[row]['title']}. {part}") for row, part in parts])
        kept = np.load(cache)
        best = np.zeros((len(self.questions), len(self.entries)), np.float32)
        for row, cosine in zip(kept["owner"], kept["pv"] @ kept["qv"].T):
            best[:, row] = np.maximum(best[:, row], cosine)
        return best

    def fused(self):
        return self.transformer + WORDS * self.words + TABLE * self.table

    def methods(self):
        yield "words", self.all_words
        yield "words, no function words", self.words
        yield "table", self.table
        yield "transformer", self.transformer
        yield "words and table", 1 - (1 - self.table) * (1 - self.all_words) ** 1.5
        yield "fused", self.fused()

    def recalls(self, scores):
        rows = [(row, wanted) for row, wanted in zip(scores, self.relevant) if wanted]
        return np.array([len(wanted & set(np.argsort(-row, kind="stable")[:TOP].tolist())) / min(len(wanted), TOP) for row, wanted in rows])

    def ranks(self, scores):
        for row, wanted in zip(scores, self.relevant):
            if wanted:
                hits = [at for at, one in enumerate(np.argsort(-row, kind="stable")[:100]) if one in wanted]
                yield 1 / (hits[0] + 1) if hits else 0

    def hits(self, top=5):
        """Features of the best hits (constant, score, lead, lag), whether each answers, its question and rank."""
        out = []
        for question, row in enumerate(self.fused()):
            best = np.argsort(-row, kind="stable")[:top]
            for rank, one in enumerate(best):
                lead = row[best[0]] - row[best[1]] if rank == 0 else 0
                out.append((1, row[one], lead, row[best[0]] - row[one], one in self.relevant[question], question, rank))
        out = np.array(out, float)
        return out[:, :4], out[:, 4], out[:, 5].astype(int), out[:, 6]


def passages(tokenizer, text):
    places = tokenizer.encode(text, add_special_tokens=False).offsets
    if len(places) <= WHOLE:
        return [text]
    starts = range(0, max(len(places) - OVERLAP, 1), PASSAGE - OVERLAP)
    return [text[places[at][0] : places[min(at + PASSAGE, len(places)) - 1][1]] for at in starts]


def logistic(sets):
    """Coefficients of the probability; every set weighs the same."""
    parts = [one.hits()[:2] for one in sets]
    x, y = (np.concatenate([part[at] for part in parts]) for at in (0, 1))
    weight = np.concatenate([np.full(len(part[1]), 1 / len(part[1]) / len(parts)) for part in parts])

    def loss(b):
        p = np.clip(1 / (1 + np.exp(-x @ b)), 1e-9, 1 - 1e-9)
        return -(weight * (y * np.log(p) + (1 - y) * np.log(1 - p))).sum(), x.T @ (weight * (p - y))

    return minimize(loss, np.zeros(4), jac=True, method="L-BFGS-B").x


def calibration_error(p, y, bins=10):
    at = np.minimum((p * bins).astype(int), bins - 1)
    return sum((at == one).mean() * abs(p[at == one].mean() - y[at == one].mean()) for one in set(at))


def mention_min(entries):
    return 0.25 + 0.07 * np.log10(max(entries, 1))


class Graded:
    """Probabilities of a set's hits and of its answers."""

    def __init__(self, one, coefficients):
        x, y, question, rank = one.hits()
        self.one, self.p, self.y, self.rank = one, 1 / (1 + np.exp(-x @ coefficients)), y, rank
        count = len(one.questions)
        self.best, self.score, self.found = np.zeros(count), np.zeros(count), np.zeros(count, bool)
        np.maximum.at(self.best, question, self.p)
        np.maximum.at(self.score, question, x[:, 1])
        self.found[question[(rank < 3) & (y > 0)]] = True

    def report(self, strong_min):
        nothing = self.score < mention_min(len(self.one.entries))
        strong = ~nothing & (self.best >= strong_min)
        first = self.rank == 0
        cells = [calibration_error(self.p, self.y), calibration_error(self.p[first], self.y[first]),
                 strong[self.found].mean(), (~nothing)[self.found].mean()]
        for kind in ("near-topic", "off-topic"):
            asked = self.one.kind == kind
            cells += [strong[asked].mean(), nothing[asked].mean(), auc(self.best[self.found], self.best[asked])] if asked.any() else [np.nan] * 3
        print(f"| {self.one.name} | " + " | ".join("–" if np.isnan(cell) else f"{cell:.3f}".lstrip("0") for cell in cells) + " |", flush=True)


def report(sets):
    print("\nrecall@10 / MRR\n\n| | " + " | ".join(one.name for one in sets) + " | mean |\n|---" + "|---" * (len(sets) + 1) + "|")
    recalls = {}
    for one in sets:
        for method, scores in one.methods():
            recalls.setdefault(method, []).append((one.recalls(scores), np.mean(list(one.ranks(scores)))))
    for method, found in recalls.items():
        cells = [f"{recall.mean():.3f} / {rank:.3f}" for recall, rank in found]
        print(f"| {method} | " + " | ".join(cells) + f" | {np.mean([r.mean() for r, _ in found]):.3f} / {np.mean([m for _, m in found]):.3f} |")
    draws = np.random.default_rng(SEED)
    for method in ("words and table", "transformer", "words, no function words", "table"):
        cells, means = [], np.zeros(RESAMPLES)
        for (fused, _), (other, _) in zip(recalls["fused"], recalls[method]):
            apart = fused - other
            drawn = np.array([apart[draws.integers(len(apart), size=len(apart))].mean() for _ in range(RESAMPLES)])
            means += drawn / len(sets)
            cells.append(f"{apart.mean():+.3f} [{np.quantile(drawn, 0.025):+.3f}, {np.quantile(drawn, 0.975):+.3f}]")
        cells.append(f"{means.mean():+.3f} [{np.quantile(means, 0.025):+.3f}, {np.quantile(means, 0.975):+.3f}]")
        print(f"| fused less {method} | " + " | ".join(cells) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("model", "transformer", "cache"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--dev", type=Path, nargs="+", required=True)
    parser.add_argument("--test", type=Path, nargs="*", default=[])
    asked = parser.parse_args()
    table, options = Table.read(asked.model), onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(asked.transformer), options)
    dev, test = ([Set(path, table, session, asked.cache) for path in paths] for paths in (asked.dev, asked.test))
    for sets in filter(None, (dev, test)):
        report(sets)
    coefficients = logistic(dev)
    graded = [Graded(one, coefficients) for one in dev + test]
    strong_min = np.median([np.quantile(one.best[one.found], 1 - KEPT_STRONG) for one in graded[: len(dev)]])
    print("\nprobability: constant, score, lead, lag", np.round(coefficients, 2), f"strong from {strong_min:.3f}\n")
    print("| | ECE of hits | of first hits | found: strong | strong or weak | near: strong | nothing | AUC | off: strong | nothing | AUC |")
    print("|---" * 11 + "|")
    for one in graded:
        one.report(strong_min)


if __name__ == "__main__":
    main()
