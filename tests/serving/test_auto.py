"""The route ``auto`` with any of the shipped model, a reader and a judge."""

from __future__ import annotations

import pytest

from steelyard.scoring.shipped import BASE
from steelyard.serving import auto
from steelyard.serving.auto import JUDGE, ROUTE, auto_route, completed
from steelyard.serving.connected.declared import Calibration, ConnectedModel, ModelsFile
from steelyard.serving.reader import declaring
from steelyard.serving.reader.declaring import BUNDLED, reader_model
from support.models.entailment_models import write_encoder

A_JUDGE = ConnectedModel(wire="gguf", file="/j.gguf")
A_READER = ConnectedModel(wire="entailment", file="/reader")


@pytest.fixture
def bundled(tmp_path, monkeypatch):
    folder = write_encoder(tmp_path / BUNDLED.name, hypothesis_first=True)
    monkeypatch.setattr(declaring, "BUNDLED", folder)
    monkeypatch.setattr(auto, "BUNDLED", folder)
    return folder


@pytest.fixture
def unbundled(tmp_path, monkeypatch):
    monkeypatch.setattr(declaring, "BUNDLED", tmp_path / "none")


def auto_of(file, base=BASE.name):
    route = completed(file, base).routes.get(ROUTE)
    return None if route is None else route.models


@pytest.mark.usefixtures("unbundled")
def test_any_of_the_three_may_be_missing():
    assert auto_of(ModelsFile()) is None
    assert auto_of(ModelsFile({JUDGE: A_JUDGE})) is None  # its setting declares the route
    assert auto_of(ModelsFile({"nli": A_READER})) == [BASE.name, "nli"]
    both = ModelsFile({JUDGE: A_JUDGE, "nli": A_READER})
    assert auto_of(both) == [BASE.name, "nli", JUDGE]
    assert completed(both, BASE.name).models == both.models


@pytest.mark.usefixtures("unbundled")
def test_the_plain_route_of_a_judge_gets_a_reader_and_others_stay():
    plain = auto_route(BASE.name, None, "qwen")
    models = {"qwen": A_JUDGE, "nli": A_READER}
    assert auto_of(ModelsFile(models, {ROUTE: plain})) == [BASE.name, "nli", "qwen"]
    fitted = auto_route(BASE.name, None, "qwen")
    fitted = type(fitted)(steps=fitted.steps, dataset="ds_1")
    assert auto_of(ModelsFile(models, {ROUTE: fitted})) == [BASE.name, "qwen"]
    through = auto_route(BASE.name, "nli", None)
    assert auto_of(ModelsFile({**models, "b": A_READER}, {ROUTE: through})) == [BASE.name, "nli"]
    assert auto_of(ModelsFile({ROUTE: A_READER})) is None


def test_the_reader_that_ships_is_there_beside_the_base_that_ships(bundled):
    name = bundled.name
    assert auto_of(ModelsFile()) == [BASE.name, name]
    assert auto_of(ModelsFile(), "hashing") is None
    first, second = completed(ModelsFile(), BASE.name).routes[ROUTE].steps
    assert (first.threshold, first.by_kind) == (0.0, {"binary": 1.0})
    assert second.carries > 0
    assert completed(ModelsFile(), BASE.name).models == {name: reader_model(bundled)}
    # A declared one goes before it, and a calibration of it stays with this installation's files.
    assert auto_of(ModelsFile({"nli": A_READER})) == [BASE.name, "nli"]
    fit = Calibration(number=1, dataset="ds_1", version=1, temperatures={})
    calibrated = reader_model(bundled.parent / "elsewhere", calibrations=(fit,))
    model = completed(ModelsFile({name: calibrated}), BASE.name).models[name]
    assert (model.file, model.calibrations) == (str(bundled), (fit,))


def test_a_yes_no_passes_the_shipped_model_by_and_the_last_answer_stands():
    first, middle, last = auto_route("base", "reader", "judge").steps
    assert first.by_kind == {"binary": 1.0}
    assert 0.5 < middle.by_kind["binary"] < 1
    assert (first.max_unstated, middle.max_unstated) == (1.0, 0.5)
    assert (last.threshold, last.by_kind, last.max_unstated) == (0.0, {}, 1.0)
    auto_route("base", "reader", "judge").check(ROUTE)
