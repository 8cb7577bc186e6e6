"""Bounds of families on made-up held-out answers, and their effect on the answers of a model."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest
from msgspec import UNSET

from steelyard.datasets.tasks import fingerprint
from steelyard.decisions.answer import answer_decision, temper_log_probabilities
from steelyard.decisions.validation import read_request
from steelyard.errors import BoundNotCertifiedError, NoveltyUnknownError, ServedChangedError
from steelyard.evaluations.measures.records import measure_records
from steelyard.families.bounds import FamilyBounds
from steelyard.families.certifying import certify_answer
from steelyard.families.wire import AbstainOnNovel, BoundFamily
from steelyard.operations.write import Write
from steelyard.scoring.novelty import TrainingTexts
from support.accounts.operating import LOCAL
from support.datasets.dataset_rows import ROUTE
from support.models.scored_records import ScoredRecord, records_from_rows

WRITE = Write(LOCAL)
(ASKED,) = read_request({"context": "", "decisions": [ROUTE]}).decisions


class HeldOut:
    """200 held-out answers: the surest 150 are right, and half of the others."""

    async def held_out(self, caller, job_id):
        rows = []
        for n in range(200):
            top = 0.99 - n / 1000
            targets = tuple(np.eye(3)[0 if n < 150 or n % 2 else 1].tolist())
            shares = (top, (1 - top) / 2, (1 - top) / 2)
            names = ASKED.outcomes.names
            rows.append(ScoredRecord(f"{n:04d}", "route", "single", names, shares, targets))
        records = records_from_rows(rows)
        return records, measure_records(records)


class Datasets:
    async def dataset_at(self, caller, dataset_id, version, *, is_new_work):
        assert (dataset_id, version, is_new_work) == ("ds_1", 1, False)

    def definitions(self, at):
        used = SimpleNamespace(fingerprint=fingerprint(ASKED).hex(), evaluation=200)
        return [used, SimpleNamespace(fingerprint="00", evaluation=0)]


class Artifacts:
    """A folder of a model that stores the novelty of its 20 held-out contexts."""

    def __init__(self, folder):
        self.folder = folder

    def fetch(self, sha256):
        return self.folder


@pytest.fixture
def bounds(kept, tmp_path):
    kept.grow("router")
    datasets, artifacts = Datasets(), Artifacts(tmp_path)
    return FamilyBounds(kept.lineages, kept.service._writes, HeldOut(), datasets, artifacts)


def put(bounds, **fields):
    return asyncio.run(bounds.put(WRITE, "router", BoundFamily(**fields))).bound


def test_a_bound_is_found_kept_and_removed(bounds, kept):
    bound = put(bounds, error=0.05)
    # The 150th is the last of which none is wrong; a few wrong ones are within the bound.
    assert 0.80 < bound.threshold <= 0.841
    assert bound.measured_error < 0.05
    assert (bound.model, bound.dataset_id, bound.dataset_version) == ("router@1", "ds_1", 1)
    assert (bound.decisions, bound.confidence) == (200, 0.95)
    assert kept.get().bound == bound
    assert kept.resolve("router").bound.shown == bound
    kept.grow("router", 2)
    # A newer model answers, which the bound is not of.
    resolved = kept.resolve("router")
    assert resolved.bound.adapter != resolved.model.adapter
    assert asyncio.run(bounds.remove(WRITE, "router")).bound is UNSET
    assert kept.resolve("router").bound is None


def test_nothing_is_kept_that_is_not_certified(bounds, kept):
    with pytest.raises(BoundNotCertifiedError, match="more evaluation rows would") as refused:
        put(bounds, error=0.01)
    assert refused.value.details[0]["missing_rows"] > 150
    with pytest.raises(ServedChangedError):
        put(bounds, error=0.05, served="ft-other")
    assert kept.get().bound is UNSET


def test_a_bound_for_unlike_texts_is_kept_where_the_model_can_measure(bounds, kept, tmp_path):
    def put(**fields):
        request = AbstainOnNovel(**fields)
        return asyncio.run(bounds.abstain_on_novel(WRITE, "router", request)).novelty

    with pytest.raises(NoveltyUnknownError, match="no vectors"):
        put(false_alarms=0.05)
    eye = np.eye(4, dtype=np.float32)
    TrainingTexts(eye, np.ones(4, np.float32), np.linspace(0, 1, 20, dtype=np.float32)).save(
        tmp_path
    )
    with pytest.raises(NoveltyUnknownError, match="have 99 contexts"):
        put(false_alarms=0.01)
    with pytest.raises(ServedChangedError):
        put(false_alarms=0.05, served="ft-other")
    assert kept.resolve("router").false_alarms is None
    assert put(false_alarms=0.05).false_alarms == 0.05
    assert kept.resolve("router").false_alarms == 0.05
    assert asyncio.run(bounds.remove_novelty(WRITE, "router")).novelty is UNSET


def answer_of(request, shares):
    logs = np.log(shares)
    tempered = temper_log_probabilities(logs, request.temperature or 1)
    decisions = {one.id: answer_decision(one, tempered.tolist()) for one in request.decisions}
    return msgspec.defstruct("Answer", [("decisions", dict)], frozen=True)(decisions)


@pytest.mark.parametrize(
    ("top", "adapter", "fields", "is_certified"),
    [
        (0.9, "own", {}, True),
        (0.7, "own", {}, False),
        (0.9, "another", {}, False),
        (0.9, "own", {"question": "Who is angry?"}, False),
        (0.9, "own", {"policy": {"abstain_below": 0.2}}, True),
        (0.7, "own", {"policy": {"abstain_below": 0.2}}, False),
    ],
)
@pytest.mark.parametrize("temperature", [None, 0.3, 4.0])
def test_an_answer_is_certified_or_abstains(
    bounds, kept, top, adapter, fields, is_certified, temperature
):
    put(bounds, error=0.05)
    bound = kept.resolve("router").bound
    body = {"context": "", "decisions": [{**ROUTE, **fields}], "temperature": temperature}
    request = read_request(body)
    answer = answer_of(request, [top, 0.9 - top + 0.05, 0.05])
    certified = certify_answer(
        answer, request, bound, bound.adapter if adapter == "own" else adapter
    )
    result = certified.decisions["route"]
    if is_certified:
        assert msgspec.to_builtins(result.certified) == {"error": 0.05, "confidence": 0.95}
        assert result.action == "billing"
    else:
        assert result.certified is UNSET
        assert result.action == "abstain"
        assert result.policy is UNSET or result.policy.action == "abstain"
    assert result.probabilities == answer.decisions["route"].probabilities
