"""Engines of passes that compute little, and a remote one that a test controls."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import numpy as np

from steelyard.errors import EngineUnavailableError
from steelyard.scoring.engine import Tensors
from steelyard.scoring.passes import PAST_OUTPUTS, WIDTH


def run_pass(inputs: Tensors, outputs: Sequence[str], *, weight: float = 1.0) -> Tensors:
    """Return numbers of the shapes that a pass has; they depend on its inputs and a weight."""
    n_rows, length = inputs["input_ids"].shape
    markers = inputs["marker_index"]
    text = float(inputs["input_ids"].sum() % 97) / 97
    past = float(sum(np.abs(inputs[f"past_key_{i}"]).sum() for i in range(2)) % 7)
    logits = weight * (np.sin(markers) + text + past)
    values = {
        "logits": logits,
        "marker_vectors": np.repeat(logits[..., None], WIDTH, axis=2),
        "pooled": inputs["pooled_past"] + text,
        **{name: np.full((n_rows, length, WIDTH), text) for name in PAST_OUTPUTS},
    }
    return {name: np.asarray(values[name], np.float32) for name in outputs}


class LocalEngine:
    """An engine of this process; ``n_passes`` counts."""

    def __init__(self, weight: float = 1.0) -> None:
        self.weight = weight
        self.n_passes = 0
        self.is_closed = False

    def run(self, inputs: Tensors, outputs: Sequence[str]) -> Tensors:
        if self.is_closed:
            raise EngineUnavailableError("It is closed.")
        self.n_passes += 1
        return run_pass(inputs, outputs, weight=self.weight)

    def close(self) -> None:
        self.is_closed = True


class Remote(LocalEngine):
    """A remote engine: each of its calls runs ``failing`` first."""

    def __init__(self, place: str = "triton://one:1", weight: float = 1.0) -> None:
        super().__init__(weight)
        self.place = place
        self.is_loading = False
        self.failing: Callable[[str], None] | None = None
        self.calls: list[str] = []
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.entered = threading.Event()

    def _begin(self, call: str) -> None:
        self.calls.append(call)
        if self.failing is not None:
            self.failing(call)

    def open(self) -> None:
        self._begin("open")

    def check(self) -> None:
        self._begin("check")

    def run(self, inputs: Tensors, outputs: Sequence[str]) -> Tensors:
        self._begin("run")
        self.entered.set()
        assert self.may_answer.wait(30)
        return super().run(inputs, outputs)

    def interrupt(self) -> None:
        self.calls.append("interrupt")


def gone(call: str) -> None:
    """Fail as a server does that is not there."""
    raise EngineUnavailableError("It is not there.", retry_after_s=1.0)
