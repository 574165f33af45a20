//! Judges predicates against a checkout, in three values.
//!
//! An atom holds as soon as one file makes it hold, and is broken only if all that it means could be
//! looked at. `AND`, `OR` and `NOT` follow Kleene: unknown stays unknown unless the rest decides.

use std::borrow::Cow;
use std::rc::Rc;

use super::manifest::{Ecosystem, Lowest, Manifest};
use super::session::{Files, Params, Session};
use super::{Atom, Checkout, Dependency, Expression, Finding, Glob, Lines, Predicate, Reason, hex};

/// What a checkout says about a predicate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It holds.
    Holds,
    /// It does not hold.
    Broken {
        /// The atoms that decided; those that hold stand under a `NOT`.
        because: Vec<Finding>,
    },
    /// It cannot be told here.
    Unknown {
        /// The atoms that could not be told.
        because: Vec<Finding>,
    },
}

/// What a checkout says about one predicate.
#[must_use]
pub fn evaluate(predicate: &Predicate, checkout: &dyn Checkout, params: &Params) -> Outcome {
    judge(predicate, &mut Session::new(checkout, params))
}

/// What a checkout says about several predicates, in their order, reading each file once.
///
/// As long as the limits of a batch are not reached, each answer is what [`evaluate`] gives.
#[must_use]
pub fn evaluate_all(
    predicates: &[Predicate],
    checkout: &dyn Checkout,
    params: &Params,
) -> Vec<Outcome> {
    let mut session = Session::new(checkout, params);
    predicates.iter().map(|predicate| judge(predicate, &mut session)).collect()
}

fn judge(predicate: &Predicate, session: &mut Session<'_>) -> Outcome {
    session.begin_predicate();
    let Judged { truth, because } = predicate.root.judge(session);
    let finding = |(atom, reason): (&Atom, Reason)| Finding { atom: atom.to_string(), reason };
    let because = because.into_iter().map(finding).collect();
    match truth {
        Truth::Holds => Outcome::Holds,
        Truth::Broken => Outcome::Broken { because },
        Truth::Unknown => Outcome::Unknown { because },
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Truth {
    Holds,
    Broken,
    Unknown,
}

impl Truth {
    fn negated(self) -> Self {
        match self {
            Truth::Holds => Truth::Broken,
            Truth::Broken => Truth::Holds,
            Truth::Unknown => Truth::Unknown,
        }
    }
}

impl Reason {
    fn truth(self) -> Truth {
        match self {
            Reason::Holds => Truth::Holds,
            Reason::NotTracked
            | Reason::NoManifest
            | Reason::Missing
            | Reason::NotDeclared
            | Reason::OtherVersion
            | Reason::OtherText
            | Reason::TooFewLines
            | Reason::OtherDigest => Truth::Broken,
            Reason::NoVersion
            | Reason::NotUnderstood
            | Reason::TooLarge
            | Reason::NotAFile
            | Reason::Unreadable
            | Reason::TooManyFiles
            | Reason::TooMuchWork => Truth::Unknown,
        }
    }
}

/// A truth with the atoms that make it so.
struct Judged<'p> {
    truth: Truth,
    because: Vec<(&'p Atom, Reason)>,
}

impl Expression {
    fn judge<'p>(&'p self, session: &mut Session<'_>) -> Judged<'p> {
        match self {
            Expression::Atom(atom) => {
                let reason = atom.judge(session).unwrap_or_else(|reason| reason);
                Judged { truth: reason.truth(), because: vec![(atom, reason)] }
            }
            Expression::Not(inner) => {
                let Judged { truth, because } = inner.judge(session);
                Judged { truth: truth.negated(), because }
            }
            Expression::All(parts) => join(parts, Truth::Broken, session),
            Expression::Any(parts) => join(parts, Truth::Holds, session),
        }
    }
}

/// Joins parts of which any that is `decisive` decides, and otherwise any that is unknown.
fn join<'p>(parts: &'p [Expression], decisive: Truth, session: &mut Session<'_>) -> Judged<'p> {
    let judged: Vec<Judged<'p>> = parts.iter().map(|part| part.judge(session)).collect();
    let has = |truth: Truth| judged.iter().any(|part| part.truth == truth);
    let order = [decisive, Truth::Unknown, decisive.negated()];
    let truth = order.into_iter().find(|truth| has(*truth)).unwrap_or(decisive.negated());
    let deciding = judged.into_iter().filter(|part| part.truth == truth);
    Judged { truth, because: deciding.flat_map(|part| part.because).collect() }
}

/// What it takes to compile a pattern, at most, as steps: a predicate has room for all of its atoms,
/// and a batch for a few hundred.
pub(super) const COMPILING_STEPS: usize = 1 << 18;

/// Why an atom is judged as it is; what stops the judging is a reason as well.
type Verdict = Result<Reason, Reason>;

impl Atom {
    fn judge(&self, session: &mut Session<'_>) -> Verdict {
        match self {
            Atom::Path(files) => any_file(session, files, Reason::NotTracked, |session, path| {
                match session.checkout.exists(path) {
                    Ok(true) => Ok(Reason::Holds),
                    Ok(false) => Err(Reason::Missing),
                    Err(_) => Err(Reason::Unreadable),
                }
            }),
            Atom::Text { files, pattern } => {
                if session.files(files)?.paths.is_empty() {
                    return Ok(Reason::NotTracked);
                }
                session.take_steps(COMPILING_STEPS)?;
                let compiled = pattern.compile().map_err(|_| Reason::NotUnderstood)?;
                any_file(session, files, Reason::NotTracked, |session, path| {
                    let content = session.content(path)?;
                    session.take_steps(content.len().saturating_mul(pattern.steps_per_byte()))?;
                    let is_in = compiled.is_match(&content);
                    Ok(if is_in { Reason::Holds } else { Reason::OtherText })
                })
            }
            Atom::Hash { file, lines, digest } => {
                any_file(session, file, Reason::NotTracked, |session, path| {
                    let content = session.content(path)?;
                    session.take_steps(content.len())?;
                    let span = span(&content, *lines).ok_or(Reason::TooFewLines)?;
                    let found = hex(&session.checkout.digest(&span));
                    Ok(if found.starts_with(digest) { Reason::Holds } else { Reason::OtherDigest })
                })
            }
            Atom::Dependency(dependency) => dependency.judge(session),
        }
    }
}

/// Whether one of the files holds. If none does, what cannot be told comes before what is broken.
fn any_file<'c>(
    session: &mut Session<'c>,
    glob: &Glob,
    none: Reason,
    judge: impl Fn(&mut Session<'c>, &'c str) -> Verdict,
) -> Verdict {
    let Files { paths, has_more } = session.files(glob)?;
    let mut worst = none;
    for path in paths.iter() {
        let reason = judge(session, path).unwrap_or_else(|reason| reason);
        if reason == Reason::Holds || reason == Reason::TooMuchWork {
            return Ok(reason);
        }
        worst = worst.max(reason);
    }
    Ok(if has_more { Reason::TooManyFiles } else { worst })
}

impl Dependency {
    fn judge(&self, session: &mut Session<'_>) -> Verdict {
        let any = Glob::new(&format!("**/{}", self.ecosystem.file_name()));
        let any = any.map_err(|_| Reason::NoManifest)?;
        let manifests = self.manifests.as_ref().unwrap_or(&any);
        any_file(session, manifests, Reason::NoManifest, |session, path| {
            let declared = declared(session, self.ecosystem, path, &self.package)?;
            let judged = declared.iter().map(|lowest| self.judge_version(lowest));
            Ok(judged.reduce(better).unwrap_or(Reason::NotDeclared))
        })
    }

    fn judge_version(&self, lowest: &Lowest) -> Reason {
        match lowest {
            _ if self.comparators.is_empty() => Reason::Holds,
            None => Reason::NoVersion,
            Some(version) if self.comparators.iter().all(|of| of.admits(version)) => Reason::Holds,
            Some(_) => Reason::OtherVersion,
        }
    }
}

/// Of two reasons the one that holds, or else the later one.
fn better(one: Reason, two: Reason) -> Reason {
    if one == Reason::Holds {
        one
    } else if two == Reason::Holds {
        two
    } else {
        one.max(two)
    }
}

/// What a manifest declares of a package, with what it takes from its workspace.
fn declared<'c>(
    session: &mut Session<'c>,
    ecosystem: Ecosystem,
    path: &'c str,
    package: &str,
) -> Result<Vec<Lowest>, Reason> {
    let manifest = session.manifest(ecosystem, path)?;
    let mut found = manifest.declared.get(package).cloned().unwrap_or_default();
    if manifest.inherited.is_empty() {
        return Ok(found);
    }
    let Some(workspace) = workspace(session, ecosystem, path)? else { return Ok(found) };
    let lent = workspace
        .lent
        .iter()
        .flat_map(|lent| manifest.inherited.iter().filter_map(|key| lent.get(key)));
    found.extend(lent.filter(|(name, _)| name == package).map(|(_, lowest)| lowest.clone()));
    Ok(found)
}

/// The manifest of the nearest workspace: this one, or that of a folder above.
fn workspace<'c>(
    session: &mut Session<'c>,
    ecosystem: Ecosystem,
    path: &'c str,
) -> Result<Option<Rc<Manifest>>, Reason> {
    let mut folder = path.strip_suffix(ecosystem.file_name()).unwrap_or(path);
    loop {
        let above = session.tracked(&format!("{folder}{}", ecosystem.file_name()));
        if let Some(above) = above {
            let manifest = session.manifest(ecosystem, above)?;
            if manifest.lent.is_some() {
                return Ok(Some(manifest));
            }
        }
        if folder.is_empty() {
            return Ok(None);
        }
        let end = folder.trim_end_matches('/').rfind('/').map_or(0, |at| at + 1);
        folder = &folder[..end];
    }
}

/// The bytes that a digest is taken of: a whole file as it is, or lines that each end in `\n`,
/// so that neither another line ending nor a missing last one counts as a change.
pub(super) fn span(content: &[u8], lines: Option<Lines>) -> Option<Cow<'_, [u8]>> {
    let Some(Lines { first, last }) = lines else { return Some(Cow::Borrowed(content)) };
    let (first, last) = (usize::try_from(first).ok()?, usize::try_from(last).ok()?);
    let text = content.strip_suffix(b"\n").unwrap_or(content);
    let mut bytes = Vec::new();
    let mut taken = 0;
    for line in text.split(|byte| *byte == b'\n').take(last).skip(first - 1) {
        bytes.extend_from_slice(line.strip_suffix(b"\r").unwrap_or(line));
        bytes.push(b'\n');
        taken += 1;
    }
    (taken == last - first + 1).then_some(Cow::Owned(bytes))
}
