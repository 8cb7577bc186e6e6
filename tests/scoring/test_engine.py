from __future__ import annotations

import threading

import numpy as np
import pytest

from steelyard.errors import EngineUnavailableError
from steelyard.scoring.assets import GRAPHS
from steelyard.scoring.engine import FLOAT32, INT8, LARGE_PAST, Engine, graph_weights
from steelyard.scoring.onnx import DECISION_OUTPUTS
from steelyard.scoring.packing import lay_out_text
from steelyard.scoring.passes import HEAD, N_HEADS, N_LAYERS, NO_DECISION, Past, pass_inputs
from steelyard.scoring.rows import fill_rows, tokens_of


def make_inputs(n_tokens: int = 5) -> dict[str, np.ndarray]:
    layout = lay_out_text(range(1_000, 1_000 + n_tokens))
    return pass_inputs(fill_rows([tokens_of(layout)]), [NO_DECISION], [layout.context_channel])


@pytest.fixture
def make_engine(random_folder, stored):
    """Make an engine of the test's own."""

    def make(precision: str, threads: int = 0) -> Engine:
        graph = (random_folder / GRAPHS[precision]).read_bytes()
        return Engine(graph, stored, precision=precision, threads=threads)

    return make


def test_float32_dequantises_all_but_the_word_embeddings(stored):
    tensors = graph_weights(stored, FLOAT32)
    for name, value in stored.items():
        stem, _, part = name.rpartition(".")
        if stem == "word_embeddings":
            assert tensors[name] is value
        elif part == "scale":
            assert name not in tensors
        elif f"{stem}.scale" in stored and part == "weight":
            assert tensors[name].dtype == np.float32
            expected = value.astype(np.float64) * stored[f"{stem}.scale"].astype(np.float64)
            assert np.allclose(tensors[name], expected, rtol=1e-6, atol=0)
        else:
            assert tensors[name] is value
    assert tensors["word_embeddings.weight"].dtype == np.int8


def test_int8_keeps_the_encoder_and_dequantises_the_set_layer(stored):
    tensors = graph_weights(stored, INT8)
    exact = {name for name in stored if name.startswith("set_layer.")}
    assert all(tensors[name] is stored[name] for name in stored if name not in exact)
    assert tensors["layers.0.qkv.weight"].dtype == np.int8
    assert "layers.0.qkv.scale" in tensors
    float32 = graph_weights(stored, FLOAT32)
    assert exact & set(tensors) == {name for name in float32 if name.startswith("set_layer.")}
    for name in exact & set(tensors):
        assert np.array_equal(tensors[name], float32[name])
        assert tensors[name].dtype == np.float32


def test_the_outputs_asked_for_are_given(random_engine):
    outputs = random_engine.run(make_inputs(), ["pooled", "logits"])
    assert list(outputs) == ["pooled", "logits"]
    assert outputs["pooled"].shape == (1, 384)
    assert np.isfinite(outputs["pooled"]).all()


def test_threads_change_no_answer(make_engine):
    one, two = (
        make_engine(FLOAT32, threads).run(make_inputs(300), ["pooled"])["pooled"]
        for threads in (1, 2)
    )
    assert np.allclose(one, two, atol=1e-3, rtol=1e-5)


@pytest.mark.parametrize("precision", [FLOAT32, INT8])
def test_a_closed_engine_is_unavailable(make_engine, precision):
    engine = make_engine(precision)
    engine.run(make_inputs(), DECISION_OUTPUTS)
    engine.close()
    engine.close()
    with pytest.raises(EngineUnavailableError, match="closed") as caught:
        engine.run(make_inputs(), DECISION_OUTPUTS)
    assert caught.value.retry_after_s == 1


@pytest.mark.parametrize(
    "broken",
    [
        {"input_ids": np.zeros((1, 3), np.float32)},
        {"input_ids": np.full((1, 7), 10**6, np.int32)},
        {"blocks": np.zeros((1, 7, 4), np.int32)},
    ],
    ids=["type", "value", "shape"],
)
def test_a_runtime_error_is_an_unavailable_engine(random_engine, broken):
    with pytest.raises(EngineUnavailableError, match="failed") as caught:
        random_engine.run({**make_inputs(), **broken}, DECISION_OUTPUTS)
    assert caught.value.__cause__ is not None
    assert caught.value.retry_after_s == 1
    # The next request is answered as if nothing had been.
    assert np.isfinite(random_engine.run(make_inputs(), ["pooled"])["pooled"]).all()


def test_several_threads_may_run_it_at_once(random_engine):
    sizes = [3, 40, 100, 250]
    alone = [random_engine.run(make_inputs(size), ["pooled"])["pooled"] for size in sizes]
    found: dict[int, np.ndarray] = {}

    def run(index: int) -> None:
        inputs = make_inputs(sizes[index % len(sizes)])
        found[index] = random_engine.run(inputs, ["pooled"])["pooled"]

    workers = [threading.Thread(target=run, args=(index,)) for index in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(timeout=60)
    assert len(found) == len(workers)
    for index, pooled in found.items():
        assert np.allclose(pooled, alone[index % len(sizes)], atol=1e-3, rtol=1e-5)


def test_a_passs_memory_goes_back_once_a_minute_and_after_a_large_one(make_engine, monkeypatch):
    engine = make_engine(INT8)
    clock = iter([100.0, 101.0, 159.0, 160.0, 161.0, 162.0, 163.0, 164.0])
    monkeypatch.setattr("steelyard.scoring.engine.time.monotonic", lambda: next(clock))
    run, asked = engine._session.run, []

    class Session:
        def run(self, outputs, inputs, options):
            asked.append(options is not None)
            return run(outputs, inputs, options)

    engine._session = Session()
    for n_past in (0, 0, 0, 0, 0, LARGE_PAST, 0, 0):
        channels = np.zeros(n_past + 1, np.int32)
        tokens = (np.zeros((N_HEADS, n_past + 1, HEAD), np.float32),) * N_LAYERS
        past = Past(channels, tokens, tokens)
        engine.run(make_inputs() | past.tensors(), ["pooled"])
    assert asked == [True, False, False, True, False, True, True, False]
