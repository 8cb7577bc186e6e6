from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import numpy as np
import pytest

from steelyard.calibration.temperature import TemperatureTable
from steelyard.decisions.rendering import RenderedDecision, RenderedRequest
from steelyard.durable import write_atomically
from steelyard.errors import EngineUnavailableError
from steelyard.scoring.assets import (
    AUTO,
    CARD,
    ENGINES,
    GRAPHS,
    MANIFEST,
    TOKENIZER,
    WEIGHTS,
    load_base_model,
    read_base_files,
    read_manifest,
)
from steelyard.scoring.shipped import BASE
from support.models.random_model import NAME, make_words

FILES = [TOKENIZER, *WEIGHTS, *GRAPHS.values()]
MAX_BYTES = 30_000_000
REQUEST = RenderedRequest(
    make_words(20), (RenderedDecision("single", "Which?", ("card", "river", "week")),)
)


@pytest.fixture
def folder(random_folder: Path, tmp_path: Path) -> Path:
    """A model folder that a test may change: its files are links until they are replaced."""
    for path in random_folder.iterdir():
        (tmp_path / path.name).symlink_to(path)
    return tmp_path


def replace(path: Path, content: bytes) -> None:
    path.unlink()
    path.write_bytes(content)


def change_manifest(folder: Path, **changes: object) -> None:
    manifest = json.loads((folder / MANIFEST).read_bytes())
    replace(folder / MANIFEST, json.dumps({**manifest, **changes}).encode())


def engines_that_read(file: str) -> list[str]:
    others = set(GRAPHS.values()) - {file} if file in GRAPHS.values() else set()
    return [name for name, precision in ENGINES.items() if GRAPHS[precision] not in others]


@pytest.mark.parametrize("engine", list(ENGINES))
def test_a_model_is_loaded_as_its_manifest_says(folder, engine):
    model = load_base_model(engine, folder=folder)
    assert (model.scorer.name, model.scorer.engine) == (NAME, engine)
    assert model.manifest == json.loads((folder / MANIFEST).read_bytes())
    assert model.temperatures == TemperatureTable.from_dict(
        model.manifest["temperatures"][ENGINES[engine]]
    )
    tokenizer = model.tokenizer
    assert (tokenizer.name, tokenizer.revision) == ("words", "1")
    assert tokenizer.sha256 == model.manifest["files"][TOKENIZER]
    assert model.card == folder / CARD
    assert model.scorer.score([REQUEST])[0][0].logits.shape == (3,)
    model.scorer.close()


def test_the_shipped_weights_are_read_from_their_files():
    files = read_base_files("onnxruntime-int8")
    contents = [np.frombuffer(file, np.uint8) for file in files.mapped]
    for name, tensor in files.weights.items():
        assert any(np.may_share_memory(tensor, content) for content in contents), name


def test_each_precision_has_temperatures_of_its_own(folder):
    tables = [load_base_model(engine, folder=folder).temperatures for engine in ENGINES]
    assert tables[0] != tables[1]


def test_models_of_one_tokenizer_share_it(folder):
    first, second = (load_base_model(engine, folder=folder).tokenizer for engine in ENGINES)
    assert first is second
    manifest = json.loads((folder / MANIFEST).read_bytes())
    change_manifest(folder, tokenizer={**manifest["tokenizer"], "revision": "2"})
    assert load_base_model(folder=folder).tokenizer.revision == "2"


def test_the_default_engine_is_the_manifests(folder):
    assert load_base_model(AUTO, folder=folder).scorer.engine == "onnxruntime-float32"
    change_manifest(folder, engine="onnxruntime-int8")
    assert load_base_model(folder=folder).scorer.engine == "onnxruntime-int8"


def test_an_unknown_engine_is_refused_and_the_known_ones_are_named(folder):
    with pytest.raises(EngineUnavailableError, match="'cuda'") as caught:
        load_base_model("cuda", folder=folder)
    assert all(engine in str(caught.value) for engine in (AUTO, *ENGINES))
    change_manifest(folder, engine="abacus")
    with pytest.raises(EngineUnavailableError):
        load_base_model(folder=folder)


def altered(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize(
    "spoil", [altered, lambda content: content[:-1], None], ids=["altered", "cut short", "missing"]
)
def test_a_file_that_is_not_whole_is_named(folder, file, spoil):
    if spoil is None:
        (folder / file).unlink()
        said = "is missing"
    else:
        content = spoil((folder / file).read_bytes())
        replace(folder / file, content)
        said = f"{hashlib.sha256(content).hexdigest()}, .*altered or cut short"
    for engine in engines_that_read(file):
        with pytest.raises(EngineUnavailableError, match=said) as caught:
            load_base_model(engine, folder=folder)
        assert str(folder / file) in str(caught.value)


def test_a_file_that_the_manifest_does_not_list_is_not_trusted(folder):
    files = json.loads((folder / MANIFEST).read_bytes())["files"]
    del files[TOKENIZER]
    change_manifest(folder, files=files)
    with pytest.raises(EngineUnavailableError, match=re.escape(TOKENIZER)):
        load_base_model(folder=folder)


def test_the_other_precisions_graph_is_not_needed(folder):
    (folder / GRAPHS["int8"]).unlink()
    assert load_base_model("onnxruntime-float32", folder=folder).scorer.score([REQUEST])


@pytest.mark.parametrize("content", [None, b"", b"{", b"\xff\xfe", b"[]", b"{}", b'{"engine": 1}'])
def test_a_manifest_that_cannot_be_read_is_an_unavailable_engine(folder, content):
    path = folder / MANIFEST
    path.unlink() if content is None else replace(path, content)
    for load in (lambda: load_base_model(folder=folder), lambda: read_manifest(folder)):
        with pytest.raises(EngineUnavailableError, match=re.escape(str(path))):
            load()


def test_both_precisions_give_nearly_the_same_logits(folder):
    logits = []
    for engine in ENGINES:
        model = load_base_model(engine, folder=folder)
        logits.append(model.scorer.score([REQUEST])[0][0].logits)
        model.scorer.close()
    assert not np.array_equal(*logits), "both engines ran one graph"
    assert np.allclose(*logits, atol=0.5)


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_atomically(path, b"old")
    assert path.read_bytes() == b"old"
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    monkeypatch.undo()
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("shipped", [BASE], ids=["base-2"])
class TestShipped:
    def test_every_file_is_there_as_the_manifest_says(self, shipped):
        files = read_manifest(shipped)["files"]
        assert set(FILES) <= set(files)
        for file, digest in files.items():
            assert hashlib.sha256((shipped / file).read_bytes()).hexdigest() == digest, file

    def test_the_folder_is_small(self, shipped):
        assert sum(path.stat().st_size for path in shipped.rglob("*")) < MAX_BYTES

    def test_a_card_comes_with_it(self, shipped):
        card = load_base_model(folder=shipped).card
        assert card.is_file()
        assert read_manifest(shipped)["name"] in card.read_text(encoding="utf-8")

    def test_the_default_engine_is_one_of_those_known(self, shipped):
        assert read_manifest(shipped)["engine"] in ENGINES

    def test_every_kind_and_number_of_outcomes_has_a_temperature(self, shipped):
        for precision in ENGINES.values():
            table = read_manifest(shipped)["temperatures"][precision]["temperatures"]
            assert set(table) == {"single", "binary", "ordinal"}
            assert all(set(row) == {"2", "3-5", "6-12", "13-40", "41+"} for row in table.values())

    def test_the_log_of_its_training_is_kept(self, shipped):
        lines = (shipped / "training_log.jsonl").read_text(encoding="utf-8").splitlines()
        assert all({"step", "tokens"} <= set(json.loads(line)) for line in lines)
        assert any("validation" in json.loads(line) for line in lines)


def test_a_stated_fact_is_truer_than_its_opposite():
    stated = {
        "The ticket was closed on Monday.": ("closed", "open"),
        "The request was denied.": ("denied", "approved"),
        "The battery is empty.": ("empty", "full"),
        "Their website is offline since noon.": ("offline", "online"),
    }
    ask = load_base_model().scorer.score
    for context, words in stated.items():
        questions = [RenderedDecision("binary", f"Is it {word}?", ("yes", "no")) for word in words]
        [answers] = ask([RenderedRequest(context, tuple(questions))])
        true, false = (float(answer.logits[0] - answer.logits[1]) for answer in answers)
        assert true > false, context
