//! `klnode service`: what tells the system to keep a node running, for a person to install.
//!
//! Nothing is installed here: the unit is printed, and beside it the commands that install it.

use super::{Reply, VerbError, as_text};
use crate::query::shell;
use crate::surface::connect::Program;
use serde::Serialize;

/// For which system.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A systemd user unit [default on Linux].
    #[arg(long, conflicts_with = "launchd")]
    pub systemd: bool,
    /// A launchd agent [default on macOS].
    #[arg(long)]
    pub launchd: bool,
}

#[derive(Serialize)]
struct Told<'a> {
    kind: &'a str,
    unit: &'a str,
    install: [&'a str; 2],
}

/// Where each goes, and what starts it.
const SYSTEMD_FILE: &str = "~/.config/systemd/user/klnode.service";
const SYSTEMD_START: &str =
    "systemctl --user daemon-reload && systemctl --user enable --now klnode";
const LAUNCHD_FILE: &str = "~/Library/LaunchAgents/io.klnode.node.plist";
const LAUNCHD_START: &str =
    "launchctl bootstrap gui/$(id -u) ~/Library/LaunchAgents/io.klnode.node.plist";

/// The unit, and how to install it.
pub fn show(args: &Args, program: &Program) -> Result<Reply, VerbError> {
    let is_launchd = args.launchd || (cfg!(target_os = "macos") && !args.systemd);
    let (kind, unit, file, start) = match is_launchd {
        true => ("launchd", launchd(program)?, LAUNCHD_FILE, LAUNCHD_START),
        false => ("systemd", systemd(program)?, SYSTEMD_FILE, SYSTEMD_START),
    };
    let words = arguments(program, &["service", &format!("--{kind}")])?;
    let words: Vec<String> = words.iter().map(|word| shell::word(word)).collect();
    let write = format!("mkdir -p $(dirname {file}) && {} > {file}", words.join(" "));
    let notes = format!("To install it:\n  {write}\n  {start}\n");
    let told = Told { kind, unit: &unit, install: [&write, start] };
    Ok(Reply::new(&told, unit.clone()).noting(notes))
}

/// How the program is called, with this verb.
fn arguments(program: &Program, verb: &[&str]) -> Result<Vec<String>, VerbError> {
    let mut arguments = vec![as_text(&program.path)?.to_owned()];
    for (flag, path) in [("--home", &program.home), ("--config", &program.config)] {
        if let Some(path) = path {
            arguments.extend([flag.to_owned(), as_text(path)?.to_owned()]);
        }
    }
    arguments.extend(verb.iter().map(|&word| word.to_owned()));
    Ok(arguments)
}

/// A word of a command line in a unit, in which `%`, `$`, `\` and quotes have a meaning.
fn unit_word(word: &str) -> String {
    let escaped =
        word.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%").replace('$', "$$");
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+,:@%=".contains(c);
    if escaped.chars().all(is_plain) { escaped } else { format!("\"{escaped}\"") }
}

/// Only lines that work without privileges: what would need a namespace of its own is left out.
fn systemd(program: &Program) -> Result<String, VerbError> {
    let words: Vec<String> =
        arguments(program, &["serve"])?.iter().map(|word| unit_word(word)).collect();
    Ok(format!(
        "[Unit]\n\
         Description=klnode, which remembers what coding agents learn\n\
         \n\
         [Service]\n\
         Type=exec\n\
         ExecStart={}\n\
         Restart=on-failure\n\
         RestartSec=5\n\
         TimeoutStopSec=30\n\
         UMask=0077\n\
         NoNewPrivileges=yes\n\
         LockPersonality=yes\n\
         MemoryDenyWriteExecute=yes\n\
         RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK\n\
         RestrictNamespaces=yes\n\
         RestrictRealtime=yes\n\
         RestrictSUIDSGID=yes\n\
         SystemCallArchitectures=native\n\
         SystemCallFilter=@system-service\n\
         SystemCallErrorNumber=EPERM\n\
         \n\
         [Install]\n\
         WantedBy=default.target\n",
        words.join(" ")
    ))
}

fn launchd(program: &Program) -> Result<String, VerbError> {
    let escape =
        |word: &String| word.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let words = arguments(program, &["serve"])?;
    let words = words.iter().map(|word| format!("    <string>{}</string>\n", escape(word)));
    Ok(format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \
         \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n\
         <plist version=\"1.0\">\n\
         <dict>\n\
         \x20 <key>Label</key>\n\
         \x20 <string>io.klnode.node</string>\n\
         \x20 <key>ProgramArguments</key>\n\
         \x20 <array>\n{}\
         \x20 </array>\n\
         \x20 <key>RunAtLoad</key>\n\
         \x20 <true/>\n\
         \x20 <key>KeepAlive</key>\n\
         \x20 <dict>\n\
         \x20   <key>SuccessfulExit</key>\n\
         \x20   <false/>\n\
         \x20 </dict>\n\
         \x20 <key>ProcessType</key>\n\
         \x20 <string>Background</string>\n\
         \x20 <key>Umask</key>\n\
         \x20 <integer>63</integer>\n\
         </dict>\n\
         </plist>\n",
        words.collect::<String>()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_with_a_meaning_of_their_own_are_escaped() {
        assert_eq!(unit_word("/usr/bin/klnode"), "/usr/bin/klnode");
        assert_eq!(unit_word("/home/a b/100%/$x"), "\"/home/a b/100%%/$$x\"");
        assert_eq!(unit_word("a\\\"b"), "\"a\\\\\\\"b\"");
        let home = Some("/a <&> b".into());
        let program = Program { path: "/k".into(), home, config: None };
        assert!(launchd(&program).unwrap().contains("<string>/a &lt;&amp;&gt; b</string>"));
    }
}
