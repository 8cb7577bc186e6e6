"""Keep a threshold of an outcome with the policy of a named decision."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from steelyard.evaluations.thresholds_wire import CertifiedPrecision

if TYPE_CHECKING:
    from steelyard.client import Client
    from steelyard.named.wire import NamedVersion


def keep_threshold(
    client: Client,
    name: str,
    decision_id: str,
    outcome: str,
    threshold: float,
    *,
    evaluation_id: str,
    certified: CertifiedPrecision | None = None,
) -> NamedVersion:
    """Add a version whose policy has the threshold to a named decision; no alias moves.

    Its other thresholds, questions and model are those of the newest version. The note says which
    evaluation the threshold comes from, and its certificate. Raises ``ValueError`` when the newest
    version does not ask the decision.
    """
    named = client.named_decisions
    latest = named.version(name, named.get(name).latest)
    decisions = copy.deepcopy(latest.decisions)
    question = next((each for each in decisions if each["id"] == decision_id), None)
    if question is None:
        raise ValueError(f"{name}@{latest.version} asks no decision {decision_id}.")
    policy = question.get("policy") or {}
    thresholds = {**(policy.get("outcome_thresholds") or {}), outcome: threshold}
    question["policy"] = {**policy, "outcome_thresholds": thresholds}
    certificate = (
        "not certified"
        if certified is None
        else f"precision {certified.precision:g} certified with a confidence of "
        f"{certified.confidence:g}"
    )
    return named.add_version(
        name,
        **(latest.content | {"decisions": decisions}),
        note=f"{outcome} from {threshold:.4f} on: {certificate}, by {evaluation_id}",
    )
