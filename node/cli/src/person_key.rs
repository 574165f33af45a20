//! The key of the person behind a node, and the verbs that need it.
//!
//! This module does not read the terminal: [`PersonContext`] has a function that asks for the
//! passphrase.

use super::{Reply, Verb, VerbError};
use klnode_crdt::encrypted_key::{KdfCost, LockedKey};
use klnode_crdt::signing_key::SecretKey;
use klnode_home::{AtomicFile, Existing, Layout};
use serde::Serialize;
use std::io::{self, Write};
use std::path::Path;
use zeroize::Zeroizing;

/// The purpose of a passphrase prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PromptPurpose {
    /// To lock a new key; the prompt asks twice.
    Lock,
    /// To open the existing key.
    Unlock,
}

/// The environment of the command.
pub struct PersonContext<'a> {
    /// The paths of the home, which exists and is private.
    pub layout: Layout,
    /// Asks for the passphrase.
    pub passphrase: &'a dyn Fn(PromptPurpose) -> Result<Zeroizing<String>, VerbError>,
    /// Fills a buffer with random bytes.
    pub entropy: fn(&mut [u8]),
}

/// The public half of a key, and its file.
#[derive(Serialize)]
struct PublicKeyFile {
    person: String,
    file: String,
}

impl PublicKeyFile {
    fn of(key: &LockedKey, file: &Path) -> Self {
        Self { person: key.author().to_string(), file: file.display().to_string() }
    }
}

/// Prints the public half of the person's key.
pub fn show(context: &PersonContext<'_>) -> Result<Reply, VerbError> {
    let file = context.layout.person_file();
    let key = held(&context.layout)?.ok_or_else(|| {
        VerbError::NoPerson(format!("There is no person's key at {}.", file.display()))
    })?;
    let public = PublicKeyFile::of(&key, &file);
    let text = format!("{}\n", public.person);
    Ok(Reply::new(&public, text))
}

/// Creates a person's key under a new passphrase.
pub fn create(context: &PersonContext<'_>) -> Result<Reply, VerbError> {
    let public = PublicKeyFile::of(&make(context)?, &context.layout.person_file());
    let text = format!(
        "{}\nThe key is in {}, encrypted with your passphrase. From now on this node asks for the \
         passphrase before it pairs with others or changes what they get.\nThe passphrase cannot \
         be recovered: keep it, and keep a copy of the file.\n",
        public.person, public.file
    );
    Ok(Reply::new(&public, text))
}

fn make(context: &PersonContext<'_>) -> Result<LockedKey, VerbError> {
    let file = context.layout.person_file();
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            VerbError::Failed(format!("There is already a person's key in {}.", file.display()))
        }
        _ => VerbError::Failed(format!("Cannot write {}: {error}.", file.display())),
    };
    // Check first, so that the prompt does not ask in vain.
    if file.try_exists().map_err(failed)? {
        return Err(failed(io::ErrorKind::AlreadyExists.into()));
    }
    let passphrase = (context.passphrase)(PromptPurpose::Lock)?;
    let (mut secret, mut salt, mut nonce) = (Zeroizing::new([0; 32]), [0; 16], [0; 24]);
    (context.entropy)(&mut secret[..]);
    (context.entropy)(&mut salt);
    (context.entropy)(&mut nonce);
    let key = SecretKey::from_bytes(&secret);
    let locked = LockedKey::lock(&key, &passphrase, KdfCost::DEFAULT, salt, nonce)?;
    // The file is created only now, so that an interrupted prompt leaves no file behind.
    let mut unfinished = AtomicFile::create(&file, Existing::Keep).map_err(failed)?;
    unfinished.write_all(&locked.encode()).and_then(|()| unfinished.finish()).map_err(failed)?;
    Ok(locked)
}

/// Reads the person's key of a home, still locked; `None` if there is none.
fn held(layout: &Layout) -> Result<Option<LockedKey>, VerbError> {
    let file = layout.person_file();
    match std::fs::read(&file) {
        Ok(bytes) => Ok(Some(LockedKey::decode(&bytes)?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(VerbError::Failed(format!("Cannot read {}: {error}.", file.display()))),
    }
}

/// Opens the person's key; `None` if the home has none.
pub fn unlock(context: &PersonContext<'_>) -> Result<Option<SecretKey>, VerbError> {
    let Some(key) = held(&context.layout)? else { return Ok(None) };
    Ok(Some(key.unlock(&(context.passphrase)(PromptPurpose::Unlock)?)?))
}

impl Verb {
    /// Whether to ask for the passphrase before the request: the verb opens the node to others, or
    /// closes it. The node makes the decision; this check only avoids a needless prompt.
    pub fn needs_person(&self) -> bool {
        match self {
            Self::Add(add) => add.needs_person(),
            Self::Feedback(feedback) => feedback.as_person,
            Self::Edit(edit) => edit.as_person,
            Self::Playbook(verb) => verb.needs_person(),
            Self::Import(import) => import.as_person,
            Self::Peer(verb) => verb.needs_person(),
            Self::Workspace(verb) => verb.needs_person(),
            Self::Inbox(verb) => verb.needs_person(),
            Self::Knowledge(verb) => verb.needs_person(),
            Self::Task(verb) => verb.needs_person(),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn context<'a>(
        home: &tempfile::TempDir,
        passphrase: &'a dyn Fn(PromptPurpose) -> Result<Zeroizing<String>, VerbError>,
    ) -> PersonContext<'a> {
        PersonContext { layout: Layout::new(home.path()), passphrase, entropy: |to| to.fill(7) }
    }

    fn said(text: &str) -> Result<Zeroizing<String>, VerbError> {
        Ok(Zeroizing::new(text.to_owned()))
    }

    #[test]
    fn a_key_is_created_once_and_only_its_passphrase_opens_it() {
        let home = tempfile::tempdir().unwrap();
        let right = |_: PromptPurpose| said("correct horse");
        assert!(unlock(&context(&home, &|_| panic!("asked in vain"))).unwrap().is_none());
        assert!(show(&context(&home, &right)).is_err());
        create(&context(&home, &right)).unwrap();
        let file = Layout::new(home.path()).person_file();
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let key = unlock(&context(&home, &right)).unwrap().expect("there is one");
        let shown = show(&context(&home, &|_| panic!("asked in vain"))).unwrap();
        assert_eq!(shown.text, format!("{}\n", key.author()));
        let wrong = unlock(&context(&home, &|_| said("wrong horse!"))).unwrap_err();
        assert!(wrong.to_string().contains("the passphrase is wrong"), "{wrong}");
        let again = create(&context(&home, &|_| panic!("asked in vain")));
        assert!(again.err().unwrap().to_string().contains("already a person's key in"));
    }

    #[test]
    fn no_file_is_created_while_the_prompt_is_open() {
        let home = tempfile::tempdir().unwrap();
        let left = || std::fs::read_dir(home.path()).unwrap().count();
        let leaving = |_: PromptPurpose| {
            assert_eq!(left(), 0, "an interrupted prompt would leave this behind");
            Err(VerbError::Interrupted("No passphrase was given.".into()))
        };
        assert!(create(&context(&home, &leaving)).is_err());
        assert_eq!(left(), 0);
    }

    #[test]
    fn a_short_passphrase_creates_no_key_and_no_file() {
        let home = tempfile::tempdir().unwrap();
        assert!(create(&context(&home, &|_| said("short"))).is_err());
        assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0);
    }
}
