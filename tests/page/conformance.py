"""Ties a check of the page to a statement of docs/conformance.md."""

import pathlib

STATEMENTS = pathlib.Path(__file__).parent.parent / "fixtures" / "statements.tsv"


def conforms(statement):
    """States that the check which calls this proves the statement with this id.

    `tests/suite/conformance.rs` compares the calls with the table.
    """
    ids = {line.split("\t")[0] for line in STATEMENTS.read_text().splitlines()}
    assert statement in ids, f"there is no statement {statement}; see {STATEMENTS}"
