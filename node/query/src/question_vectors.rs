//! The vectors of a question: by the embedding table or the configured model, and by the transformer.
//!
//! Separate from `candidates`, which may search several times for one question: the transformer
//! needs milliseconds, so the vectors are computed once.

use super::key_question_sentences::telling_part;
use super::search_types::{Fallback, SearchEngine, SearchQuery};
use klnode_index::Index;
use klnode_index::entry_vectors::VectorGeneration;
use klnode_index::function_words::QuestionLanguage;
use klnode_index::keyword::Terms;
use klnode_index::passage_vectors::PassageVectors;
use std::sync::Arc;

/// The vectors of the index, and the vector of the question.
pub(super) type QueryVectors = (Arc<VectorGeneration>, Vec<f32>);

/// The transformer's vectors, and its vector of the question.
pub(super) type PassageQuery = (Arc<PassageVectors>, Vec<f32>);

/// The vectors of a question, and the reason if they are missing.
pub(super) struct QuestionVectors {
    /// The vectors of the index and the question's vector; `None` if keywords alone are searched.
    pub(super) meaning: Option<QueryVectors>,
    pub(super) fallback: Option<Fallback>,
    /// The transformer's vectors and its vector of the question; `None` if either is missing.
    pub(super) passages: Option<PassageQuery>,
}

impl QuestionVectors {
    /// The vectors of a question with these terms. An embedder that does not know the language of
    /// the question takes no part in a hybrid search: its cosines would rank by chance.
    pub(super) fn of(
        index: &Index,
        question: &SearchQuery,
        language: QuestionLanguage,
        terms: &Terms,
    ) -> Self {
        let is_hybrid = question.engine == SearchEngine::Hybrid;
        if is_hybrid && language == QuestionLanguage::OtherScript {
            return Self { meaning: None, fallback: None, passages: None };
        }
        let (meaning, fallback) = meaning_of(index, question);
        let transformer = transformer(index, question, language).filter(|_| meaning.is_some());
        let passages = transformer.and_then(|passages| {
            let text = telling_part(&question.text, &|part| terms.score("", part));
            let vector = passages.question_vector(&text)?;
            Some((passages, vector))
        });
        Self { meaning, fallback, passages }
    }
}

/// The transformer's vectors if they can take part in the search.
pub(super) fn transformer(
    index: &Index,
    question: &SearchQuery,
    language: QuestionLanguage,
) -> Option<Arc<PassageVectors>> {
    let is_asked = match question.engine {
        SearchEngine::Keyword | SearchEngine::Table => false,
        SearchEngine::Hybrid => language == QuestionLanguage::English,
        SearchEngine::Vectors | SearchEngine::Equal => true,
    };
    index.passages().filter(|passages| is_asked && passages.passages() > 0)
}

/// The vectors and the question's vector, or the reason why there are none.
fn meaning_of(index: &Index, question: &SearchQuery) -> (Option<QueryVectors>, Option<Fallback>) {
    let fallback =
        |reason: String| (None, Some(Fallback { engine: SearchEngine::Keyword, reason }));
    if question.engine == SearchEngine::Keyword {
        return (None, None);
    }
    let Some(meaning) = index.meaning() else {
        let state = index.state();
        let reason = match (state.fault, state.rebuild) {
            // A fault stops the rebuild, so the fault is the reason to report.
            (Some(fault), _) => fault,
            (None, Some(job)) => {
                format!("The vectors are being built: {} of {}.", job.done, job.total)
            }
            (None, None) => "There are no vectors yet.".to_owned(),
        };
        return fallback(reason);
    };
    match meaning.embedder.embed_query(&question.text) {
        Ok(vector) if vector.iter().any(|part| *part != 0.0) => (Some((meaning, vector)), None),
        // The model knows no word of the question. This is no error.
        Ok(_) => (None, None),
        Err(error) => fallback(error.to_string()),
    }
}
