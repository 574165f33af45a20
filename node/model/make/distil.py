"""Distils the teacher into a table: each vocabulary token through it once, then PCA to 256.

    python distil.py --work DIR      reads DIR/minilm, writes DIR/distilled.npy
"""

import argparse
from pathlib import Path

import numpy as np

from minilm import MiniLm

DIMS = 256
BATCH = 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    work = parser.parse_args().work
    teacher = MiniLm(work / "minilm")
    size = teacher.tokenizer.get_vocab_size()
    ids = np.stack([np.full(size, teacher.start), np.arange(size), np.full(size, teacher.end)], 1)
    vectors = np.concatenate([teacher.encode_ids(ids[at : at + BATCH]) for at in range(0, size, BATCH)])
    centred = (vectors - vectors.mean(0)).astype(np.float64)
    values, axes = np.linalg.eigh(centred.T @ centred)
    axes = axes[:, ::-1][:, :DIMS]
    # An eigenvector's sign is arbitrary: the largest component is made positive.
    axes *= np.sign(axes[np.abs(axes).argmax(0), np.arange(DIMS)])
    np.save(work / "distilled.npy", (centred @ axes).astype(np.float16))
    print(f"{size} tokens, {DIMS} of {vectors.shape[1]} dimensions keep {values[::-1][:DIMS].sum() / values.sum():.4f} of the variance")


if __name__ == "__main__":
    main()
