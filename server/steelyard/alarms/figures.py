"""Figures of alarms for Prometheus, of every account."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Gauge

from steelyard.alarms.watching import Watcher


class AlarmFigures:
    """How many alarms there were at the last look."""

    def __init__(self, watcher: Watcher, registry: CollectorRegistry) -> None:
        self._watcher = watcher
        self._alarms = Gauge(
            "steelyard_alarms",
            "Alarms of every account that have not cleared, by state.",
            ["state"],
            multiprocess_mode="mostrecent",
            registry=registry,
        )

    def read(self) -> None:
        """Note how many there are."""
        for state, n in self._watcher.counts.items():
            self._alarms.labels(state).set(n)
