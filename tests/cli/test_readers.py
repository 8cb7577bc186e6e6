"""Readers are added from a folder, downloaded, and asked like any connected model."""

from __future__ import annotations

import json
import os
import zipfile

import pytest

from steelyard.serving.judge.download import sole_writer
from steelyard.serving.reader import download
from steelyard.serving.reader.catalogue import find_reader, read_readers
from support.models.entailment_models import THREE, write_encoder
from support.servers.model_hub import model_hub

REPOSITORY = read_readers()["reader"].repository
GRAPH = "onnx/model_quint8_avx2.onnx"


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


@pytest.fixture
def ask(run, home):
    return lambda *words: run("model", *words, "--home", str(home))


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return write_encoder(tmp_path_factory.mktemp("encoder"))


@pytest.fixture
def hub(encoder, monkeypatch):
    monkeypatch.setattr(download, "processor", lambda: "avx2")
    files = {name: (encoder / name).read_bytes() for name in ("tokenizer.json", "config.json")}
    graph = (encoder / "model.onnx").read_bytes()
    with model_hub({REPOSITORY: {**files, GRAPH: graph, "onnx/model.onnx": b"float"}}) as hub:
        yield hub


def declared(ask):
    return json.loads(ask("list", "--json").stdout)


def test_a_folder_is_added_and_checked(ask, encoder):
    added = ask("add", "nli", "--wire", "entailment", "--file", str(encoder), "--warm")
    assert added.exit_code == 0, added.stderr
    assert "MB of memory" in added.stderr
    assert declared(ask)["nli"]["file"] == str(encoder)
    checked = json.loads(ask("check", "nli", "--json").stdout)
    assert checked["answered"] == checked["asked"]
    assert checked["flips_when_reordered"] == 0


def test_the_doctor_looks_at_it(ask, run, encoder, home, tmp_path, monkeypatch):
    monkeypatch.setenv("STEELYARD_HOME", str(home))
    folder = write_encoder(tmp_path / "nli")
    ask("add", "nli", "--wire", "entailment", "--file", str(folder))

    def finding():
        checks = json.loads(run("doctor", "--json").stdout)["checks"]
        [check] = [check for check in checks if check["check"] == "reader"]
        return check["status"], check["message"]

    assert finding()[0] == "ok"
    (folder / "model.onnx").unlink()
    status, message = finding()
    assert (status, "has no model.onnx" in message) == ("fail", True)


def test_other_labels_and_another_order_are_options(ask, tmp_path):
    folder = str(write_encoder(tmp_path / "nli", config={"id2label": {}}))
    given = ["add", "nli", "--wire", "entailment", "--file", folder]
    refused = ask(*given)
    assert (refused.exit_code, "--labels" in refused.stderr) == (2, True)
    added = ask(*given, "--labels", ",".join(THREE), "--pair-order", "statement")
    assert added.exit_code == 0, added.stderr
    model = declared(ask)["nli"]
    assert (model["labels"], model["hypothesis_first"]) == ([*THREE], True)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--wire", "entailment"], "--file FOLDER"),
        (["--wire", "entailment", "--file", "."], "has no model.onnx"),
        (["--wire", "entailment", "--file", ".", "--url", "http://host"], ""),
        (["--wire", "chat", "--url", "http://host", "--labels", "a,b"], "--wire entailment alone"),
    ],
)
def test_other_folders_are_not_added_as_readers(ask, tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    refused = ask("add", "nli", *words)
    assert refused.exit_code == 2
    assert message in refused.stderr
    assert declared(ask) == {}


def test_a_reader_is_downloaded_for_this_processor_and_connected(ask, hub, home, encoder):
    pulled = ask("pull", "reader", "--model-hub", hub.url)
    assert pulled.exit_code == 0, pulled.stderr
    folder = home / "models" / "nli-deberta-v3-xsmall"
    assert (folder / "model.onnx").read_bytes() == (encoder / "model.onnx").read_bytes()
    assert declared(ask)["reader"]["file"] == str(folder)
    assert json.loads(ask("check", "reader", "--json").stdout)["answered"] == 32
    hub.ranges.clear()
    assert ask("pull", REPOSITORY, "--model-hub", hub.url).exit_code == 0
    assert hub.ranges == []


def test_an_interrupted_reader_is_gone_on_with(ask, hub, home):
    hub.ends_after = 700
    failed = ask("pull", "reader", "--model-hub", hub.url)
    assert (failed.exit_code, "try again" in failed.stderr) == (1, True)
    hub.ends_after = 0
    assert declared(ask) == {}
    assert ask("pull", "reader", "--model-hub", hub.url).exit_code == 0
    assert "bytes=700-" in hub.ranges
    assert [path.name for path in (home / "models").iterdir()] == ["nli-deberta-v3-xsmall"]


def test_an_interrupted_reader_begins_anew_where_a_hub_has_no_ranges(ask, hub, home, encoder):
    hub.ends_after, hub.has_ranges = 700, False
    assert ask("pull", "reader", "--model-hub", hub.url).exit_code == 1
    hub.ends_after = 0
    assert ask("pull", "reader", "--model-hub", hub.url).exit_code == 0
    graph = home / "models" / "nli-deberta-v3-xsmall" / "model.onnx"
    assert graph.read_bytes() == (encoder / "model.onnx").read_bytes()


def test_the_files_of_a_reader_may_be_at_another_host(ask, hub, home):
    with model_hub(hub.files) as store:
        hub.elsewhere = store.url
        store.ends_after = 700
        assert ask("pull", "reader", "--model-hub", hub.url).exit_code == 1
        store.ends_after = 0
        assert ask("pull", "reader", "--model-hub", hub.url).exit_code == 0
        assert (hub.ranges, "bytes=700-" in store.ranges) == ([], True)
    assert "reader" in declared(ask)


@pytest.mark.parametrize("source", ["--model-hub", "--from"])
def test_a_reader_that_another_process_is_getting_is_refused(ask, hub, home, encoder, source):
    folder = home / "models" / "nli-deberta-v3-xsmall"
    with sole_writer(folder):
        place = hub.url if source == "--model-hub" else str(encoder)
        refused = ask("pull", "reader", source, place)
    assert refused.exit_code == 1
    assert f"Process {os.getpid()} of " in refused.stderr
    assert list(folder.parent.iterdir()) == []
    assert declared(ask) == {}


@pytest.mark.parametrize("name", [GRAPH, "config.json", "tokenizer.json"])
@pytest.mark.parametrize(
    "fault",
    [*("hash", "words", "page", "file", "long", "list", "other", "gone"), -1, 0, "size", None],
)
def test_faults_of_a_hub_are_sentences(ask, hub, home, name, fault):
    if fault in {-1, 0, "size", None}:
        hub.sizes[name] = fault
    elif fault in {"hash", "words"}:
        hub.hashes[name] = "f" * (64 if name == GRAPH else 40) if fault == "hash" else "none"
    elif fault == "page":
        hub.pages[name] = (b"<html>Sign in", "text/html")
    elif fault == "file":
        hub.pages[name] = (b"<!DOCTYPE html>", "application/octet-stream")
    elif fault == "long":
        hub.pages[name] = (b"none" * len(hub.files[REPOSITORY][name]), "application/octet-stream")
    elif fault == "list":
        hub.listing = b"<html>"
    elif fault == "gone":
        hub.elsewhere = "http://127.0.0.1:9"
    else:
        del hub.files[REPOSITORY][name]
        hub.files[REPOSITORY].pop("onnx/model.onnx")
    failed = ask("pull", "reader", "--model-hub", hub.url)
    assert failed.exit_code == 1
    assert "Error: " in failed.stderr
    assert "Traceback" not in failed.output
    assert declared(ask) == {}
    assert not (home / "models" / "nli-deberta-v3-xsmall").exists()


@pytest.mark.parametrize("form", ["folder", "archive"])
def test_a_reader_that_is_here_is_taken(ask, encoder, tmp_path, home, form):
    source = encoder
    if form == "archive":
        source = tmp_path / "reader.zip"
        with zipfile.ZipFile(source, "w") as archive:
            for path in encoder.iterdir():
                archive.write(path, f"nli/{path.name}")
            archive.writestr("../outside.txt", "no")
    taken = ask("pull", "reader", "--from", str(source))
    assert taken.exit_code == 0, taken.stderr
    assert sorted(path.name for path in (home / "models" / "nli-deberta-v3-xsmall").iterdir()) == [
        *("config.json", "model.onnx", "tokenizer.json")
    ]
    assert "reader" in declared(ask)


def test_other_files_are_not_taken_as_readers(ask, tmp_path):
    (tmp_path / "file").write_bytes(b"none")
    for source in (tmp_path, tmp_path / "file", tmp_path / "missing"):
        refused = ask("pull", "reader", "--from", str(source))
        assert refused.exit_code == 1
        assert str(source) in refused.stderr
    assert declared(ask) == {}


def test_the_catalogue_lists_readers(ask, run):
    assert "reader" in run("model", "catalogue").stdout
    assert find_reader("nli-MiniLM2-L6-H768")[0] == "nli-minilm2-l6-h768"
    assert find_reader("nothing") is None


_INT8 = ("model_qint8_avx512_vnni", "model_qint8_avx512", "model_quint8_avx2", "model_qint8_arm64")


@pytest.mark.parametrize(
    ("kind", "listed", "expected"),
    [
        *(("avx512_vnni", _INT8[n:], _INT8[n]) for n in (0, 1)),
        ("avx512", _INT8, _INT8[1]),
        ("avx2", _INT8, _INT8[2]),
        ("arm64", _INT8, _INT8[3]),
        ("", _INT8, "model"),
        ("avx2", ("model_O4", "model_quantized", "model_int8"), "model_int8"),
        ("avx2", ("model_quantized", "model_q4"), "model_quantized"),
        ("avx512", _INT8[2:], "model"),
    ],
)
def test_a_graph_is_chosen_among_the_files_that_the_hub_lists(kind, listed, expected):
    paths = [f"onnx/{name}.onnx" for name in (*listed, "model", "model_O1")]
    assert download.graph_for(kind, ["README.md", *paths]) == f"onnx/{expected}.onnx"
    assert download.graph_for(kind, ["a/nli_web.onnx"]) == "a/nli_web.onnx"
    assert download.graph_for(kind, ["a/one.onnx", "two.onnx"]) == ""
