"""Reads the licence of held-out Debian packages' own packaging, where their descriptions are written.

    python licences.py --work DIR      reads DIR/debian, writes DIR/debian/licences.tsv

A description is part of `debian/control`; `debian/copyright` says under which licence `debian/*` is.
Only packages that name a permissive one may enter an evaluation set. Downloads the smallest package of
each held-out source package and checks its sha256 against the signed index.
"""

import argparse
import hashlib
import io
import lzma
import re
import subprocess
import tarfile
import urllib.request
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pairs import split_of, stanzas

PACKAGE_BYTES_MAX = 400_000
PERMISSIVE = re.compile(
    r"(expat|mit|mit/x11|bsd-?[23]?(-clause)?|apache-2(\.0)?|isc|zlib|cc0(-1\.0)?|public-domain|boost.*|bsl-1\.0|0bsd|unlicense)"
)


def smallest_packages(index):
    """(source, package, path, sha256) of the smallest package of each held-out source package."""
    best = {}
    for one in stanzas(index):
        source, size = one.get("Source", one["Package"]).split(" ")[0], int(one["Size"])
        if split_of(f"debian:{source}") != "train" and size < best.get(source, (PACKAGE_BYTES_MAX,))[0]:
            best[source] = size, one["Package"], one["Filename"], one["SHA256"]
    return [(source, *rest) for source, (_, *rest) in sorted(best.items())]


def member(archive, prefix):
    """The bytes of the member of an `ar` archive whose name starts so."""
    at = 8
    while at + 60 <= len(archive):
        name, size = archive[at : at + 16].decode("ascii", "replace"), int(archive[at + 48 : at + 58])
        if name.startswith(prefix):
            return archive[at + 60 : at + 60 + size]
        at += 60 + size + size % 2
    raise KeyError(prefix)


def licence_of(copyright_text):
    """The licence named for `debian/*`, or else for `*`, in a machine-readable copyright file."""
    found = {}
    for stanza in re.split(r"\n\s*\n", copyright_text):
        files = re.search(r"^Files:(.*?)(?=^\S)", stanza + "\nX", re.M | re.S)
        licence = re.search(r"^License:[ \t]*(\S.*)?$", stanza, re.M)
        if files and licence:
            for pattern in files.group(1).split():
                found[pattern] = (licence.group(1) or "").strip()
    return found.get("debian/*") or found.get("*") or ""


def permissive(licence):
    """`Expat or GPL-2+` is: one may choose. `Expat and GPL-2+` is not."""
    return any(PERMISSIVE.fullmatch(one.strip()) for one in re.split(r"\bor\b|\|", licence.lower()))


def one(job):
    mirror, (source, package, path, digest) = job
    try:
        data = urllib.request.urlopen(f"{mirror}/{path}", timeout=60).read()
    except OSError:
        return source, "unavailable"
    if hashlib.sha256(data).hexdigest() != digest:
        return source, "mismatch"
    try:
        with tarfile.open(fileobj=io.BytesIO(member(data, "data.tar"))) as files:
            text = files.extractfile(f"./usr/share/doc/{package}/copyright").read().decode("utf-8", "replace")
    except (KeyError, AttributeError, tarfile.TarError, lzma.LZMAError):
        return source, "unreadable"
    return source, licence_of(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    folder = parser.parse_args().work / "debian"
    mirror = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", "Codename: bookworm", "Component: main"],
        capture_output=True, text=True, check=True,
    ).stdout.split()[0].rstrip("/")
    jobs = [(mirror, job) for job in smallest_packages(folder / "Packages")]
    with ThreadPoolExecutor(6) as pool:
        rows = sorted(set(pool.map(one, jobs)))
    lines = [f"{source}\t{licence}\n" for source, licence in rows if permissive(licence)]
    (folder / "licences.tsv").write_text("".join(lines))
    print(Counter(licence for _, licence in rows).most_common(12))
    print(len(jobs), "looked at,", len(lines), "permissive")


if __name__ == "__main__":
    main()
