//! The reading side: find entries, read them, judge them, put them in order. Nothing here writes.

mod anchors;
mod border;
mod cancel;
mod candidates;
mod checkout;
pub mod doctor;
mod equals;
mod excerpt;
mod gate;
mod judge;
mod numbers;
mod question;
mod reading;
mod reference;
mod report;
mod rivals;
mod search;
mod settings;
mod standing;
pub mod upkeep;

pub use anchors::{Looked, malformed};
pub use border::{complaint, inspect, redacted, said, scanner};
pub use cancel::{Cancel, CancelOnDrop};
pub use candidates::SearchError;
pub use checkout::{CheckoutError, GitCheckout, Misread};
pub use excerpt::{body, one_liner};
pub use gate::{Corroboration, Gate};
pub use judge::Judged;
pub use numbers::{Numbers, cooccurrence, tasks};
pub use question::{Abstained, Answer, Audience, Caveat, Engine, Fallback, Hit, Question};
pub use reading::{Found, Reader, Reading};
pub use reference::{Reference, ReferenceError};
pub use report::{Fading, TrustReport};
pub use settings::WeightsFrom;
pub use standing::{Standing, Via, hops};
