"""Figures of alarms for Prometheus, of every account."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Gauge

from steelyard.alarms.golden_checks import GoldenRowChecks
from steelyard.alarms.watching import Watcher


class AlarmFigures:
    """How many alarms there were at the last look."""

    def __init__(
        self, watcher: Watcher, golden: GoldenRowChecks, registry: CollectorRegistry
    ) -> None:
        self._watcher, self._golden = watcher, golden
        self._checked = Gauge(
            "steelyard_golden_checked_timestamp_seconds",
            "When a model's golden rows were last checked, in Unix seconds.",
            ["account", "model"],
            multiprocess_mode="mostrecent",
            registry=registry,
        )
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
        for (account_id, model), at in self._golden.checked_at.items():
            self._checked.labels(account_id, model).set(at)
