//! Golden bytes of every message. Changing one of these changes the wire format.

use super::message::{
    ErasureReceipt, Greeting, OutboxCursor, OutboxItem, SyncRequest, SyncResponse,
};
use super::pairing::{self, Card};
use super::sas::{self, RequestedRole};
use super::ticket::JoinOffer;
use klnode_crdt::equivocation::RawProof;
use klnode_crdt::ids::{AuthorId, Boot, Digest, EntryId, Nonce, StoreId, WorkspaceId};
use klnode_crdt::record::RawRecord;
use klnode_crdt::signing_key::Signature;
use klnode_crdt::time::WallTime;

fn greeting() -> Greeting {
    Greeting {
        version: 1,
        store: StoreId::from_bytes([1; 16]),
        epoch: Boot(2),
        head: 3,
        time: WallTime::from_millis(4),
    }
}

fn cursor() -> OutboxCursor {
    OutboxCursor { store: StoreId::from_bytes([1; 16]), epoch: Boot(2), position: 300 }
}

fn record() -> RawRecord {
    RawRecord { header: vec![5], signature: Signature::from_bytes([6; 64]), payload: Some(vec![7]) }
}

fn asks() -> [SyncRequest; 7] {
    let receipt = ErasureReceipt { entry: EntryId::from_bytes([8; 16]), told: 2, acknowledged: 1 };
    [
        SyncRequest::Hello(greeting()),
        SyncRequest::Changes(None, 10),
        SyncRequest::Changes(Some(cursor()), 10),
        SyncRequest::Fetch(vec![Digest::from_bytes([9; 32])]),
        SyncRequest::Notify(300),
        SyncRequest::Compare(true, vec![0x61]),
        SyncRequest::Acknowledge(vec![receipt]),
    ]
}

fn items() -> Vec<OutboxItem> {
    let entry = EntryId::from_bytes([8; 16]);
    let headers = (vec![1].into(), vec![2].into());
    let proof = RawProof {
        headers,
        signatures: (Signature::from_bytes([3; 64]), Signature::from_bytes([4; 64])),
    };
    let stripped = RawRecord { payload: None, ..record() };
    vec![
        OutboxItem::Named(0, Digest::from_bytes([9; 32])),
        OutboxItem::Whole(1, record()),
        OutboxItem::Whole(2, stripped),
        OutboxItem::First(0, record()),
        OutboxItem::Opened(vec![entry, entry]),
        OutboxItem::Ended(vec![entry]),
        OutboxItem::Proof(Box::new(proof)),
    ]
}

fn answers() -> [SyncResponse; 8] {
    [
        SyncResponse::Hello(greeting()),
        SyncResponse::Page(items(), cursor(), true),
        SyncResponse::UnknownCursor,
        SyncResponse::Records(vec![record()]),
        SyncResponse::Compare(Vec::new()),
        SyncResponse::Done,
        SyncResponse::Later(1_000),
        SyncResponse::Refused("no".into()),
    ]
}

fn card() -> Card {
    Card { name: "here".into(), addresses: vec!["/ip4/192.0.2.1/tcp/1".into()] }
}

/// Renders bytes as hex, with a run of one byte written once with its length.
fn shown(bytes: &[u8]) -> String {
    let mut text = String::new();
    let mut rest = bytes;
    while let Some(first) = rest.first() {
        let count = rest.iter().take_while(|byte| *byte == first).count();
        match count {
            0..4 => text.push_str(&format!("{first:02x}").repeat(count)),
            _ => text.push_str(&format!("({first:02x}*{count})")),
        }
        rest = &rest[count..];
    }
    text
}

const ASKS: [&str; 7] = [
    "81a568656c6c6f85a17601a173c410(01*16)a16502a16803a17404",
    "81a76368616e67657392c00a",
    "81a76368616e6765739283a173c410(01*16)a16502a170cd012c0a",
    "81a5666574636891c420(09*32)",
    "81a66e6f74696679cd012c",
    "81a7636f6d7061726592c3c40161",
    "81a361636b9183a165c410(08*16)a16e02a16d01",
];

const ANSWERS: [&str; 8] = [
    "81a568656c6c6f85a17601a173c410(01*16)a16502a16803a17404",
    "81a470616765939781a16e9200c420(09*32)81a172920193c40105c440(06*64)c4010781a172920293c40105c440(06*64)c081a166920093c40105c440(06*64)c4010781a16f92c410(08*16)c410(08*16)81a17891c410(08*16)81a17182a16892c40101c40102a17392c440(03*64)c440(04*64)83a173c410(01*16)a16502a170cd012cc3",
    "a7756e6b6e6f776e",
    "81a77265636f7264739193c40105c440(06*64)c40107",
    "81a7636f6d70617265c400",
    "a4646f6e65",
    "81a56c61746572cd03e8",
    "81a26e6fa26e6f",
];

const PAIRING: [&str; 5] = [
    "81a46a6f696e94c410(01*16)c410(02*16)c420(03*32)82a16ea468657265a16d91b42f6970342f3139322e302e322e312f7463702f31",
    "81a56b6e6f636b82a16ea468657265a16d91b42f6970342f3139322e302e322e312f7463702f31",
    "81a777656c636f6d6593c420(04*32)82a16ea468657265a16d91b42f6970342f3139322e302e322e312f7463702f31c3",
    "81a47761697482a16ea468657265a16d91b42f6970342f3139322e302e322e312f7463702f31",
    "81a26e6fa26e6f",
];

#[test]
fn requests_have_golden_bytes_and_round_trip() {
    let bytes = asks().map(|ask| ask.encode());
    assert_eq!(bytes.each_ref().map(|bytes| shown(bytes)), ASKS);
    assert_eq!(bytes.map(|bytes| SyncRequest::decode(&bytes).unwrap()), asks());
}

#[test]
fn answers_have_golden_bytes_and_round_trip() {
    let bytes = answers().map(|answer| answer.encode());
    assert_eq!(bytes.each_ref().map(|bytes| shown(bytes)), ANSWERS);
    assert_eq!(bytes.map(|bytes| SyncResponse::decode(&bytes).unwrap()), answers());
}

#[test]
fn the_pairing_exchange_has_golden_bytes() {
    let nonce = Nonce::from_bytes([2; 16]);
    let asks = [
        pairing::PairRequest::Join([1; 16].into(), nonce, [3; 32].into(), card()),
        pairing::PairRequest::Knock(card()),
    ];
    let answers = [
        pairing::PairResponse::Welcome([4; 32].into(), card(), true),
        pairing::PairResponse::Wait(card()),
        pairing::PairResponse::No("no".into()),
    ];
    let asked = asks.iter().map(|ask| shown(&ask.encode()));
    let all: Vec<String> = asked.chain(answers.iter().map(|one| shown(&one.encode()))).collect();
    assert_eq!(all, PAIRING);
    for ask in asks {
        assert_eq!(pairing::PairRequest::decode(&ask.encode()), Ok(ask));
    }
    for answer in answers {
        assert_eq!(pairing::PairResponse::decode(&answer.encode()), Ok(answer));
    }
}

fn parties() -> sas::Parties {
    let [initiator, responder] = [1, 2].map(|byte| AuthorId::from_bytes([byte; 32]));
    sas::Parties { initiator, responder, want: RequestedRole::Member("team".into()) }
}

const JOINING: [&str; 9] = [
    "81a5626567696e93c42079c4db2cb497ed485051d9d1627288df423a03879af5925f2d579767a58798cd81a66d656d626572a47465616d82a16ea468657265a16d91b42f6970342f3139322e302e322e312f7463702f31",
    "81a672657665616c92c42079c4db2cb497ed485051d9d1627288df423a03879af5925f2d579767a58798cdc420(03*32)",
    "81a4706f6c6c92c42079c4db2cb497ed485051d9d1627288df423a03879af5925f2d579767a58798cdc3",
    "81a663616e63656c92c42079c4db2cb497ed485051d9d1627288df423a03879af5925f2d579767a58798cda4636f6465",
    "81a56e6f6e636592c420(04*32)a57468657265",
    "81a770656e64696e67c2",
    "81a66a6f696e65649281a66d656d62657292c410(05*16)a47465616d82a16ea468657265a16d91b42f6970342f3139322e302e322e312f7463702f31",
    "81a66a6f696e656492c082a16ea468657265a16d91b42f6970342f3139322e302e322e312f7463702f31",
    "81a5656e646564a772656675736564",
];

#[test]
fn joining_by_address_has_golden_bytes_and_round_trips() {
    let commitment = parties().commitment(&[3; 32].into());
    let asks = [
        sas::SasRequest::Begin(commitment, RequestedRole::Member("team".into()), card()),
        sas::SasRequest::Reveal(commitment, [3; 32].into()),
        sas::SasRequest::Poll(commitment, true),
        sas::SasRequest::Cancel(commitment, sas::AttemptEnd::WrongCode),
    ];
    let offer = JoinOffer::Member(WorkspaceId::from_bytes([5; 16]), "team".into());
    let answers = [
        sas::SasResponse::Nonce([4; 32].into(), "there".into()),
        sas::SasResponse::Pending(false),
        sas::SasResponse::Joined(Some(offer), card()),
        sas::SasResponse::Joined(None, card()),
        sas::SasResponse::Ended(sas::AttemptEnd::Refused),
    ];
    let asked = asks.iter().map(|ask| shown(&ask.encode()));
    let all: Vec<String> = asked.chain(answers.iter().map(|one| shown(&one.encode()))).collect();
    assert_eq!(all, JOINING);
    for ask in asks {
        let wrapped = pairing::PairRequest::Sas(sas::VERSION, ask.encode().into());
        assert_eq!(pairing::PairRequest::decode(&wrapped.encode()), Ok(wrapped));
        assert_eq!(sas::SasRequest::decode(&ask.encode()), Ok(ask));
    }
    for answer in answers {
        assert_eq!(sas::SasResponse::decode(&answer.encode()), Ok(answer));
    }
}

#[test]
fn the_digits_of_joining_by_address_are_golden() {
    let code = parties().code(&[3; 32].into(), &[4; 32].into());
    assert_eq!(code.to_string(), "865 295");
}

const OFFERING: [&str; 5] = [
    "81a56f666665729201a86b6c6e6f64653178",
    "81a76465636c696e659201c410(01*16)",
    "81a37361739201c40107",
    "a56865617264",
    "81a3736173c40107",
];

#[test]
fn offers_have_golden_bytes_and_round_trip() {
    let asks = [
        pairing::PairRequest::Offer(pairing::OFFER_VERSION, "klnode1x".into()),
        pairing::PairRequest::Decline(pairing::OFFER_VERSION, [1; 16].into()),
        pairing::PairRequest::Sas(sas::VERSION, vec![7].into()),
    ];
    let answers = [pairing::PairResponse::Heard, pairing::PairResponse::Sas(vec![7].into())];
    let asked = asks.iter().map(|ask| shown(&ask.encode()));
    let all: Vec<String> = asked.chain(answers.iter().map(|one| shown(&one.encode()))).collect();
    assert_eq!(all, OFFERING);
    for ask in asks {
        assert_eq!(pairing::PairRequest::decode(&ask.encode()), Ok(ask));
    }
    for answer in answers {
        assert_eq!(pairing::PairResponse::decode(&answer.encode()), Ok(answer));
    }
}

#[test]
fn a_truncated_frame_never_decodes() {
    for ask in asks() {
        let bytes = ask.encode();
        for end in 0..bytes.len() {
            assert!(SyncRequest::decode(&bytes[..end]).is_err(), "{ask:?} cut at {end}");
        }
    }
    for answer in answers() {
        let bytes = answer.encode();
        for end in 0..bytes.len() {
            assert!(SyncResponse::decode(&bytes[..end]).is_err(), "{answer:?} cut at {end}");
        }
    }
}
