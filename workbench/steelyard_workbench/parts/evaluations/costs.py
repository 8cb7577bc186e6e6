"""The costs of mistakes: their fields, and the table of them as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence

import msgspec
import panel_material_ui as pmui

from steelyard.evaluations.wire import ConfusionMatrix, DecisionMeasures
from steelyard.wire.decoding import decode
from steelyard_workbench.kit.basics import ANY_LENGTH

#: By action the cost under each outcome.
Costs = dict[str, dict[str, float]]


def cost_fields() -> tuple[pmui.FloatInput, pmui.FloatInput, pmui.TextAreaInput]:
    """Return the fields of the cost of a wrong yes, of a wrong no, and of all costs as JSON."""
    false_yes, false_no = (
        pmui.FloatInput(label=f"A wrong {name} costs", value=1.0, start=0, width=170)
        for name in ("yes", "no")
    )
    matrix = pmui.TextAreaInput(
        label="Costs as JSON: action, answer, cost",
        rows=6,
        max_length=ANY_LENGTH,
        sizing_mode="stretch_width",
    )
    return false_yes, false_no, matrix


def outcomes_of(decision: DecisionMeasures) -> list[str]:
    """Return the outcomes of a decision that has labels; none of another."""
    confusion = decision.confusion
    return confusion.outcomes if isinstance(confusion, ConfusionMatrix) else []


def is_binary(decision: DecisionMeasures) -> bool:
    """Whether the costs of a decision are those of a wrong yes and a wrong no."""
    return decision.kind == "binary" and "yes" in outcomes_of(decision)


def write_costs(outcomes: Sequence[str], wrong: float = 1.0) -> str:
    """Return the table in which every mistake costs the same, as JSON."""
    costs = {action: {name: wrong * (name != action) for name in outcomes} for action in outcomes}
    return json.dumps(costs, indent=1, ensure_ascii=False)


def read_costs(text: str) -> Costs:
    """Read a table of costs; raise ``ValueError`` when it is none."""
    try:
        return decode(text, Costs)
    except msgspec.DecodeError:
        raise ValueError(
            'The costs are not JSON such as `{"refund": {"yes": 0, "no": 4}}`; mend the text.'
        ) from None
