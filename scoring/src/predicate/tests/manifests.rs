//! Tests of manifests: a lowest version, a declaration without a version, and no declaration.

use super::{Memory, judge};
use crate::predicate::AtomReason::{
    self, NoManifest, NoVersion, NotDeclared, NotUnderstood, OtherVersion,
};
use crate::predicate::manifest::{Ecosystem, LowestVersion, PackageManifest};

/// Lowest version of one package: a version, `?` if none is stated, `-` if not declared.
fn lowest(ecosystem: Ecosystem, text: &str, package: &str) -> String {
    let manifest = PackageManifest::read(ecosystem, text.as_bytes());
    let manifest = manifest.unwrap_or_else(|| panic!("not understood: {text}"));
    let Some(declared) = manifest.declared.get(package) else { return "-".to_owned() };
    let text = |lowest: &LowestVersion| lowest.as_ref().map_or("?".to_owned(), ToString::to_string);
    declared.iter().map(text).collect::<Vec<_>>().join(" ")
}

#[test]
fn cargo_ranges_have_a_lowest_version() {
    for (range, expect) in [
        ("1.40", "1.40"),
        ("1", "1"),
        ("0.3.1", "0.3.1"),
        ("^1.2.3", "1.2.3"),
        ("~1.2", "1.2"),
        ("=1.2.3", "1.2.3"),
        (">=1.2, <2", "1.2"),
        ("<2, >= 1.5", "1.5"),
        (">1.2.3", "1.2.4"),
        (">1.2", "1.3"),
        (">1", "2"),
        ("1.*", "1"),
        ("1.2.*", "1.2"),
        ("2.0.0-rc.1", "2.0.0-rc.1"),
        ("1.0.0-fix", "1.0.0-fix"),
        ("*", "?"),
        ("<2", "?"),
        ("<=2", "?"),
        (">1.0.0-rc.1", "?"),
        ("nonsense", "?"),
        ("", "?"),
    ] {
        let text = format!("[dependencies]\nx = \"{range}\"\n");
        assert_eq!(lowest(Ecosystem::Cargo, &text, "x"), expect, "{range}");
    }
}

#[test]
fn cargo_manifests_are_read_in_all_tables() {
    let text = r#"
        [dependencies]
        plain = "1.1"
        table = { version = "1.2", features = ["x"] }
        short = { package = "real", version = "1.3" }
        local = { path = "../local" }
        git = { git = "https://example.org/x", version = "1.4" }
        [dependencies.long]
        version = "1.5"
        [dev-dependencies]
        dev = "2"
        plain = "1.0.9"
        [build-dependencies]
        build = "3"
        [target.'cfg(unix)'.dependencies]
        unix = "4"
        [target.x86_64-pc-windows-msvc.dev-dependencies]
        windows = "5"
        [workspace.dependencies]
        shared = "6"
        other = { package = "renamed", version = "7" }
    "#;
    for (package, expect) in [
        ("plain", "1.1 1.0.9"),
        ("table", "1.2"),
        ("real", "1.3"),
        ("short", "-"),
        ("local", "?"),
        ("git", "1.4"),
        ("long", "1.5"),
        ("dev", "2"),
        ("build", "3"),
        ("unix", "4"),
        ("windows", "5"),
        ("shared", "6"),
        ("renamed", "7"),
        ("other", "-"),
        ("absent", "-"),
    ] {
        assert_eq!(lowest(Ecosystem::Cargo, text, package), expect, "{package}");
    }
}

#[test]
fn npm_ranges_have_a_lowest_version() {
    for (range, expect) in [
        ("18.2.0", "18.2.0"),
        ("v18.2.0", "18.2.0"),
        ("^18.2.0", "18.2.0"),
        ("~18.2", "18.2"),
        (">=16.8 <19", "16.8"),
        (">= 16.8.0 < 19", "16.8.0"),
        (">=16 || >=18", "16"),
        ("^18 || ^17.0.1", "17.0.1"),
        ("1.2 - 2.3.4", "1.2"),
        ("18.x", "18"),
        ("18.X.x", "18"),
        ("^18.x", "18"),
        (">18", "19"),
        ("1.2.3-beta.4", "1.2.3-beta.4"),
        ("*", "?"),
        ("x", "?"),
        ("", "?"),
        ("<19", "?"),
        ("^18 || *", "?"),
        ("latest", "?"),
        ("workspace:*", "?"),
        ("file:../x", "?"),
        ("git+https://example.org/x.git#v1.2.3", "?"),
        ("user/repository", "?"),
    ] {
        let text = format!("{{\"dependencies\": {{\"x\": \"{range}\"}}}}");
        assert_eq!(lowest(Ecosystem::Npm, &text, "x"), expect, "{range}");
    }
}

#[test]
fn npm_manifests_are_read_in_all_tables() {
    let text = r#"{
        "name": "it", "version": "9.9.9",
        "dependencies": {"a": "^1", "old": "npm:@scope/b@^2.1", "@scope/c": "3"},
        "devDependencies": {"d": "4"},
        "peerDependencies": {"a": ">=0.9"},
        "optionalDependencies": {"e": "5"}
    }"#;
    for (package, expect) in [
        ("a", "1 0.9"),
        ("@scope/b", "2.1"),
        ("old", "-"),
        ("@scope/c", "3"),
        ("d", "4"),
        ("e", "5"),
        ("it", "-"),
    ] {
        assert_eq!(lowest(Ecosystem::Npm, text, package), expect, "{package}");
    }
}

#[test]
fn python_requirements_have_a_lowest_version() {
    for (requirement, expect) in [
        ("x>=2.31", "2.31"),
        ("x >= 2.31, < 3", "2.31"),
        ("X~=2.31", "2.31"),
        ("x==2.31.0", "2.31.0"),
        ("x==2.31.*", "2.31"),
        ("x>2.31", "2.31.1"),
        ("x[socks,security]>=2.31", "2.31"),
        ("x (>=2.31)", "2.31"),
        ("x>=2.31; python_version < '3.12'", "2.31"),
        ("x>=2.31,!=2.31.5", "2.31"),
        ("x>=2.31,!=2.31.0", "?"),
        ("x>=2.0rc1", "2.0-rc.1"),
        ("x", "?"),
        ("x<3", "?"),
        ("x===2.31", "?"),
        ("x @ https://example.org/x-1.0.zip", "?"),
    ] {
        let text = format!("[project]\ndependencies = [\"{requirement}\"]\n");
        assert_eq!(lowest(Ecosystem::Pypi, &text, "x"), expect, "{requirement}");
    }
}

#[test]
fn python_manifests_are_read_in_both_formats() {
    let text = r#"
        [build-system]
        requires = ["setuptools>=61"]
        [project]
        name = "it"
        dependencies = ["Ruamel.YAML>=0.18", "httpx"]
        [project.optional-dependencies]
        fast = ["orjson~=3.9"]
        [dependency-groups]
        test = ["pytest>=8", { include-group = "lint" }]
        lint = ["ruff==0.5.0"]
        [tool.poetry.dependencies]
        python = "^3.11"
        django = "^4.2"
        flask = { version = "2.3.1", extras = ["async"] }
        click = { path = "../click" }
        numpy = [{ version = "^1.26", python = "<3.12" }, { version = "^2.0", python = ">=3.12" }]
        [tool.poetry.dev-dependencies]
        black = "24.1.0"
        [tool.poetry.group.docs.dependencies]
        mkdocs = "*"
    "#;
    for (package, expect) in [
        ("setuptools", "61"),
        ("ruamel-yaml", "0.18"),
        ("httpx", "?"),
        ("orjson", "3.9"),
        ("pytest", "8"),
        ("ruff", "0.5.0"),
        ("python", "3.11"),
        ("django", "4.2"),
        ("flask", "2.3.1"),
        ("click", "?"),
        ("numpy", "1.26 2.0"),
        ("black", "24.1.0"),
        ("mkdocs", "?"),
        ("it", "-"),
    ] {
        assert_eq!(lowest(Ecosystem::Pypi, text, package), expect, "{package}");
    }
}

#[test]
fn go_requires_a_lowest_version() {
    let text = "module example.org/it // the module\n\ngo 1.22\n\nrequire example.org/a v1.2.3\n\
        require (\n\texample.org/b/v2 v2.0.1 // indirect\n\t\"example.org/c\" v0.0.0-20230101120000-abcdefabcdef\n\
        \texample.org/d v1.0.0+incompatible\n\texample.org/e v1.5.0\n)\n\
        replace example.org/e => ../e\nreplace (\n\texample.org/a v1.0.0 => example.org/fork v1.0.1\n)\n\
        exclude example.org/f v1.0.0\nretract (\n\tv1.0.0\n)\n";
    for (package, expect) in [
        ("example.org/a", "?"),
        ("example.org/b/v2", "2.0.1"),
        ("example.org/c", "0.0.0-20230101120000-abcdefabcdef"),
        ("example.org/d", "1.0.0"),
        ("example.org/e", "?"),
        ("example.org/f", "-"),
    ] {
        assert_eq!(lowest(Ecosystem::Go, text, package), expect, "{package}");
    }
}

#[test]
fn invalid_manifests_are_refused() {
    for (ecosystem, text) in [
        (Ecosystem::Cargo, "[dependencies\n"),
        (Ecosystem::Cargo, "dependencies = 1\n"),
        (Ecosystem::Cargo, "[dependencies]\nx = 1\n"),
        (Ecosystem::Npm, "{"),
        (Ecosystem::Npm, "[]"),
        (Ecosystem::Npm, "{\"dependencies\": []}"),
        (Ecosystem::Npm, "{\"dependencies\": {\"x\": 1}}"),
        (Ecosystem::Pypi, "[project]\ndependencies = \"x\"\n"),
        (Ecosystem::Pypi, "[project]\ndependencies = [\">=1\"]\n"),
        (Ecosystem::Pypi, "[tool.poetry.dependencies]\nx = 1\n"),
        (Ecosystem::Go, ""),
        (Ecosystem::Go, "module x\nrequire y\n"),
        (Ecosystem::Go, "module x\nrequire y nonsense\n"),
        (Ecosystem::Go, "module x\nrequire (\n y v1.0.0\n"),
    ] {
        assert_eq!(PackageManifest::read(ecosystem, text.as_bytes()), None, "{text}");
    }
    assert_eq!(PackageManifest::read(Ecosystem::Npm, b"\xff"), None);
    assert_eq!(
        PackageManifest::read(Ecosystem::Npm, "\u{feff}{}".as_bytes()),
        Some(PackageManifest::default())
    );
    let deep = "[".repeat(100_000);
    assert_eq!(PackageManifest::read(Ecosystem::Npm, format!("{{\"x\": {deep}").as_bytes()), None);
    assert_eq!(PackageManifest::read(Ecosystem::Cargo, format!("x = {deep}").as_bytes()), None);
}

/// A workspace with a member that inherits, one that does not, and an invalid manifest.
fn workspace() -> Memory {
    Memory::of(&[
        (
            "Cargo.toml",
            "[workspace.dependencies]\ntokio = \"1.40\"\nweb = { package = \"axum\", version = \"0.8\" }\n",
        ),
        (
            "api/Cargo.toml",
            "[dependencies]\ntokio = { workspace = true }\nweb.workspace = true\nserde = \"1.0.200\"\n",
        ),
        ("cli/Cargo.toml", "[dependencies]\ntokio = \"1.20\"\nlocal = { path = \"../api\" }\n"),
        ("fixtures/bad/Cargo.toml", "{{ name }}"),
        ("web/package.json", "{\"dependencies\": {\"react\": \"^18.2\"}}"),
    ])
}

#[test]
fn a_dependency_holds_if_one_manifest_declares_a_matching_lowest_version() {
    let check = |text: &str, truth: &str, reasons: &[AtomReason]| {
        assert_eq!(judge(text, &workspace()), (truth, reasons.to_vec()), "{text}");
    };
    check("dep:cargo:tokio", "holds", &[]);
    check("dep:cargo:tokio>=1.40,<2", "holds", &[]);
    check("dep:cargo:tokio<1.30", "holds", &[]);
    check("dep:cargo:tokio>=1.40 in Cargo.toml", "holds", &[]);
    check("dep:cargo:tokio>=1.45 in Cargo.toml", "broken", &[OtherVersion]);
    check("dep:cargo:tokio>=1.40 in cli/Cargo.toml", "broken", &[OtherVersion]);
    check("dep:cargo:tokio>=1.40 in {api,cli}/Cargo.toml", "broken", &[NoManifest]);
    check("dep:cargo:tokio>=1.40 in ???/Cargo.toml", "holds", &[]);
    check("dep:cargo:axum^0.8 in api/Cargo.toml", "holds", &[]);
    check("dep:cargo:axum^0.7 in api/Cargo.toml", "broken", &[OtherVersion]);
    check("dep:cargo:web in api/Cargo.toml", "broken", &[NotDeclared]);
    check("dep:cargo:axum in cli/Cargo.toml", "broken", &[NotDeclared]);
    check("dep:cargo:serde>=1.0.200", "holds", &[]);
    check("dep:cargo:local", "holds", &[]);
    check("dep:cargo:local>=1 in cli/Cargo.toml", "unknown", &[NoVersion]);
    check("dep:cargo:rand", "unknown", &[NotUnderstood]);
    check("NOT dep:cargo:rand in */Cargo.toml", "holds", &[]);
    check("dep:npm:react^18", "holds", &[]);
    check("dep:npm:vue", "broken", &[NotDeclared]);
    check("dep:go:example.org/x", "broken", &[NoManifest]);
}
