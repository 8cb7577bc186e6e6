"""The warning about decisions that a fine-tuned model did not train on as they are worded."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.decisions.kinds import Decision
from steelyard.decisions.wire import AnswerWarning
from steelyard.scoring.protocol import ScoredDecision

#: Decisions that the message names.
_MOST_NAMED = 3


def untrained(decisions: Sequence[Decision], scored: Sequence[ScoredDecision]) -> AnswerWarning:
    """Return the warning that some decisions differ from those a model was trained on."""
    ids = [
        decision.id for decision, score in zip(decisions, scored, strict=True) if score.is_untrained
    ]
    more = f" and {len(ids) - _MOST_NAMED} more" if len(ids) > _MOST_NAMED else ""
    message = (
        f"The model did not train on {', '.join(ids[:_MOST_NAMED])}{more} as worded here (question, kind "
        "and outcomes), so it answers as its base model does. Use the wording of its dataset, or "
        "train on this one."
    )
    return AnswerWarning(code="untrained_wording", message=message)
