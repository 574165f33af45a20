"""Trains the distilled table on the pairs: one embedding bag, in-batch negatives, Adam. CPU only.

    python train.py --work DIR [--without SOURCE] [--out NAME]

reads DIR/{distilled.npy,pairs.tsv.gz,minilm/vocab.txt}, writes DIR/NAME.npz (rows, document
frequencies). `--without debian` leaves that source out, to measure what an unseen source gets.
"""

import argparse
import gzip
import time
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix

from text import Words

SEED = 20261114
TEMPERATURE = 0.05
BATCH = 2048
RATE = 3e-3
EPOCHS = 5
QUESTION_TOKENS_MAX, ANSWER_TOKENS_MAX = 64, 160


def read_pairs(path, words, without):
    """Training pairs as token ids: (questions, answers)."""
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as lines:
        rows = [line.rstrip("\n").split("\t") for line in lines]
    rows = [row for row in rows if row[1] == "train" and not (without and row[0].startswith(without))]
    questions = [one[:QUESTION_TOKENS_MAX] for one in words.ids([row[3] for row in rows])]
    answers = [one[:ANSWER_TOKENS_MAX] for one in words.ids([row[4] for row in rows])]
    kept = [at for at in range(len(rows)) if questions[at] and answers[at]]
    return [questions[at] for at in kept], [answers[at] for at in kept]


def document_frequencies(documents, size):
    counts = np.zeros(size, np.int64)
    for one in documents:
        counts[list(set(one))] += 1
    return counts


def idf_of(counts, documents):
    return np.log(1 + (documents - counts + 0.5) / (counts + 0.5)).astype(np.float32)


def bag(lists, weights, size):
    """Sparse matrix whose product with the table is the weighted mean of each list's rows."""
    lengths = np.fromiter((len(one) for one in lists), np.int64, len(lists))
    columns = np.concatenate(lists)
    values = weights[columns]
    totals = np.add.reduceat(values, np.concatenate([[0], lengths.cumsum()[:-1]]))
    values = values / np.repeat(totals, lengths)
    return csr_matrix((values, columns, np.concatenate([[0], lengths.cumsum()])), (len(lists), size), dtype=np.float32)


def unit(x):
    norms = np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-6)
    return x / norms, norms


def step(table, left, right):
    """Loss and gradient of symmetric InfoNCE over one batch."""
    a, a_norm = unit(left @ table)
    b, b_norm = unit(right @ table)
    scores = a @ b.T / TEMPERATURE
    diagonal = np.arange(len(scores))
    gradient = np.zeros_like(scores)
    loss = 0.0
    for axis in (0, 1):
        shifted = np.exp(scores - scores.max(axis, keepdims=True))
        shares = shifted / shifted.sum(axis, keepdims=True)
        loss -= 0.5 * np.log(shares[diagonal, diagonal] + 1e-12).mean()
        gradient += shares
    gradient[diagonal, diagonal] -= 2
    gradient *= 0.5 / (TEMPERATURE * len(scores))
    grad_a, grad_b = gradient @ b, gradient.T @ a
    grad_a = (grad_a - a * (grad_a * a).sum(1, keepdims=True)) / a_norm
    grad_b = (grad_b - b * (grad_b * b).sum(1, keepdims=True)) / b_norm
    return loss, left.T @ grad_a + right.T @ grad_b


def train(table, questions, answers, weights, epochs):
    random = np.random.default_rng(SEED)
    mean, square, time_step = np.zeros_like(table), np.zeros_like(table), 0
    steps = epochs * (len(questions) // BATCH)
    for epoch in range(epochs):
        order, losses, began = random.permutation(len(questions)), [], time.time()
        for at in range(0, len(order) - BATCH + 1, BATCH):
            rows = order[at : at + BATCH]
            left, right = (bag([side[row] for row in rows], weights, len(table)) for side in (questions, answers))
            loss, gradient = step(table, left, right)
            losses.append(loss)
            time_step += 1
            mean *= 0.9
            mean += 0.1 * gradient
            square *= 0.999
            square += 0.001 * gradient * gradient
            rate = RATE * (1 - time_step / (steps + 1)) * np.sqrt(1 - 0.999**time_step) / (1 - 0.9**time_step)
            table -= rate * mean / (np.sqrt(square) + 1e-8)
        print(f"epoch {epoch + 1}: loss {np.mean(losses):.4f}, {time.time() - began:.0f} s", flush=True)
    return table


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--without")
    parser.add_argument("--out", default="trained")
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    asked = parser.parse_args()
    words = Words(asked.work / "minilm" / "vocab.txt")
    table = np.load(asked.work / "distilled.npy").astype(np.float32)
    # Rows of unit size on average, so that one learning rate suits any teacher.
    table /= np.linalg.norm(table, axis=1).mean()
    questions, answers = read_pairs(asked.work / "pairs.tsv.gz", words, asked.without)
    counts = document_frequencies(answers, len(table))
    print(f"{len(questions)} pairs", flush=True)
    table = train(table, questions, answers, idf_of(counts, len(answers)), asked.epochs)
    np.savez(asked.work / f"{asked.out}.npz", rows=table, counts=counts, documents=len(answers))


if __name__ == "__main__":
    main()
