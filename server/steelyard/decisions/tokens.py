"""How many input tokens a request has: counted from its texts, each distinct one as the caller sent it.

The count is reported as usage and compared with the bound of a request. Tokens that an engine adds
(special tokens, overlap of windows) do not count.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from steelyard.decisions.kinds import Decision, Outcomes
from steelyard.decisions.rendering import render_value


class TokenCounter(Protocol):
    """A tokenizer that counts, and says which one it is."""

    @property
    def name(self) -> str:
        """Name of the tokenizer."""

    @property
    def revision(self) -> str:
        """Revision of the tokenizer."""

    @property
    def sha256(self) -> str:
        """Lower-case hexadecimal SHA-256 of the tokenizer's file."""

    def count(self, text: str) -> int:
        """Count the tokens of a text, without special tokens."""

    def least(self, text: str) -> int:
        """Return a number of tokens that a text has at least, at a fraction of the cost."""


def count_input_tokens(
    counter: TokenCounter, context: object, decisions: Iterable[Decision]
) -> int:
    """Count the input tokens of a request.

    The context's count once, every question's, and those of each distinct set of outcome names and
    descriptions once. The ``yes`` and ``no`` of a binary decision count nothing, and neither does a
    description that is ``None``.
    """
    texts = [context if isinstance(context, str) else render_value(context)]
    counted: set[tuple[tuple[str, ...], tuple[str | None, ...]]] = set()
    for decision in decisions:
        question = decision.question
        texts.append(question if isinstance(question, str) else render_value(question))
        written = (decision.opposite, decision.statement, decision.guideline)
        texts += [text for text in written if text]
        names, descriptions = _texts(decision.outcomes, named=decision.kind != "binary")
        if (names, descriptions) not in counted:
            counted.add((names, descriptions))
            texts += [*names, *(text for text in descriptions if text is not None)]
    return sum(map(counter.count, texts))


def _texts(outcomes: Outcomes, *, named: bool) -> tuple[tuple[str, ...], tuple[str | None, ...]]:
    return tuple(outcomes.names) if named else (), tuple(
        None if text is None else render_value(text) for text in outcomes.descriptions
    )
