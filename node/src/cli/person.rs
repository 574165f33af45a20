//! `klnode person`: the key of the person behind a node, and which verbs need it.
//!
//! Nothing is asked here: a passphrase comes in by what [`Surroundings`] hold.

use super::{Reply, Verb, VerbError};
use crate::store::{Existing, Layout, Unfinished};
use klnode_crdt::key::SecretKey;
use klnode_crdt::person::{Cost, LockedKey};
use serde::Serialize;
use std::io::{self, Write};
use zeroize::Zeroizing;

/// What to do about the person's key.
#[derive(Debug, clap::Subcommand)]
pub enum PersonVerb {
    /// Make a key that only you can use, under a passphrase. A running node asks for it from then
    /// on.
    ///
    /// Example: klnode person new
    New,
    /// Print its public half.
    ///
    /// Example: klnode person show
    Show,
}

/// What a passphrase is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// To lock a new key: asked twice.
    Lock,
    /// To open the key.
    Unlock,
}

/// What is there beside what was typed.
pub struct Surroundings<'a> {
    /// The home, made and closed to others.
    pub layout: Layout,
    /// Asks for the passphrase.
    pub passphrase: &'a dyn Fn(Occasion) -> Result<Zeroizing<String>, VerbError>,
    /// Random bytes.
    pub entropy: fn(&mut [u8]),
}

#[derive(Serialize)]
struct Told {
    person: String,
    file: String,
}

impl PersonVerb {
    /// Makes a key, or shows the one there is.
    pub fn run(&self, around: &Surroundings<'_>) -> Result<Reply, VerbError> {
        let file = around.layout.person_file();
        let told = |key: &LockedKey| Told {
            person: key.author().to_string(),
            file: file.display().to_string(),
        };
        match self {
            Self::Show => {
                let key = held(&around.layout)?.ok_or_else(|| {
                    VerbError::NoPerson(format!(
                        "show the person's key: {} is not there",
                        file.display()
                    ))
                })?;
                let told = told(&key);
                Ok(Reply::new(&told, format!("{}\n", told.person)))
            }
            Self::New => {
                let key = make(around)?;
                let told = told(&key);
                let text = format!(
                    "{}\nKept in {}, under your passphrase. From now on this node asks for it \
                     before it pairs with others, or changes what they get.\nNobody can recover \
                     the passphrase: keep it, and a copy of the file.\n",
                    told.person, told.file
                );
                Ok(Reply::new(&told, text))
            }
        }
    }
}

fn make(around: &Surroundings<'_>) -> Result<LockedKey, VerbError> {
    let file = around.layout.person_file();
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            VerbError::Failed(format!("make a person's key: there is one in {}", file.display()))
        }
        _ => VerbError::Failed(format!("write {}: {error}", file.display())),
    };
    // Whoever has a key already is not asked for a passphrase.
    if file.try_exists().map_err(failed)? {
        return Err(failed(io::ErrorKind::AlreadyExists.into()));
    }
    let passphrase = (around.passphrase)(Occasion::Lock)?;
    let (mut secret, mut salt, mut nonce) = (Zeroizing::new([0; 32]), [0; 16], [0; 24]);
    (around.entropy)(&mut secret[..]);
    (around.entropy)(&mut salt);
    (around.entropy)(&mut nonce);
    let key = SecretKey::from_bytes(&secret);
    let locked = LockedKey::lock(&key, &passphrase, Cost::DEFAULT, salt, nonce)?;
    // Begun only now: whoever goes away while they are asked leaves nothing behind.
    let mut unfinished = Unfinished::create(&file, Existing::Keep).map_err(failed)?;
    unfinished.write_all(&locked.encode()).and_then(|()| unfinished.finish()).map_err(failed)?;
    Ok(locked)
}

/// The key that a home holds, still locked.
fn held(layout: &Layout) -> Result<Option<LockedKey>, VerbError> {
    let file = layout.person_file();
    match std::fs::read(&file) {
        Ok(bytes) => Ok(Some(LockedKey::decode(&bytes)?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(VerbError::Failed(format!("read {}: {error}", file.display()))),
    }
}

/// The person's key, opened; none where the home has none.
pub fn unlock(around: &Surroundings<'_>) -> Result<Option<SecretKey>, VerbError> {
    let Some(key) = held(&around.layout)? else { return Ok(None) };
    Ok(Some(key.unlock(&(around.passphrase)(Occasion::Unlock)?)?))
}

impl Verb {
    /// Whether the person behind the node must agree: it opens the node to others, or closes it.
    /// The node decides; this is so that nobody is asked for a passphrase in vain.
    pub fn needs_person(&self) -> bool {
        match self {
            Self::Invite(_) | Self::Join(_) => true,
            Self::Add(add) => add.needs_person(),
            Self::Confirm(confirm) => confirm.as_person,
            Self::Edit(edit) => edit.as_person,
            Self::Resolve(resolve) => resolve.as_person,
            Self::Import(import) => import.as_person,
            Self::Peer(verb) => verb.needs_person(),
            Self::Workspace(verb) => verb.needs_person(),
            Self::Quarantine(verb) => verb.needs_person(),
            Self::Promote(promote) => promote.needs_person(),
            Self::Task(verb) => verb.needs_person(),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn around<'a>(
        home: &tempfile::TempDir,
        passphrase: &'a dyn Fn(Occasion) -> Result<Zeroizing<String>, VerbError>,
    ) -> Surroundings<'a> {
        Surroundings { layout: Layout::new(home.path()), passphrase, entropy: |to| to.fill(7) }
    }

    fn said(text: &str) -> Result<Zeroizing<String>, VerbError> {
        Ok(Zeroizing::new(text.to_owned()))
    }

    #[test]
    fn a_key_is_made_once_and_opened_by_its_passphrase_alone() {
        let home = tempfile::tempdir().unwrap();
        let right = |_: Occasion| said("correct horse");
        assert!(unlock(&around(&home, &|_| panic!("asked in vain"))).unwrap().is_none());
        assert!(PersonVerb::Show.run(&around(&home, &right)).is_err());
        PersonVerb::New.run(&around(&home, &right)).unwrap();
        let file = Layout::new(home.path()).person_file();
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let key = unlock(&around(&home, &right)).unwrap().expect("there is one");
        let shown = PersonVerb::Show.run(&around(&home, &|_| panic!("asked in vain"))).unwrap();
        assert_eq!(shown.text, format!("{}\n", key.author()));
        let wrong = unlock(&around(&home, &|_| said("wrong horse!"))).unwrap_err();
        assert!(wrong.to_string().contains("the passphrase is wrong"), "{wrong}");
        let again = PersonVerb::New.run(&around(&home, &|_| panic!("asked in vain")));
        assert!(again.err().unwrap().to_string().contains("there is one in"));
    }

    #[test]
    fn nothing_is_begun_while_somebody_is_asked() {
        let home = tempfile::tempdir().unwrap();
        let left = || std::fs::read_dir(home.path()).unwrap().count();
        let leaving = |_: Occasion| {
            assert_eq!(left(), 0, "whoever ends the program now leaves this behind");
            Err(VerbError::Interrupted("no passphrase was given".into()))
        };
        assert!(PersonVerb::New.run(&around(&home, &leaving)).is_err());
        assert_eq!(left(), 0);
    }

    #[test]
    fn a_short_passphrase_makes_no_key_and_leaves_nothing() {
        let home = tempfile::tempdir().unwrap();
        assert!(PersonVerb::New.run(&around(&home, &|_| said("short"))).is_err());
        assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0);
    }
}
