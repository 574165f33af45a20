"""Sample entries, tasks and peers that the page checks and the screenshots of the guide show."""

ENTRIES = [
    dict(title="Run migrations before the worker starts", type="lesson", tags=["deploy", "database"],
         content="The worker caches table layouts at start. Start it after `just migrate` has finished, or it fails with "
                 "`column does not exist` on the first job.\n\nSeen twice in staging. The health check does not notice, "
                 "because it only opens a connection.",
         evidence=["commit:4f2a91c", "doc:runbooks/deploy.md"], decay_class="stable"),
    dict(title="The retry budget of the payment client is three", type="lesson", tags=["payments", "http"],
         content="A fourth attempt is never sent: the gateway counts attempts per order and locks the order for ten "
                 "minutes. Keep `RETRY_MAX` at 3 in `client/payment.rs`.", evidence=["doc:gateway-contract.pdf"]),
    dict(title="Use UTC dates in report file names", type="norm", tags=["reports"],
         content="Reports are named by UTC day. Local days made two files for one day at the switch to summer time.",
         evidence=["url:https://tracker.example/1182"], decay_class="stable"),
    dict(title="Flaky test: session_expiry depends on the clock", type="finding", tags=["tests", "auth/session"],
         content="The test fails between 23:59:58 and midnight. Inject the clock instead of reading it.",
         evidence=["test:session_expiry"], verify_steps=["cargo test session_expiry"],
         anchors=["text:tests/session.rs~\"SystemTime::now\""]),
    dict(title="Spike: replace the JSON parser with simd-json", type="spike", tags=["performance", "parsing"],
         content="Throughput rose from 310 to 420 MB/s on the sample, but 90 % of the request time is spent in the database. "
                 "Not worth the unsafe code.", evidence=["run:bench-2026-10"], outcome="rejected"),
    dict(title="Feature flags are read once per process", type="lesson", tags=["config", "deploy"],
         content="A changed flag takes effect after a restart. `flags::reload` exists but no caller uses it.",
         evidence=["file:src/flags.rs"]),
    dict(title="The search index rebuilds in eleven minutes", type="experience", tags=["search", "operations"],
         content="Measured on the production copy with 2.1 million documents. Searches stay available during the rebuild.",
         evidence=["run:rebuild-2026-09-30"]),
    dict(title="Never log the body of a webhook", type="norm", tags=["security", "webhooks"],
         content="Webhook bodies contain customer names. Log the event id and the size.", evidence=["doc:privacy-7"],
         decay_class="permanent"),
    dict(title="Database pool size is 20 per worker", type="lesson", tags=["database"],
         content="Postgres allows 200 connections; eight workers with 20 each leave room for migrations and people.",
         evidence=["file:deploy/pgbouncer.ini"]),
    dict(title="Pool size of the database is 50 per worker", type="lesson", tags=["database"],
         content="With 50 connections per worker the queue never waits.", evidence=["commit:99ab120"]),
    dict(title="Always run migrations before the worker starts", type="lesson", tags=["deploy", "database"],
         content="The worker caches table layouts at start. Start it after `just migrate` has finished, or it fails with "
                 "`column does not exist` on the first job.", evidence=["commit:4f2a91c"]),
    dict(title="Cache keys include the tenant id", type="lesson", tags=["cache", "security"],
         content="A key without the tenant showed one customer the prices of another. `cache::key` adds the tenant; do not "
                 "build keys by hand.", evidence=["doc:incidents/2026-08-14.md"], decay_class="stable"),
    dict(title="Docker builds need --network=host behind the proxy", type="lesson", tags=["build", "docker"],
         content="Without it apt cannot resolve the mirror. CI sets it in `.ci/build`.", evidence=["file:.ci/build"]),
]

TASKS = [
    ("Fix the failing deploy of the billing worker", "claude-code", "success", [0, 8]),
    ("Add retries to the payment client", "codex", "success", [1]),
    ("Make the report job idempotent", "claude-code", "failure", [2]),
    ("Find out why the cache mixes tenants", "gemini-cli", "success", [11]),
]

STRATEGY = "bisect"
"""Two verified entries that say the opposite."""
OPPOSITES = [
    dict(title="Always vacuum the events table after a bulk import", type="lesson", tags=["database", "events"],
         content="The planner misjudges the table otherwise.", evidence=["doc:runbooks/import.md"], polarity="positive"),
    dict(title="Never vacuum the events table after a bulk import", type="lesson", tags=["database", "events"],
         content="The lock stops the consumers for minutes.", evidence=["doc:incidents/2026-09-02.md"], polarity="negative"),
]
EPISODE = dict(title="The nightly import ran out of disk", type="signal", memory="episodic", tags=["imports"],
               content="The temporary files of two imports filled the volume.", evidence=["run:nightly-81"])
EQUAL = [
    dict(title="Staging uses its own mail sandbox", content="No mail leaves staging.", evidence=[source])
    for source in ["doc:staging.md", "doc:mail.md"]
]
OUTDATED = dict(title="The wiki moves next week", content="Copy drafts first.", tags=["wiki-move"], evidence=["doc:wiki.md"])
HELD_HOST = "db1.prod.internal"
"""An entry that discloses the name of a host to the other members."""
HELD = dict(title="Slow reports come from the replica", type="lesson", tags=["reports"],
            content=f"Ask {HELD_HOST} for the replication lag first.", evidence=["doc:reports.md"])

GOALS = {
    0: "Deploy the billing worker to staging", 2: "Name the weekly reports", 3: "Make the session tests stable",
    7: "Log failed webhooks", 9: "Tune the database pool", 11: "Cache the price list",
}

FINDINGS = [
    ("high", 0.9, "The refund handler ignores the idempotency key, so a repeated request refunds twice."),
    ("medium", 0.6, "The nightly export holds a table lock for four minutes."),
]


def fill(node):
    """Writes the entries, tasks and findings of an ordinary week, and returns the created entries."""
    made = [node.post("/v1/entries", entry) for entry in ENTRIES]
    for goal, agent, outcome, used in TASKS:
        task = node.post("/v1/tasks", dict(agent=agent, goal=goal))["task"]
        node.call("POST", "/v1/search", dict(query=goal, task=task), client=agent)
        for index in used:
            entry = ENTRIES[index]["title"]
            node.call("POST", "/v1/search", dict(query=entry, task=task), client=agent)
        codes = [made[index]["code"] for index in used]
        said = dict(used=codes) if outcome == "success" else dict(dismissed=codes)
        # The last task names no strategy.
        if goal != TASKS[-1][0]:
            said |= dict(strategy=STRATEGY if used[0] < 2 else "rewrite", rounds=4, quality=0.75 if outcome == "success" else 0.2)
        node.post(f"/v1/tasks/{task}/finish", dict(outcome=outcome, **said))
    for outcome, indexes in [("success", [0, 0, 0, 2, 7, 11]), ("failure", [3, 9])]:
        for index in indexes:
            task = node.post("/v1/tasks", dict(agent="claude-code", goal=GOALS[index]))["task"]
            body = dict(outcome=outcome, task=task)
            node.post(f"/v1/entries/{made[index]['code']}/observations", body)
            node.post(f"/v1/tasks/{task}/finish", dict(outcome=outcome))
    for entry in [node.post("/v1/entries", entry) for entry in OPPOSITES]:
        for number in range(4):
            task = node.post("/v1/tasks", dict(agent="codex", goal=f"Import batch {number}"))["task"]
            node.post(f"/v1/entries/{entry['code']}/observations", dict(outcome="success", task=task))
            node.post(f"/v1/tasks/{task}/finish", dict(outcome="success"))
    node.post("/v1/entries", EPISODE)
    task = node.post("/v1/tasks", dict(agent="claude-code", goal="Review the refund service"))["task"]
    for severity, confidence, text in FINDINGS:
        finding = dict(severity=severity, confidence=confidence, text=text, anchors=['text:src/refund.rs~"refund"'],
                       verify=["Read refund.rs"])
        node.post(f"/v1/tasks/{task}/findings", finding)
    return made


def pair(first, second, workspace):
    """Makes the second node a member of a workspace of the first node."""
    ticket = first.post("/v1/invitations", dict(workspace=workspace))["ticket"]
    second.post("/v1/join", dict(target=ticket))


SHARED = [
    dict(title="Deploy freezes start on Thursday at noon", type="lesson", tags=["deploy", "team"],
         content="Merges after noon wait until Monday.", evidence=["doc:runbooks/freeze.md"]),
    dict(title="Old staging host names", type="lesson", tags=["team"],
         content="staging-1 and staging-2 are gone since October.", evidence=["doc:hosts.md"]),
    dict(title="Review checklist for database changes", type="lesson", tags=["database", "team"],
         content="Lock time, rollback, and the size of the table.", evidence=["doc:review.md"]),
]
FIRST_VERSION = "Merges after noon wait until Monday. A release manager can lift the freeze in the release channel."
SECOND_VERSION = "Merges after 13:00 wait until Monday, because the last pipeline of the day takes an hour."


def share(node):
    """Writes the entries of the shared workspace."""
    return [node.post("/v1/entries", dict(entry, workspace="team")) for entry in SHARED]


PLAYBOOK = """# How we release

Merge freeze starts at noon. Tell support.

## Steps

1. Run `just release-check`.
2. Tag the commit.

## Rollback

Deploy the last tag again.
"""
# The node refuses texts with a token.
SECRET = "ghp_" + "a1B2c3D4e" * 4
PLAYBOOK_STEP = "3. Watch the error rate for ten minutes."


def edit_playbook(node, code, old, new):
    """Replaces a part of the present text of a playbook."""
    read = node.get(f"/v1/playbooks/{code}")
    assert old in read["text"], read["text"]
    node.call("PATCH", f"/v1/playbooks/{code}", dict(version=read["version"], text=read["text"].replace(old, new)))


def write_playbook(node):
    """Writes a playbook with two edits after its first text, and returns its code."""
    code = node.post("/v1/playbooks", dict(title="How we release", text=PLAYBOOK))["code"]
    edit_playbook(node, code, "the last tag again.", "the last tag again, then open an incident.")
    edit_playbook(node, code, "2. Tag the commit.\n", f"2. Tag the commit.\n{PLAYBOOK_STEP}\n")
    return code
