//! Ways to carry what a machine holds to someone else.

use crate::scan::rule::{Check, Pattern, Reading, Rule};
use crate::scan::{Axis, Severity};

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "send-secrets",
        axis: Axis::Exfiltration,
        severity: Severity::High,
        what: "tells the reader to send secrets somewhere",
        pattern: Pattern {
            reading: Reading::Words,
            hints: &[
                "send",
                "post",
                "upload",
                "forward",
                "email",
                "mail",
                "transmit",
                "exfiltrate",
                "leak",
                "copy",
                "deliver",
                "submit",
                "append",
                "encode",
                "include",
            ],
            expression: concat!(
                "(?:send|post|upload|forward|e?mail|transmit|exfiltrate|leak|copy|deliver|submit|append|encode|include) (?:(?:me|us|out|over|along) )?",
                "(?:(?:all|any|every|the|your|users?|their|its|his|full|entire|complete|contents?|content|of|values?|local|found|stored|production|this|machines?|and) ){0,6}",
                "(?:secrets?|credentials?|passwords?|api keys?|access tokens?|tokens|env(?:ironment)? (?:file|variables?|vars)|env|ssh keys?|private keys?|conversation(?: history)?|chat history|system prompt|source code|cookies|keychain|home directory|config files?|aws keys?|wallets?)",
                "(?: (?:you (?:can )?find|files?|and [a-z ]{1,30}|found [a-z ]{1,20}|in [a-z ]{1,30}|from [a-z ]{1,30}|as [a-z0-9 ]{1,20}|base64 encoded)){0,2}",
                " (?:to|at|via|into|in) (?:(?:the|this|my|our|an?|following|external|remote) ){0,3}",
                "(?:https?(?:[ .]|$)|ftp|webhook|attacker|url|server at|endpoint at|(?:e?mail )?address|pastebin|gist|telegram|discord|dns)"
            ),
            check: Check::Any,
        },
    },
    Rule {
        name: "upload-secret-file",
        axis: Axis::Exfiltration,
        severity: Severity::High,
        what: "a command that uploads a file of secrets",
        pattern: Pattern {
            reading: Reading::Raw,
            hints: &["curl", "wget", "scp ", "rsync", "nc ", "ncat "],
            expression: concat!(
                r"(?i)(?:curl[^\n|]{1,160}(?:-d|-F|-T|--data[a-z-]{0,12}|--form|--upload-file)[ =]?[^\n|]{0,80}(?:\.ssh/|id_rsa|id_ed25519|\.aws/credentials|\.env\b|\.netrc|\.npmrc|\.pypirc|\.git-credentials|/etc/passwd|/etc/shadow|\.kube/config|\.docker/config|\.gnupg)",
                r"|wget[^\n|]{1,160}--(?:post|body)-file[ =][^\n|]{0,80}(?:\.ssh/|id_rsa|id_ed25519|\.aws/credentials|\.env\b|\.netrc|\.npmrc|\.pypirc|\.git-credentials|/etc/passwd|/etc/shadow|\.kube/config|\.docker/config|\.gnupg)",
                r"|(?:scp|rsync) [^\n|]{0,60}(?:\.ssh/|id_rsa|id_ed25519|\.aws/credentials|\.env\b|\.netrc|\.npmrc|\.pypirc|\.git-credentials|/etc/passwd|/etc/shadow|\.kube/config|\.docker/config|\.gnupg)[^\n|]{0,40} [a-z0-9._-]{1,40}@[a-z0-9.-]{1,60}:",
                r"|(?:nc|ncat) [^\n|]{1,60}< ?[^\n|]{0,40}(?:\.ssh/|id_rsa|id_ed25519|\.aws/credentials|\.env\b|\.netrc|\.npmrc|\.pypirc|\.git-credentials|/etc/passwd|/etc/shadow|\.kube/config|\.docker/config|\.gnupg))"
            ),
            check: Check::Any,
        },
    },
    Rule {
        name: "pipe-secrets-out",
        axis: Axis::Exfiltration,
        severity: Severity::High,
        what: "a command that pipes secrets to the network",
        pattern: Pattern {
            reading: Reading::Raw,
            hints: &[
                "cat ",
                "env",
                "printenv",
                "tar ",
                "base64 ",
                "history",
                "gpg ",
                "security find-",
            ],
            expression: concat!(
                r"(?i)(?:(?:cat|tar|base64)\s[^\n|]{0,80}(?:\.ssh/|id_rsa|id_ed25519|\.aws/credentials|\.env\b|\.netrc|\.npmrc|\.pypirc|\.git-credentials|/etc/passwd|/etc/shadow|\.kube/config|\.docker/config|\.gnupg)[^\n|]{0,40}|(?:env|printenv|history)\s{0,3}",
                r"|gpg [^\n|]{0,30}--export-secret-keys[^\n|]{0,30}|security find-[^\n|]{1,60})",
                r"(?:\|[^\n|]{1,60}){0,3}\|\s{0,3}(?:curl|nc|ncat|wget|socat|telnet|openssl s_client|mail|sendmail)\b"
            ),
            check: Check::Any,
        },
    },
    Rule {
        name: "substituted-secret",
        axis: Axis::Exfiltration,
        severity: Severity::High,
        what: "a request that is filled from a file of secrets or the environment",
        pattern: Pattern {
            reading: Reading::Raw,
            hints: &[
                "curl",
                "wget",
                "dig ",
                "nslookup",
                "ping ",
                "host ",
                "fetch(",
                "requests.",
                "invoke-webrequest",
            ],
            expression: concat!(
                r"(?i)(?:(?:curl|wget|invoke-webrequest)[^\n]{1,200}(?:\$\(|`)\s{0,2}(?:(?:cat|base64|head|tail|xxd)\s[^\n)`]{0,60}(?:\.ssh/|id_rsa|id_ed25519|\.aws/credentials|\.env\b|\.netrc|\.npmrc|\.pypirc|\.git-credentials|/etc/passwd|/etc/shadow|\.kube/config|\.docker/config|\.gnupg)|env\b|printenv|history)",
                r"|(?:dig|nslookup|ping|host)\s[^\n]{0,40}(?:\$\(|`)[^\n)`]{1,80}[)`]\.[a-z0-9-]{1,40}\.[a-z]{2,10}",
                r"|(?:fetch\(|requests\.(?:post|get|put)\()[^\n]{1,120}(?:process\.env\)|dict\(os\.environ|os\.environ\)|document\.cookie|open\([^\n)]{0,40}(?:\.ssh/|id_rsa|id_ed25519|\.aws/credentials|\.env\b|\.netrc|\.npmrc|\.pypirc|\.git-credentials|/etc/passwd|/etc/shadow|\.kube/config|\.docker/config|\.gnupg)))"
            ),
            check: Check::Any,
        },
    },
    Rule {
        name: "image-beacon",
        axis: Axis::Exfiltration,
        severity: Severity::High,
        what: "a picture whose address carries what the reader knows",
        pattern: Pattern {
            reading: Reading::Raw,
            hints: &["![", "<img"],
            expression: concat!(
                r#"(?i)(?:!\[[^\]\n]{0,80}\]\(|<img[^>\n]{1,40}src=["']?)https?://[^\s)"'>]{1,160}[?&=/](?:\{\{?|\$\{|<|%7B|\[)"#,
                r#"\s{0,2}[^\s)"'>]{0,20}(?:secret|token|data|conversation|context|history|prompt|env|key|password|message|content|summary|base64)"#
            ),
            check: Check::Any,
        },
    },
    Rule {
        name: "drop-site",
        axis: Axis::Exfiltration,
        severity: Severity::Medium,
        what: "the address of a service that collects whatever is sent to it",
        pattern: Pattern {
            reading: Reading::Raw,
            hints: &[
                "webhook.site/",
                "requestbin",
                "burpcollaborator.net",
                "oastify.com",
                "interact.sh",
                "oast.",
                "pipedream.net",
                "canarytokens.com",
                "requestcatcher.com",
                "beeceptor.com",
            ],
            expression: concat!(
                r"(?i)(?:webhook\.site/[a-z0-9-]{6,40}|requestbin\.(?:com|net|io)/|burpcollaborator\.net|oastify\.com|interact\.sh(?:[/:\s)]|$)",
                r"|oast\.(?:pro|live|site|fun|me|online)|pipedream\.net|canarytokens\.com/|requestcatcher\.com|beeceptor\.com)"
            ),
            check: Check::Any,
        },
    },
];
