"""What BERT's uncased normaliser does to each character, read off the pinned tokenizer itself.

Accent stripping needs Unicode tables that Rust's standard library lacks, so the table file carries
them, and the two sides cannot drift apart. The section, little-endian:

    u32 number of ranges, u32 number of replacements
    ranges:        u32 first, u32 last, u8 kind    (0 dropped, 1 a space, 2 a word of its own)
    replacements:  u32 character, u16 offset into the pool, u8 bytes
    pool:          UTF-8

Sorted by character. A character in neither stands for itself. Hangul syllables (U+AC00 to U+D7A3) are
left out: they decompose by arithmetic.
"""

import struct

DROPPED, SPACE, ALONE = 0, 1, 2
HANGUL = range(0xAC00, 0xD7A4)


def behaviour(tokenizer, code):
    """A kind, a replacement text, or None for a character that stands for itself."""
    char = chr(code)
    normal = tokenizer.normalizer.normalize_str(f"x{char}x")[1:-1]
    if normal == "":
        return DROPPED
    if normal.strip() == "":
        return SPACE
    if normal.strip() != char:
        return normal.strip() if normal == normal.strip() else normal
    if normal != char or len(tokenizer.pre_tokenizer.pre_tokenize_str(f"x{char}x")) > 1:
        return ALONE
    return None


def character_section(tokenizer):
    ranges, replacements, pool = [], [], bytearray()
    for code in range(0x110000):
        if 0xD800 <= code < 0xE000 or code in HANGUL:
            continue
        found = behaviour(tokenizer, code)
        if isinstance(found, str):
            text = found.encode()
            at = pool.find(text)
            if at < 0:
                at = len(pool)
                pool += text
            replacements.append(struct.pack("<IHB", code, at, len(text)))
        elif found is not None:
            if ranges and ranges[-1][1] == code - 1 and ranges[-1][2] == found:
                ranges[-1][1] = code
            else:
                ranges.append([code, code, found])
    packed = b"".join(struct.pack("<IIB", *one) for one in ranges)
    return struct.pack("<II", len(ranges), len(replacements)) + packed + b"".join(replacements) + bytes(pool)
