"""How to act on a decision, as a caller sends it in either spelling."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from steelyard.wire.schemas import doc

Probability = Annotated[float, Meta(ge=0, le=1)]


class PolicyInput(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How to act on a decision: the cheapest action, and when to abstain."""

    action_costs: Annotated[
        dict[str, dict[str, float]] | None,
        doc("Action to outcome to cost; every action prices every outcome."),
    ] = None
    abstain_below: Annotated[
        Probability | None, doc("Abstain when the largest probability is lower than this.")
    ] = None
    outcome_thresholds: Annotated[
        dict[str, Probability] | None,
        doc(
            "Outcome to probability: abstain when this outcome is the likeliest and less "
            "probable than that. Of such an outcome it goes before `abstain_below`."
        ),
    ] = None
    abstain_unstated: Annotated[
        Probability | None,
        doc("Abstain when `unstated` is higher than this; models without it do not."),
    ] = None


class AbstainInput(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """When to abstain; either member may trigger."""

    min_probability: Annotated[
        Probability | None, doc("Abstain when the largest probability is lower than this.")
    ] = None
    cost: Annotated[
        float | None, doc("Abstain when the chosen action's expected cost is higher than this.")
    ] = None
