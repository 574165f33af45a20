"""Packs the trained rows into the table file: int8 values with one scale for each row.

    python pack.py --work DIR [--from trained] --out ../table.bin
"""

import argparse
import gzip
from pathlib import Path

import numpy as np

from table import SAMPLE_MAX, Table, quantise


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--from", dest="name", default="trained")
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    trained = np.load(asked.work / f"{asked.name}.npz")
    scales, values = quantise(trained["rows"])
    # To begin with, no particular direction, and lightly.
    start = np.full(values.shape[1], 1e-4, np.float32)
    table = Table(scales, values, trained["counts"], int(trained["documents"]), start, asked.work / "minilm" / "vocab.txt")
    with gzip.open(asked.work / "pairs.tsv.gz", "rt", encoding="utf-8", newline="\n") as lines:
        answers = [row[4] for line in lines if (row := line.rstrip("\n").split("\t"))[1] == "train"]
    sample = answers[:: max(1, len(answers) // SAMPLE_MAX)]
    made = table.generation(sample)
    along = table.bags(table.words.ids(sample), made.weights) @ made.common
    table.common = made.common * np.sqrt((along * along).mean())
    asked.out.write_bytes(table.bytes())
    print(f"{asked.out.name}: {asked.out.stat().st_size} bytes, {table.identity}")


if __name__ == "__main__":
    main()
