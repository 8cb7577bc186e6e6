"""Yes/no questions, outcomes and levels as statements, for models that judge statements."""

from steelyard.decisions.statements.decisions import read_decision, read_yes_no
from steelyard.decisions.statements.outcomes import statement_of_outcome
from steelyard.decisions.statements.reading import (
    Reading,
    guidance_of,
    read_question,
    without_guidance,
)

__all__ = (
    "Reading",
    "guidance_of",
    "read_decision",
    "read_question",
    "read_yes_no",
    "statement_of_outcome",
    "without_guidance",
)
