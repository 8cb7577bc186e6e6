"""The part of an evaluation's thresholds that is about one outcome."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from steelyard.evaluations.measures.records import measure_records, records_from_columns
from steelyard.evaluations.measures.thresholds import outcome_threshold
from steelyard.evaluations.thresholds_wire import ThresholdTrial
from steelyard.named.wire import NamedVersion
from steelyard.proof.differences import Bootstrap
from support.browser.shown_parts import texts

pytest.importorskip("panel", reason="needs the workbench extra")

from steelyard_workbench.kit.components.mark_table import MarkTable
from steelyard_workbench.parts.evaluations.one_outcome import OneOutcome

N = 60
POLICY = {"abstain_below": 0.5}


class Client:
    """Scored answers about fraud, each third one wrong below .8, and one named decision."""

    def __init__(self):
        self.evaluations = self.named_decisions = self
        self.added = []
        shares = [0.5 + index / 2 / N for index in range(N)]
        is_fraud = [share >= 0.8 or index % 3 > 0 for index, share in enumerate(shares)]
        self._records = records_from_columns(
            contexts=[str(index) for index in range(N)],
            decision_ids=["payment"] * N,
            kinds=["single"] * N,
            outcomes=[("fraud", "fine")] * N,
            probabilities=[[share, 1 - share] for share in shares],
            labels=[[float(each), float(not each)] for each in is_fraud],
            supervision="targets",
        )

    def outcome_threshold(self, _, decision, outcome, **trial):
        trial = ThresholdTrial(decision_id=decision, outcome=outcome, **trial)
        measures = measure_records(self._records)
        return outcome_threshold(self._records, measures, trial, Bootstrap(n_resamples=20))

    def list(self):
        return iter([SimpleNamespace(name="payments")])

    def get(self, name):
        return SimpleNamespace(latest=3)

    def version(self, name, number):
        question = {"id": "payment", "policy": POLICY}
        return NamedVersion(
            id="ndv_1",
            name=name,
            version=3,
            sha256="",
            decisions=[question],
            model="base",
            fallback=["judge"],
            temperature=None,
            escalate=True,
            otherwise="person",
            note=None,
            made_by="local",
            created_at=0.0,
        )

    def add_version(self, name, decisions, **given):
        self.added.append((decisions, given))
        return SimpleNamespace(name=name, version=4)


def test_a_threshold_is_dragged_found_and_kept():
    client, opened = Client(), []
    part = OneOutcome(client, "eval_1", opened.append)
    asyncio.run(part.show("payment", ["fraud", "fine"]))
    [table] = part.chart.select(MarkTable)
    assert (table.columns[0], len(table.rows)) == ("threshold", 101)
    part.threshold.value = 0.7
    assert "36 of 60 decisions, from 0.70 on" in texts(part.figures)
    assert part.span.location == 0.7
    part.span.location = 0.803  # as the mouse does
    assert (part.threshold.value, part.span.location) == (0.8, 0.803)
    part.precision.value = 0.99
    asyncio.run(part.find(by_costs=False))
    assert "60 rows cannot certify that" in texts(part.result)
    part.precision.value = 0.8
    asyncio.run(part.find(by_costs=False))
    assert "Certified from" in texts(part.result)
    threshold = client.outcome_threshold("", "payment", "fraud", precision=0.8).threshold
    assert part.threshold.value == part.span.location == threshold
    asyncio.run(part.keep())
    assert "Kept in payments@4" in texts(part.result)
    [([question], given)] = client.added
    assert question["policy"] == {**POLICY, "outcome_thresholds": {"fraud": threshold}}
    assert "precision 0.8 certified" in given.pop("note")
    # The rest of the content stays.
    rest = {"model": "base", "fallback": ["judge"], "escalate": True, "otherwise": "person"}
    assert given == rest
    part.threshold.value = 0.6
    asyncio.run(part.keep())
    assert client.added[1][1]["note"] == "fraud from 0.6000 on: not certified, by eval_1"
