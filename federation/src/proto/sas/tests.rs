//! Both sides against each other, a node in the middle, and initiators that violate the protocol.

use super::*;
use crate::proto::limits::{
    ADDRESSES_MAX, JOIN_BEGINS_MAX, JOIN_BEGINS_PER_PEER_MAX, JOIN_BEGINS_PER_SOURCE_MAX,
    JOIN_REVEAL_MS_MAX, JOIN_ROWS_MAX, JOIN_WINDOW_MS, NAME_CHARS_MAX, PAIR_FRAME_BYTES_MAX,
};
use crate::proto::pairing::Card;
use crate::proto::ticket::JoinOffer;
use klnode_crdt::ids::WorkspaceId;

const LIFETIME_MS: u64 = 600_000;

fn author(byte: u8) -> AuthorId {
    AuthorId::from_bytes([byte; 32])
}

fn nonce(byte: u8) -> Nonce {
    Nonce::new([byte; 32])
}

fn card(name: &str) -> Card {
    Card { name: name.into(), addresses: Vec::new() }
}

fn attempts(own: u8) -> Attempts {
    Attempts::new(author(own), Settings { lifetime_ms: LIFETIME_MS })
}

fn initiator(own: u8, peer: u8, want: RequestedRole, bytes: u8) -> Initiator {
    let parties = Parties { initiator: author(own), responder: author(peer), want };
    Initiator::new(parties, nonce(bytes))
}

/// Passes an initiator's request to a responder. `None` while the exchange is kept open.
fn deliver(
    to: &mut Attempts,
    peer: u8,
    drawn: u8,
    ask: &SasRequest,
    now: u64,
) -> Option<SasResponse> {
    let peer = author(peer);
    match ask.clone() {
        SasRequest::Begin(commitment, want, card) => {
            let begin = JoinStart { commitment, want, card };
            Some(match to.begin(peer, "192.0.2.1", begin, nonce(drawn), now) {
                Ok(()) => SasResponse::Nonce(nonce(drawn), "responder".into()),
                Err(end) => SasResponse::Ended(end),
            })
        }
        SasRequest::Reveal(attempt, revealed) => match to.reveal(peer, attempt, &revealed, now) {
            AttemptStep::Requested => Some(SasResponse::Pending(false)),
            AttemptStep::Answer(answer) => Some(answer),
            other => panic!("{other:?}"),
        },
        SasRequest::Poll(attempt, is_confirmed) => {
            match to.poll(peer, attempt, is_confirmed, now) {
                AttemptStep::Answer(answer) => Some(answer),
                AttemptStep::Pair => {
                    let offer = match to.open(peer).expect("open").want {
                        RequestedRole::Mine => Some(JoinOffer::Mine),
                        RequestedRole::Peer => None,
                        RequestedRole::Member(_) => {
                            Some(JoinOffer::Member(WorkspaceId::from_bytes([7; 16]), "team".into()))
                        }
                    };
                    to.joined(peer, offer, card("responder"));
                    Some(to.answer(peer))
                }
                AttemptStep::Hold => None,
                AttemptStep::Requested => panic!("a poll is not a request"),
            }
        }
        SasRequest::Cancel(attempt, end) => {
            to.cancel(peer, attempt, end);
            Some(to.answer(peer))
        }
    }
}

/// Runs an attempt until the digits are known.
fn introduce(one: &mut Initiator, peer: u8, to: &mut Attempts, drawn: u8) -> Code {
    let answer = deliver(to, peer, drawn, &one.begin(card("initiator")), 0).expect("answered");
    let InitiatorStep::Send(reveal) = one.hear(answer) else { panic!("a reveal follows") };
    let answer = deliver(to, peer, drawn, &reveal, 0).expect("answered");
    assert_eq!(one.hear(answer), InitiatorStep::Wait);
    one.code().expect("digits")
}

fn poll(one: &mut Initiator, peer: u8, to: &mut Attempts) -> Option<InitiatorStep> {
    let answer = deliver(to, peer, 0, &one.poll(), 1);
    answer.map(|answer| one.hear(answer))
}

#[test]
fn both_sides_show_the_same_digits_and_the_right_code_joins() {
    let (mut here, mut there) = (initiator(1, 2, RequestedRole::Peer, 11), attempts(2));
    let code = introduce(&mut here, 1, &mut there, 22);
    assert_eq!(there.open(author(1)).and_then(|row| row.code), Some(code));
    assert_eq!(poll(&mut here, 1, &mut there), None, "the question stays open");
    assert_eq!(there.confirm(author(1), code), Ok(AttemptStep::Pair));
    assert_eq!(
        poll(&mut here, 1, &mut there),
        Some(InitiatorStep::Joined(None, card("responder")))
    );
    assert_eq!(there.all_open().count(), 0);
}

#[test]
fn a_man_in_the_middle_leaves_different_digits_on_both_sides() {
    let mut same = 0;
    for byte in 0..100 {
        // Node 1 wants to join node 2. Node 9 answers at the address of 2, and joins 2 in the place
        // of 1.
        let (mut victim, mut middle_answers) =
            (initiator(1, 9, RequestedRole::Mine, byte), attempts(9));
        let (mut middle, mut target) =
            (initiator(9, 2, RequestedRole::Mine, byte + 100), attempts(2));
        let there = introduce(&mut middle, 9, &mut target, 50);
        let here = introduce(&mut victim, 1, &mut middle_answers, byte + 50);
        same += u32::from(here == there);
        // The operator types the digits that the victim's machine shows.
        if here != there {
            assert_eq!(target.confirm(author(9), here), Err(CodeError::Wrong));
            assert_eq!(
                poll(&mut middle, 9, &mut target),
                Some(InitiatorStep::Ended(AttemptEnd::WrongCode))
            );
        }
    }
    assert_eq!(same, 0);
}

#[test]
fn digits_depend_on_keys_nonces_and_the_request() {
    let parties = |initiator, responder, want| Parties {
        initiator: author(initiator),
        responder: author(responder),
        want,
    };
    let base = parties(1, 2, RequestedRole::Peer);
    let code = base.code(&nonce(3), &nonce(4));
    let others = [
        base.code(&nonce(5), &nonce(4)),
        base.code(&nonce(3), &nonce(5)),
        base.code(&nonce(4), &nonce(3)),
        parties(2, 1, RequestedRole::Peer).code(&nonce(3), &nonce(4)),
        parties(1, 9, RequestedRole::Peer).code(&nonce(3), &nonce(4)),
        parties(1, 2, RequestedRole::Mine).code(&nonce(3), &nonce(4)),
        parties(1, 2, RequestedRole::Member("team".into())).code(&nonce(3), &nonce(4)),
    ];
    assert!(!others.contains(&code), "{code} among {others:?}");
    assert_ne!(
        base.commitment(&nonce(3)),
        parties(1, 2, RequestedRole::Mine).commitment(&nonce(3))
    );
}

#[test]
fn one_wrong_code_ends_the_attempt_and_the_next_one_has_other_digits() {
    let (mut here, mut there) = (initiator(1, 2, RequestedRole::Peer, 11), attempts(2));
    let code = introduce(&mut here, 1, &mut there, 22);
    let wrong = Code((code.0 + 1) % 1_000_000);
    assert_eq!(there.confirm(author(1), wrong), Err(CodeError::Wrong));
    assert_eq!(there.confirm(author(1), code), Err(CodeError::NotWaiting), "it is over");
    assert_eq!(poll(&mut here, 1, &mut there), Some(InitiatorStep::Ended(AttemptEnd::WrongCode)));
    let mut again = initiator(1, 2, RequestedRole::Peer, 12);
    assert_ne!(introduce(&mut again, 1, &mut there, 23), code);
}

#[test]
fn an_own_node_needs_the_code_on_both_sides() {
    for is_initiator_first in [true, false] {
        let (mut here, mut there) = (initiator(1, 2, RequestedRole::Mine, 11), attempts(2));
        let code = introduce(&mut here, 1, &mut there, 22);
        if is_initiator_first {
            here.confirm(code).unwrap();
            assert_eq!(poll(&mut here, 1, &mut there), None, "the question stays open");
            assert_eq!(there.confirm(author(1), code), Ok(AttemptStep::Pair));
        } else {
            assert_eq!(
                there.confirm(author(1), code),
                Ok(AttemptStep::Answer(SasResponse::Pending(true)))
            );
            assert_eq!(poll(&mut here, 1, &mut there), None);
            here.confirm(code).unwrap();
        }
        let joined = InitiatorStep::Joined(Some(JoinOffer::Mine), card("responder"));
        assert_eq!(poll(&mut here, 1, &mut there), Some(joined));
    }
}

#[test]
fn a_responder_cannot_join_before_the_initiators_operator_typed_the_code() {
    let (mut here, mut there) = (initiator(1, 2, RequestedRole::Mine, 11), attempts(2));
    let code = introduce(&mut here, 1, &mut there, 22);
    let early = SasResponse::Joined(Some(JoinOffer::Mine), card("eager"));
    assert_eq!(here.clone().hear(early), InitiatorStep::Ended(AttemptEnd::Mismatch));
    let other = SasResponse::Joined(None, card("other"));
    here.confirm(code).unwrap();
    assert_eq!(here.clone().hear(other), InitiatorStep::Ended(AttemptEnd::Mismatch));
    let wrong = Code((code.0 + 1) % 1_000_000);
    assert_eq!(here.confirm(wrong), Err(AttemptEnd::WrongCode));
    assert_eq!(here.code(), None, "the attempt is over on this side too");
}

#[test]
fn a_responder_cannot_replace_its_nonce_after_the_reveal() {
    let mut here = initiator(1, 2, RequestedRole::Peer, 11);
    assert!(matches!(
        here.hear(SasResponse::Nonce(nonce(1), String::new())),
        InitiatorStep::Send(_)
    ));
    let second = here.hear(SasResponse::Nonce(nonce(2), String::new()));
    assert_eq!(second, InitiatorStep::Ended(AttemptEnd::Mismatch));
}

#[test]
fn a_reveal_that_does_not_match_or_is_replayed_ends_the_attempt() {
    let ended = Some(SasResponse::Ended(AttemptEnd::Mismatch));
    let (here, mut there) = (initiator(1, 2, RequestedRole::Peer, 11), attempts(2));
    deliver(&mut there, 1, 22, &here.begin(card("a")), 0);
    let other = SasRequest::Reveal(here.commitment(), nonce(12));
    assert_eq!(deliver(&mut there, 1, 0, &other, 0), ended);
    let right = SasRequest::Reveal(here.commitment(), nonce(11));
    assert_eq!(deliver(&mut there, 1, 0, &right, 0), ended, "it is over");
    assert_eq!(there.all_open().count(), 0, "the operator saw none of it");
    // The same reveal twice, and the reveal of another node.
    let mut there = attempts(2);
    deliver(&mut there, 1, 22, &here.begin(card("a")), 0);
    let unknown = Some(SasResponse::Ended(AttemptEnd::Unknown));
    assert_eq!(deliver(&mut there, 3, 0, &right, 0), unknown);
    assert_eq!(deliver(&mut there, 1, 0, &right, 0), Some(SasResponse::Pending(false)));
    assert_eq!(deliver(&mut there, 1, 0, &right, 0), ended);
    assert_eq!(deliver(&mut there, 1, 0, &here.poll(), 0), ended);
}

#[test]
fn attempts_are_limited_per_node_per_address_and_in_total() {
    let mut there = attempts(2);
    let mut begin = |peer: u8, source: &str, now: u64| {
        let one = initiator(peer, 2, RequestedRole::Peer, 1);
        let SasRequest::Begin(commitment, want, card) = one.begin(card("flood")) else {
            unreachable!()
        };
        there.begin(author(peer), source, JoinStart { commitment, want, card }, nonce(2), now)
    };
    for _ in 0..JOIN_BEGINS_PER_PEER_MAX {
        assert_eq!(begin(1, "192.0.2.1", 0), Ok(()));
    }
    assert_eq!(begin(1, "192.0.2.9", 0), Err(AttemptEnd::TooMany), "one node");
    let rest = JOIN_BEGINS_PER_SOURCE_MAX - JOIN_BEGINS_PER_PEER_MAX;
    for peer in 0..rest {
        assert_eq!(begin(10 + peer as u8, "192.0.2.1", 0), Ok(()));
    }
    assert_eq!(begin(90, "192.0.2.1", 0), Err(AttemptEnd::TooMany), "one address");
    for peer in JOIN_BEGINS_PER_SOURCE_MAX..JOIN_BEGINS_MAX {
        assert_eq!(begin(100 + peer as u8, &format!("198.51.100.{peer}"), 0), Ok(()));
    }
    assert_eq!(begin(200, "203.0.113.1", 0), Err(AttemptEnd::TooMany), "all together");
    assert_eq!(begin(200, "203.0.113.1", JOIN_WINDOW_MS), Ok(()), "the window is over");
    assert!(there.rows.len() <= JOIN_ROWS_MAX && there.begun.len() <= JOIN_BEGINS_MAX);
}

#[test]
fn an_attempt_expires_sooner_if_its_nonce_is_never_revealed() {
    let (mut here, mut there) = (initiator(1, 2, RequestedRole::Peer, 11), attempts(2));
    let answer = deliver(&mut there, 1, 22, &here.begin(card("a")), 0).unwrap();
    let InitiatorStep::Send(reveal) = here.hear(answer) else { panic!("a reveal follows") };
    let late = deliver(&mut there, 1, 0, &reveal, JOIN_REVEAL_MS_MAX);
    assert_eq!(late, Some(SasResponse::Ended(AttemptEnd::Unknown)));
    let mut here = initiator(1, 2, RequestedRole::Peer, 12);
    introduce(&mut here, 1, &mut there, 22);
    there.expire(LIFETIME_MS);
    assert_eq!(there.answer(author(1)), SasResponse::Ended(AttemptEnd::Expired));
}

#[test]
fn a_refused_node_stays_refused_until_the_window_ends() {
    let (mut here, mut there) = (initiator(1, 2, RequestedRole::Peer, 11), attempts(2));
    introduce(&mut here, 1, &mut there, 22);
    assert!(there.refuse(author(1), 0) && !there.refuse(author(1), 0));
    assert_eq!(poll(&mut here, 1, &mut there), Some(InitiatorStep::Ended(AttemptEnd::Refused)));
    let again = initiator(1, 2, RequestedRole::Peer, 12).begin(card("a"));
    let refused = Some(SasResponse::Ended(AttemptEnd::Refused));
    assert_eq!(deliver(&mut there, 1, 22, &again, 1), refused);
    let later = deliver(&mut there, 1, 22, &again, JOIN_WINDOW_MS);
    assert!(matches!(later, Some(SasResponse::Nonce(..))), "{later:?}");
}

#[test]
fn a_cancelled_attempt_ends_with_its_reason() {
    for (end, expect) in [
        (AttemptEnd::WrongCode, AttemptEnd::WrongCode),
        (AttemptEnd::Cancelled, AttemptEnd::Cancelled),
        // An initiator cannot make the responder report other reasons.
        (AttemptEnd::Refused, AttemptEnd::Cancelled),
    ] {
        let (mut here, mut there) = (initiator(1, 2, RequestedRole::Peer, 11), attempts(2));
        let code = introduce(&mut here, 1, &mut there, 22);
        let cancel = SasRequest::Cancel(here.commitment(), end);
        assert_eq!(deliver(&mut there, 1, 0, &cancel, 1), Some(SasResponse::Ended(expect)));
        assert_eq!(there.confirm(author(1), code), Err(CodeError::NotWaiting));
    }
}

#[test]
fn an_oversized_or_disguised_name_is_cut_or_refused() {
    let mut there = attempts(2);
    let long = Card { name: "x\n".repeat(5_000), addresses: vec!["y".into(); 100] };
    let mut here = initiator(1, 2, RequestedRole::Peer, 11);
    let begin = here.begin(long);
    let answer = deliver(&mut there, 1, 22, &begin, 0).unwrap();
    let InitiatorStep::Send(reveal) = here.hear(answer) else { panic!("a reveal follows") };
    deliver(&mut there, 1, 0, &reveal, 0);
    let shown = &there.open(author(1)).expect("open").card;
    assert_eq!(shown.name.chars().count(), NAME_CHARS_MAX);
    assert!(!shown.name.contains('\n') && shown.addresses.len() <= ADDRESSES_MAX);
    let names = ["", "a b", "te\u{202E}am", "team\n", &"x".repeat(NAME_CHARS_MAX + 1)];
    for name in names {
        let one = initiator(3, 2, RequestedRole::Member(name.into()), 11).begin(card("a"));
        let refused = Some(SasResponse::Ended(AttemptEnd::BadWant));
        assert_eq!(deliver(&mut there, 3, 22, &one, 0), refused, "{name:?}");
    }
    let huge = SasRequest::Begin(
        here.commitment(),
        RequestedRole::Member("x".repeat(PAIR_FRAME_BYTES_MAX)),
        card(""),
    );
    assert!(SasRequest::decode(&huge.encode()).is_err());
}

#[test]
fn a_code_parses_with_and_without_a_space() {
    for text in ["012345", "012 345", "012-345", " 012 345 "] {
        assert_eq!(Code::parse(text), Some(Code(12_345)), "{text}");
    }
    for text in ["", "12345", "0123456", "01234x", "+12345", "０１２３４５"] {
        assert_eq!(Code::parse(text), None, "{text}");
    }
    assert_eq!(Code(12_345).to_string(), "012 345");
}
