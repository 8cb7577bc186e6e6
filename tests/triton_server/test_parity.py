"""Comparing engines: the meaning of equal, and that nothing passes for it."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from steelyard.errors import EngineUnavailableError
from steelyard.scoring.engine import PassEngine, Tensors
from steelyard.scoring.remote.triton_address import parse_address
from steelyard.triton import parity
from steelyard.triton.parity import (
    LIMIT,
    ModelComparison,
    check_server,
    compare_engines,
    fixed_requests,
    is_good,
)
from steelyard.triton.repository import ModelSource
from support.models.remote_engines import run_pass
from support.triton.fake_triton import FakeModel, serving


class Changing:
    """An engine whose outputs are changed on their way."""

    def __init__(self, engine: PassEngine, change) -> None:
        self.engine, self.change = engine, change

    def run(self, inputs: Tensors, outputs) -> Tensors:
        return self.change(self.engine.run(inputs, outputs))

    def close(self) -> None:
        pass


@pytest.fixture(scope="module")
def engine(base: ModelSource):
    engine = base.engine()
    yield engine
    engine.close()


@pytest.fixture(autouse=True)
def few_requests(monkeypatch):
    """One short request: the whole set is for a real server."""
    few = list(islice(fixed_requests(), 1))
    monkeypatch.setattr(parity, "fixed_requests", lambda: iter(few))


def compare(base, engine, change) -> ModelComparison:
    return compare_engines(base, engine, Changing(engine, change), rounds=1)


def test_an_engine_is_equal_to_itself(base, engine):
    found = compare(base, engine, lambda outputs: outputs)
    assert found.verdict == "equal"
    assert (found.model, found.precision, found.n_decisions) == ("random", "float32", 3)
    assert found.difference == found.vector_difference == 0.0
    assert found.here_ms > 0 < found.there_ms


def test_noise_of_floating_point_is_equal(base, engine):
    found = compare(base, engine, lambda outputs: {k: v + 1e-6 for k, v in outputs.items()})
    assert found.verdict == "equal"
    assert 0 < found.vector_difference < LIMIT


@pytest.mark.parametrize("wrong", [0.1, np.nan])
def test_one_wrong_logit_is_different(base, engine, wrong):
    def change(outputs: Tensors) -> Tensors:
        if "logits" not in outputs:
            return outputs
        logits = outputs["logits"].copy()
        logits[0, 0] += wrong
        return {**outputs, "logits": logits}

    if np.isnan(wrong):
        with pytest.raises(Exception, match="not finite"):
            compare(base, engine, change)
    else:
        found = compare(base, engine, change)
        assert found.verdict == "different"
        assert found.difference > LIMIT


def test_vectors_that_are_no_numbers_are_seen(base, engine):
    def change(outputs: Tensors) -> Tensors:
        vectors = outputs.get("marker_vectors")
        return outputs if vectors is None else {**outputs, "marker_vectors": vectors * np.nan}

    found = compare(base, engine, change)
    assert np.isnan(found.vector_difference)
    assert found.verdict == "different"


def test_an_engine_that_fails_is_an_error(base, engine):
    def fail(_: Tensors) -> Tensors:
        raise EngineUnavailableError("It fails.")

    with pytest.raises(EngineUnavailableError):
        compare(base, engine, fail)


def test_a_server_is_asked_without_the_proxy_of_the_environment(monkeypatch):
    for name in ("grpc_proxy", "https_proxy", "http_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    for name in ("no_grpc_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    with serving(("random", FakeModel(run_pass))) as server:
        found = check_server(parse_address(server.url), {})
    assert [(one.model, one.verdict) for one in found] == [("random", "unloaded")]


@pytest.mark.parametrize(
    ("verdicts", "good"),
    [
        (["equal"], True),
        (["equal", "foreign", "unloaded"], True),
        (["equal", "different"], False),
        (["equal", "failed"], False),
        (["unloaded"], False),
        ([], False),
    ],
)
def test_a_server_is_good_when_something_was_compared_and_all_of_it_equal(verdicts, good):
    assert is_good([ModelComparison("m", verdict) for verdict in verdicts]) is good
