//! `klnode generate service`: a unit that keeps a node running, for a person to install.
//!
//! The command installs nothing. It prints the unit, and on standard error the commands to install
//! it.

use super::{Reply, VerbError, as_text};
use klnode_integrations::client_config::Program;
use klnode_text::shell_quote;
use serde::Serialize;

/// The service manager.
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
struct Unit<'a> {
    kind: &'a str,
    unit: &'a str,
    install: [&'a str; 2],
}

/// The file of each unit, and the command that starts it.
const SYSTEMD_FILE: &str = "~/.config/systemd/user/klnode.service";
const SYSTEMD_START: &str =
    "systemctl --user daemon-reload && systemctl --user enable --now klnode";
const LAUNCHD_FILE: &str = "~/Library/LaunchAgents/io.klnode.node.plist";
const LAUNCHD_START: &str =
    "launchctl bootstrap gui/$(id -u) ~/Library/LaunchAgents/io.klnode.node.plist";

/// Prints the unit, and the commands to install it.
pub fn show(args: &Args, program: &Program) -> Result<Reply, VerbError> {
    let is_launchd = args.launchd || (cfg!(target_os = "macos") && !args.systemd);
    let (kind, unit, file, start) = match is_launchd {
        true => ("launchd", launchd(program)?, LAUNCHD_FILE, LAUNCHD_START),
        false => ("systemd", systemd(program)?, SYSTEMD_FILE, SYSTEMD_START),
    };
    let words = arguments(program, &["generate", "service", &format!("--{kind}")])?;
    let words: Vec<String> = words.iter().map(|word| shell_quote::word(word)).collect();
    let write = format!("mkdir -p $(dirname {file}) && {} > {file}", words.join(" "));
    let notes = format!("To install it:\n  {write}\n  {start}\n");
    let reply = Unit { kind, unit: &unit, install: [&write, start] };
    Ok(Reply::new(&reply, unit.clone()).with_notes(notes))
}

/// The command line of this program with the given words.
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

/// A word of a command line in a systemd unit, with `%`, `$`, `\` and quotes escaped.
fn unit_word(word: &str) -> String {
    let escaped =
        word.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%").replace('$', "$$");
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+,:@%=".contains(c);
    if escaped.chars().all(is_plain) { escaped } else { format!("\"{escaped}\"") }
}

/// Contains only settings that work without privileges; none needs a namespace of its own.
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
    fn special_characters_are_escaped() {
        assert_eq!(unit_word("/usr/bin/klnode"), "/usr/bin/klnode");
        assert_eq!(unit_word("/home/a b/100%/$x"), "\"/home/a b/100%%/$$x\"");
        assert_eq!(unit_word("a\\\"b"), "\"a\\\\\\\"b\"");
        let home = Some("/a <&> b".into());
        let program = Program { path: "/k".into(), home, config: None };
        assert!(launchd(&program).unwrap().contains("<string>/a &lt;&amp;&gt; b</string>"));
    }
}
