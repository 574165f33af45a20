//! Codes and sessions of the page. They live in memory only, so they end with the process.
//!
//! A code is valid once and for 30 seconds; the page trades it for the secret of a session. Both are
//! stored as digests: a lookup by digest takes the same time for every guess.

use blake3::Hash;
use data_encoding::HEXLOWER;
use klnode_api_types::{ErrorDetail, ErrorKind};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

/// The time in which a code must be traded.
pub const CODE_LIFETIME: Duration = Duration::from_secs(30);

/// Codes and sessions; a further one replaces the oldest.
const CODES_MAX: usize = 16;
const SESSIONS_MAX: usize = 32;

const SECRET_BYTES: usize = 32;

/// A new code, and the number of sessions that were opened before it.
pub struct PageCode {
    /// The code in hex.
    pub code: Zeroizing<String>,
    /// Sessions opened since the start of the node.
    pub opened: u64,
}

/// The codes and sessions of a page.
#[derive(Default)]
pub struct Sessions(Mutex<Table>);

#[derive(Default)]
struct Table {
    codes: VecDeque<OpenCode>,
    sessions: VecDeque<Session>,
    opened: u64,
}

struct OpenCode {
    digest: Hash,
    uid: u32,
    until: Instant,
}

struct Session {
    digest: Hash,
    uid: u32,
}

impl Sessions {
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().expect("no holder of the lock panics")
    }

    /// A code for a session of this user.
    pub fn issue_code(&self, uid: u32, now: Instant) -> Result<PageCode, ErrorDetail> {
        let code = draw()?;
        let mut table = self.lock();
        table.codes.retain(|code| now < code.until);
        if table.codes.len() == CODES_MAX {
            table.codes.pop_front();
        }
        let digest = blake3::hash(code.as_bytes());
        table.codes.push_back(OpenCode { digest, uid, until: now + CODE_LIFETIME });
        Ok(PageCode { code, opened: table.opened })
    }

    /// Trades a code for the secret of a new session. Fails for a code that is unknown, used or too
    /// old.
    pub fn trade(&self, code: &str, now: Instant) -> Result<Zeroizing<String>, ErrorDetail> {
        let secret = draw()?;
        let digest = blake3::hash(code.as_bytes());
        let mut table = self.lock();
        let at = table.codes.iter().position(|code| code.digest == digest);
        let traded = at.and_then(|at| table.codes.remove(at)).filter(|code| now < code.until);
        let Some(OpenCode { uid, .. }) = traded else {
            let message = "The code is unknown, was used before, or is older than 30 seconds.";
            return Err(ErrorDetail::new(ErrorKind::Unauthorised, message, Some(HINT)));
        };
        if table.sessions.len() == SESSIONS_MAX {
            table.sessions.pop_front();
        }
        table.sessions.push_back(Session { digest: blake3::hash(secret.as_bytes()), uid });
        table.opened += 1;
        Ok(secret)
    }

    /// The user of the session with this secret.
    pub fn user(&self, secret: &str) -> Result<u32, ErrorDetail> {
        let digest = blake3::hash(secret.as_bytes());
        let table = self.lock();
        let session = table.sessions.iter().find(|session| session.digest == digest);
        session.map(|session| session.uid).ok_or_else(|| {
            let message = "The session of this page has ended.";
            ErrorDetail::new(ErrorKind::Unauthorised, message, Some(HINT))
        })
    }

    /// The number of sessions that were opened since the start of the node.
    pub fn opened(&self) -> u64 {
        self.lock().opened
    }
}

const HINT: &str = "Run `klnode ui` to open the page again.";

fn draw() -> Result<Zeroizing<String>, ErrorDetail> {
    let mut bytes = Zeroizing::new([0; SECRET_BYTES]);
    getrandom::fill(&mut bytes[..]).map_err(|error| {
        let message = format!("The system has no entropy for a session: {error}.");
        ErrorDetail::new(ErrorKind::Failed, message, None)
    })?;
    Ok(Zeroizing::new(HEXLOWER.encode(&bytes[..])))
}

#[cfg(test)]
mod tests {
    use super::*;

    const USER: u32 = 1000;

    #[test]
    fn a_code_is_good_once() {
        let (sessions, now) = (Sessions::default(), Instant::now());
        let code = sessions.issue_code(USER, now).unwrap().code;
        let secret = sessions.trade(&code, now).unwrap();
        assert!(sessions.trade(&code, now).is_err());
        assert_eq!(sessions.user(&secret).unwrap(), USER);
        assert_eq!(sessions.opened(), 1);
    }

    #[test]
    fn a_code_expires_after_thirty_seconds() {
        let (sessions, now) = (Sessions::default(), Instant::now());
        let code = sessions.issue_code(USER, now).unwrap().code;
        assert!(sessions.trade(&code, now + CODE_LIFETIME).is_err());
        assert!(sessions.trade(&code, now).is_err(), "a late attempt uses the code up");
    }

    #[test]
    fn a_code_is_no_secret_and_a_guess_is_refused() {
        let (sessions, now) = (Sessions::default(), Instant::now());
        let code = sessions.issue_code(USER, now).unwrap().code;
        assert!(sessions.user(&code).is_err());
        for guess in ["", "0", &"0".repeat(64)] {
            assert!(sessions.user(guess).is_err(), "{guess}");
            assert!(sessions.trade(guess, now).is_err(), "{guess}");
        }
    }

    #[test]
    fn the_oldest_session_gives_way() {
        let (sessions, now) = (Sessions::default(), Instant::now());
        let open = || {
            let code = sessions.issue_code(USER, now).unwrap().code;
            sessions.trade(&code, now).unwrap()
        };
        let first = open();
        let rest: Vec<_> = (0..SESSIONS_MAX).map(|_| open()).collect();
        assert!(sessions.user(&first).is_err());
        assert!(rest.iter().all(|secret| sessions.user(secret).is_ok()));
    }
}
