"""Writes the reference values that the Rust tests compare against.

    python golden.py --teacher DIR --golden ../golden

writes those of the transformer, from the model's files; evaluate.py writes those of the table.
"""

import argparse
import re
from pathlib import Path

STRINGS = r"""
Hello, World!
The quick brown fox jumps over the lazy dog.
naïve café résumé Ångström Zürich façade
İstanbul'da ıspanak ŞİŞLİ
ΑΒΓΔ Σίσυφος ὈΔΥΣΣΕΎΣ
Привет, мир! Ёжик и йод
שלום עולם
مرحبا بالعالم
नमस्ते दुनिया
สวัสดีชาวโลก
中文分词测试
日本語のテキスト、カタカナとひらがな
한국어 텍스트 각 힣 가
한글 conjoining
emoji 😀 👩‍👩‍👧‍👦 🇩🇪 ❤️ 👍🏽
flags🏴󠁧󠁢󠁥󠁮󠁧󠁿end
½ ¼ ① ② Ⅳ ™ © ® ℃ № ﬁ ﬂ ß ẞ
𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𝕄𝕒𝕥𝕙 𝒶𝓁𝓅𝒽𝒶
fullwidth ＡＢＣ１２３！？
zero\u200bwidth\u200djoiner\ufeffbom\u00adsoft
tab\tnewline\ncarriage\rvertical\u000bform\u000cfeed\u0085nel\u2028line\u2029para
nbsp\u00a0thin\u2009ideographic\u3000ogham\u1680end
null\u0000bell\u0007esc\u001b[31mred\u001b[0m
replacement\ufffdprivate\ue000unassigned\u0378\U000e0001tag
combining e\u0301 o\u0308 n\u0303 \u0301alone
Zalgo t\u0335\u0321e\u0336x\u0337t\u0338
\u1e9b\u0323 \u212b \u2126 \ufb1d \uf900 \u2f800
error[E0308]: mismatched types
error[E0499]: cannot borrow `*self` as mutable more than once at a time
thread 'main' panicked at src/main.rs:42:13:
called `Option::unwrap()` on a `None` value
index out of bounds: the len is 3 but the index is 7
ECONNREFUSED 127.0.0.1:5432
Error: ENOENT: no such file or directory, open '/etc/klnode/config.toml'
HTTP/1.1 503 Service Unavailable
SQLSTATE[23505]: unique_violation
0x7fff5fbff8c0 0xDEADBEEF 0b1010 1_000_000
SIGSEGV (core dumped), exit code 139
TypeError: Cannot read properties of undefined (reading 'map')
ModuleNotFoundError: No module named 'numpy.core._multiarray_umath'
java.lang.NullPointerException: Cannot invoke "String.length()"
CS0246 TS2345 C4996 LNK2019 ORA-00942 KB4056892
/usr/local/lib/python3.11/site-packages/numpy/__init__.py
C:\Users\admin\AppData\Local\Temp\file.txt
node/src/index/embed/wordpiece.rs
../../../target/debug/deps/libserde-1a2b3c4d5e6f.rlib
https://example.org/path/to/page?query=1&other=two#fragment
user.name+tag@example.co.uk
HashMap<String, Vec<Option<Box<dyn Fn(&str) -> Result<(), Error>>>>>
fn embed(&self, texts: &[&str]) -> Vec<Vec<f32>>
std::collections::HashMap::with_capacity_and_hasher
parseHTTPResponse getElementById XMLHttpRequest
useEffect useState componentDidMount
snake_case_identifier SCREAMING_SNAKE_CASE kebab-case-name
camelCaseIdentifier PascalCaseIdentifier mixedCASEIdentifier
iPhone iOS macOS GitHub JavaScript TypeScript PostgreSQL MySQL YouTube
OAuth2Token JWTAuth IPv6Address UTF8String Base64URL sha256sum
__init__ __proto__ _private $jquery @decorator #pragma
a+b=c; x-=1; y*=2; z/=3; !w && v || u
if (a == null || b !== undefined) { return a?.b ?? c; }
SELECT * FROM users WHERE id = $1 AND name LIKE '%x%';
#!/usr/bin/env bash
git commit -m "fix: don't panic" && git push --force-with-lease
docker run --rm -it -v $(pwd):/app -p 8080:80 nginx:1.25-alpine
kubectl get pods -n kube-system -o jsonpath='{.items[*].metadata.name}'
^[a-z]+(?:\d{2,4})?\s*$
\\\\ // ## ** __ ~~ `` '' ""
... … --- — – ‐ ‑ ′ ″ « » ‹ › „ “ ” ‘ ’
$100 €50 £30 ¥1000 ₹500 ₿1
100% 50‰ 3°C 5μm 10Ω 2×3÷4±5≠6≤7≥8≈9
α β γ δ ε → ← ↑ ↓ ⇒ ∀ ∃ ∈ ∉ ∑ ∏ ∫ √ ∞
[CLS] [SEP] [UNK] [MASK] [PAD] ##ing
[unused1] <s> </s> <unk>
don't can't won't it's we're I'm you'd
U.S.A. e.g. i.e. etc. Ph.D. a.m.
v1.2.3-rc.1+build.5 2026-11-14T12:34:56.789Z
12345678901234567890 3.14159265358979 1e-10 6.022E23
antidisestablishmentarianism supercalifragilisticexpialidocious
Donaudampfschifffahrtsgesellschaftskapitän
pneumonoultramicroscopicsilicovolcanoconiosis
tokenization untokenizable retokenized pretokenizer
deadlock mutex semaphore futex spinlock rwlock
redb libp2p tokio serde automerge tantivy hnsw
idempotent backpressure eventual consistency quorum
x
X
1
.
 
中

"""


def texts():
    """The strings above, words made of them in bulk, and long ones."""
    raw = STRINGS.strip("\n").split("\n")
    out = [decode(one) for one in raw]
    out += [one.upper() for one in out[:45]] + [" ".join(reversed(one.split(" "))) for one in out[20:80]]
    out += ["a" * 99, "a" * 100, "a" * 101, "ab" * 50 + "c", "é" * 100, "é" * 101, "word " * 30, "\u4e2d" * 20, "한" * 34, "x" + "\u0301" * 120]
    return out


def decode(text):
    """Only a code point in hex is an escape here, and a tab or line end in the one string made of them."""
    simple = {"t": "\t", "n": "\n", "r": "\r"}
    escapes = re.compile(r"\\(?:u([0-9a-f]{4})|U([0-9a-f]{8})|([tnr])(?=newline|carriage|vertical))")
    return escapes.sub(lambda m: simple[m[3]] if m[3] else chr(int(m[1] or m[2], 16)), text)


def escape(text):
    """One line, no tabs, nothing invisible: other characters as \\{hex}."""
    return "".join(char if char.isprintable() and char != "\\" else f"\\{{{ord(char):x}}}" for char in text)


CORPUS = [
    "Connection pool exhausted under load. Raise max_connections or return clients sooner; the pool waits 30 s.",
    "redb commits are durable only after the second phase. A crash between the two loses nothing.",
    "HashMap iteration order differs between runs. Use BTreeMap where output must be stable.",
    "error[E0499]: cannot borrow as mutable more than once. Split the struct or take the field by mem::take.",
    "The deploy of 12 March failed since the migration held an exclusive lock on the users table.",
    "Use jittered exponential backoff when the upstream answers 503, not a fixed sleep.",
    "src/index/embed/wordpiece.rs must give the ids of the reference tokenizer.",
    "Größere Dateien werden in Blöcken gelesen — nicht am Stück.",
]
QUESTIONS = ["too many database connections", "stable order of keys", "borrow checker complains twice", "retry policy", "中文"]


def write_golden(table, folder):
    folder.mkdir(exist_ok=True)
    rows = texts()
    with open(folder / "tokens.tsv", "w", encoding="utf-8", newline="\n") as out:
        for text, words in zip(rows, table.words.ids(rows)):
            plain = table.words.tokenizer.encode(text, add_special_tokens=False).ids
            out.write(f"{escape(text)}\t{' '.join(map(str, plain))}\t{' '.join(map(str, words))}\n")
    before, after = table.generation([]), table.generation(CORPUS)
    with open(folder / "vectors.tsv", "w", encoding="utf-8", newline="\n") as out:
        for text in CORPUS + QUESTIONS:
            role = "entry" if text in CORPUS else "query"
            columns = [" ".join(f"{value:.5f}" for value in table.embed([text], made)[0]) for made in (before, after)]
            out.write("\t".join([role, escape(text), *columns]) + "\n")
    print(f"{len(rows)} strings, {len(CORPUS) + len(QUESTIONS)} vectors, {table.identity}")


# As the model's own sentence_bert_config.json says.
TEACHER_TOKENS_MAX = 256
TEACHER_TEXTS = [
    *CORPUS[:4],
    CORPUS[7],
    "a",
    "fn embed(&self, texts: &[&str]) -> Vec<Vec<f32>>",
    "İstanbul \u4e2d\u6587 한국어 e\u0301\u200b\t[SEP] \U0001f980 😀 x\u0000y",
    "word " * 253 + "here",
    "word " * 254 + "here",
    " ".join(f"number {number} of many words that go on" for number in range(200)),
]


def write_transformer(teacher, folder):
    """Texts and unit vectors. The last text but one is cut right before its last word."""
    with open(folder / "transformer.tsv", "w", encoding="utf-8", newline="\n") as out:
        for text, vector in zip(TEACHER_TEXTS, teacher.encode(TEACHER_TEXTS, TEACHER_TOKENS_MAX)):
            out.write(f"{escape(text)}\t{' '.join(f'{value:.5f}' for value in vector)}\n")


def write_quantized(model, teacher, folder):
    """The same texts by the built-in transformer, as another runtime computes it.

    A single letter is left out: rounding differs between runtimes, and few tokens do not average it.
    """
    import numpy as np
    import onnxruntime
    from minilm import MiniLm

    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    exact = MiniLm(teacher)
    rows, cosines = exact.encode(TEACHER_TEXTS, TEACHER_TOKENS_MAX), []
    with open(folder / "minilm.tsv", "w", encoding="utf-8", newline="\n") as out:
        for text, row in zip(TEACHER_TEXTS, rows):
            if len(text) == 1:
                continue
            ids = exact.tokenizer.encode(text).ids[: TEACHER_TOKENS_MAX - 2]
            vector = session.run(None, {"ids": np.array([exact.start, *ids, exact.end])})[0]
            vector = vector / np.linalg.norm(vector)
            cosines.append(float(vector @ row))
            out.write(f"{escape(text)}\t{' '.join(f'{value:.5f}' for value in vector)}\n")
    print("cosine to the unquantized model:", " ".join(f"{one:.4f}" for one in cosines))


def main():
    from minilm import MiniLm

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--teacher", type=Path, required=True)
    parser.add_argument("--golden", type=Path, required=True)
    asked = parser.parse_args()
    write_transformer(MiniLm(asked.teacher), asked.golden)


if __name__ == "__main__":
    main()
