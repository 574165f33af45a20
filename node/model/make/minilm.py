"""all-MiniLM-L6-v2 in plain numpy: the teacher of the table and the reference of the evaluation."""

import json
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file
from scipy.special import erf

from text import tokenizer


class MiniLm:
    """Six transformer layers of 384 dimensions; a text's vector is the mean of its tokens'."""

    def __init__(self, folder):
        folder = Path(folder)
        self.weights = load_file(folder / "model.safetensors")
        self.heads = json.loads((folder / "config.json").read_text())["num_attention_heads"]
        self.tokenizer = tokenizer(folder / "vocab.txt")
        self.start, self.end = (self.tokenizer.token_to_id(name) for name in ("[CLS]", "[SEP]"))

    def linear(self, x, name):
        return x @ self.weights[name + ".weight"].T + self.weights[name + ".bias"]

    def norm(self, x, name):
        x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-12)
        return x * self.weights[name + ".weight"] + self.weights[name + ".bias"]

    def layer(self, x, name):
        rows, length, width = x.shape

        def split(part):
            made = self.linear(x, f"{name}.attention.self.{part}")
            return made.reshape(rows, length, self.heads, -1).transpose(0, 2, 1, 3)

        query, key, value = split("query"), split("key"), split("value")
        scores = query @ key.transpose(0, 1, 3, 2) / np.sqrt(np.float32(width // self.heads))
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        scores /= scores.sum(-1, keepdims=True)
        mixed = (scores @ value).transpose(0, 2, 1, 3).reshape(rows, length, width)
        x = self.norm(x + self.linear(mixed, f"{name}.attention.output.dense"), f"{name}.attention.output.LayerNorm")
        inner = self.linear(x, f"{name}.intermediate.dense")
        inner = inner * 0.5 * (1 + erf(inner / np.sqrt(np.float32(2))))
        return self.norm(x + self.linear(inner, f"{name}.output.dense"), f"{name}.output.LayerNorm")

    def encode_ids(self, ids):
        """Mean token vectors of texts of one length: ids is rows × length."""
        weights = self.weights
        x = weights["embeddings.word_embeddings.weight"][ids]
        x = x + weights["embeddings.position_embeddings.weight"][: ids.shape[1]]
        x = x + weights["embeddings.token_type_embeddings.weight"][0]
        x = self.norm(x, "embeddings.LayerNorm")
        for layer in range(6):
            x = self.layer(x, f"encoder.layer.{layer}")
        return x.mean(1)

    def encode(self, texts, tokens_max=128):
        """Unit vectors of texts; texts of equal length are computed together, so none is padded."""
        ids = [one.ids[: tokens_max - 2] for one in self.tokenizer.encode_batch_fast(texts)]
        out = np.zeros((len(texts), 384), np.float32)
        by_length = {}
        for row, one in enumerate(ids):
            by_length.setdefault(len(one), []).append(row)
        for rows in by_length.values():
            for at in range(0, len(rows), 64):
                part = rows[at : at + 64]
                out[part] = self.encode_ids(np.array([[self.start, *ids[row], self.end] for row in part]))
        return out / np.linalg.norm(out, axis=1, keepdims=True)
