//! The reading side: find entries, read them, judge them, put them in order. Nothing here writes.

mod anchors;
mod arrange;
mod bindings;
mod border;
mod briefing;
mod cancel;
mod candidates;
mod caveats;
pub mod characters;
mod checkout;
pub mod count;
pub mod doctor;
mod equals;
mod excerpt;
mod fill;
mod findings;
mod flags;
mod gate;
mod judge;
mod labels;
mod names;
mod numbers;
mod opposites;
mod passages;
mod phrase;
mod places;
mod promotion;
mod proposals;
mod question;
mod reading;
mod reference;
mod report;
mod rivals;
mod search;
mod settings;
pub mod shell;
mod sketch;
mod standing;
mod statement;
mod succession;
pub mod survey;
mod twice;
pub mod upkeep;
mod vouched;

pub use anchors::{Flagged, Looked, Skipped, malformed};
pub use bindings::{Bindings, bind, recorded, unbind};
pub use border::{complaint, defused, inspect, redacted, said, scanner};
pub use briefing::{Briefed, BriefedSection, Briefing, BriefingQuestion, FIRST_LINE};
pub use cancel::{Cancel, CancelOnDrop};
pub use candidates::{SearchError, TAIL_RECORDS_MAX};
pub use checkout::{
    CallerCheckout, CheckoutError, GitCheckout, Identity, Likeness, Misread, Repository, Roots,
};
pub use excerpt::{citations, code, cut, one_liner, tags};
pub use findings::{CompareError, Comparer, Lens, Pass, entry_like};
pub use flags::{SCANNED, ShareFlag};
pub use gate::{Corroboration, Gate};
pub use judge::Judged;
pub use labels::Labels;
pub use names::{cleaned, name_of, short_key};
pub use numbers::{Numbers, cooccurrence, tasks};
pub use places::{Here, tellable};
pub use proposals::{ProposedCitation, is_only_proposed};
pub use question::{
    Abstained, Answer, Audience, Caveat, Engine, Fallback, Hit, Question, ThreadScope,
};
pub use reading::{Found, Reader, Reading};
pub use reference::{Reference, ReferenceError};
pub use report::{Fading, TrustReport};
pub use settings::WeightsFrom;
pub use standing::{Earned, Standing, Via, hops};
pub use succession::SuccessionError;
