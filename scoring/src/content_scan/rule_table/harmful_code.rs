//! Commands and code that do harm when an agent runs them.

use crate::content_scan::rule_definition::{ScanPattern, ScanRule, TextForm, ValueCheck};
use crate::content_scan::{ScanAxis, Severity};

pub(super) const RULES: &[ScanRule] = &[
    ScanRule {
        name: "reverse-shell",
        axis: ScanAxis::Code,
        severity: Severity::High,
        what: "a shell handed to someone else",
        pattern: ScanPattern {
            reading: TextForm::Raw,
            hints: &["/dev/tcp/", "nc ", "ncat ", "socat ", "socket.socket", "mkfifo", "fsockopen"],
            expression: concat!(
                r"(?i)(?:/dev/tcp/[^\s/]{1,60}/[0-9$]{1,5}[^\n]{0,20}(?:0>&1|<&|>&|2>&1|\|)",
                r"|(?:nc|ncat)\s[^\n|]{0,60}-[a-z]{0,4}[ec]\s{1,2}(?:/bin/|/usr/bin/)?(?:(?:ba",
                r"|z|da|k)?sh\b|cmd)",
                r"|socat\s[^\n]{0,80}exec:[^\n]{0,20}sh\b",
                r"|socket\.socket[^\n]{1,200}dup2[^\n]{1,120}(?:/bin/(?:ba|z)?sh|pty\.spawn",
                "|subprocess)",
                r"|mkfifo\s[^\n]{1,80}\|\s{0,2}(?:/bin/)?(?:ba|z)?sh[^\n]{1,60}\|\s{0,2}nc",
                r"|fsockopen\([^\n]{1,80}(?:exec|shell_exec|proc_open)\()"
            ),
            check: ValueCheck::Any,
        },
    },
    ScanRule {
        name: "decode-and-run",
        axis: ScanAxis::Code,
        severity: Severity::High,
        what: "code that is decoded and run unread",
        pattern: ScanPattern {
            reading: TextForm::Raw,
            hints: &["base64", "eval(", "exec(", "powershell", "pwsh", "xxd ", "iex"],
            expression: concat!(
                r"(?i)(?:base64\s{1,3}(?:-d|--decode)[^\n|]{0,60}\|\s{0,3}(?:sudo )?(?:(?:ba|z",
                r"|da)?sh|python[0-9.]{0,4}|perl|ruby|node)\b",
                r"|(?:eval|exec)\(\s{0,3}(?:compile\()?(?:__import__\(.base64.\)\.|base64\.",
                r"|codecs\.|zlib\.decompress\(|atob\(|base64_decode\(|gzinflate\(",
                r"|Buffer\.from\()",
                r"|(?:powershell|pwsh)(?:\.exe)?\s[^\n]{0,80}-e(?:nc|ncodedcommand",
                r"|c)?\s{1,2}[A-Za-z0-9+/=]{16}",
                r"|xxd\s{1,2}-r[^\n|]{0,40}\|\s{0,3}(?:ba|z)?sh\b",
                r"|iex\s{0,2}\(?\s{0,2}\(?(?:new-object|iwr|irm|invoke-webrequest))"
            ),
            check: ValueCheck::Any,
        },
    },
    ScanRule {
        name: "pipe-to-shell",
        axis: ScanAxis::Code,
        severity: Severity::Medium,
        what: "a download that is run unread",
        pattern: ScanPattern {
            reading: TextForm::Raw,
            hints: &["curl", "wget", "fetch ", "bash <(", "sh <(", "source <("],
            expression: concat!(
                r"(?i)(?:(?:ba|z)?sh|source) <\((?:curl|wget)\s|(?i)(?:curl|wget|fetch)\s[^\n",
                r"|]{1,200}\|\s{0,3}(?:sudo\s{1,2}(?:-[A-Z]{1,2}\s)?)?(?:/bin/",
                r"|/usr/bin/)?(?:env\s)?",
                r"(?:(?:ba|z|da|k|fi)?sh|python[0-9.]{0,4}|perl|node)\b"
            ),
            check: ValueCheck::Any,
        },
    },
    ScanRule {
        name: "wipe-files",
        axis: ScanAxis::Code,
        severity: Severity::Medium,
        what: "a command that deletes a home or a whole system",
        pattern: ScanPattern {
            reading: TextForm::Raw,
            hints: &["rm ", "--no-preserve-root", "rmdir /s", "rd /s", "find /", "shutil.rmtree("],
            expression: concat!(
                r#"(?i)(?:rm\s{1,3}(?:-[a-z-]{1,20}\s{1,3}){1,3}["']?(?:/|~|\$HOME|\$\{HOME\}"#,
                r#"|/home|/etc|/usr|/var)/?\*?["']?(?:[\s;&|`)"',]|\.\s|\.?$)"#,
                r"|--no-preserve-root|r(?:m)?d(?:ir)?\s/s\s",
                r#"(?:/q\s)?c:\\|find\s/\s[^\n]{0,40}-delete|shutil\.rmtree\(["'](?:/|~)["'])"#
            ),
            check: ValueCheck::Any,
        },
    },
    ScanRule {
        name: "overwrite-disk",
        axis: ScanAxis::Code,
        severity: Severity::Medium,
        what: "a command that overwrites a disk",
        pattern: ScanPattern {
            reading: TextForm::Raw,
            hints: &["dd ", "mkfs", "> /dev/", ">/dev/", "wipefs", "shred "],
            expression: concat!(
                r"(?i)(?:dd\s[^\n]{0,80}of=/dev/(?:sd|hd|nvme|disk|mmcblk|vd|xvd)",
                r"|mkfs(?:\.[a-z0-9]{2,6})?\s[^\n]{0,40}/dev/(?:sd|hd|nvme|mmcblk|vd|xvd)",
                r"|>\s?/dev/(?:sd|hd|nvme|mmcblk|vd)[a-z0-9]|wipefs\s[^\n]{0,20}/dev/",
                r"|shred\s[^\n]{0,40}/dev/(?:sd|hd|nvme|vd))"
            ),
            check: ValueCheck::Any,
        },
    },
    ScanRule {
        name: "fork-bomb",
        axis: ScanAxis::Code,
        severity: Severity::Medium,
        what: "a process that multiplies until nothing else runs",
        pattern: ScanPattern {
            reading: TextForm::Raw,
            hints: &[":(){", ":() {", "while true; do", "while True: os.fork()", "%0|%0"],
            expression: concat!(
                r"(?i)(?::\(\)\s?\{\s?:\s?\|\s?:\s?&\s?\}\s?;\s?:|%0\|%0",
                r"|while true; do [^\n]{1,20} & done|while True: os\.fork\(\))"
            ),
            check: ValueCheck::Any,
        },
    },
    ScanRule {
        name: "persist-access",
        axis: ScanAxis::Code,
        severity: Severity::Medium,
        what: "a command that makes a way back in",
        pattern: ScanPattern {
            reading: TextForm::Raw,
            hints: &["crontab", "ld_preload", "echo ", "tee ", "cat "],
            expression: concat!(
                r"(?i)(?:(?:echo|cat)\s[^\n]{0,240}>>?\s{0,2}[^\n\s]{0,60}",
                r"(?:\.ssh/authorized_keys|/etc/sudoers|/etc/cron[a-z.]{0,8}/",
                r"|/etc/ld\.so\.preload)",
                r"|tee\s[^\n]{0,40}(?:\.ssh/authorized_keys|/etc/sudoers|/etc/cron)",
                r"|crontab\s[^\n]{0,10}-\s{0,2}<<|crontab[^\n]{0,40}(?:curl|wget)",
                "|ld_preload=/tmp/)"
            ),
            check: ValueCheck::Any,
        },
    },
    ScanRule {
        name: "bidi-override",
        axis: ScanAxis::Code,
        severity: Severity::Medium,
        what: "direction marks that show code in another order than it runs",
        pattern: ScanPattern {
            reading: TextForm::Raw,
            hints: &[
                "\u{202A}", "\u{202B}", "\u{202D}", "\u{202E}", "\u{2066}", "\u{2067}", "\u{2068}",
            ],
            expression: r"\xE2(?:\x80[\xAA\xAB\xAD\xAE]|\x81[\xA6-\xA8])",
            check: ValueCheck::Any,
        },
    },
    ScanRule {
        name: "checks-off",
        axis: ScanAxis::Code,
        severity: Severity::Low,
        what: "turns off a check: certificates, host keys, hooks, signatures",
        pattern: ScanPattern {
            reading: TextForm::Raw,
            hints: &[
                "verify=False",
                "verify = False",
                "NODE_TLS_REJECT_UNAUTHORIZED",
                "InsecureSkipVerify",
                "StrictHostKeyChecking",
                "--no-verify",
                "curl ",
                "http.sslVerify",
                "danger_accept_invalid_certs",
                "--no-gpg-check",
                "rejectUnauthorized",
                "--insecure-skip",
            ],
            expression: concat!(
                "(?i)",
                r#"(?:verify ?= ?False|NODE_TLS_REJECT_UNAUTHORIZED["']?\]?\s{0,2}[:=]\s{0,2}["']"#,
                r"?0|InsecureSkipVerify:\s{0,2}true",
                r"|StrictHostKeyChecking[ =]no|--no-verify\b|curl\s(?:[^\n",
                r"|]{0,80}\s)?(?:(?-i:-k)\s|--insecure)|http\.sslVerify[ =]false",
                r"|danger_accept_invalid_certs\(true|--no-gpg-check",
                r"|rejectUnauthorized:\s{0,2}false|--insecure-skip-tls-verify)"
            ),
            check: ValueCheck::Any,
        },
    },
    ScanRule {
        name: "open-permissions",
        axis: ScanAxis::Code,
        severity: Severity::Low,
        what: "lets everyone write",
        pattern: ScanPattern {
            reading: TextForm::Raw,
            hints: &["chmod", "0o777", "umask"],
            expression: concat!(
                r"(?i)(?:chmod\s{1,2}(?:-[a-z]{1,4}\s{1,2})?(?:0?777|a\+rwx|ugo\+rwx|o\+w",
                r"|a\+w)\b|0o777\b|umask\s{1,2}0{1,4}\b)"
            ),
            check: ValueCheck::Any,
        },
    },
    ScanRule {
        name: "eval-input",
        axis: ScanAxis::Code,
        severity: Severity::Low,
        what: "runs what comes from outside",
        pattern: ScanPattern {
            reading: TextForm::Raw,
            hints: &["eval(", "exec(", "os.system(", "pickle.loads(", "Function("],
            expression: concat!(
                r"(?i)(?:(?:eval|exec|Function)\(\s{0,2}(?:input\(|request\.|req\.|params",
                r"|sys\.argv|location\.|window\.name|event\.data|\$_(?:GET|POST|REQUEST))",
                r"|os\.system\(\s{0,2}(?:input\(|request\.|sys\.argv|f.[^\n)]{0,60}\{)",
                r"|pickle\.loads\(\s{0,2}(?:request|data|body|payload|socket|conn))"
            ),
            check: ValueCheck::Any,
        },
    },
];
