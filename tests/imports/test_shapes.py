"""Exports of other programs, by their public schemas: recognised, with annotators."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest

from steelyard.cli.importing import choose_columns
from steelyard.client.tables import (
    SHAPES,
    Mapping,
    are_rows,
    convert,
    guess_mapping,
    label_of,
    read_table,
)


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


def test_argilla_keeps_annotators_answers_and_disagreement():
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


@pytest.mark.parametrize(
    "line",
    [
        '{"id": 3, "fields',
        "7",
        "null",
        "[" * 10_000 + "]" * 10_000,
        json.dumps({"other": 1}),
        json.dumps({**argilla(3, "billing"), "responses": 7}),
        json.dumps({**argilla(3, "billing"), "fields": "text"}),
    ],
    ids=["broken", "7", "null", "nested", "another object", "responses", "fields"],
)
@pytest.mark.parametrize("at", [1, 25])
def test_a_line_that_its_program_does_not_write_leaves_itself_out(line, at):
    lines = [json.dumps(argilla(n, "billing" if n % 2 else "shipping")) for n in range(30)]
    lines.insert(at, line)
    table = read_table("\n".join(lines).encode(), "export.jsonl", shape="argilla")
    assert len(table.rows) == 30
    assert len(table.refused) == 1


@pytest.mark.parametrize("suffix", [".json", ".jsonl"])
@pytest.mark.parametrize("shape", [None, "argilla"])
@pytest.mark.parametrize("text", ["null", "7", "[" * 10_000 + "]" * 10_000, '{"a":' * 10_000])
def test_a_file_that_holds_no_objects_has_no_rows(text, shape, suffix):
    with suppress(ValueError):
        assert read_table(text.encode(), f"export{suffix}", shape=shape).rows == []


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
        "channel": "mail",
        "length": 8,
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
    assert rows is not FLAT or found[0]["metadata"] == {"id": "1", "channel": "mail", "length": 8}
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


@pytest.mark.parametrize(
    ("name", "approved"), [("is_confirmed", True), ("annotation_approver", "ann")]
)
def test_doccano_rows_that_are_not_approved_are_left_out_where_others_are(name, approved):
    rows = [
        {"id": n, "text": f"text {n}", "label": ["ab"[n % 2]], name: approved} for n in range(6)
    ]
    rows[3][name] = None
    _, made, found = converted(rows)
    [left] = made.refused
    assert (left.line, left.reason) == (4, "It is not approved, and other rows are.")
    assert len(found) == 5
    for row in rows:
        row[name] = None
    assert len(converted(rows)[2]) == 6


@pytest.mark.parametrize("said", ["False", ""])
def test_doccano_rows_in_csv_are_approved_or_left_out_too(said):
    rows = [
        {"id": n, "text": f"text {n}", "label": "ab"[n % 2], "is_confirmed": "True"}
        for n in range(6)
    ]
    rows[3]["is_confirmed"] = said
    made = convert(table := read_table(exported(rows, ",")), guess_mapping(table))
    assert [row.line for row in made.refused] == [5]


def test_a_question_with_free_text_is_no_label():
    rows = [argilla(n, "billing" if n % 2 else "shipping") for n in range(12)]
    for n, row in enumerate(rows):
        row["responses"]["why"] = [{"value": f"since it is number {n}", "user_id": "u0"}]
    table = read_table("\n".join(map(json.dumps, rows)).encode())
    assert [label.column for label in guess_mapping(table).labels] == ["team"]


def test_ground_truth_names_its_label_beside_its_number():
    rows = [
        {
            "source": f"message {n}",
            "team": n % 2,
            "team-metadata": {"class-name": "ab"[n % 2], "type": "groundtruth/text-classification"},
            "tags": [0, n % 2],
            "tags-metadata": {"class-map": {"0": "new", "1": "old"} if n % 2 else {"0": "new"}},
        }
        for n in range(4)
    ]
    rows.append({**rows[0], "team-metadata": {"failure-reason": "none agreed"}})
    rows.append({"source-ref": "s3://bucket/a.txt", **rows[0]})
    del rows[-1]["source"]
    table, made, found = converted(rows)
    assert table.read_as.endswith("an export of SageMaker Ground Truth")
    assert [row["targets"].get("team") for row in found] == ["a", "b", "a", "b", None]
    assert found[1]["targets"] == {"team": "b", "tags_new": "yes", "tags_old": "yes"}
    assert [row.line for row in made.refused] == [6]


def labelbox(n, *answers, status="DONE", text=None):
    labels = [
        {
            "label_details": {"created_by": f"u{place}"},
            "annotations": {"classifications": [answer]},
        }
        for place, answer in enumerate(answers)
    ]
    return {
        "data_row": {"id": f"r{n}", "row_data": text or f"message {n}"},
        "projects": {"p": {"labels": labels, "project_details": {"workflow_status": status}}},
    }


def radio(name, *inner):
    answer = {"name": name, "value": name.lower(), "classifications": list(inner)}
    return {"name": "Team", "value": "team", "radio_answer": answer}


def test_labelbox_has_nested_answers_of_several_people_and_their_reviews():
    tags = {
        "name": "Tags",
        "checklist_answers": [{"name": "new", "value": "n"}, {"name": "vip", "value": "v"}],
    }
    why = {"name": "Why", "text_answer": {"content": "It says so."}}
    rows = [
        labelbox(1, radio("A", tags, why), radio("B")),
        labelbox(2, radio("B"), status="IN_REVIEW"),
        labelbox(3, radio("B"), status="IN_REWORK"),
        labelbox(4, radio("B")),
        labelbox(5),
        labelbox(6, radio("A"), text="https://example.org/6.txt"),
    ]
    _, made, found = converted(rows)
    assert [row["context"] for row in found] == ["message 1", "message 4"]
    assert found[0]["targets"] == {
        "Team": {"A": 0.5, "B": 0.5},
        "Tags_new": "yes",
        "Tags_vip": "yes",
    }
    assert found[1]["targets"] == {"Team": "B"}
    assert made.replies[0][0]["note"] == "It says so."
    assert [row.line for row in made.refused] == [2, 3, 6, 5]
    assert "behind a link" in made.refused[2].reason
    for row in rows:
        row["projects"]["p"]["project_details"] = {}
    assert len(converted(rows)[2]) == 4


@pytest.mark.parametrize("form", ["json", "csv"])
def test_labelbox_had_a_row_for_each_label(form):
    def label(n, answer, by="u0", **fields):
        given = {"title": "Team", "answer": {"title": answer, "value": answer.lower()}}
        said = {"classifications": [given]} if answer != "Skip" else answer
        return {"DataRow ID": f"r{n}", "Labeled Data": f"message {n}", "Label": said, **fields} | {
            "Created By": by
        }

    rows = [label(1, "A"), label(1, "B", "u1"), label(2, "B"), label(3, "Skip")]
    rows.append(label(4, "A", Reviews=[{"score": -1}]))
    data = json.dumps(rows).encode() if form == "json" else exported(rows, ",")
    table = read_table(data)
    made = convert(table, guess_mapping(table))
    found = [json.loads(line) for line in made.lines]
    assert [row["targets"]["Team"] for row in found] == [{"A": 0.5, "B": 0.5}, "B"]
    assert len(made.refused) == 2


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
        task(1, "URGENT", "reject", "y\ny"),
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
        {"reviewer": "y y", "outcomes": {"URGENT": "no"}},
    ]
    assert [(row.line, row.reason) for row in made.refused] == [
        (4, "It is answered ignore, which names no label.")
    ]
    _, made, _ = converted([*rows, task(2, "URGENT", "ignore", "y")])
    assert made.replies[1][1] == {"reviewer": "y", "note": "answered ignore"}
    again = [task(1, "URGENT", "ignore", "x"), task(3, "URGENT", "accept", "x")]
    _, made, found = converted([*rows, *again])
    assert [row["targets"]["URGENT"] for row in found] == ["no", "no", "yes"]
    assert made.replies[0][1] == {"reviewer": "x", "note": "answered ignore"}
    options = [{"id": "a", "text": "A"}, {"id": "b", "text": "B"}]
    choices = [
        {"text": f"message {n}", "options": options, "accept": [chosen], "answer": "accept"}
        for n, chosen in enumerate("ab")
    ]
    _, _, found = converted(choices)
    assert [row["targets"] for row in found] == [{"label": "a"}, {"label": "b"}]
    for n, row in enumerate(choices):
        row["options"] = [{"id": m, "text": name} for m, name in enumerate("ab")]
        row["accept"] = [n]
    _, made, found = converted([*choices, {**choices[0], "text": "none fits", "accept": []}])
    assert [row["targets"] for row in found] == [{"label": "a"}, {"label": "b"}]
    assert [row.reason for row in made.refused] == [
        "It is answered without a choice, which names no label."
    ]


def exported(rows, separator, order=list):
    """Return rows as a program writes them in CSV: structures as JSON, missing values empty."""
    names = order(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO(newline="")
    out = csv.writer(text, delimiter=separator)
    out.writerow(names)
    for row in rows:
        cells = (row.get(name, "") for name in names)
        out.writerow(json.dumps(cell) if isinstance(cell, list | dict) else cell for cell in cells)
    return text.getvalue().encode()


def answered(n, q, by, **data):
    beside = {
        "annotation_id": 10 * n,
        "created_at": "2026-01-01",
        "updated_at": "",
        "lead_time": 2.5,
    }
    return {"text": f"text number {n}", **data, "id": n, "q": q, "annotator": by, **beside}


MIN_ROWS = [
    answered(1, "a", 1),
    answered(1, "b", 2),
    answered(2, "a", 1, source="mail", ref="A-7"),
    answered(2, "a", 2, source="mail", ref="A-7"),
    answered(3, "b", 1, source="web", ref="A-8"),
]


def _by_id(row):
    return ["id", *(name for name in row if name != "id")]


@pytest.mark.parametrize(
    "order", [list, sorted, _by_id], ids=["its order", "the alphabet", "id first"]
)
@pytest.mark.parametrize("form", [",", "\t", "JSON-MIN"])
@pytest.mark.parametrize("shape", [None, "label-studio"])
def test_label_studio_has_a_row_an_annotation_with_other_data_of_a_task(form, order, shape):
    if form == "JSON-MIN":
        rows = [{name: row[name] for name in order(row)} for row in MIN_ROWS]
        data = json.dumps(rows).encode()
    else:
        data = exported(MIN_ROWS, form, order)
    table = read_table(data, shape=shape)
    made = convert(table, guess_mapping(table))
    rows = [json.loads(line) for line in made.lines]
    assert [row["context"] for row in rows] == [f"text number {n}" for n in (1, 2, 3)]
    assert [row["targets"] for row in rows] == [{"q": {"a": 0.5, "b": 0.5}}, {"q": "a"}, {"q": "b"}]
    assert rows[1]["metadata"].items() >= {"source": "mail", "ref": "A-7"}.items()
    assert [[one["reviewer"] for one in said] for said in made.replies.values()] == [
        ["1", "2"],
        ["1", "2"],
        ["1"],
    ]


def test_label_studio_has_several_choices_in_a_cell():
    rows = [answered(n, {"choices": ["a", "c"]} if n % 2 else "b", 1) for n in range(6)]
    table = read_table(exported(rows, ","))
    label = guess_mapping(table).labels[0]
    assert (label.kind, label.outcomes) == ("several", ("a", "b", "c"))


@pytest.mark.parametrize("form", [",", "JSON-MIN"])
@pytest.mark.parametrize(
    ("results", "kind", "targets"),
    [
        ([{"rating": 1}, {"rating": 2}, {"rating": 3}], "ordinal", ["1", "2", "3"]),
        ([{"number": 7}, {"number": 9}], "single", ["7", "9"]),
        ([{"taxonomy": [["top", "a"]]}, {"taxonomy": [["b"]]}], "single", ["a", "b"]),
    ],
    ids=["rating", "number", "taxonomy"],
)
def test_label_studio_has_lists_of_results_in_a_cell(form, results, kind, targets):
    span = {"start": 0, "end": 4, "text": "text", "labels": ["NOUN"]}
    rows = [answered(n, [result], 1, words=[span]) for n, result in enumerate(results * 3)]
    rows = [{name: row[name] for name in _by_id(row)} for row in rows]
    data = json.dumps(rows).encode() if form == "JSON-MIN" else exported(rows, ",")
    made = convert(table := read_table(data), guess_mapping(table))
    assert [label.kind for label in made.mapping.labels] == [kind]
    assert [json.loads(line)["targets"]["q"] for line in made.lines] == targets * 3


def test_a_projects_truth_is_the_label():
    tasks = json.loads(json.dumps(LABEL_STUDIO))
    others = json.loads(json.dumps(tasks[1]["annotations"][0]))
    tasks[0]["annotations"] = [{**others, "ground_truth": False}] + [
        {**each, "ground_truth": True} for each in tasks[0]["annotations"][:1]
    ]
    _, _, found = converted(tasks)
    assert [row["targets"] for row in found] == [{"q": "a"}, {"q": "b"}]


def test_unanswered_tasks_are_left_to_label_and_no_fault_of_a_file(tmp_path):
    tasks = [*LABEL_STUDIO, {**LABEL_STUDIO[0], "data": {"text": "three text"}, "annotations": []}]
    table, made, _ = converted(tasks)
    [row] = made.refused
    assert (row.line, row.reason) == (3, "Nobody has answered it; label it, or leave it out.")
    assert row.by_program
    assert convert(table, Mapping(("text",))).n_rows == 3
    # So it is where each split is a file of its own, whose answers are kept too.
    for n, name in enumerate(("train", "test")):
        (tmp_path / f"{name}.json").write_text(
            json.dumps(
                [{**task, "data": {"text": f"{task['data']['text']} {n}"}} for task in tasks]
            )
        )
    table = read_table(tmp_path)
    made = convert(table, guess_mapping(table))
    assert (len(made.replies), len(made.sides)) == (4, 4)
    assert [row.by_program for row in made.refused] == [True, True]
    table = read_table(json.dumps([{**task, "annotations": []} for task in tasks]).encode())
    assert convert(table, Mapping(("text",))).n_rows == 3
    assert guess_mapping(table).labels == ()
    with pytest.raises(ValueError, match="The export has no answers"):
        choose_columns(table, (), (), ())


@pytest.mark.parametrize("form", ["lines", ","])
def test_discarded_answers_are_left_out(form):
    if form == ",":
        made = convert(table := read_table(exported(LANGFUSE, form)), guess_mapping(table))
        assert (made.n_rows, [row.reason for row in made.refused]) == (2, ["It is archived."])
    rows = [{**row, "status": "Validated"} for row in BEFORE]
    rows.append({**BEFORE[0], "text": "three text", "status": "Discarded"})
    data = exported(rows, form) if form == "," else "\n".join(map(json.dumps, rows)).encode()
    made = convert(table := read_table(data), guess_mapping(table))
    assert (made.n_rows, [row.reason for row in made.refused]) == (2, ["It was discarded."])


@pytest.mark.parametrize("separator", [",", "\t"])
def test_doccano_joins_labels_in_csv(separator):
    rows = [
        {"id": n, "data": f"text number {n}", "label": label, "Comments": ""}
        for n, label in enumerate(["a", "a#b", "C#", "b"])
    ]
    table = read_table(exported(rows, separator))
    assert table.read_as.endswith("an export of doccano")
    [label] = guess_mapping(table).labels
    assert (label.kind, label.outcomes) == ("several", ("C#", "a", "b"))
    # A table of others, with such a name, is none.
    table = read_table(exported([row for row in rows if row["label"] != "a#b"], separator))
    assert (table.hints, guess_mapping(table).labels[0].kind) == (None, "single")


@pytest.mark.parametrize("is_text", [True, False], ids=["CSV", "JSON"])
@pytest.mark.parametrize(
    ("cells", "kind", "targets"),
    [
        ([{"label": "a", "score": 0.9}, {"label": "b", "score": 0.6}], "single", ["a", "b"]),
        (
            [
                [{"label": "a", "score": 0.1}, {"label": "b", "score": 0.8}],
                [{"label": "a", "score": 1}],
            ],
            "single",
            ["b", "a"],
        ),
        ([{"choices": ["a"]}, {"choices": ["b"]}], "single", ["a", "b"]),
        ([{"a": 0.4, "b": 0.6}, {"a": 1}], "single", [{"a": 0.4, "b": 0.6}, {"a": 1}]),
        ([[{"name": "a", "confidence": 0.8}], [{"name": "b"}]], "single", ["a", "b"]),
        ([{"intent": "a"}, {"intent": "b"}], "single", ["a", "b"]),
        ([{"value": {"choices": [["top", "a"]]}}, {"value": "b"}], "single", ["a", "b"]),
        ([{"a": True, "b": False}, {"a": False, "b": True}], "single", ["a", "b"]),
        ([[{"classname": "a", "correct": True}], [{"classname": "b"}]], "single", ["a", "b"]),
    ],
    ids=[
        *("label and score", "scores", "choices", "shares"),
        *("name and confidence", "wrapped", "path", "fits", "LightTag"),
    ],
)
def test_structures_in_cells_are_the_answers_that_they_hold(cells, kind, targets, is_text):
    rows = [
        {"text": f"text {n}", "other": {"lang": "en"}, "y": cell}
        for n, cell in enumerate(cells * 3)
    ]
    data = exported(rows, ",") if is_text else "\n".join(map(json.dumps, rows)).encode()
    table = read_table(data)
    made = convert(table, guess_mapping(table))
    assert [label.kind for label in made.mapping.labels] == [kind]
    assert [json.loads(line)["targets"]["y"] for line in made.lines] == targets * 3


def test_arrays_as_numpy_shows_them_are_lists():
    texts = ["['a' 'b']", "['a']", "['b'\n \"it's\"]"] * 2
    rows = [{"text": f"text {n}", "y": cell} for n, cell in enumerate(texts)]
    [label] = guess_mapping(read_table(exported(rows, ","))).labels
    assert (label.kind, label.outcomes) == ("several", ("a", "b", "it's"))


def test_an_object_that_names_no_label_is_no_outcome():
    for answer in ({"x": 1, "y": "z"}, [{"x": 1, "y": "z"}]):
        rows = [{"text": f"text {n}", "answer": answer} for n in range(6)]
        table = read_table("\n".join(map(json.dumps, rows)).encode())
        with pytest.raises(ValueError, match="has objects of 'x', 'y', of which none is the label"):
            label_of(table, "answer")
