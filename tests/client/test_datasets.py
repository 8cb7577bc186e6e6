"""client.datasets: rows from files, lists and frames of any size, and rows read as frames."""

from __future__ import annotations

import asyncio
import json

import pandas as pd
import polars as pl
import pytest

import steelyard
from steelyard.client import row_sources, uploads
from steelyard.client.row_sources import FrameColumns, pieces_of
from steelyard.client.tables import Converted, Table, create_whole
from steelyard.client.uploads import RowUpload
from steelyard.errors import DatasetDeletedError, InvalidExampleError, NoNewRowsError
from support.datasets.dataset_rows import REFUND, ROUTE, make_row_dict, make_rows, to_ndjson
from support.servers.live_server import live_server

pytestmark = pytest.mark.usefixtures("every_response_is_checked")


@pytest.fixture(scope="module")
def client():
    with live_server() as server, steelyard.connect(server.url) as client:
        yield client


TABLE = {
    "text": ["Paid twice.", "Where is it?", "Hello."],
    "route": ["billing", "support", None],
    "refund": [True, None, False],
}


def expected_rows():
    return [
        make_row_dict("Paid twice.", targets={"route": "billing", "refund": "yes"}),
        make_row_dict("Where is it?", decisions=[ROUTE], targets={"route": "support"}),
        make_row_dict("Hello.", decisions=[REFUND], targets={"refund": "no"}),
    ]


@pytest.mark.parametrize("make", [pl.DataFrame, pd.DataFrame])
def test_a_frame_is_a_list_of_rows(client, make):
    by_rows = client.datasets.create("rows", expected_rows())
    by_frame = client.datasets.create(
        "frame", make(TABLE), context="text", decisions=[ROUTE, REFUND]
    )
    assert by_frame.sha256 == by_rows.sha256


def test_columns_by_name_and_contexts_of_several():
    frame = pl.DataFrame({"a": ["x"], "b": [1], "team": ["billing"], "level": [3.0]})
    columns = FrameColumns(
        context=["a", "b"],
        decisions=[ROUTE, {"id": "level"}],
        labels={"route": "team", "level": "level"},
    )
    (piece,) = pieces_of(frame, columns)
    assert json.loads(piece.data) == {
        "context": {"a": "x", "b": 1},
        "decisions": [ROUTE, {"id": "level"}],
        "targets": {"route": "billing", "level": "3"},
    }


def test_columns_of_numbers_and_of_decisions():
    frame = pl.DataFrame(
        {
            "context": ["a", "b"],
            "decisions": [json.dumps([ROUTE]), json.dumps([REFUND])],
            "soft": [
                {"route": {"billing": 0.5, "other": 0.5}, "refund": None},
                {"route": {"billing": None, "other": None}, "refund": {"yes": 1.0}},
            ],
        }
    )
    (piece,) = pieces_of(frame, FrameColumns(targets="soft"))
    first, second = map(json.loads, piece.data.splitlines())
    assert first["decisions"] == [ROUTE]
    assert first["targets"] == {"route": {"billing": 0.5, "other": 0.5}}
    assert second["targets"] == {"refund": {"yes": 1.0}}


def test_a_column_that_is_not_there_is_named():
    with pytest.raises(ValueError, match="no column 'text'"):
        list(pieces_of(pl.DataFrame({"a": [1]}), FrameColumns(context="text")))


def test_a_preview_reports_problems_and_stores_nothing(client):
    n_before = len(list(client.datasets.iterate()))
    frame = pl.DataFrame({**TABLE, "route": ["billing", "nobody", None]})
    check = client.datasets.preview(frame, context="text", decisions=[ROUTE, REFUND])
    assert (check.rows, check.problems, check.code) == (2, 1, "invalid_example")
    assert check.details[0]["path"][2] == 1
    assert len(list(client.datasets.iterate())) == n_before


def send(client, parts, piece_bytes=2000, **options):
    upload = RowUpload(parts, FrameColumns(), piece_bytes=piece_bytes, **options)
    return client.datasets.send_rows(upload)


def test_a_file_longer_than_a_piece_is_sent_in_several(client, tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(to_ndjson(make_rows(50)))
    sent = []
    options = {"piece_bytes": 5000, "progress": sent.append}
    made = send(client, {"examples": path}, name="long", **options)
    assert made.rows == 50
    assert made.version == len(sent) > 1
    assert sent[-1] == path.stat().st_size


def test_lines_of_a_refused_piece_are_those_of_the_file(client):
    rows = make_rows(20)
    rows[17]["targets"] = {"route": "nobody"}
    with pytest.raises(InvalidExampleError) as caught:
        send(client, {"examples": rows}, name="bad")
    assert caught.value.details[0]["path"][2] == 17
    assert caught.value.details[0]["message"].startswith("Line 18:")
    assert str(caught.value).startswith("Line 18:")
    assert "has the rows sent before" in caught.value.__notes__[0]


def test_a_piece_of_known_rows_alone_ends_nothing(client):
    rows, sent = make_rows(20), []
    made = send(client, {"examples": rows + rows}, name="again", progress=sent.append)
    assert made.rows == 20
    assert len(sent) > made.version
    whole = send(client, {"examples": make_rows(30)}, dataset_id=made.id)
    assert whole.rows == 30
    with pytest.raises(NoNewRowsError):
        send(client, {"examples": make_rows(30)}, dataset_id=made.id)


def test_two_sides_that_fit_are_one_request(client):
    made = client.datasets.create("one", training=make_rows(1), evaluation=make_rows(1, 1))
    assert (made.version, made.split.training, made.split.evaluation) == (1, 1, 1)
    n_before = len(list(client.datasets.iterate()))
    wrong = [{**make_rows(1, 1)[0], "targets": {"route": "nobody"}}]
    with pytest.raises(InvalidExampleError):
        client.datasets.create("none", training=make_rows(2), evaluation=wrong)
    assert len(list(client.datasets.iterate())) == n_before


def test_sides_longer_than_a_piece_are_both_there_in_any_order(client):
    parts = {"evaluation": make_rows(20), "training": make_rows(20, 20)}
    made = send(client, parts, name="sides")
    assert (made.split.training, made.split.evaluation) == (20, 20)


@pytest.mark.parametrize("ending", [KeyboardInterrupt(), ValueError("a bad row")])
def test_an_import_is_whole_or_nothing(client, monkeypatch, ending):
    monkeypatch.setattr(
        uploads, "pieces_of", lambda rows, columns, _: pieces_of(rows, columns, 2000)
    )
    n_before = len(list(client.datasets.iterate()))
    made = Converted(Table((), ()), lines=rows_until(ending))
    with pytest.raises(type(ending)) as caught:
        create_whole(client, "part", made)
    assert not caught.value.__notes__
    assert len(list(client.datasets.iterate())) == n_before


def test_lines_of_two_sides_in_one_piece_are_those_of_each(client):
    evaluation = make_rows(2, 50)
    evaluation[1]["targets"] = {"route": "nobody"}
    with pytest.raises(InvalidExampleError) as caught:
        send(client, {"training": make_rows(14), "evaluation": evaluation}, name="sides")
    assert caught.value.details[0]["path"][1:3] == ["evaluation", 1]
    assert str(caught.value).startswith("Line 2:")


def rows_until(ending):
    yield from make_rows(20)
    raise ending


@pytest.mark.parametrize("ending", [KeyboardInterrupt(), ValueError("a bad row")])
def test_stored_rows_are_reported_however_the_sending_ends(client, ending):
    with pytest.raises(type(ending)) as caught:
        send(client, {"examples": rows_until(ending)}, name="part")
    (note,) = caught.value.__notes__
    assert "has the rows sent before" in note
    assert next(client.datasets.iterate()).id in note


def test_numbers_of_a_frame_may_be_json_or_an_export(client):
    soft = [{"route": {"billing": 0.5, "other": 0.5}}, {"route": {"support": 1.0}}]
    frame = pl.DataFrame({"context": ["a", "b"], "t": [json.dumps(one) for one in soft]})
    made = client.datasets.create("json", frame, decisions=[ROUTE], targets="t")
    exported = client.datasets.to_polars(made.id)
    for again in (exported, pd.DataFrame(exported.to_dicts())):
        columns = FrameColumns(targets="targets")
        (piece,) = pieces_of(again, columns)
        targets = {
            row["context"]: row["targets"] for row in map(json.loads, piece.data.splitlines())
        }
        assert targets == {"a": soft[0], "b": soft[1]}


@pytest.mark.parametrize("field", ["targets", "rewards"])
def test_an_export_that_comes_back_is_the_same_rows(client, field):
    image = {"id": 1, "media_type": "image/png", "data": "AAAA"}
    rows = [
        {
            "context": {"text": f"ticket {number}", "é": [number, None, 0.5]},
            "decisions": [ROUTE],
            field: {"route": {"billing": 0.25, "support": 0.0, "other": 0.75}},
            "metadata": {"source": "mail"},
        }
        for number in range(6)
    ]
    rows += [
        {**rows[0], "context": "plain", "temperature": 2.0},
        {**rows[0], "context": "7"},
        {**rows[0], "context": "See <image:1>.", "images": [image]},
    ]
    made = client.datasets.create("sent", rows)
    exported = client.datasets.to_polars(made.id)
    for again in (exported, pd.DataFrame(exported.to_dicts())):
        copy = client.datasets.create("copy", again, **{field: field})
        assert copy.sha256 == made.sha256
        with pytest.raises(NoNewRowsError):
            client.datasets.add_rows(made.id, again, **{field: field})


@pytest.mark.parametrize("cell", [None, "no JSON", "3", '["a"]', "[" * 100_000])
def test_missing_numbers_are_reported_with_column_and_row(cell):
    frame = pl.DataFrame({"context": ["a", "b"], "t": ['{"route": {"other": 1}}', cell]})
    columns = FrameColumns(decisions=[ROUTE], targets="t")
    with pytest.raises(ValueError, match=r"Row 2 .* column 't'.*Give a mapping"):
        list(pieces_of(frame, columns))


def test_the_life_of_a_dataset(client, tmp_path):
    made = client.datasets.create(
        "life", training=make_rows(6), evaluation=to_ndjson(make_rows(4, 6))
    )
    assert (made.split.training, made.split.evaluation) == (6, 4)
    added = client.datasets.add_rows(made.id, make_rows(12), evaluation_fraction=0.5)
    assert (added.version, added.rows) == (2, 12)
    with pytest.raises(NoNewRowsError):
        client.datasets.add_rows(made.id, make_rows(3))
    assert client.datasets.get(made.id).prompt_tuning.decisions
    assert client.datasets.rename(made.id, "other").name == "other"
    assert client.datasets.archive(made.id).archived_at is not None
    assert client.datasets.restore(made.id).archived_at is None
    assert [v.version for v in client.datasets.versions(made.id).data] == [2, 1]
    assert client.datasets.list(limit=1).data[0].id == made.id
    assert client.datasets.labels_to_check(made.id).data == []
    lines = client.datasets.download(made.id, partition="training", version=1)
    assert len(lines.splitlines()) == 6
    found = client.datasets.search(
        made.id, where={"type": "expected", "decision": "refund", "outcome": "yes"}, facets=True
    )
    assert found.total == 6
    assert found.facets["rows"] == 6
    assert client.datasets.facets(made.id)["rows"] == 12
    assert client.datasets.diff(made.id, 1, 2)["rows"] == 2
    assert client.datasets.delete(made.id).deleted
    with pytest.raises(DatasetDeletedError):
        client.datasets.rows(made.id)


def test_rows_as_frames_and_as_html(client):
    made = client.datasets.create("<b>", [make_row_dict("<i>"), *make_rows(3)])
    page = client.datasets.rows(made.id, limit=2)
    frame = page.to_polars()
    assert frame["context"].to_list() == ["<i>", "Invoice 0 was paid twice."]
    assert frame["route"].to_list() == ["billing", "billing"]
    whole = client.datasets.to_polars(made.id)
    assert whole.height == 4
    for html in (page._repr_html_(), made._repr_html_(), client.datasets.list()._repr_html_()):
        assert "<i>" not in html
        assert "<b>" not in html
    assert "&lt;i&gt;" in page._repr_html_()


def test_a_decision_that_is_called_like_a_column_hides_none(client):
    asked = {"id": "context", "kind": "binary", "question": "Is there any context?"}
    rows = [{"context": text, "decisions": [asked], "targets": {"context": "yes"}} for text in "ab"]
    frame = client.datasets.rows(client.datasets.create("d", rows).id).to_polars()
    assert sorted(frame["context"]) == ["a", "b"]
    assert frame["label:context"].to_list() == ["yes", "yes"]


def test_outcomes_without_a_description_stay_in_a_frame_of_objects(client):
    asked = {
        "id": "route",
        "question": "Who?",
        "outcomes": {"billing": "Money", "support": None, "other": None},
    }
    frame = pd.DataFrame(
        {"context": ["a", "b"], "decisions": [[asked], [asked]], "route": ["other", "billing"]}
    )
    made = client.datasets.create("d", frame, labels=["route"])
    for row in client.datasets.rows(made.id).data:
        assert list(row.decisions[0]["outcomes"]) == ["billing", "support", "other"]


def test_asynchronously(client):
    async def ask():
        async with steelyard.connect_async(client.url) as other:
            made = await other.datasets.create("async", to_ndjson(make_rows(4)))
            await other.datasets.add_rows(made.id, make_rows(2, 4))
            return (await other.datasets.rows(made.id)).total

    assert asyncio.run(ask()) == 6


def test_parts_by_name_under_a_key_are_added_once(client):
    parts = {"training": to_ndjson(make_rows(3)), "evaluation": to_ndjson(make_rows(2, 3))}

    async def send():
        async with steelyard.connect_async(client.url) as other:
            made = await other.datasets.create("parts", parts, idempotency_key="parts-1")
            more = {"evaluation": to_ndjson(make_rows(1, 9))}
            return await other.datasets.add_rows(made.id, more, idempotency_key="parts-2")

    first, again = asyncio.run(send()), asyncio.run(send())
    assert (first.id, first.version) == (again.id, again.version)
    assert (first.split.training, first.split.evaluation) == (3, 3)
    with pytest.raises(ValueError, match="not both"):
        client.datasets.create("parts", parts, training=make_rows(1))


def test_each_piece_of_a_key_has_a_key_of_its_own(client):
    rows, key = make_rows(20), "k" * 255
    first, again = (
        send(client, {"examples": rows}, name="keyed", idempotency_key=key) for _ in range(2)
    )
    assert first == again
    assert (first.rows, first.version > 1) == (20, True)


def test_values_outside_json_are_refused_before_sending():
    with pytest.raises(ValueError, match="context"):
        list(row_sources.pieces_of([{"context": float("nan")}]))


def test_feedback_becomes_rows(client):
    asked = [{"id": "late", "kind": "binary", "question": "Is it late?"}]
    for number in range(3):
        answer = client.decide(f"Parcel {number} is not there.", asked)
        client.feedback(answer.id, {"late": "yes"})
    made = client.datasets.from_feedback(name="observed", decisions=["late"])
    assert (made.rows, made.feedback.added) == (3, 3)
    assert "without feedback" in made._repr_html_()
    with pytest.raises(NoNewRowsError):
        client.datasets.from_feedback(dataset_id=made.id)

    async def use():
        async with steelyard.connect_async(client.url) as other:
            return await other.datasets.from_feedback(name="again", decisions=["late"])

    assert asyncio.run(use()).rows == 3
