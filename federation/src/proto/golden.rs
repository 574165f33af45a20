//! The bytes of every message: changing one of these is a decision about the wire.

use super::message::{Answer, Ask, Cursor, Greeting, Item, Receipt};
use super::pairing::{self, Card};
use super::sas::{self, Want};
use super::ticket::Offer;
use klnode_crdt::equivocation::RawProof;
use klnode_crdt::ids::{AuthorId, Boot, Digest, EntryId, Nonce, StoreId, WorkspaceId};
use klnode_crdt::key::Signature;
use klnode_crdt::record::RawRecord;
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

fn cursor() -> Cursor {
    Cursor { store: StoreId::from_bytes([1; 16]), epoch: Boot(2), position: 300 }
}

fn record() -> RawRecord {
    RawRecord { header: vec![5], signature: Signature::from_bytes([6; 64]), payload: Some(vec![7]) }
}

fn asks() -> [Ask; 7] {
    let receipt = Receipt { entry: EntryId::from_bytes([8; 16]), told: 2, acknowledged: 1 };
    [
        Ask::Hello(greeting()),
        Ask::Changes(None, 10),
        Ask::Changes(Some(cursor()), 10),
        Ask::Fetch(vec![Digest::from_bytes([9; 32])]),
        Ask::Notify(300),
        Ask::Compare(true, vec![0x61]),
        Ask::Acknowledge(vec![receipt]),
    ]
}

fn items() -> Vec<Item> {
    let entry = EntryId::from_bytes([8; 16]);
    let headers = (vec![1].into(), vec![2].into());
    let proof = RawProof {
        headers,
        signatures: (Signature::from_bytes([3; 64]), Signature::from_bytes([4; 64])),
    };
    let stripped = RawRecord { payload: None, ..record() };
    vec![
        Item::Named(0, Digest::from_bytes([9; 32])),
        Item::Whole(1, record()),
        Item::Whole(2, stripped),
        Item::First(0, record()),
        Item::Opened(vec![entry, entry]),
        Item::Ended(vec![entry]),
        Item::Proof(Box::new(proof)),
    ]
}

fn answers() -> [Answer; 8] {
    [
        Answer::Hello(greeting()),
        Answer::Page(items(), cursor(), true),
        Answer::UnknownCursor,
        Answer::Records(vec![record()]),
        Answer::Compare(Vec::new()),
        Answer::Done,
        Answer::Later(1_000),
        Answer::Refused("no".into()),
    ]
}

fn card() -> Card {
    Card { name: "here".into(), addresses: vec!["/ip4/192.0.2.1/tcp/1".into()] }
}

/// Long runs of one byte are written once, with how often they come.
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
fn questions_have_these_bytes_and_read_back() {
    let bytes = asks().map(|ask| ask.encode());
    assert_eq!(bytes.each_ref().map(|bytes| shown(bytes)), ASKS);
    assert_eq!(bytes.map(|bytes| Ask::decode(&bytes).unwrap()), asks());
}

#[test]
fn answers_have_these_bytes_and_read_back() {
    let bytes = answers().map(|answer| answer.encode());
    assert_eq!(bytes.each_ref().map(|bytes| shown(bytes)), ANSWERS);
    assert_eq!(bytes.map(|bytes| Answer::decode(&bytes).unwrap()), answers());
}

#[test]
fn the_pairing_exchange_has_these_bytes() {
    let nonce = Nonce::from_bytes([2; 16]);
    let asks = [
        pairing::Ask::Join([1; 16].into(), nonce, [3; 32].into(), card()),
        pairing::Ask::Knock(card()),
    ];
    let answers = [
        pairing::Answer::Welcome([4; 32].into(), card(), true),
        pairing::Answer::Wait(card()),
        pairing::Answer::No("no".into()),
    ];
    let asked = asks.iter().map(|ask| shown(&ask.encode()));
    let all: Vec<String> = asked.chain(answers.iter().map(|one| shown(&one.encode()))).collect();
    assert_eq!(all, PAIRING);
    for ask in asks {
        assert_eq!(pairing::Ask::decode(&ask.encode()), Ok(ask));
    }
    for answer in answers {
        assert_eq!(pairing::Answer::decode(&answer.encode()), Ok(answer));
    }
}

fn parties() -> sas::Parties {
    let [initiator, responder] = [1, 2].map(|byte| AuthorId::from_bytes([byte; 32]));
    sas::Parties { initiator, responder, want: Want::Member("team".into()) }
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
fn joining_by_address_has_these_bytes_and_reads_back() {
    let commitment = parties().commitment(&[3; 32].into());
    let asks = [
        sas::Ask::Begin(commitment, Want::Member("team".into()), card()),
        sas::Ask::Reveal(commitment, [3; 32].into()),
        sas::Ask::Poll(commitment, true),
        sas::Ask::Cancel(commitment, sas::End::WrongCode),
    ];
    let offer = Offer::Member(WorkspaceId::from_bytes([5; 16]), "team".into());
    let answers = [
        sas::Answer::Nonce([4; 32].into(), "there".into()),
        sas::Answer::Pending(false),
        sas::Answer::Joined(Some(offer), card()),
        sas::Answer::Joined(None, card()),
        sas::Answer::Ended(sas::End::Refused),
    ];
    let asked = asks.iter().map(|ask| shown(&ask.encode()));
    let all: Vec<String> = asked.chain(answers.iter().map(|one| shown(&one.encode()))).collect();
    assert_eq!(all, JOINING);
    for ask in asks {
        let wrapped = pairing::Ask::Sas(sas::VERSION, ask.encode().into());
        assert_eq!(pairing::Ask::decode(&wrapped.encode()), Ok(wrapped));
        assert_eq!(sas::Ask::decode(&ask.encode()), Ok(ask));
    }
    for answer in answers {
        assert_eq!(sas::Answer::decode(&answer.encode()), Ok(answer));
    }
}

#[test]
fn digits_of_joining_by_address_stay_the_same() {
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
fn offers_to_a_peer_have_these_bytes_and_read_back() {
    let asks = [
        pairing::Ask::Offer(pairing::OFFER_VERSION, "klnode1x".into()),
        pairing::Ask::Decline(pairing::OFFER_VERSION, [1; 16].into()),
        pairing::Ask::Sas(sas::VERSION, vec![7].into()),
    ];
    let answers = [pairing::Answer::Heard, pairing::Answer::Sas(vec![7].into())];
    let asked = asks.iter().map(|ask| shown(&ask.encode()));
    let all: Vec<String> = asked.chain(answers.iter().map(|one| shown(&one.encode()))).collect();
    assert_eq!(all, OFFERING);
    for ask in asks {
        assert_eq!(pairing::Ask::decode(&ask.encode()), Ok(ask));
    }
    for answer in answers {
        assert_eq!(pairing::Answer::decode(&answer.encode()), Ok(answer));
    }
}

#[test]
fn a_frame_that_is_cut_short_never_reads_as_another() {
    for ask in asks() {
        let bytes = ask.encode();
        for end in 0..bytes.len() {
            assert!(Ask::decode(&bytes[..end]).is_err(), "{ask:?} cut at {end}");
        }
    }
    for answer in answers() {
        let bytes = answer.encode();
        for end in 0..bytes.len() {
            assert!(Answer::decode(&bytes[..end]).is_err(), "{answer:?} cut at {end}");
        }
    }
}
