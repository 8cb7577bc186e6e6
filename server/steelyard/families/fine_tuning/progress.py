"""Convert a trainer's reports to a fine-tune's progress and events.

A trainer that was killed reports phases anew that it had reported before. Earlier reports are read
off the events themselves, so that nothing is reported twice, by any process.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from steelyard.families.fine_tune_wire import EventType, JobEvent, JobProgress
from steelyard.trainer.task import Progress
from steelyard.wire.decoding import decoder_of

#: Percent between two events of a training.
STEP_PERCENT = 5
#: Share of a phase in a whole training, in percent, with LoRA and without; in order.
_WITH_LORA = {"lora": 75, "features": 15, "heads": 8, "calibration": 2}
_HEADS_ALONE = {"features": 65, "heads": 30, "calibration": 5}
_PERCENT = re.compile(r"(\d+) %")

_decode = decoder_of(Progress).decode


class ProgressFile:
    """Reads the lines that a trainer appends, each once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0

    def read(self) -> list[Progress]:
        """Return the whole lines that came since the last call."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError:
            return []
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        return list(_read_lines(whole))


class Telling:
    """Turns the reports of one fine-tune into its events."""

    def __init__(self, events: Iterable[JobEvent], *, with_lora: bool) -> None:
        self._shares = _WITH_LORA if with_lora else _HEADS_ALONE
        self._told: set[str] = set()
        self._percent = 0
        for event in events:
            self._told.add(event.type)
            percent = _PERCENT.match(event.message) if event.type == "step" else None
            if percent is not None:
                self._percent = max(self._percent, int(percent[1]))

    def events_of(self, report: Progress) -> list[tuple[EventType, str]]:
        """Return the events that a report calls for: their types and messages, in order."""
        if report.phase in {"scoring", "gate"}:
            return [
                *self._once("trained", "Training ended."),
                *self._once("scoring", "The model is being scored on the held-out rows."),
            ]
        percent = int(self._percent_of(report)) // STEP_PERCENT * STEP_PERCENT
        if percent <= self._percent or percent >= 100 or "trained" in self._told:
            return []
        self._percent = percent
        loss = "" if report.loss is None else f" The loss is {report.loss:.4g}."
        return [("step", f"{percent} %: {report.message}{loss}")]

    def count_tokens(self, n_tokens: int, n_rows: int) -> list[tuple[EventType, str]]:
        """Return the event that the rows are there."""
        message = f"{n_rows:,} rows to train on; {n_tokens:,} tokens are trained."
        return self._once("tokens_counted", message)

    def _once(self, type_: EventType, message: str) -> list[tuple[EventType, str]]:
        if type_ in self._told:
            return []
        self._told.add(type_)
        return [(type_, message)]

    def _percent_of(self, report: Progress) -> float:
        done = 0.0
        for phase, share in self._shares.items():
            if phase == report.phase:
                return done + share * fraction_of(report)
            done += share
        return 0.0


def fraction_of(report: Progress) -> float:
    """Return how much of its phase a report says is done, 0 to 1."""
    return min(report.step / report.steps, 1.0) if report.steps > 0 else 0.0


def progress_to_wire(report: Progress) -> JobProgress:
    """Return a report as a fine-tune tells where it is."""
    return JobProgress(
        step=report.step,
        steps=report.steps,
        loss=report.loss,
        phase="scoring" if report.phase == "gate" else report.phase,
    )


def _read_lines(data: bytes) -> Iterator[Progress]:
    for line in data.splitlines():
        try:
            yield _decode(line)
        except msgspec.DecodeError:
            continue  # a kill cut it short
