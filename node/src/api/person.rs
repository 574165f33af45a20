//! The person behind a node: what only they may ask for, and how they show that they do.
//!
//! Any program that runs as the same user can reach the socket. Where the home holds a person's
//! key, an operator's request carries a signature by it over everything that is asked; the node
//! knows the public half alone. Asking for the passphrase is not done here.

use super::errors::{ApiError, Kind};
use super::exchange::header_text;
use super::limits::{PERSON_AGE_MAX, PERSON_REQUESTS_MAX};
use crate::store::Layout;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderName, Method, request};
use axum::middleware::Next;
use axum::response::Response;
use data_encoding::HEXLOWER;
use klnode_crdt::ids::AuthorId;
use klnode_crdt::key::{Purpose, SecretKey, Signature};
use klnode_crdt::origin::Memory;
use klnode_crdt::person::LockedKey;
use klnode_crdt::time::WallTime;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// What carries a signature: milliseconds since 1970, a colon, 128 hex digits.
pub const HEADER: &str = "klnode-person";

const HINT: &str = "type it in a terminal, where klnode asks for the passphrase of the person's \
                    key; or name a file that holds it with --passphrase-file";

/// The header of a request that the person makes.
pub fn sign(key: &SecretKey, method: &Method, path: &str, body: &[u8], at: WallTime) -> String {
    let signature = key.sign(Purpose::Operator, &signed(method, path, body, at));
    format!("{}:{}", at.as_millis(), HEXLOWER.encode(signature.as_bytes()))
}

/// What is signed. No method and no path holds a zero, so nothing can be read in two ways.
fn signed(method: &Method, path: &str, body: &[u8], at: WallTime) -> Vec<u8> {
    let mut bytes = [method.as_str(), path].join("\0").into_bytes();
    bytes.push(0);
    bytes.extend(at.as_millis().to_be_bytes());
    bytes.extend(blake3::hash(body).as_bytes());
    bytes
}

/// The person, as a node knows them: by the file in its home, which may appear at any time.
pub struct Person {
    file: PathBuf,
    since: WallTime,
    /// Until then what was signed before the start may still be fresh. By a clock that nobody sets:
    /// the other may have stood ahead at the start.
    fresh_until: Instant,
    known: Mutex<Known>,
}

/// Whether the person behind the node has signed for something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Approval {
    /// Nobody has been asked.
    Unasked,
    /// The person has, or there is none.
    Given,
}

impl Approval {
    /// Whether it is enough for what is to be of a memory: procedural needs the person.
    pub(super) fn covers(self, memory: Memory) -> bool {
        memory != Memory::Procedural || self == Self::Given
    }
}

/// What was seen since the node started.
#[derive(Default)]
struct Known {
    /// The key that was in the home; it does not change and does not go while the node runs.
    key: Option<AuthorId>,
    /// What was signed, by when and a digest, for as long as it would still be fresh.
    used: BTreeMap<(u64, [u8; 32]), ()>,
}

impl Person {
    /// The person behind the node of a home, from now on.
    pub fn new(layout: &Layout, now: WallTime) -> Self {
        // It may have been signed ahead of its time, and is good for as long after it.
        let fresh_until = Instant::now() + PERSON_AGE_MAX * 2;
        let file = layout.person_file();
        let person = Self { file, since: now, fresh_until, known: Mutex::default() };
        // What is wrong with the file is told to whoever needs it.
        let _ = person.key(&mut person.known());
        person
    }

    /// Whether nobody guards this node.
    pub(super) fn is_absent(&self) -> bool {
        matches!(self.key(&mut self.known()), Ok(None))
    }

    /// What a request has that nobody signed.
    pub(super) fn unsigned(&self) -> Approval {
        if self.is_absent() { Approval::Given } else { Approval::Unasked }
    }

    /// Whose signature is needed; none where nobody guards this node.
    pub(super) fn author(&self) -> Result<Option<AuthorId>, ApiError> {
        self.key(&mut self.known())
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whose signature is needed; an error if that was somebody and can no longer be told.
    fn key(&self, known: &mut Known) -> Result<Option<AuthorId>, ApiError> {
        let file = self.file.display();
        let found = match std::fs::read(&self.file) {
            Ok(bytes) => {
                LockedKey::decode(&bytes).map(|key| Some(key.author())).map_err(|error| {
                    let message = format!("tell who may do this: cannot {error} ({file})");
                    ApiError::new(Kind::Refused, message, Some("put the right file back"))
                })?
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                let message = format!("tell who may do this: {file}: {error}");
                return Err(ApiError::new(Kind::Refused, message, None));
            }
        };
        if known.key.is_some() && found != known.key {
            let message = format!(
                "tell who may do this: {file} is gone, or holds another key than it did when it \
                 was first seen"
            );
            let hint = "put the file back; if you have changed it, start the node anew";
            return Err(ApiError::new(Kind::Refused, message, Some(hint)));
        }
        known.key = found;
        Ok(found)
    }

    /// Says no to what needs the person and was not signed by them, or not just now, or not for
    /// the first time.
    fn examine(&self, parts: &request::Parts, body: &[u8], now: WallTime) -> Result<(), ApiError> {
        let mut known = self.known();
        let Some(key) = self.key(&mut known)? else { return Ok(()) };
        let refused = |why: &str| {
            let message = format!("do this without the person behind this node: {why}");
            ApiError::new(Kind::Refused, message, Some(HINT))
        };
        let shown = header_text(&parts.headers, HeaderName::from_static(HEADER))
            .ok_or_else(|| refused("the request is not signed with the person's key"))?;
        let (at, signature) = read(shown).ok_or_else(|| refused("its signature is malformed"))?;
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
        let bytes = signed(&parts.method, path, body, at);
        if !key.has_signed(Purpose::Operator, &bytes, &signature) {
            return Err(refused("its signature is not by the person's key, or for something else"));
        }
        let (at, now) = (at.as_millis(), now.as_millis());
        let age_max = u64::try_from(PERSON_AGE_MAX.as_millis()).unwrap_or(u64::MAX);
        // What was signed before the start may have been used then.
        let may_be_used = at < self.since.as_millis() && Instant::now() < self.fresh_until;
        if at.abs_diff(now) > age_max || may_be_used {
            return Err(refused("it was signed too long ago, or by another clock"));
        }
        known.used.retain(|(used, _), ()| used.saturating_add(age_max) >= now);
        if known.used.len() >= PERSON_REQUESTS_MAX {
            let message = "do so much at once as the person behind this node";
            return Err(ApiError::new(Kind::Busy, message, Some("wait a minute")));
        }
        match known.used.insert((at, *blake3::hash(&bytes).as_bytes()), ()) {
            Some(()) => Err(refused("its signature was used before")),
            None => Ok(()),
        }
    }
}

/// When a header says it was signed, and how.
fn read(header: &str) -> Option<(WallTime, Signature)> {
    let (at, signature) = header.split_once(':')?;
    let signature = HEXLOWER.decode(signature.as_bytes()).ok()?;
    Some((
        WallTime::from_millis(at.parse().ok()?),
        Signature::from_bytes(signature.try_into().ok()?),
    ))
}

/// Lets through what the person asks for, and anything while there is none.
pub(super) async fn guard(
    State(service): State<super::server::Service>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    // The gate has received it, and has seen to its size.
    let body: Bytes = to_bytes(body, usize::MAX).await.map_err(|error| {
        ApiError::new(Kind::Invalid, format!("read the request: {error}"), None)
    })?;
    service.person.examine(&parts, &body, (service.now)())?;
    Ok(next.run(Request::from_parts(parts, Body::from(body))).await)
}

#[cfg(test)]
mod tests {
    use super::*;
    use klnode_crdt::person::Cost;
    use tempfile::TempDir;

    const NOW: u64 = 1_000_000;
    const PATH: &str = "/v1/join?a=b";
    const CHEAP: Cost = Cost { memory_kib: 8, passes: 1 };

    fn key(seed: u8) -> SecretKey {
        SecretKey::from_bytes(&[seed; 32])
    }

    fn write(home: &TempDir, seed: u8) {
        let locked = LockedKey::lock(&key(seed), "correct horse", CHEAP, [1; 16], [2; 24]);
        let file = Layout::new(home.path()).person_file();
        std::fs::write(file, locked.unwrap().encode()).unwrap();
    }

    fn person(home: &TempDir) -> Person {
        Person::new(&Layout::new(home.path()), WallTime::from_millis(NOW - 500_000))
    }

    fn header(by: u8, at: u64) -> String {
        sign(&key(by), &Method::POST, PATH, b"body", WallTime::from_millis(at))
    }

    /// What becomes of a request with this header.
    fn asked(person: &Person, method: &str, path: &str, body: &[u8], header: &str) -> String {
        let request = Request::builder().method(method).uri(path).header(HEADER, header);
        let (parts, ()) = request.body(()).unwrap().into_parts();
        match person.examine(&parts, body, WallTime::from_millis(NOW)) {
            Ok(()) => "ok".to_owned(),
            Err(error) => error.message().rsplit(": ").next().unwrap().to_owned(),
        }
    }

    fn posted(person: &Person, header: &str) -> String {
        asked(person, "POST", PATH, b"body", header)
    }

    #[test]
    fn a_signature_holds_for_one_request_once() {
        let home = tempfile::tempdir().unwrap();
        write(&home, 1);
        let person = person(&home);
        let header = header(1, NOW);
        let other = "its signature is not by the person's key, or for something else";
        assert_eq!(asked(&person, "PATCH", PATH, b"body", &header), other);
        assert_eq!(asked(&person, "POST", "/v1/join?a=c", b"body", &header), other);
        assert_eq!(asked(&person, "POST", PATH, b"bodY", &header), other);
        let later = header.replacen(&NOW.to_string(), &(NOW + 1).to_string(), 1);
        assert_eq!(posted(&person, &later), other);
        assert_eq!(posted(&person, &super::tests::header(2, NOW)), other);
        assert_eq!(posted(&person, &header), "ok");
        assert_eq!(posted(&person, &header), "its signature was used before");
    }

    #[test]
    fn a_signature_is_good_for_a_minute_and_not_from_before_the_start() {
        let home = tempfile::tempdir().unwrap();
        write(&home, 1);
        let person = person(&home);
        let old = "it was signed too long ago, or by another clock";
        for (at, said) in [
            (NOW - 60_000, "ok"),
            (NOW + 60_000, "ok"),
            (NOW - 60_001, old),
            (NOW + 60_001, old),
            (0, old),
            (u64::MAX, old),
        ] {
            assert_eq!(posted(&person, &header(1, at)), said, "{at}");
        }
        let fresh = Person::new(&Layout::new(home.path()), WallTime::from_millis(NOW));
        assert_eq!(posted(&fresh, &header(1, NOW - 1)), old);
        for malformed in ["", "1", "1:", "x:00", &header(1, NOW).to_uppercase()[..40]] {
            assert_eq!(posted(&person, malformed), "its signature is malformed", "{malformed}");
        }
    }

    #[test]
    fn a_clock_that_stood_ahead_at_the_start_shuts_the_person_out_for_two_minutes_at_most() {
        let home = tempfile::tempdir().unwrap();
        write(&home, 1);
        let day = 24 * 3_600_000;
        let mut ahead = Person::new(&Layout::new(home.path()), WallTime::from_millis(NOW + day));
        let old = "it was signed too long ago, or by another clock";
        assert_eq!(posted(&ahead, &header(1, NOW)), old);
        let left = ahead.fresh_until.saturating_duration_since(Instant::now());
        assert!(left <= PERSON_AGE_MAX * 2, "{left:?}");
        ahead.fresh_until = Instant::now();
        assert_eq!(posted(&ahead, &header(1, NOW)), "ok");
        assert_eq!(posted(&ahead, &header(1, NOW)), "its signature was used before");
        assert_eq!(posted(&ahead, &header(1, NOW - 60_001)), old);
    }

    #[test]
    fn only_so_many_requests_are_remembered() {
        let home = tempfile::tempdir().unwrap();
        write(&home, 1);
        let person = person(&home);
        for n in 0..PERSON_REQUESTS_MAX as u64 {
            assert_eq!(posted(&person, &header(1, NOW - n)), "ok");
        }
        let full = "do so much at once as the person behind this node";
        assert_eq!(posted(&person, &header(1, NOW + 1)), full);
    }

    #[test]
    fn a_key_that_appears_is_noticed_and_one_that_was_there_is_not_given_up() {
        let home = tempfile::tempdir().unwrap();
        let person = person(&home);
        assert!(person.is_absent());
        assert_eq!(posted(&person, "nothing"), "ok");
        write(&home, 1);
        assert!(!person.is_absent());
        assert_eq!(posted(&person, "nothing"), "its signature is malformed");
        let gone = |person: &Person| posted(person, &header(2, NOW)).contains("is gone, or holds");
        write(&home, 2);
        assert!(gone(&person));
        let file = Layout::new(home.path()).person_file();
        std::fs::write(&file, b"damaged").unwrap();
        assert!(posted(&person, &header(1, NOW)).contains("damaged"));
        std::fs::remove_file(&file).unwrap();
        assert!(gone(&person) && !person.is_absent());
    }
}
