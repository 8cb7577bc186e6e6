"""``steelyard doctor`` on the server of the setting ``scorer``: answers, and has the right weights."""

from __future__ import annotations

import pytest

from steelyard.cli.checkup import check_scorer
from steelyard.cli.findings import CheckFinding
from steelyard.settings import read_settings

pytest.importorskip("tritonclient.grpc")

from support.triton.fake_triton import LIES, serving
from support.triton.triton_service import shipped_model


def found(scorer: str, **overrides: str) -> CheckFinding:
    [finding] = check_scorer(read_settings({"scorer": scorer, **overrides}, environ={}))
    return finding


def test_nothing_is_said_without_a_server(tmp_path):
    assert list(check_scorer(read_settings({}, environ={}))) == []
    (tmp_path / "scorer").write_text("")
    assert found(f"file://{tmp_path / 'scorer'}").status == "ok"


def test_a_server_with_these_weights_is_well_and_left_as_it_is():
    name, model = shipped_model()
    with serving((name, model)) as server:
        cold = found(server.url)
        assert cold.status == "warn"
        assert "not loaded" in cold.message
        assert not model.is_loaded
        model.is_loaded = True
        well = found(server.url)
        assert well.status == "ok"
        assert "these weights" in well.message
        assert model.is_loaded


@pytest.mark.parametrize(("fallback", "status"), [("in-process", "warn"), ("none", "fail")])
def test_problems_are_reported(fallback, status):
    name, model = shipped_model()
    model.is_loaded = True
    with serving((name, model)) as server:
        model.lie = LIES["not a number"]
        lying = found(server.url, scorer_fallback=fallback)
        assert (lying.status, "no answer is made" in lying.message) == (status, True)
        model.parameters["steelyard_sha256"] = "0" * 64
        other = found(server.url, scorer_fallback=fallback)
        assert (other.status, "triton export" in other.message) == (status, True)
    gone = found(server.url, scorer_fallback=fallback)
    assert (gone.status, "cannot be reached" in gone.message) == (status, True)


def test_a_test_double_uses_no_server():
    assert found("triton://127.0.0.1:1", engine="hashing").status == "warn"
