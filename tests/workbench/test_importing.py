"""Files checked before they are imported: pieces, problems, and doubtful values."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

pytest.importorskip("panel", reason="needs the workbench extra")

from steelyard.client.tables import read_lines
from steelyard.imports.encodings import Source
from steelyard_workbench.parts.datasets.files import (
    check_lines,
    name_of,
    remarks_on,
    show_left_out,
)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b'{"context": "a"}\n{"context": "b"}\n', ""),
        (b'{"context": "a"}\n' * 3, "2 lines are repeated, and are left out."),
        (b'{"context": " "}\n\n', "1 row has an empty text."),
    ],
    ids=["nothing", "twice", "an empty context"],
)
def test_ambiguous_columns_are_mentioned(data, told):
    assert remarks_on(data.splitlines(keepends=True)) == told


def test_a_long_file_is_looked_at_in_pieces_and_its_lines_are_those_of_the_file(monkeypatch):
    sent = []

    def send(call):
        sent.append(call)
        detail = {"path": ["body", "examples", 0, "context"], "message": "Line 1: <b> *is* wrong."}
        given = {"lines": 1, "rows": 0, "method": None, "code": "invalid_example", "message": ""}
        return SimpleNamespace(**given, details=[detail])

    made = read_lines(Source("a.jsonl", b'\n{"context": "a"}\n' * 75))
    monkeypatch.setattr(
        "steelyard_workbench.parts.datasets.files.pieces_of",
        lambda lines: iter([SimpleNamespace(data=line, start=n) for n, line in enumerate(lines)]),
    )
    check = check_lines(SimpleNamespace(send=send), made)
    assert (len(sent), check.n_good, check.n_refused) == (150, 0, 150)
    refused = made.refused_by_server
    assert (refused[99].place, refused[99].reason) == ("line 100", "<b> *is* wrong.")
    shown, _ = show_left_out(made, refused, 150)
    assert "&lt;b> \\*is\\* wrong" in shown.object
    assert name_of("plain") == "plain"
