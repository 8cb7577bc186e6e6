"""Exports of other programs, by their public schemas: recognised, with who said what."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from steelyard.client.tables import SHAPES, are_rows, convert, guess_mapping, read_table


def converted(rows, **options):
    table = read_table("\n".join(map(json.dumps, rows)).encode(), **options)
    made = convert(table, guess_mapping(table))
    return table, made, [json.loads(line) for line in made.lines]


def argilla(n, *answers):
    responses = [{"value": answer, "user_id": f"u{place}"} for place, answer in enumerate(answers)]
    return {
        "id": f"r{n}",
        "fields": {"text": f"message {n}"},
        "metadata": {"source": "mail"},
        "suggestions": {"team": {"value": "billing", "score": 0.9, "agent": "model"}},
        "responses": {"team": responses},
        "vectors": {},
    }


def test_argilla_keeps_who_said_what_and_disagreement():
    rows = [argilla(1, "billing", "shipping"), argilla(2, "shipping", "shipping"), argilla(3)]
    table, made, found = converted(rows)
    assert table.read_as.endswith("an export of Argilla")
    assert table.notes[0].startswith("team: several answers to 2 rows, which agree on 1;")
    assert "50% (95 % interval 1% to 99%)" in table.notes[0]
    assert [row["context"] for row in found] == ["message 1", "message 2"]
    assert [row["targets"]["team"] for row in found] == [
        {"billing": 0.5, "shipping": 0.5},
        "shipping",
    ]
    assert found[0]["metadata"] == {
        "id": "r1",
        "source": "mail",
    }
    assert made.replies[0] == [
        {"reviewer": "u0", "outcomes": {"team": "billing"}},
        {"reviewer": "u1", "outcomes": {"team": "shipping"}},
    ]
    assert [row.line for row in made.refused] == [3]


EXPORTS = sorted((Path(__file__).parent / "exports").iterdir())


@pytest.mark.parametrize("path", EXPORTS, ids=lambda path: path.stem)
def test_an_export_of_each_program(path):
    if path.stem == "onehot":
        data = path.read_bytes()
        assert are_rows(data)
        rows = [json.loads(line) for line in data.splitlines()]
    else:
        table = read_table(path)
        made = convert(table, guess_mapping(table))
        rows = [json.loads(line) for line in made.lines]
        assert table.read_as.endswith(f"an export of {SHAPES[path.stem].title}")
        assert len(made.refused) == ("Hello" in path.read_text())
    assert [row["context"] for row in rows] == ["I was charged twice.", "My parcel is late."]
    assert list(rows[1]["targets"].values()) == ["shipping"]


FLAT = [
    {
        "id": "1",
        "text": "one text",
        "q.responses": ["a", "b"],
        "q.responses.users": ["x", "y"],
        "q.responses.status": ["submitted", "discarded"],
    },
    {
        "id": "2",
        "text": "two text",
        "q.responses": ["b"],
        "q.responses.users": ["x"],
        "q.responses.status": ["submitted"],
    },
]
FEEDBACK = [
    {
        "fields": {"text": f"{name} text"},
        "responses": [
            {"user_id": "x", "values": {"q": {"value": answer}}, "status": "submitted"},
            {"user_id": "y", "values": {"q": {"value": "c"}}, "status": "discarded"},
        ],
    }
    for name, answer in (("one", "a"), ("two", "b"))
]
BEFORE = [
    {"text": f"{name} text", "annotation": answer, "annotation_agent": "x", "prediction": None}
    for name, answer in (("one", "a"), ("two", "b"))
]
LABEL_STUDIO = [
    {
        "id": n,
        "data": {"text": f"{name} text"},
        "predictions": [],
        "annotations": [
            {
                "completed_by": {"id": 1, "email": "x"},
                "was_cancelled": False,
                "result": [
                    {
                        "from_name": "q",
                        "to_name": "text",
                        "type": "choices",
                        "value": {"choices": [answer]},
                    },
                    {
                        "from_name": "why",
                        "to_name": "text",
                        "type": "textarea",
                        "value": {"text": ["so"]},
                    },
                ],
            },
            {"completed_by": 2, "was_cancelled": True, "result": []},
        ],
    }
    for n, (name, answer) in enumerate((("one", "a"), ("two", "b")))
]
MIN = [
    {
        "text": f"{name} text",
        "id": n,
        "q": answer,
        "annotator": "x",
        "annotation_id": n,
        "created_at": "2026-01-01T00:00:00Z",
        "updated_at": "2026-01-01T00:00:00Z",
        "lead_time": 2.5,
    }
    for n, (name, answer) in enumerate((("one", "a"), ("two", "b")))
]
LANGFUSE = [
    {"id": "i1", "input": "one text", "expectedOutput": "a", "metadata": None, "status": "ACTIVE"},
    {"id": "i2", "input": "two text", "expectedOutput": "b", "metadata": None, "status": "ACTIVE"},
    {"id": "i3", "input": "three", "expectedOutput": "b", "metadata": None, "status": "ARCHIVED"},
]
PROMPTFOO = [
    {"vars": {"text": f"{name} text"}, "assert": [{"type": "equals", "value": answer}]}
    for name, answer in (("one", "a"), ("two", "b"))
]
PLAIN = {
    "argilla": [FLAT, FEEDBACK, BEFORE],
    "label-studio": [LABEL_STUDIO, MIN],
    "langfuse": [LANGFUSE],
    "promptfoo": [
        PROMPTFOO,
        [*PROMPTFOO, {"vars": {"text": "x"}, "assert": [{"type": "llm-rubric"}]}],
    ],
}


@pytest.mark.parametrize(
    ("name", "rows"), [(name, rows) for name, several in PLAIN.items() for rows in several]
)
def test_an_export_is_recognised_and_read(name, rows):
    by_name = converted(rows, shape=name)
    _, made, found = converted(rows)
    assert by_name[2] == found
    assert [row["context"] for row in found] == ["one text", "two text"]
    assert [list(row["targets"].values()) for row in found] == [["a"], ["b"]]
    assert len(made.refused) == len(rows) - 2
    if name in {"argilla", "label-studio"}:
        people = {answers[0]["reviewer"] for answers in made.replies.values()}
        assert people == {"x"}
    if rows is LABEL_STUDIO:
        assert made.replies[0] == [
            {"reviewer": "x", "outcomes": {"q": "a"}, "note": "so"},
            {"reviewer": "2", "note": "skipped"},
        ]
    with pytest.raises(ValueError, match="is not an export of doccano"):
        converted(rows, shape="doccano")


def test_doccano_has_lists_of_labels_and_comments():
    rows = [
        {"id": 1, "text": "one text", "label": ["a"], "Comments": ["unsure"]},
        {"id": 2, "text": "two text", "label": ["b"], "Comments": []},
        {"id": 3, "text": "three text", "label": [[0, 5, "a"]], "Comments": []},
    ]
    _, made, found = converted(rows)
    assert [row["targets"] for row in found] == [{"label": "a"}, {"label": "b"}]
    assert made.replies == {0: [{"outcomes": {"label": "a"}, "note": "unsure"}]}
    assert "of spans" in made.refused[0].reason


def test_doccano_has_a_file_for_each_who_labels_alone(tmp_path):
    def write(name, *labels):
        rows = [
            {"id": n, "text": f"text {n}", "label": [label], "Comments": []}
            for n, label in enumerate(labels, 1)
        ]
        return name, "\n".join(map(json.dumps, rows))

    path = tmp_path / "project.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in (write("ann.jsonl", "a", "b"), write("bob.jsonl", "a", "a", "b")):
            archive.writestr(name, text)
    table = read_table(path)
    assert table.read_as == "2 files, JSON Lines, UTF-8, an export of doccano"
    made = convert(table, guess_mapping(table))
    assert [json.loads(line)["targets"]["label"] for line in made.lines] == [
        "a",
        {"a": 0.5, "b": 0.5},
        "b",
    ]
    assert [[one["reviewer"] for one in answers] for answers in made.replies.values()] == [
        ["ann", "bob"],
        ["ann", "bob"],
        ["bob"],
    ]


def test_prodigy_accepts_rejects_and_ignores():
    def task(n, label, answer, by):
        return {
            "text": f"message {n}",
            "label": label,
            "answer": answer,
            "_input_hash": n,
            "_annotator_id": by,
            "_view_id": "classification",
        }

    rows = [
        task(1, "URGENT", "accept", "x"),
        task(1, "URGENT", "reject", "y"),
        task(2, "URGENT", "reject", "x"),
        task(3, "URGENT", "ignore", "x"),
    ]
    _, made, found = converted(rows)
    assert [row["targets"] for row in found] == [
        {"URGENT": {"no": 0.5, "yes": 0.5}},
        {"URGENT": "no"},
    ]
    assert found[0]["decisions"][0]["kind"] == "binary"
    assert made.replies[0] == [
        {"reviewer": "x", "outcomes": {"URGENT": "yes"}},
        {"reviewer": "y", "outcomes": {"URGENT": "no"}},
    ]
    assert [(row.line, row.reason) for row in made.refused] == [
        (4, "It is answered ignore, which names no label.")
    ]
    _, made, _ = converted([*rows, task(2, "URGENT", "ignore", "y")])
    assert made.replies[1][1] == {"reviewer": "y", "note": "answered ignore"}
    options = [{"id": "a", "text": "A"}, {"id": "b", "text": "B"}]
    choices = [
        {"text": f"message {n}", "options": options, "accept": [chosen], "answer": "accept"}
        for n, chosen in enumerate("ab")
    ]
    _, _, found = converted(choices)
    assert [row["targets"] for row in found] == [{"label": "a"}, {"label": "b"}]
