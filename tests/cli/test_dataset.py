"""``steelyard dataset``: a server's datasets from the shell."""

from __future__ import annotations

import json

import httpx
import polars as pl
import pytest
from click.testing import CliRunner

import steelyard
from steelyard.cli.main import main
from support.datasets.dataset_rows import make_row_dict, make_rows, to_ndjson
from support.servers.live_server import live_server


@pytest.fixture(scope="module")
def server():
    with live_server() as server:
        yield server


@pytest.fixture
def url(server):
    return server.url


@pytest.fixture
def run(url):
    """Run ``steelyard dataset …`` against the server; return its output."""

    def run(*arguments, status=0, **options):
        result = CliRunner().invoke(
            main, ["dataset", arguments[0], "--url", url, *map(str, arguments[1:])], **options
        )
        assert result.exit_code == status, (result.output, result.stderr)
        return result

    return run


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(to_ndjson(make_rows(20)))
    return path


@pytest.fixture
def dataset(run, file):
    return json.loads(run("create", file, "--name", "tickets", "--json").stdout)["id"]


def test_a_file_becomes_a_dataset(run, file):
    shown = run("create", file, "--name", "tickets", "--evaluation-fraction", "0.5").stdout
    lines = dict(line.split(None, 1) for line in shown.splitlines() if len(line.split()) == 2)
    assert (lines["name"], lines["rows"], lines["evaluation"]) == ("tickets", "20", "10")


def test_a_guideline_of_all_rows_is_set_printed_and_removed(run, dataset, tmp_path):
    text = "# Money\n\nA *voucher* is **no** money."
    file = tmp_path / "guideline.md"
    file.write_text(f"{text}\n")
    assert run("guideline", dataset, "refund").stdout.strip() == ""
    assert "Version 2 has it" in run("guideline", dataset, "refund", file).stdout
    assert run("guideline", dataset, "refund").stdout == f"{text}\n"
    assert "Version 3 has it" in run("guideline", dataset, "refund", "-", input="Ask Ann.").stdout
    assert json.loads(run("guideline", dataset, "refund", "--json").stdout) == "Ask Ann."
    assert "Version 4" in run("guideline", dataset, "refund", "--remove").stdout
    assert run("guideline", dataset, "refund").stdout.strip() == ""
    assert (
        "which no row of the version asks"
        in run("guideline", dataset, "team", file, status=2).stderr
    )
    assert "No row asks team" in run("guideline", dataset, "team", status=2).stderr
    run("delete", dataset, "--yes")  # no review of it is left open


def test_rows_with_their_decisions_are_imported_as_they_are(run, file, tmp_path):
    made = json.loads(run("import", file, "--from", "onehot", "--name", "rows", "--json").stdout)
    assert made["rows"] == 20
    table = tmp_path / "table.csv"
    table.write_text("text,team\na,b\n")
    refused = run("import", table, "--from", "onehot", status=2)
    assert "is not an export of OneHot" in refused.stderr


def test_a_table_becomes_a_dataset_without_its_bad_rows(run, tmp_path):
    path, bad = tmp_path / "tickets.csv", tmp_path / "bad.csv"
    rows = [f"Message number {n};{'billing' if n % 2 else 'shipping'};{n}" for n in range(20)]
    path.write_text("\n".join(["message;team;ref", *rows, ";billing;99"]), encoding="utf-16")
    asked = ("--label", "team=Which team?", "--metadata", "ref", "--bad-rows", bad)
    tried = run("import", path, *asked, "--dry-run")
    assert tried.stdout == ""
    assert "separated by semicolons, UTF-16: 21 rows" in tried.stderr
    assert "line 22: Its context is empty" in tried.stderr
    made = json.loads(run("import", path, *asked, "--json").stdout)
    assert (made["name"], made["rows"]) == ("tickets", 20)
    assert bad.read_text().splitlines() == [
        "line,reason,message,team,ref",
        "22,Its context is empty; fill it.,,billing,99",
    ]
    row = json.loads(run("download", made["id"]).stdout.splitlines()[0])
    assert row["decisions"][0]["question"] == "Which team?"
    assert row["metadata"].keys() == {"ref"}
    path.write_text("text,label\na, b,x\nc, d,y\ne,x\n")
    refused = run("import", path, "--dry-run", status=2).stderr
    assert "2 rows cannot be read. Line 2: It has 3 cells, and there are 2 columns" in refused
    path.write_text("text,label\n" + "the same,x\n" * 9 + "the same,y\n")
    for way in ((), ("--dry-run",)):
        assert "The dataset would have 1 rows" in run("import", path, *way, status=2).stderr
    path.write_text("message;team;ref\na;b;c\n")
    refused = run("import", path, "--label", "tema", status=2)
    assert "There is no column 'tema'; the file has message, team, ref." in refused.stderr


def test_labels_that_differ_in_capitals_alone_are_one_outcome(run, tmp_path):
    path = tmp_path / "rows.csv"
    teams = ["billing", "billing\u200b", "Billing ", "shipping", "SHIPPING", "SHIPPING"]
    path.write_text("\n".join(["text,team", *(f"text {n},{t}" for n, t in enumerate(teams))]))
    said = "spelling: Billing as billing, shipping as SHIPPING."
    assert said in run("import", path, "--label", "team", "--dry-run").stderr
    done = run("import", path, "--label", "team", "--json")
    assert said in done.stderr
    rows = list(map(json.loads, run("download", json.loads(done.stdout)["id"]).stdout.splitlines()))
    assert {tuple(row["decisions"][0]["outcomes"]) for row in rows} == {("SHIPPING", "billing")}
    chosen = [name for row in rows for name, share in row["targets"]["team"].items() if share]
    assert sorted(chosen) == ["SHIPPING"] * 3 + ["billing"] * 3
    # Labels of a list are joined too, and values that are nothing else are no label.
    path = tmp_path / "lists.jsonl"
    path.write_bytes(
        to_ndjson(
            [{"text": f"t {n}", "tags": t} for n, t in enumerate([["a", "b"], ["A"], ["a"], ["b"]])]
        )
    )
    assert "spelling: A as a." in run("import", path, "--label", "tags", "--dry-run").stderr
    path.write_bytes(to_ndjson([{"text": "x", "tag": "a"}, {"text": "y", "tag": "A"}]))
    refused = run("import", path, "--label", "tag", "--dry-run", status=2).stderr
    assert "differ in capitals or blanks alone" in refused


@pytest.mark.parametrize("dry", [(), ("--dry-run",)])
def test_a_file_of_which_much_is_left_out_ends_with_1(run, tmp_path, dry):
    path = tmp_path / "some.csv"
    rows = [f"text number {n},{'ab'[n % 2]}" for n in range(20)]
    path.write_text("\n".join(["text,label", *rows, "broken,a,b", "broken,b,a"]))
    run("import", path, *dry)
    path.write_text("\n".join(["text,label", *rows, *["broken,a,b"] * 3]))
    told = run("import", path, *dry, status=1).stderr
    assert "3 of 23 rows are left out, more than a tenth, so the exit status is 1" in told
    run("import", path, *dry, "--bad-rows", tmp_path / "bad.csv")
    told = run("import", path, *dry, "--bad-rows", path, status=2).stderr
    assert (f"--bad-rows would replace {path}" in told, "broken" in path.read_text()) == (
        True,
        True,
    )
    # What the program that wrote a file leaves out is no fault of the file.
    records = [
        {"text": f"text {n}", "annotation": "ab"[n % 2], "prediction": None, "status": status}
        for n, status in enumerate(["Validated", "Validated", "Discarded", "Discarded"])
    ]
    path = tmp_path / "records.jsonl"
    path.write_bytes(to_ndjson(records))
    assert "It was discarded." in run("import", path, "--dry-run").stderr


def test_rows_that_a_server_refuses_are_left_out_with_their_lines(run, tmp_path):
    path, bad = tmp_path / "shares.jsonl", tmp_path / "bad.csv"
    rows = [{"text": f"Message {n}", "team": {"a": n / 10, "b": 1 - n / 10}} for n in range(10)]
    rows[3] = {"text": "", "team": {"a": 1}}
    rows[6]["team"] = {"a": 0.9, "b": 0.9}
    path.write_bytes(to_ndjson(rows))
    refused = "1 is left out, which the server refuses:\n  line 7: team: "
    tried = run("import", path, "--label", "team", "--bad-rows", bad, "--dry-run")
    assert refused in tried.stderr
    done = run("import", path, "--label", "team", "--bad-rows", bad, "--json")
    assert json.loads(done.stdout)["rows"] == 8
    assert refused in done.stderr
    assert [line.split(",")[0] for line in bad.read_text().splitlines()] == ["line", "4", "7"]
    # A file of nothing else is refused.
    path.write_bytes(to_ndjson(rows[6:7]))
    for dry in ((), ("--dry-run",)):
        assert "sum" in run("import", path, "--label", "team", *dry, status=2).stderr


def test_rows_with_a_fault_are_left_out_with_their_lines(run, tmp_path):
    rows = make_rows(30)
    rows[4]["targets"] = {"route": "nobody"}
    rows[9].pop("context")
    path, left_out = tmp_path / "bad.jsonl", tmp_path / "left-out.csv"
    path.write_bytes(to_ndjson(rows).replace(b"{", b"{]", 1))
    for command in (["create", path, "--name", "bad"], ["import", path]):
        made = run(*command, "--bad-rows", left_out, "--json")
        assert json.loads(made.stdout)["rows"] == 27
        assert "line 1: It is no JSON at character 2: " in made.stderr
        assert "line 10: context is missing" in made.stderr
        kept = [line.split(",")[0] for line in left_out.read_text().splitlines()]
        assert kept == ["line", "1", "5", "10"]
    dataset, bad = json.loads(made.stdout)["id"], tmp_path / "none.jsonl"
    bad.write_bytes(to_ndjson(rows[9:10]) + b"[]\n")
    refused = run("add", dataset, bad, status=2)
    assert "Error (invalid_example)" in refused.stderr
    assert "context is missing" in refused.stderr.replace("\n", " ")
    assert (refused.stdout, "line 2: It is no JSON object" in refused.stderr) == ("", True)
    bad.write_text("no rows\n")
    assert "No row can be used; nothing was stored." in run("add", dataset, bad, status=2).stderr


def test_a_licence_is_kept_in_the_rows_that_name_none(run, tmp_path):
    rows = make_rows(4)
    rows[1]["metadata"] = {"license": "MIT", "by": "expert"}
    lines, table = tmp_path / "licensed.jsonl", tmp_path / "more.csv"
    lines.write_bytes(to_ndjson(rows[:2]))
    made = run("create", lines, "--name", "licensed", "--license", "CC-BY-4.0", "--json")
    dataset = json.loads(made.stdout)["id"]
    lines.write_bytes(to_ndjson(rows[2:]))
    run("add", dataset, lines, "--license", "CC0-1.0")
    metadata = [
        json.loads(row).get("metadata") for row in run("download", dataset).stdout.splitlines()
    ]
    expected = [{"license": "CC-BY-4.0"}, {"license": "MIT", "by": "expert"}]
    expected += [{"license": "CC0-1.0"}] * 2
    assert sorted(map(str, metadata)) == sorted(map(str, expected))
    table.write_text("message,team\n" + "".join(f"Text {n},{'ab'[n % 2]}\n" for n in range(20)))
    made = run("import", table, "--license", "ODbL-1.0", "--json")
    rows = run("download", json.loads(made.stdout)["id"]).stdout.splitlines()
    assert {json.loads(row)["metadata"]["license"] for row in rows} == {"ODbL-1.0"}


def test_rows_are_added_from_lines_and_from_a_table(run, dataset, tmp_path):
    more = tmp_path / "more.jsonl"
    more.write_bytes(to_ndjson(make_rows(5, 20)))
    assert json.loads(run("add", dataset, more, "--json").stdout)["rows"] == 25
    table = tmp_path / "more.csv"
    table.write_text("context,refund\nAnother one,yes\n")
    assert json.loads(run("add", dataset, table, "--json").stdout)["version"] == 3
    lines = tmp_path / "table.jsonl"
    lines.write_text('{"text": "One more line", "refund": "no"}\n')
    assert json.loads(run("add", dataset, lines, "--json").stdout)["version"] == 4
    assert "dataset import" in run("create", lines, "--name", "x", status=2).stderr
    bad = tmp_path / "bad.csv"
    table = tmp_path / "more.tsv"
    table.write_bytes(
        "context\trefund\nCafé dû?\tno\nbroken\tno\tmore\nno outcome\tnobody\n".encode("cp1252")
    )
    added = run("add", dataset, table, "--bad-rows", bad, "--encoding", "cp1252", "--json")
    assert json.loads(added.stdout)["rows"] == 28
    assert "line 3" in added.stderr
    left_out = bad.read_text().splitlines()
    assert [line.split(",")[0] for line in left_out] == ["line", "3", "4"]
    assert "refund is 'nobody', which is no outcome" in left_out[2]
    table.write_text("context,team\nAnother,billing\n")
    assert "name one by its id: refund, route" in run("add", dataset, table, status=2).stderr
    assert "Café dû?" in run("rows", dataset, "--text", "Café").stdout
    assert "dataset import" in run("create", table, "--name", "tsv", status=2).stderr
    assert "no_new_rows" in run("add", dataset, more, status=2).stderr
    shown = run("versions", dataset).stdout.splitlines()
    assert [line.split()[0] for line in shown] == ["VERSION", "5", "4", "3", "2", "1"]


def test_datasets_are_listed_and_shown(run, dataset):
    assert dataset in run("list").stdout
    assert dataset in {one["id"] for one in json.loads(run("list", "--json").stdout)}
    assert dataset not in run("list", "--archived").stdout
    shown = run("show", dataset).stdout
    assert "too_few_rows" in shown
    assert json.loads(run("show", dataset, "--json").stdout)["labels_to_check"] == 0


def test_rows_are_shown_and_downloaded(run, dataset, tmp_path):
    shown = run("rows", dataset, "--limit", "2", "--text", "invoice 7").stdout
    assert "Invoice 7 was paid twice." in shown
    assert "1 of 1 rows" in shown
    assert json.loads(run("rows", dataset, "--json").stdout)["total"] == 20
    run("rename", dataset, "alone of its name")
    lines = run("download", "alone of its name").stdout_bytes
    assert lines == run("download", dataset).stdout_bytes
    assert len(lines.splitlines()) == 20
    path = tmp_path / "rows.parquet"
    run("download", dataset, "--format", "parquet", "--output", path)
    assert pl.read_parquet(path).height == 20
    assert run("download", dataset, "--output", tmp_path, status=2)


def test_a_difference(run, dataset, url, tmp_path):
    more = tmp_path / "more.jsonl"
    row = make_row_dict("Invoice 3 was paid twice.", targets={"route": "other"})
    more.write_bytes(to_ndjson([row]))
    # The importer keeps one right answer; the API takes both, of which neither replaces the other.
    told = run("add", dataset, more, status=2).stderr
    assert "1 context has another label in the dataset: corrections go by a draft." in told
    assert "line 1: Its context has another label of route in the dataset" in told
    with steelyard.connect(url) as client:
        client.datasets.add_rows(dataset, [row])
    shown = run("diff", dataset).stdout
    assert "version 1 to 2: 1 rows and 0 contexts added" in shown
    assert "BOTH LABELS STAND" in shown
    assert "1 context has several labels of route" in run("show", dataset).stdout
    assert json.loads(run("diff", dataset, "--from", "1", "--json").stdout)["rows"] == 1


def test_a_name_and_a_deletion(run, dataset):
    assert "other" in run("rename", dataset, "other").stdout
    assert "other" in run("restore", dataset).stdout
    asked = run("delete", dataset, status=1, input="n\n")
    assert f"Delete other ({dataset}) and all of its rows" in asked.stdout
    assert "dataset" in run("delete", "ds_none", status=2, input="y\n").stderr
    assert "is deleted" in run("delete", dataset, "--yes").stdout
    assert "dataset_deleted" in run("show", dataset, status=2).stderr


def test_an_operator_archives(run, dataset, server):
    home = str(server.services.settings.home)
    archive = ["dataset", "archive", "--home", home]
    result = CliRunner().invoke(main, [*archive, dataset])
    assert result.exit_code == 0, result.stderr
    assert dataset in run("list", "--archived").stdout
    assert dataset not in run("list").stdout
    run("restore", dataset)
    assert dataset in run("list").stdout
    assert CliRunner().invoke(main, [*archive, "ds_nothing"]).exit_code == 2


def test_a_server_that_is_not_there():
    result = CliRunner().invoke(
        main, ["dataset", "list", "--url", "http://127.0.0.1:1"], env={"STEELYARD_API_KEY": ""}
    )
    assert result.exit_code == 3
    assert "server_unreachable" in result.stderr
    assert CliRunner().invoke(main, ["dataset", "list", "--url", "nowhere"]).exit_code == 2


def test_feedback_becomes_rows(run, url):
    asked = [{"id": "late", "kind": "binary", "question": "Is it late?"}]
    for number in range(3):
        body = {"context": f"Parcel {number} is not there.", "decisions": asked}
        answer = httpx.post(f"{url}/v1/decide", json=body, timeout=30).json()
        report = {"decision_id": answer["id"], "outcomes": {"late": "yes"}}
        httpx.post(f"{url}/v1/feedback", json=report, timeout=30).raise_for_status()
    shown = run("from-feedback", "--name", "observed", "--decision", "late").stdout
    assert "without feedback" in shown
    made = json.loads(
        run("from-feedback", "--name", "again", "--since", "2020-01-01", "--json").stdout
    )
    assert made["feedback"]["added"] == 3
    run("from-feedback", "--dataset", made["id"], status=2)
    run("from-feedback", status=2)
    run("from-feedback", "--name", "late", "--until", "2020-01-01", status=2)
