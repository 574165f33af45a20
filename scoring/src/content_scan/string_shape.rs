//! Properties of a string: how varied it is, and whether it is a placeholder, a name or code.
//!
//! These functions look at bytes only, without a rule's context.

/// Strings that mark a value as a placeholder.
const PLACEHOLDERS: [&str; 34] = [
    "xxxx",
    "your",
    "placeholder",
    "changeme",
    "change_me",
    "change-me",
    "example",
    "redacted",
    "dummy",
    "fake",
    "sample",
    "insert",
    "replace",
    "todo",
    "none",
    "null",
    "undefined",
    "****",
    "....",
    "...",
    "password",
    "passwd",
    "secret",
    "default",
    "not-set",
    "notset",
    "my-",
    "my_",
    "test",
    "mock",
    "foobar",
    "<",
    "${",
    "{{",
];

/// Fillers that documentation puts in place of a token. Few, because the shape of a token is
/// already distinctive: the published example keys count as keys.
const TOKEN_FILLERS: [&str; 6] = ["xxxx", "your", "placeholder", "redacted", "****", "..."];

/// Passwords common in examples; compared with the whole value.
const EXAMPLES: [&str; 25] = [
    "foo",
    "bar",
    "baz",
    "pass",
    "pw",
    "pwd",
    "token",
    "user",
    "username",
    "root",
    "admin",
    "guest",
    "postgres",
    "mysql",
    "redis",
    "string",
    "value",
    "key",
    "apikey",
    "api_key",
    "hidden",
    "masked",
    "minioadmin",
    "rabbitmq",
    "xxx",
];

/// Names of algorithms and formats that contain digits and are no secret.
const TECHNICAL: [&str; 34] = [
    "sha1", "sha2", "sha3", "sha-", "sha256", "sha512", "md5", "base64", "base32", "bcrypt",
    "argon2", "scrypt", "pbkdf2", "utf", "ascii", "hs256", "rs256", "es256", "ed25519", "x509",
    "x25519", "oauth", "aes", "rsa", "ecdsa", "hmac", "blake", "http", "ipv", "iso", "win32",
    "int", "uint", "u64",
];

/// Number of bytes of each class in a string.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Classes {
    pub(super) letters: usize,
    pub(super) digits: usize,
    /// Punctuation that is common in passwords.
    pub(super) marks: usize,
}

pub(super) fn classes(bytes: &[u8]) -> Classes {
    let count = |belongs: fn(&&u8) -> bool| bytes.iter().filter(belongs).count();
    Classes {
        letters: count(|byte| byte.is_ascii_alphabetic()),
        digits: count(|byte| byte.is_ascii_digit()),
        marks: count(|byte| b"!@#$%^&*?+~".contains(byte)),
    }
}

/// Shannon entropy of the string's bytes, in bits per byte.
pub(super) fn entropy_bits(bytes: &[u8]) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in bytes {
        counts[usize::from(*byte)] += 1;
    }
    let length = bytes.len() as f64;
    let bits = |count: &u32| {
        let share = f64::from(*count) / length;
        -share * share.log2()
    };
    counts.iter().filter(|count| **count > 0).map(bits).sum()
}

/// Whether at least eight different bytes occur: `XXXXXXXX` and `0000` are no tokens.
pub(super) fn is_varied(bytes: &[u8]) -> bool {
    let mut seen = [false; 256];
    for byte in bytes {
        seen[usize::from(*byte)] = true;
    }
    seen.iter().filter(|seen| **seen).count() >= 8
}

pub(super) fn is_placeholder(bytes: &[u8]) -> bool {
    let lower = bytes.to_ascii_lowercase();
    let has = |word: &str| lower.windows(word.len()).any(|part| part == word.as_bytes());
    let is_variable = matches!(lower.first(), Some(b'$' | b'<' | b'{' | b'%' | b'@' | b'['));
    is_variable
        || PLACEHOLDERS.iter().any(|word| has(word))
        || EXAMPLES.iter().any(|word| lower == word.as_bytes())
}

/// Whether a token with a prefix is filled with a placeholder.
pub(super) fn is_token_filler(bytes: &[u8]) -> bool {
    let lower = bytes.to_ascii_lowercase();
    let has = |word: &str| lower.windows(word.len()).any(|part| part == word.as_bytes());
    TOKEN_FILLERS.iter().any(|word| has(word))
}

/// Whether the string is made of words and numbers: `api-gateway-v2`, `refresh_token_1`.
pub(super) fn is_slug(bytes: &[u8]) -> bool {
    const WORD_BYTES_MAX: usize = 16;
    const NUMBER_BYTES_MAX: usize = 4;
    let is_part = |part: &[u8]| {
        let letters = part.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
        let digits = part[letters..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        letters + digits == part.len() && letters <= WORD_BYTES_MAX && digits <= NUMBER_BYTES_MAX
    };
    bytes.split(|byte| matches!(byte, b'-' | b'_' | b'.' | b'/' | b':' | b'=')).all(is_part)
}

pub(super) fn is_uuid(bytes: &[u8]) -> bool {
    let is_at = |at: usize, byte: u8| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    bytes.len() == 36 && bytes.iter().enumerate().all(|(at, byte)| is_at(at, *byte))
}

/// Whether an unquoted value is an expression, a path or an address.
pub(super) fn is_code(bytes: &[u8]) -> bool {
    let starts = |mark: &[u8]| bytes.starts_with(mark);
    let has = |mark: &[u8]| bytes.windows(mark.len()).any(|part| part == mark);
    let marks: [&[u8]; 8] = [b"(", b"[", b"::", b"->", b"://", b"{", b"|", b"=="];
    let beginnings: [&[u8]; 7] = [b"/", b"./", b"../", b"~/", b"&", b"*", b"-"];
    marks.iter().any(|mark| has(mark))
        || beginnings.iter().any(|mark| starts(mark))
        || is_member(bytes)
        || is_constant(bytes)
}

/// Whether the string is a constant name such as `FORMAT_R32G32`.
fn is_constant(bytes: &[u8]) -> bool {
    let is_part = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_';
    bytes.contains(&b'_') && bytes.iter().all(is_part)
}

/// Whether the string is a member access such as `config.token2`.
fn is_member(bytes: &[u8]) -> bool {
    let is_name = |part: &[u8]| {
        part.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_')
            && part.len() <= 24
            && part.iter().skip_while(|byte| !byte.is_ascii_digit()).all(u8::is_ascii_digit)
            && part.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
    };
    bytes.contains(&b'.') && bytes.split(|byte| *byte == b'.').all(is_name)
}

pub(super) fn is_technical(bytes: &[u8]) -> bool {
    let lower = bytes.to_ascii_lowercase();
    let is_count = lower.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let rest = &lower[is_count..];
    let units: [&[u8]; 8] =
        [b"-char", b"-byte", b"-bit", b"bytes", b"bits", b"chars", b"-digit", b"-day"];
    let is_quantity = is_count > 0 && units.iter().any(|unit| rest.starts_with(unit));
    let is_version = lower.strip_prefix(b"v").is_some_and(|rest| {
        !rest.is_empty() && rest.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.')
    });
    is_quantity || is_version || TECHNICAL.iter().any(|name| lower.starts_with(name.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::{entropy_bits, is_code, is_placeholder, is_slug, is_technical, is_uuid, is_varied};

    #[test]
    fn entropy_is_measured_in_bits_per_byte() {
        for (text, bits) in [("", 0.0), ("aaaa", 0.0), ("abab", 1.0), ("abcd", 2.0)] {
            assert!((entropy_bits(text.as_bytes()) - bits).abs() < 1e-9, "{text}");
        }
    }

    #[test]
    fn placeholders_and_slugs_are_distinguished_from_values() {
        for text in ["<your-key>", "${VAR}", "changeme", "xxxxxxxx", "EXAMPLE", "$TOKEN", "pw"] {
            assert!(is_placeholder(text.as_bytes()), "{text}");
        }
        for text in ["hunter2", "gN7x-20Lm", "apikey9f"] {
            assert!(!is_placeholder(text.as_bytes()), "{text}");
        }
        for text in ["api-gateway-v2", "refresh_token_1", "abc"] {
            assert!(is_slug(text.as_bytes()), "{text}");
        }
        for text in ["a1b2c3", "12345-67890", "abcdefghijklmnopq"] {
            assert!(!is_slug(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn ids_code_and_algorithm_names_are_recognised() {
        assert!(is_uuid(b"123e4567-e89b-12d3-a456-426614174000"));
        assert!(!is_uuid(b"123e4567-e89b-12d3-a456-42661417400g"));
        for text in ["f(x)", "a::b", "self.key2", "/etc/key1", "&key1", "A_B1"] {
            assert!(is_code(text.as_bytes()), "{text}");
        }
        assert!(!is_code(b"Zx81.q0R"));
        for text in ["sha256", "12-character", "v1.2", "base64-encoded"] {
            assert!(is_technical(text.as_bytes()), "{text}");
        }
        assert!(!is_technical(b"hunter2"));
        assert!(is_varied(b"abcdefgh") && !is_varied(b"abcdefgabcdefg"));
    }
}
