"""The report of a running fine-tune: its phase, and the curve of its training loss."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

import msgspec
from msgspec import Struct

from steelyard.trainer.task import ProgramPhase, Progress
from steelyard.wire.decoding import decode
from steelyard.wire.training import CurvePoint

#: Called after every step with its number from 1, the loss that it lowered (the mean over its rows,
#: before the step) and its learning rate.
OnStep = Callable[[int, float, float], None]
#: Seconds between two reports within a phase.
_EVERY_S = 1.0
#: The most points of a curve.
_MAX_POINTS = 200


class _CurveStep(Struct, frozen=True, array_like=True):
    phase: ProgramPhase
    step: int
    loss: float
    learning_rate: float


class Reporter:
    """Appends reports to ``progress.jsonl``, and losses to the curve.

    At most one report a second within a phase, and one at its beginning and end. A reader sees a
    report once it is whole: each is one line, written in one piece. Use it as a context manager.
    """

    def __init__(
        self, progress: Path, curve: Path, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._curve_path = curve
        self._progress = _open_to_append(progress)
        self._curve = _open_to_append(curve)
        self._clock = clock
        self._phase: ProgramPhase | None = None
        self._told_at = -math.inf

    def __enter__(self) -> Reporter:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the files."""
        self._progress.close()
        self._curve.close()

    def tell(
        self,
        phase: ProgramPhase,
        step: int,
        steps: int,
        *,
        loss: float | None = None,
        learning_rate: float | None = None,
        message: str = "",
    ) -> None:
        """Report where the program is, unless it just has; ``ValueError`` for a loss that is not finite."""
        if loss is not None:
            if not math.isfinite(loss):
                raise ValueError("The training loss is not finite; lower the learning rate.")
            self._append(self._curve, _CurveStep(phase, step, loss, learning_rate or 0.0))
        now = self._clock()
        is_edge = phase != self._phase or step >= steps
        if not is_edge and now - self._told_at < _EVERY_S:
            return
        self._phase, self._told_at = phase, now
        report = Progress(
            phase=phase,
            step=step,
            steps=steps,
            loss=loss,
            learning_rate=learning_rate,
            message=message,
        )
        self._append(self._progress, report)

    def curve(self) -> list[CurvePoint]:
        """Return the curve so far: of LoRA's steps where there are some, else of the heads'."""
        by_phase: dict[str, dict[int, _CurveStep]] = {}
        for line in self._curve_path.read_bytes().splitlines():
            try:
                step = decode(line, _CurveStep)
            except msgspec.DecodeError:
                continue  # a crash cut it short
            by_phase.setdefault(step.phase, {})[step.step] = step
        chosen = by_phase.get("lora") or by_phase.get("heads") or {}
        steps = [chosen[number] for number in sorted(chosen)]
        width = max(1, math.ceil(len(steps) / _MAX_POINTS))
        spans = [steps[start : start + width] for start in range(0, len(steps), width)]
        return [
            CurvePoint(
                step=span[-1].step,
                loss=math.fsum(step.loss for step in span) / len(span),
                learning_rate=span[-1].learning_rate,
            )
            for span in spans
        ]

    def _append(self, file: IO[bytes], value: object) -> None:
        file.write(msgspec.json.encode(value) + b"\n")
        file.flush()


def _open_to_append(path: Path) -> IO[bytes]:
    """Open a file of lines; a last line that a crash cut short is ended, so that none runs into it."""
    is_cut = path.exists() and not path.read_bytes().endswith(b"\n") and path.stat().st_size > 0
    file = path.open("ab")
    if is_cut:
        file.write(b"\n")
        file.flush()
    return file
