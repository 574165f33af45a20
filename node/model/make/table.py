"""The table's file format, and the reference for what the Rust embedder computes from it.

All numbers are little-endian.

    offset  size        what
    0       8           "KLEMBED1"
    8       8           FNV-1a over all that follows offset 16, by 64-bit words (the last one zero-padded)
    16      4           u32 rows
    20      4           u32 dims
    24      4           u32 documents the frequencies were counted over
    28      4           u32 bytes of the vocabulary
    32      4           u32 bytes of the character section
    36      4           zero
    40      24          identity, ASCII, zero-padded: name, "-", 10 hex digits of sha256(all after offset 64)
    64      4 × rows    f32 scale of each row
            rows × dims i8 values; a row is scale × values
            4 × rows    u32 documents that hold each token, in the training corpus
            4 × dims    f32 direction common to the training corpus; its squared length is the part of
                        a text's vector (of length one) that lies along it, on average
            …           vocabulary: UTF-8, one token per line, each line ends with "\\n"
            …           characters: see characters.py
"""

import hashlib
import struct
from pathlib import Path

import numpy as np

from characters import character_section
from text import Words

MAGIC = b"KLEMBED1"
NAME = "klnode-static"
CHECKED = 16
HEADER = struct.Struct("<6I24s")
PRIOR_DOCUMENTS = 500.0  # the training corpus speaks as loudly as this many of the store's documents
TOKENS_MAX = 4096
SAMPLE_MAX = 10_000
ITERATIONS = 50


def fnv(body):
    padded = body + b"\0" * (-len(body) % 8)
    value = 0xCBF29CE484222325
    for word in memoryview(padded).cast("Q"):
        value = ((value ^ word) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return value


def quantise(rows):
    """int8 values and one f32 scale for each row."""
    scales = (np.abs(rows).max(1) / 127).astype(np.float32)
    safe = np.where(scales > 0, scales, 1)
    return scales, np.rint(rows / safe[:, None]).clip(-127, 127).astype(np.int8)


class Generation:
    """What depends on a corpus: a weight for each token and the direction its texts have in common."""

    def __init__(self, weights, common):
        self.weights, self.common = weights, common


class Table:
    def __init__(self, scales, values, counts, documents, common, vocab):
        self.scales, self.values, self.counts = scales, values, counts
        self.documents, self.common, self.vocab = documents, common, vocab
        self.rows = scales[:, None] * values.astype(np.float32)
        self.words = Words(vocab)
        self.identity = ""

    def bytes(self):
        vocab, characters = Path(self.vocab).read_bytes(), character_section(self.words.tokenizer)
        body = b"".join([
            self.scales.astype("<f4").tobytes(), self.values.tobytes(), self.counts.astype("<u4").tobytes(),
            self.common.astype("<f4").tobytes(), vocab, characters,
        ])
        self.identity = f"{NAME}-{hashlib.sha256(body).hexdigest()[:10]}"
        sizes = (*self.values.shape, self.documents, len(vocab), len(characters), 0)
        checked = HEADER.pack(*sizes, self.identity.encode()) + body
        return MAGIC + struct.pack("<Q", fnv(checked)) + checked

    @classmethod
    def read(cls, path):
        data = Path(path).read_bytes()
        assert data[:8] == MAGIC and data[8:CHECKED] == struct.pack("<Q", fnv(data[CHECKED:])), "damaged table"
        rows, dims, documents, vocab_bytes, _, _, identity = HEADER.unpack_from(data, CHECKED)
        at, parts = CHECKED + HEADER.size, []
        for kind, count in (("<f4", rows), ("i1", rows * dims), ("<u4", rows), ("<f4", dims)):
            parts.append(np.frombuffer(data, kind, count, at))
            at += parts[-1].nbytes
        tokens = data[at : at + vocab_bytes].decode().split("\n")[:-1]
        scales, values, counts, common = parts
        made = cls(scales, values.reshape(rows, dims), counts, documents, common, tokens)
        made.identity = identity.rstrip(b"\0").decode()
        return made

    def bags(self, ids, weights):
        """Weighted mean of each text's rows, of length one; zero for a text without words."""
        out = np.zeros((len(ids), self.rows.shape[1]), np.float32)
        for row, one in enumerate(ids):
            if one:
                one = one[:TOKENS_MAX]
                mixed = weights[one] @ self.rows[one]
                out[row] = mixed / max(np.linalg.norm(mixed), 1e-12)
        return out

    def generation(self, texts):
        """Weights and common direction of a corpus; the training corpus counts as a prior."""
        ids = self.words.ids(texts)
        held = np.zeros(len(self.rows))
        for one in ids:
            held[list(set(one[:TOKENS_MAX]))] += 1
        held += PRIOR_DOCUMENTS * self.counts / self.documents
        documents = len(ids) + PRIOR_DOCUMENTS
        weights = np.log(1 + (documents - held + 0.5) / (held + 0.5)).astype(np.float32)
        stride = 1
        while len(ids) > stride * SAMPLE_MAX:
            stride *= 2
        sample = self.bags(ids[::stride], weights).astype(np.float64)
        # Power iteration from the training corpus's direction: deterministic, and right from the start.
        common = self.common.astype(np.float64)
        gram = sample.T @ sample + PRIOR_DOCUMENTS * np.outer(common, common)
        for _ in range(ITERATIONS):
            common = gram @ common
            common /= max(np.linalg.norm(common), 1e-12)
        return Generation(weights, common.astype(np.float32))

    def embed(self, texts, generation):
        out = self.bags(self.words.ids(texts), generation.weights)
        out -= (out @ generation.common)[:, None] * generation.common
        norms = np.linalg.norm(out, axis=1, keepdims=True)
        return np.where(norms > 1e-6, out / np.maximum(norms, 1e-6), 0)
