//! Words of the world: components, libraries, files, conventions, symptoms and remedies.

pub(super) const COMPONENTS: [&str; 20] = [
    "billing service",
    "ledger",
    "api gateway",
    "job scheduler",
    "mailer",
    "document indexer",
    "file uploader",
    "session store",
    "rate limiter",
    "report builder",
    "csv importer",
    "push notifier",
    "search proxy",
    "audit log",
    "feature flags",
    "image resizer",
    "webhook relay",
    "token issuer",
    "cache warmer",
    "payment bridge",
];

pub(super) const LIBRARIES: [&str; 20] = [
    "tokio", "serde", "hyper", "sqlx", "reqwest", "axum", "tonic", "prost", "rustls", "tracing",
    "clap", "diesel", "redis", "rayon", "chrono", "regex", "uuid", "bytes", "tower", "lettre",
];

/// Things with the file that they live in.
pub(super) const THINGS: [(&str, &str); 14] = [
    ("retry policy", "retry.rs"),
    ("database migrations", "migrate.rs"),
    ("configuration loader", "settings.rs"),
    ("error types", "errors.rs"),
    ("request validation", "validate.rs"),
    ("metrics registry", "metrics.rs"),
    ("connection pool", "pool.rs"),
    ("feature switches", "switches.rs"),
    ("permission checks", "permissions.rs"),
    ("serialization of events", "events.rs"),
    ("integration fixtures", "fixtures.rs"),
    ("command line parser", "arguments.rs"),
    ("shutdown handling", "shutdown.rs"),
    ("background queue", "queue.rs"),
];

/// Practices with the styles that a team may agree on.
pub(super) const PRACTICES: [(&str, [&str; 5]); 12] = [
    (
        "error handling",
        [
            "return a typed error enum",
            "wrap errors with anyhow context",
            "map errors to problem details",
            "log and return a status code",
            "panic early and restart",
        ],
    ),
    (
        "test names",
        [
            "write them as one plain fact",
            "prefix them with test_",
            "name them given_when_then",
            "number them by ticket",
            "group them by module",
        ],
    ),
    (
        "commit subjects",
        [
            "use area: verb",
            "use conventional commits",
            "start with the ticket number",
            "use the past tense",
            "squash them by release",
        ],
    ),
    (
        "database access",
        [
            "go through the repository layer",
            "write plain SQL in queries files",
            "use the query builder",
            "call stored procedures",
            "use the object mapper",
        ],
    ),
    (
        "pagination of lists",
        [
            "use opaque cursors",
            "use offset and limit",
            "use page numbers",
            "stream all rows",
            "use keyset tokens",
        ],
    ),
    (
        "time stamps",
        [
            "store UTC milliseconds",
            "store RFC 3339 strings",
            "store local time with zone",
            "store seconds since epoch",
            "store a monotonic tick",
        ],
    ),
    (
        "log fields",
        [
            "use snake_case keys",
            "use dotted keys",
            "use camelCase keys",
            "log JSON objects only",
            "use key=value text",
        ],
    ),
    (
        "feature rollout",
        [
            "guard it by a flag per tenant",
            "use a percentage rollout",
            "deploy to a canary first",
            "release behind a branch",
            "enable it in the config file",
        ],
    ),
    (
        "secret handling",
        [
            "read them from the vault agent",
            "mount them as files",
            "pass them by environment",
            "use workload identity",
            "ask the operator at start",
        ],
    ),
    (
        "retries of remote calls",
        [
            "back off with jitter",
            "retry three times at once",
            "let the queue redeliver",
            "fail fast without retry",
            "use a circuit breaker",
        ],
    ),
    (
        "code review",
        [
            "ask one owner of the folder",
            "ask two reviewers",
            "review after the merge",
            "pair on the change",
            "use the review rota",
        ],
    ),
    (
        "schema changes",
        [
            "expand first and contract later",
            "lock the table at night",
            "write a new table and copy",
            "use online migration tooling",
            "version the column names",
        ],
    ),
];

pub(super) const SYMPTOMS: [&str; 16] = [
    "connection reset by peer under load",
    "requests hang for thirty seconds",
    "memory grows until the process is killed",
    "duplicate rows after a retry",
    "the nightly job stops half way",
    "timeouts after a deployment",
    "certificate verification failed",
    "permission denied while writing the export",
    "deadlock detected in the database",
    "stale data shown to customers",
    "too many open files",
    "the build runs out of disk space",
    "flaky integration tests",
    "messages are delivered twice",
    "slow start after a reboot",
    "checksum mismatch of uploaded parts",
];

pub(super) const REMEDIES: [&str; 16] = [
    "raise the pool size to forty",
    "disable keep-alive on the load balancer",
    "run the vacuum before the import",
    "pin the worker count to four",
    "clear the shared cache and restart",
    "renew the intermediate certificate",
    "switch the queue to manual acknowledgement",
    "lower the batch size to two hundred",
    "turn off prefetching in the client",
    "mount the scratch volume on the fast disk",
    "set the idle timeout to ten seconds",
    "rebuild the secondary index",
    "take the advisory lock first",
    "move the job to the second region",
    "enable compression of large bodies",
    "drop the unused trigger",
];
