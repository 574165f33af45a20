"""Words as klnode sees them: identifier splitting, then BERT's uncased WordPiece.

The Rust side (node/src/index/embed) does the same, token for token; golden files keep the two equal.
"""

import re
from pathlib import Path

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

# A hump: "hashMap" -> "hash Map", "HTTPServer" -> "HTTP Server". ASCII only, like the Rust side.
WORD = re.compile(r"[A-Za-z0-9]+")
HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def tokenizer(vocab):
    """The plain uncased tokenizer: no special tokens are recognised or added. Takes a path or a list."""
    if not isinstance(vocab, list):
        vocab = Path(vocab).read_text(encoding="utf-8").split("\n")[:-1]
    vocab = {token: row for row, token in enumerate(vocab)}
    made = Tokenizer(models.WordPiece(vocab, unk_token="[UNK]", max_input_chars_per_word=100))
    made.normalizer = normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return made


class Words:
    """Turns text into token ids: humps become words unless the whole word is in the vocabulary."""

    def __init__(self, vocab):
        self.tokenizer = tokenizer(vocab)
        self.vocab = self.tokenizer.get_vocab()
        names = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
        self.dropped = {self.vocab[name] for name in names}

    def split(self, text):
        def humps(match):
            word = match.group()
            return word if word.lower() in self.vocab else HUMP.sub(" ", word)

        return WORD.sub(humps, text)

    def ids(self, texts):
        """Token ids per text, unknown words left out."""
        batch = self.tokenizer.encode_batch_fast(
            [self.split(text) for text in texts], add_special_tokens=False
        )
        return [[i for i in one.ids if i not in self.dropped] for one in batch]
