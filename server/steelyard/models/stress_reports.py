"""The results of ``steelyard model stress``, in a file of the home, by the model's key."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import structs

from steelyard.durable import write_atomically
from steelyard.models.stress_wire import StressReport
from steelyard.models.wire import Model

FILE = "stress.json"
#: Reports that are kept, the newest ones: a model that is changed has a key of its own.
_MOST = 200

_Reports = dict[str, StressReport]


def read_stress(home: Path) -> _Reports:
    """Return the reports of a home by evaluation key; none of a file that cannot be read."""
    try:
        return msgspec.json.decode((home / FILE).read_bytes(), type=_Reports)
    except (OSError, msgspec.DecodeError):
        return {}


def keep_stress(home: Path, evaluation_key: str, report: StressReport) -> None:
    """Keep a report in a home, in the place of an earlier one of the same model."""
    reports = {**read_stress(home), evaluation_key: report}
    newest = sorted(reports.items(), key=lambda item: -item[1].tested_at)[:_MOST]
    write_atomically(home / FILE, msgspec.json.encode(dict(newest)))


class StressReports:
    """The reports of this server's home."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def add_to(self, models: Sequence[Model]) -> list[Model]:
        """Return models with their results under pressure."""
        reports = read_stress(self._home)
        return [
            structs.replace(model, stress=reports[model.evaluation_key])
            if model.evaluation_key in reports
            else model
            for model in models
        ]
