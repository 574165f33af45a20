//! Evaluates predicates against a checkout, in three-valued logic.
//!
//! An atom holds as soon as one file makes it hold, and is broken only if all its files could be
//! read. `AND`, `OR` and `NOT` follow Kleene: unknown stays unknown unless the other operand
//! decides.

use std::borrow::Cow;
use std::rc::Rc;

use super::manifest::{Ecosystem, LowestVersion, PackageManifest};
use super::read_cache::{Files, Params, ReadCache};
use super::{
    Atom, AtomReason, AtomResult, Checkout, Dependency, Expression, Glob, LineRange, Predicate, hex,
};

/// Result of evaluating one predicate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PredicateOutcome {
    /// The predicate holds.
    Holds,
    /// The predicate does not hold.
    Broken {
        /// Atoms that decided the result; those that hold are under a `NOT`.
        because: Vec<AtomResult>,
    },
    /// The checkout does not allow a decision.
    Unknown {
        /// Atoms that could not be evaluated.
        because: Vec<AtomResult>,
    },
}

/// Evaluates one predicate against a checkout.
#[must_use]
pub fn evaluate(
    predicate: &Predicate,
    checkout: &dyn Checkout,
    params: &Params,
) -> PredicateOutcome {
    judge(predicate, &mut ReadCache::new(checkout, params))
}

/// Evaluates several predicates in order and reads each file once.
///
/// As long as the limits of a batch are not reached, each result equals that of [`evaluate`].
#[must_use]
pub fn evaluate_all(
    predicates: &[Predicate],
    checkout: &dyn Checkout,
    params: &Params,
) -> Vec<PredicateOutcome> {
    let mut session = ReadCache::new(checkout, params);
    predicates.iter().map(|predicate| judge(predicate, &mut session)).collect()
}

fn judge(predicate: &Predicate, session: &mut ReadCache<'_>) -> PredicateOutcome {
    session.begin_predicate();
    let ExpressionResult { truth, because } = predicate.root.judge(session);
    let finding =
        |(atom, reason): (&Atom, AtomReason)| AtomResult { atom: atom.to_string(), reason };
    let because = because.into_iter().map(finding).collect();
    match truth {
        Truth::Holds => PredicateOutcome::Holds,
        Truth::Broken => PredicateOutcome::Broken { because },
        Truth::Unknown => PredicateOutcome::Unknown { because },
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

impl AtomReason {
    fn truth(self) -> Truth {
        match self {
            AtomReason::Holds => Truth::Holds,
            AtomReason::NotTracked
            | AtomReason::NoManifest
            | AtomReason::Missing
            | AtomReason::NotDeclared
            | AtomReason::OtherVersion
            | AtomReason::OtherText
            | AtomReason::TooFewLines
            | AtomReason::OtherDigest => Truth::Broken,
            AtomReason::NoVersion
            | AtomReason::NotUnderstood
            | AtomReason::TooLarge
            | AtomReason::NotAFile
            | AtomReason::Unreadable
            | AtomReason::TooManyFiles
            | AtomReason::TooMuchWork => Truth::Unknown,
        }
    }
}

/// Truth value with the atoms that cause it.
struct ExpressionResult<'p> {
    truth: Truth,
    because: Vec<(&'p Atom, AtomReason)>,
}

impl Expression {
    fn judge<'p>(&'p self, session: &mut ReadCache<'_>) -> ExpressionResult<'p> {
        match self {
            Expression::Atom(atom) => {
                let reason = atom.judge(session).unwrap_or_else(|reason| reason);
                ExpressionResult { truth: reason.truth(), because: vec![(atom, reason)] }
            }
            Expression::Not(inner) => {
                let ExpressionResult { truth, because } = inner.judge(session);
                ExpressionResult { truth: truth.negated(), because }
            }
            Expression::All(parts) => join(parts, Truth::Broken, session),
            Expression::Any(parts) => join(parts, Truth::Holds, session),
        }
    }
}

/// Joins the parts: any part with the value `decisive` decides, otherwise any unknown part.
fn join<'p>(
    parts: &'p [Expression],
    decisive: Truth,
    session: &mut ReadCache<'_>,
) -> ExpressionResult<'p> {
    let results: Vec<ExpressionResult<'p>> = parts.iter().map(|part| part.judge(session)).collect();
    let has = |truth: Truth| results.iter().any(|part| part.truth == truth);
    let order = [decisive, Truth::Unknown, decisive.negated()];
    let truth = order.into_iter().find(|truth| has(*truth)).unwrap_or(decisive.negated());
    let deciding = results.into_iter().filter(|part| part.truth == truth);
    ExpressionResult { truth, because: deciding.flat_map(|part| part.because).collect() }
}

/// Upper bound of the cost of compiling a pattern, in steps: a predicate can afford all of its
/// atoms, and a batch a few hundred.
pub(super) const COMPILING_STEPS: usize = 1 << 18;

/// Reason for the value of an atom; `Err` if the evaluation had to stop early.
type AtomVerdict = Result<AtomReason, AtomReason>;

impl Atom {
    fn judge(&self, session: &mut ReadCache<'_>) -> AtomVerdict {
        match self {
            Atom::Path(files) => {
                any_file(session, files, AtomReason::NotTracked, |session, path| {
                    match session.checkout.exists(path) {
                        Ok(true) => Ok(AtomReason::Holds),
                        Ok(false) => Err(AtomReason::Missing),
                        Err(_) => Err(AtomReason::Unreadable),
                    }
                })
            }
            Atom::Text { files, pattern } => {
                if session.files(files)?.paths.is_empty() {
                    return Ok(AtomReason::NotTracked);
                }
                session.take_steps(COMPILING_STEPS)?;
                let compiled = pattern.compile().map_err(|_| AtomReason::NotUnderstood)?;
                any_file(session, files, AtomReason::NotTracked, |session, path| {
                    let content = session.content(path)?;
                    session.take_steps(content.len().saturating_mul(pattern.steps_per_byte()))?;
                    let is_in = compiled.is_match(&content);
                    Ok(if is_in { AtomReason::Holds } else { AtomReason::OtherText })
                })
            }
            Atom::Hash { file, lines, digest } => {
                any_file(session, file, AtomReason::NotTracked, |session, path| {
                    let content = session.content(path)?;
                    session.take_steps(content.len())?;
                    let span = span(&content, *lines).ok_or(AtomReason::TooFewLines)?;
                    let found = hex(&session.checkout.digest(&span));
                    Ok(if found.starts_with(digest) {
                        AtomReason::Holds
                    } else {
                        AtomReason::OtherDigest
                    })
                })
            }
            Atom::Dependency(dependency) => dependency.judge(session),
        }
    }
}

/// Whether one of the files makes the atom hold. If none does, unknown takes precedence over
/// broken.
fn any_file<'c>(
    session: &mut ReadCache<'c>,
    glob: &Glob,
    none: AtomReason,
    judge: impl Fn(&mut ReadCache<'c>, &'c str) -> AtomVerdict,
) -> AtomVerdict {
    let Files { paths, has_more } = session.files(glob)?;
    let mut worst = none;
    for path in paths.iter() {
        let reason = judge(session, path).unwrap_or_else(|reason| reason);
        if reason == AtomReason::Holds || reason == AtomReason::TooMuchWork {
            return Ok(reason);
        }
        worst = worst.max(reason);
    }
    Ok(if has_more { AtomReason::TooManyFiles } else { worst })
}

impl Dependency {
    fn judge(&self, session: &mut ReadCache<'_>) -> AtomVerdict {
        let any = Glob::new(&format!("**/{}", self.ecosystem.file_name()));
        let any = any.map_err(|_| AtomReason::NoManifest)?;
        let manifests = self.manifests.as_ref().unwrap_or(&any);
        any_file(session, manifests, AtomReason::NoManifest, |session, path| {
            let declared = declared(session, self.ecosystem, path, &self.package)?;
            let results = declared.iter().map(|lowest| self.judge_version(lowest));
            Ok(results.reduce(better).unwrap_or(AtomReason::NotDeclared))
        })
    }

    fn judge_version(&self, lowest: &LowestVersion) -> AtomReason {
        match lowest {
            _ if self.comparators.is_empty() => AtomReason::Holds,
            None => AtomReason::NoVersion,
            Some(version) if self.comparators.iter().all(|of| of.admits(version)) => {
                AtomReason::Holds
            }
            Some(_) => AtomReason::OtherVersion,
        }
    }
}

/// `Holds` if either reason is that, otherwise the later one in the order of [`AtomReason`].
fn better(one: AtomReason, two: AtomReason) -> AtomReason {
    if one == AtomReason::Holds {
        one
    } else if two == AtomReason::Holds {
        two
    } else {
        one.max(two)
    }
}

/// Lowest versions that a manifest declares for a package, including those inherited from its
/// workspace.
fn declared<'c>(
    session: &mut ReadCache<'c>,
    ecosystem: Ecosystem,
    path: &'c str,
    package: &str,
) -> Result<Vec<LowestVersion>, AtomReason> {
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

/// Manifest of the nearest workspace: this manifest, or one in a parent folder.
fn workspace<'c>(
    session: &mut ReadCache<'c>,
    ecosystem: Ecosystem,
    path: &'c str,
) -> Result<Option<Rc<PackageManifest>>, AtomReason> {
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

/// The bytes to digest: the whole file unchanged, or the lines each ending in `\n`, so that neither
/// another line ending nor a missing last one counts as a change.
pub(super) fn span(content: &[u8], lines: Option<LineRange>) -> Option<Cow<'_, [u8]>> {
    let Some(LineRange { first, last }) = lines else { return Some(Cow::Borrowed(content)) };
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
