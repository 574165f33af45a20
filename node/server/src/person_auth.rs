//! Authenticates the person behind a node: operator requests need a signature by the person's key.
//!
//! Every program of the same user can reach the socket. If the home holds a person's key, an
//! operator request must carry a signature by that key over the whole request. The node knows only
//! the public key. The prompt for the passphrase is not in this module.

use super::errors::{ApiError, unreadable};
use super::limits::{PERSON_AGE_MAX, PERSON_REQUESTS_MAX};
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderName, request};
use axum::middleware::Next;
use axum::response::Response;
use data_encoding::HEXLOWER;
use klnode_api_types::ErrorKind;
pub use klnode_api_types::person_signature::{HEADER, signed};
use klnode_crdt::encrypted_key::LockedKey;
use klnode_crdt::entry_origin::Memory;
use klnode_crdt::ids::AuthorId;
use klnode_crdt::signing_key::{Purpose, Signature};
use klnode_crdt::time::WallTime;
use klnode_home::Layout;
use klnode_http::header_text;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

const HINT: &str = "Type the command in a terminal, where klnode asks for the passphrase of the \
                    person's key, or name a file that holds it with --passphrase-file.";

/// The person behind a node, identified by a key file in the home. The file can appear at any time.
pub struct Person {
    file: PathBuf,
    since: WallTime,
    /// Until then, a signature made before the start may still be fresh. It is a monotonic time
    /// because the wall clock may have been ahead at the start.
    fresh_until: Instant,
    known: Mutex<SignedRequests>,
}

/// Whether the person behind the node has approved an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PersonApproval {
    /// The person has not signed the request.
    Unasked,
    /// The person has signed the request, or the node has no person's key.
    Given,
}

impl PersonApproval {
    /// True if the approval suffices for an entry of this memory. Procedural entries need the
    /// person.
    pub(super) fn covers(self, memory: Memory) -> bool {
        memory != Memory::Procedural || self == Self::Given
    }
}

/// State since the start of the node.
#[derive(Default)]
struct SignedRequests {
    /// The key in the home. It may not change or disappear while the node runs.
    key: Option<AuthorId>,
    /// Accepted signatures by time and digest, kept while they are fresh, to detect replays.
    used: BTreeMap<(u64, [u8; 32]), ()>,
}

impl Person {
    /// The person behind the node of a home.
    pub fn new(layout: &Layout, now: WallTime) -> Self {
        // A signature may be dated ahead and stays valid equally long after that date.
        let fresh_until = Instant::now() + PERSON_AGE_MAX * 2;
        let file = layout.person_file();
        let person = Self { file, since: now, fresh_until, known: Mutex::default() };
        // Problems with the file are reported when a request needs the key.
        let _ = person.key(&mut person.known());
        person
    }

    /// True if the node has no person's key.
    pub(super) fn is_absent(&self) -> bool {
        matches!(self.key(&mut self.known()), Ok(None))
    }

    /// The approval of an unsigned request.
    pub(super) fn unsigned_approval(&self) -> PersonApproval {
        if self.is_absent() { PersonApproval::Given } else { PersonApproval::Unasked }
    }

    /// The author of the required signature; `None` if the node has no person's key.
    pub(super) fn author(&self) -> Result<Option<AuthorId>, ApiError> {
        self.key(&mut self.known())
    }

    fn known(&self) -> std::sync::MutexGuard<'_, SignedRequests> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The author of the required signature. Fails if the key was known earlier and cannot be read
    /// or has changed.
    fn key(&self, known: &mut SignedRequests) -> Result<Option<AuthorId>, ApiError> {
        let file = self.file.display();
        let found = match std::fs::read(&self.file) {
            Ok(bytes) => {
                LockedKey::decode(&bytes).map(|key| Some(key.author())).map_err(|error| {
                    let message = format!("{error} The file is {file}.");
                    ApiError::new(ErrorKind::Refused, message, Some("Restore the right file."))
                })?
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                let message = format!("The person's key in {file} is unreadable: {error}.");
                return Err(ApiError::new(ErrorKind::Refused, message, None));
            }
        };
        if known.key.is_some() && found != known.key {
            let message = format!(
                "The person's key in {file} is gone, or holds another key than at the first read."
            );
            let hint = "Restore the file; if you changed it deliberately, restart the node.";
            return Err(ApiError::new(ErrorKind::Refused, message, Some(hint)));
        }
        known.key = found;
        Ok(found)
    }

    /// Rejects a request that lacks a signature by the person, or whose signature is stale or was
    /// used before.
    fn examine(&self, parts: &request::Parts, body: &[u8], now: WallTime) -> Result<(), ApiError> {
        let mut known = self.known();
        let Some(key) = self.key(&mut known)? else { return Ok(()) };
        let refused = |why: &str| {
            let message = format!("This operation needs the person behind this node: {why}.");
            ApiError::new(ErrorKind::Refused, message, Some(HINT))
        };
        let shown = header_text(&parts.headers, HeaderName::from_static(HEADER))
            .ok_or_else(|| refused("the request is not signed with the person's key"))?;
        let (at, signature) = read(shown).ok_or_else(|| refused("the signature is malformed"))?;
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
        let bytes = signed(parts.method.as_str(), path, body, at);
        if !key.has_signed(Purpose::Operator, &bytes, &signature) {
            return Err(refused("the signature is by another key, or for another request"));
        }
        let (at, now) = (at.as_millis(), now.as_millis());
        let age_max = u64::try_from(PERSON_AGE_MAX.as_millis()).unwrap_or(u64::MAX);
        // A signature from before the start may have been used then.
        let may_be_used = at < self.since.as_millis() && Instant::now() < self.fresh_until;
        if at.abs_diff(now) > age_max || may_be_used {
            return Err(refused("the signature is stale, or the clocks differ"));
        }
        known.used.retain(|(used, _), ()| used.saturating_add(age_max) >= now);
        if known.used.len() >= PERSON_REQUESTS_MAX {
            let message = "Too many signed requests arrived within a minute.";
            return Err(ApiError::new(ErrorKind::Busy, message, Some("Wait a minute and retry.")));
        }
        match known.used.insert((at, *blake3::hash(&bytes).as_bytes()), ()) {
            Some(()) => Err(refused("the signature was used before")),
            None => Ok(()),
        }
    }
}

/// Parses the header into the time and the signature.
fn read(header: &str) -> Option<(WallTime, Signature)> {
    let (at, signature) = header.split_once(':')?;
    let signature = HEXLOWER.decode(signature.as_bytes()).ok()?;
    Some((
        WallTime::from_millis(at.parse().ok()?),
        Signature::from_bytes(signature.try_into().ok()?),
    ))
}

/// The person's key and the clock, for the middleware.
type GuardState = (Arc<Person>, fn() -> WallTime);

/// Middleware that requires the person's signature, if the node has a person's key.
pub(super) async fn guard(
    State((person, now)): State<GuardState>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    // The request limits have already bounded the size of the body.
    let body: Bytes = to_bytes(body, usize::MAX)
        .await
        .map_err(|error| ApiError::new(ErrorKind::Invalid, unreadable(&error.to_string()), None))?;
    person.examine(&parts, &body, now())?;
    Ok(next.run(Request::from_parts(parts, Body::from(body))).await)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::Method;
    use klnode_api_types::person_signature::sign;
    use klnode_crdt::encrypted_key::KdfCost;
    use klnode_crdt::signing_key::SecretKey;
    use tempfile::TempDir;

    const NOW: u64 = 1_000_000;
    const PATH: &str = "/v1/join?a=b";
    const CHEAP: KdfCost = KdfCost { memory_kib: 8, passes: 1 };

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
        sign(&key(by), Method::POST.as_str(), PATH, b"body", WallTime::from_millis(at))
    }

    /// The result of a request with this header: "ok" or the last part of the message.
    fn asked(person: &Person, method: &str, path: &str, body: &[u8], header: &str) -> String {
        let request = Request::builder().method(method).uri(path).header(HEADER, header);
        let (parts, ()) = request.body(()).unwrap().into_parts();
        match person.examine(&parts, body, WallTime::from_millis(NOW)) {
            Ok(()) => "ok".to_owned(),
            Err(error) => error.message().rsplit(": ").next().unwrap().trim_end_matches('.').into(),
        }
    }

    fn posted(person: &Person, header: &str) -> String {
        asked(person, "POST", PATH, b"body", header)
    }

    #[test]
    fn a_signature_is_valid_for_one_request_once() {
        let home = tempfile::tempdir().unwrap();
        write(&home, 1);
        let person = person(&home);
        let header = header(1, NOW);
        let other = "the signature is by another key, or for another request";
        assert_eq!(asked(&person, "PATCH", PATH, b"body", &header), other);
        assert_eq!(asked(&person, "POST", "/v1/join?a=c", b"body", &header), other);
        assert_eq!(asked(&person, "POST", PATH, b"bodY", &header), other);
        let later = header.replacen(&NOW.to_string(), &(NOW + 1).to_string(), 1);
        assert_eq!(posted(&person, &later), other);
        assert_eq!(posted(&person, &self::header(2, NOW)), other);
        assert_eq!(posted(&person, &header), "ok");
        assert_eq!(posted(&person, &header), "the signature was used before");
    }

    #[test]
    fn a_signature_is_valid_for_a_minute_and_not_from_before_the_start() {
        let home = tempfile::tempdir().unwrap();
        write(&home, 1);
        let person = person(&home);
        let old = "the signature is stale, or the clocks differ";
        for (at, expect) in [
            (NOW - 60_000, "ok"),
            (NOW + 60_000, "ok"),
            (NOW - 60_001, old),
            (NOW + 60_001, old),
            (0, old),
            (u64::MAX, old),
        ] {
            assert_eq!(posted(&person, &header(1, at)), expect, "{at}");
        }
        let fresh = Person::new(&Layout::new(home.path()), WallTime::from_millis(NOW));
        assert_eq!(posted(&fresh, &header(1, NOW - 1)), old);
        for malformed in ["", "1", "1:", "x:00", &header(1, NOW).to_uppercase()[..40]] {
            assert_eq!(posted(&person, malformed), "the signature is malformed", "{malformed}");
        }
    }

    #[test]
    fn a_clock_ahead_at_the_start_locks_the_person_out_for_at_most_two_minutes() {
        let home = tempfile::tempdir().unwrap();
        write(&home, 1);
        let day = 24 * 3_600_000;
        let mut ahead = Person::new(&Layout::new(home.path()), WallTime::from_millis(NOW + day));
        let old = "the signature is stale, or the clocks differ";
        assert_eq!(posted(&ahead, &header(1, NOW)), old);
        let left = ahead.fresh_until.saturating_duration_since(Instant::now());
        assert!(left <= PERSON_AGE_MAX * 2, "{left:?}");
        ahead.fresh_until = Instant::now();
        assert_eq!(posted(&ahead, &header(1, NOW)), "ok");
        assert_eq!(posted(&ahead, &header(1, NOW)), "the signature was used before");
        assert_eq!(posted(&ahead, &header(1, NOW - 60_001)), old);
    }

    #[test]
    fn signed_requests_are_limited_per_minute() {
        let home = tempfile::tempdir().unwrap();
        write(&home, 1);
        let person = person(&home);
        for n in 0..PERSON_REQUESTS_MAX as u64 {
            assert_eq!(posted(&person, &header(1, NOW - n)), "ok");
        }
        let full = "Too many signed requests arrived within a minute";
        assert_eq!(posted(&person, &header(1, NOW + 1)), full);
    }

    #[test]
    fn a_new_key_takes_effect_and_a_known_key_may_not_change() {
        let home = tempfile::tempdir().unwrap();
        let person = person(&home);
        assert!(person.is_absent());
        assert_eq!(posted(&person, "nothing"), "ok");
        write(&home, 1);
        assert!(!person.is_absent());
        assert_eq!(posted(&person, "nothing"), "the signature is malformed");
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
