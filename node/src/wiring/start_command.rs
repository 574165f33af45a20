//! How the node is started that a verb was to find: a line that can be pasted into a shell.

use super::home::Home;
use crate::cli::Global;
use crate::query::shell;

/// The command, with the home, the file and the keys that were given, so that it opens the socket at
/// which the verb has looked.
pub(super) fn of(global: &Global) -> String {
    let set = global.set.iter().map(|assignment| format!(" --set {}", shell::word(assignment)));
    program(global) + &set.collect::<String>()
}

/// The program, with what every verb needs to find the node.
pub(super) fn program(global: &Global) -> String {
    let mut words = vec!["klnode".to_owned()];
    let home = Home::resolve(global.home.clone()).ok();
    // Without a current folder there is nothing better than what was typed.
    let home = home.and_then(|home| home.unusual().unwrap_or_else(|_| global.home.clone()));
    let config = global
        .config
        .as_deref()
        .map(|path| std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf()));
    for (flag, path) in [("--home", home), ("--config", config)] {
        words.extend(path.map(|path| format!("{flag} {}", shell::path(&path))));
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
    fn what_was_given_is_given_again_and_a_shell_reads_it_as_it_was() {
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
    fn a_home_whose_name_is_no_text_is_made_by_the_shell() {
        let home = Path::new(OsStr::from_bytes(b"/srv/k\xE9 100%'s"));
        let global = Global { home: Some(home.into()), ..global("", &[]) };
        assert_eq!(
            super::of(&global),
            r#"klnode --home "$(printf %b '/srv/k\0351\0040100\0045\0047s')""#
        );
    }

    #[test]
    fn a_home_that_was_typed_from_the_current_folder_is_found_from_any() {
        let here = std::env::current_dir().unwrap();
        let expected = format!("klnode --home {}", shell::path(&here.join("second")));
        assert_eq!(super::of(&global("second", &[])), expected);
    }
}
