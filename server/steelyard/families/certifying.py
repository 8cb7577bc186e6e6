"""Answers of a family that abstains: below its certified bound, and on texts unlike its training rows."""

from __future__ import annotations

import math

import msgspec
from msgspec import UNSET

from steelyard.datasets.tasks import fingerprint
from steelyard.decisions.validation import ValidRequest
from steelyard.decisions.wire import ABSTAIN, Certified, DecideResponse, DecisionResult
from steelyard.families.lineage.lineage import AnswerBound


def certify_answer(
    answer: DecideResponse, request: ValidRequest, bound: AnswerBound, adapter: str
) -> DecideResponse:
    """Return an answer of a model with every decision certified or abstaining.

    Certified is a decision worded as in the rows of the bound, by the model that it was found for,
    whose top probability, without the temperature of the request, is not below the threshold.
    """
    mark = Certified(error=bound.shown.error, confidence=bound.shown.confidence)
    results = {}
    for decision in request.decisions:
        result = answer.decisions[decision.id]
        is_certified = (
            bound.adapter == adapter
            and _untempered_top(result, request.temperature) >= bound.shown.threshold
            and fingerprint(decision).hex() in bound.wordings
        )
        results[decision.id] = (
            msgspec.structs.replace(result, certified=mark) if is_certified else _abstain(result)
        )
    return msgspec.structs.replace(answer, decisions=results)


def abstain_on_novel(answer: DecideResponse) -> DecideResponse:
    """Return an answer that abstains, and is not certified, where its context is unlike any seen.

    So does one of a model that keeps nothing of its training rows: novelty is unknown.
    """
    novelty = answer.novelty
    if novelty is not UNSET and not novelty.unlike:
        return answer
    results = {
        id_: msgspec.structs.replace(_abstain(result), certified=UNSET)
        for id_, result in answer.decisions.items()
    }
    return msgspec.structs.replace(answer, decisions=results)


def _untempered_top(result: DecisionResult, temperature: float | None) -> float:
    """Return the top probability as the model gave it, before a request's temperature."""
    if temperature is None or temperature == 1:
        return result.p_top
    shares = (float(share / result.p_top) for share in result.probabilities.values())
    return 1 / math.fsum(math.pow(share, temperature) for share in shares)


def _abstain(result: DecisionResult) -> DecisionResult:
    if result.policy is UNSET:
        return msgspec.structs.replace(result, action=ABSTAIN)
    policy = msgspec.structs.replace(result.policy, action=ABSTAIN)
    return msgspec.structs.replace(result, action=ABSTAIN, policy=policy)
