//! The command that starts the node that a verb looked for, as a line for a shell.

use super::home::Home;
use klnode_cli::Global;
use klnode_text::shell_quote;

/// The command with the given home, file and settings, so that the node opens the socket that the
/// verb looked for.
pub(super) fn of(global: &Global) -> String {
    let set =
        global.set.iter().map(|assignment| format!(" --set {}", shell_quote::word(assignment)));
    program(global) + &set.collect::<String>()
}

/// The program with the flags that every verb needs to find the node.
pub(super) fn program(global: &Global) -> String {
    let mut words = vec!["klnode".to_owned()];
    let home = Home::resolve(global.home.clone()).ok();
    // Without a current folder the path is used as given.
    let home = home.and_then(|home| home.explicit_path().unwrap_or_else(|_| global.home.clone()));
    let config = global
        .config
        .as_deref()
        .map(|path| std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf()));
    for (flag, path) in [("--home", home), ("--config", config)] {
        words.extend(path.map(|path| format!("{flag} {}", shell_quote::path(&path))));
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;

    fn global(home: &str, set: &[&str]) -> Global {
        Global {
            home: Some(home.into()),
            config: None,
            set: set.iter().map(|&one| one.to_owned()).collect(),
            log: None,
            passphrase_file: None,
            json: false,
        }
    }

    #[test]
    fn given_flags_are_repeated_and_quoted_for_a_shell() {
        let of = |home: &str, set: &[&str]| super::of(&global(home, set));
        assert_eq!(of("/srv/klnode", &[]), "klnode --home /srv/klnode");
        assert_eq!(of("/srv/it's mine", &[]), r"klnode --home '/srv/it'\''s mine'");
        let keys = ["trust.hop_max=2", "log.level=\"warn\""];
        assert_eq!(
            of("/srv/k", &keys),
            "klnode --home /srv/k --set trust.hop_max=2 --set 'log.level=\"warn\"'"
        );
    }

    #[test]
    fn a_home_that_is_not_utf8_is_quoted_with_printf() {
        let home = Path::new(OsStr::from_bytes(b"/srv/k\xE9 100%'s"));
        let global = Global { home: Some(home.into()), ..global("", &[]) };
        assert_eq!(
            super::of(&global),
            r#"klnode --home "$(printf %b '/srv/k\0351\0040100\0045\0047s')""#
        );
    }

    #[test]
    fn a_relative_home_becomes_absolute() {
        let here = std::env::current_dir().unwrap();
        let expected = format!("klnode --home {}", shell_quote::path(&here.join("second")));
        assert_eq!(super::of(&global("second", &[])), expected);
    }
}
