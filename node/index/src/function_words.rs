//! Function words, which carry no weight in a question: "how do I", "when did", "what is the way".
//!
//! Statements do not contain question words and auxiliaries, so they are rare in a store and would
//! count like names of code. Entries are indexed with all their words; only the question's side
//! ignores these. Words of another language than English count only in a question that is written
//! in it, because "die" and "man" mean something else in English.

use super::tokenizer::each_word;
use std::collections::HashSet;
use std::sync::LazyLock;

const ENGLISH: &str = "a an the of in on at to for from by with as into about is are was were be \
    been being am do does did doing done have has had having can could may might must shall should \
    will would i me my mine we us our you your he him his she her it its they them their this that \
    these those there here who whom whose which what when where why how and or but if then than so \
    while get got way please possible don doesn didn isn aren wasn weren won couldn shouldn wouldn \
    hasn haven t s re ve ll";

/// The most common function words of other languages, each list with its language.
const OTHERS: [(&str, &str); 6] = [
    (
        "German",
        "der die das den dem des ein eine einen einem einer eines und oder aber wenn dann als wie \
         was wer wo wann warum wieso welche welcher welches ich du er sie es wir ihr mich mir uns \
         man mein meine mit von vom zu zum zur im in am an auf aus bei nach für über unter um durch \
         ist sind war waren sein wird werden wurde hat haben hatte kann können muss müssen soll \
         sollte darf nicht kein keine auch noch nur so dass ob gibt",
    ),
    (
        "French",
        "le la les un une des du de et ou mais si que qui quoi quel quelle quels quelles comment \
         pourquoi quand où je tu il elle on nous vous ils elles me te se mon ma mes ce cette ces \
         est sont était être a ont avoir avait faire fait peut puis dois doit faut dans sur sous \
         avec sans pour par en au aux ne pas plus d l j c qu n s y",
    ),
    (
        "Spanish",
        "el la los las un una unos unas de del y o pero si que qué quién cuál cuáles cómo por porqué \
         cuándo dónde yo tú él ella nosotros ellos me te se mi mis su sus este esta estos es son era \
         ser está están hay ha han haber tiene tengo puede puedo debo debe hacer hago en con sin para \
         a al no más lo",
    ),
    (
        "Italian",
        "il lo la i gli le un uno una di del della dei delle e o ma se che chi quale quali come \
         perché quando dove io tu lui lei noi loro mi ti si mio mia questo questa è sono era essere \
         ha ho hanno avere può posso devo deve fare in con senza per da dal a al non più",
    ),
    (
        "Portuguese",
        "o a os as um uma uns umas de do da dos das e ou mas se que quem qual quais como porque \
         quando onde eu ele ela nós eles me meu minha este esta isso é são era ser está há tem tenho \
         pode posso devo deve fazer faço em no na nos nas com sem para por ao não mais",
    ),
    (
        "Dutch",
        "de het een en of maar als dan dat die wat wie waar wanneer waarom hoe welke ik je jij hij \
         zij we wij mij mijn met van voor naar op in uit bij om te tot over is zijn was waren wordt \
         worden heeft heb hebben kan kunnen moet moeten niet geen ook nog er",
    ),
];
/// A question is in another language if it has at least this many words of its list.
const OTHERS_MIN: usize = 2;

/// At least this many Greek letters are words of Greek.
const GREEK_MIN: usize = 4;

/// The language of a question, as far as the embedders care.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuestionLanguage {
    /// English, or nothing that says otherwise.
    English,
    /// Another language in Latin letters: the embedding table knows pieces of its words.
    OtherLatin,
    /// Another script, which the embedders read as single letters.
    OtherScript,
}

static ENGLISH_WORDS: LazyLock<HashSet<String>> = LazyLock::new(|| folded(ENGLISH));
static OTHER_WORDS: LazyLock<Vec<HashSet<String>>> =
    LazyLock::new(|| OTHERS.iter().map(|(_, list)| folded(list)).collect());

/// The words of a list in the form of the tokenizer, which folds endings.
fn folded(list: &str) -> HashSet<String> {
    let mut words = HashSet::new();
    each_word(list, |word| {
        words.insert(word.to_owned());
    });
    words
}

/// The words of a question that carry no weight.
#[derive(Clone, Copy, Debug)]
pub struct FunctionWords {
    words: &'static HashSet<String>,
    language: QuestionLanguage,
    /// True if the question has no other words; then all of them count.
    are_all: bool,
}

impl FunctionWords {
    /// The function words of a question with these words, in the form of the tokenizer.
    #[must_use]
    pub fn of(question: &[String]) -> Self {
        let count =
            |list: &HashSet<String>| question.iter().filter(|one| list.contains(*one)).count();
        let english = count(&ENGLISH_WORDS);
        let other =
            OTHER_WORDS.iter().map(|list| (count(list), list)).max_by_key(|(count, _)| *count);
        let other = other.filter(|(count, _)| *count >= OTHERS_MIN && *count > english);
        let words = other.map_or(&*ENGLISH_WORDS, |(_, list)| list);
        let are_all = question.iter().all(|one| words.contains(one));
        let language = match script(question) {
            Script::Other => QuestionLanguage::OtherScript,
            _ if other.is_some() => QuestionLanguage::OtherLatin,
            // English writes a few loan words with accents, and its questions have function words.
            Script::AccentedLatin if english == 0 => QuestionLanguage::OtherLatin,
            Script::MixedLatin if english == 0 => QuestionLanguage::OtherScript,
            _ => QuestionLanguage::English,
        };
        Self { words, language, are_all }
    }

    /// True if this word of the question carries no weight.
    #[must_use]
    pub fn contains(&self, word: &str) -> bool {
        !self.are_all && self.words.contains(word)
    }

    /// The language of the question. A short question in plain Latin letters without function words
    /// counts as English, like a name from code.
    #[must_use]
    pub fn language(&self) -> QuestionLanguage {
        self.language
    }
}

/// The letters of a question.
enum Script {
    PlainLatin,
    AccentedLatin,
    /// Some letters are not Latin, but fewer than half.
    MixedLatin,
    Other,
}

fn script(question: &[String]) -> Script {
    let (mut latin, mut accented, mut greek, mut other) = (0, 0, 0, 0);
    for letter in question.iter().flat_map(|word| word.chars()).filter(|one| one.is_alphabetic()) {
        match letter {
            'a'..='z' | 'A'..='Z' => latin += 1,
            // Latin letters with accents: Latin-1, Latin Extended, and Vietnamese.
            '\u{c0}'..='\u{24f}' | '\u{1e00}'..='\u{1eff}' => accented += 1,
            '\u{b5}' | '\u{370}'..='\u{3ff}' => greek += 1,
            _ => other += 1,
        }
    }
    // A few Greek letters are symbols.
    other += if greek >= GREEK_MIN { greek } else { 0 };
    match () {
        () if other > latin + accented => Script::Other,
        () if other > 0 => Script::MixedLatin,
        () if accented > 0 => Script::AccentedLatin,
        () => Script::PlainLatin,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokenizer::words;

    fn language(question: &str) -> QuestionLanguage {
        FunctionWords::of(&words(question)).language()
    }

    /// The words of a question that count.
    fn counted(question: &str) -> Vec<String> {
        let mut words = words(question);
        let function_words = FunctionWords::of(&words);
        words.retain(|word| !function_words.contains(word));
        words
    }

    #[test]
    fn question_phrases_carry_no_weight() {
        for (question, expect) in [
            ("How do I rotate the signing keys?", "rotate signing keys"),
            ("what is the way to raise max_connections", "raise max_connections"),
            ("Why doesn't the deploy finish", "deploy finish"),
            ("When did we change the retry policy?", "change retry policy"),
        ] {
            assert_eq!(counted(question), words(expect), "{question}");
        }
    }

    #[test]
    fn a_question_of_function_words_alone_keeps_them() {
        assert_eq!(counted("who is who"), words("who is who"));
        assert_eq!(counted("this"), words("this"));
        assert!(counted("").is_empty());
    }

    #[test]
    fn another_language_has_its_own_words() {
        for (question, expect) in [
            ("Wie setze ich das Passwort zurück?", "setze Passwort zurück"),
            ("Comment est-ce que je supprime une branche ?", "supprime branche"),
            ("¿Cómo puedo cambiar la contraseña?", "cambiar contraseña"),
            ("Hoe kan ik het wachtwoord wijzigen", "wachtwoord wijzigen"),
        ] {
            let all = words(question);
            assert_eq!(language(question), QuestionLanguage::OtherLatin, "{question}");
            let left = counted(question);
            assert!(words(expect).iter().all(|word| left.contains(word)), "{question}: {left:?}");
            assert!(left.len() < all.len() - 1, "{question}: {left:?}");
        }
        for question in ["does the process die in a man page", "die on error", "use of moved value"]
        {
            assert_eq!(language(question), QuestionLanguage::English, "{question}");
        }
        assert_eq!(counted("processes that die"), words("processes die"));
    }

    #[test]
    fn letters_tell_a_language_that_has_no_list() {
        use QuestionLanguage::{English, OtherLatin, OtherScript};
        for (question, expect) in [
            ("Passwort zurücksetzen", OtherLatin),
            ("jak zresetować hasło", OtherLatin),
            ("как сбросить пароль", OtherScript),
            ("настроить nginx reverse proxy", OtherScript),
            ("如何重置密码", OtherScript),
            ("how do I make a résumé", English),
            ("what does the message 接続 mean", English),
            ("reset password", English),
            ("MAX_RETRIES µs", English),
            ("42", English),
        ] {
            assert_eq!(language(question), expect, "{question}");
        }
    }
}
