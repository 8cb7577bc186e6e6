"""Files that are looked at before they are imported: pieces, problems, and what may be meant otherwise."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

pytest.importorskip("panel", reason="needs the workbench extra")

from steelyard_workbench.datasets.importing import (
    FileCheck,
    check_file,
    name_of,
    problem_text,
    remarks_on,
)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b'{"context": "a"}\n{"context": "b"}\n', ""),
        (b'{"context": "a"}\n' * 3, "2 lines are there already, and are left out."),
        (b'{"context": " "}\n\n', "1 row has an empty context."),
    ],
    ids=["nothing", "twice", "an empty context"],
)
def test_what_may_be_meant_otherwise_is_mentioned(data, told):
    assert remarks_on(data) == told


def test_a_long_file_is_looked_at_in_pieces_and_its_lines_are_those_of_the_file(monkeypatch):
    sent = []

    def send(call):
        sent.append(call)
        detail = {"path": ["body", "examples", 0, "context"], "message": "Line 1: wrong."}
        return SimpleNamespace(
            lines=1,
            rows=0,
            problems=1,
            method=None,
            code="invalid_example",
            message="",
            details=[detail],
        )

    monkeypatch.setattr("steelyard.client.row_sources.PIECE_BYTES", 20)
    monkeypatch.setattr(
        "steelyard_workbench.datasets.importing.pieces_of",
        lambda data: iter([SimpleNamespace(data=b"{}\n", start=n) for n in range(150)]),
    )
    check = check_file(SimpleNamespace(send=send), b"")
    assert (len(sent), check.n_problems, len(check.problems)) == (150, 150, 100)
    assert check.problems[99] == "Line 100: wrong."
    assert "… and 50 more." in problem_text(check)


def test_what_a_file_holds_is_not_read_as_markup():
    told = problem_text(FileCheck(1, 0, 1, ("Line 1: <b> *is* wrong",), None))
    assert "&lt;b> \\*is\\* wrong" in told
    assert name_of("plain") == "plain"
