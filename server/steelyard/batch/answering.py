"""The source of answers to rows: the model of this process, or a server."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from steelyard.asking.rows import ask_in_threads
from steelyard.asking.window import RowResult
from steelyard.bulk.columns import RULE_ID, Answered
from steelyard.errors.kinds import UnprocessableError

if TYPE_CHECKING:
    from steelyard.client import Client
    from steelyard.serving.decide import AnswerService

#: Answers contexts in their order; the key names this row of this run, for any number of attempts.
Answer = Callable[[Sequence[Any], Sequence[str]], list[Answered]]

#: Calls of a server at a time.
_CALLS = 8


class NamedRow(NamedTuple):
    """A context, and the values of a named decision's fields beside it."""

    context: Any
    fields: Mapping[str, Any]


def by_this_process(answers: AnswerService, request: dict[str, Any]) -> Answer:
    """Return a function that answers contexts with a loaded model.

    ``request`` has the decisions and the options.
    """

    def answer(contexts: Sequence[Any], keys: Sequence[str]) -> list[Answered]:  # noqa: ARG001
        return [*answers.answer_many(request, contexts)]

    return answer


def by_server(client: Client, request: dict[str, Any], named: str | None = None) -> Answer:
    """Return a function that answers contexts by calls of a server; a repeated call is charged once.

    With ``named``, the version of a named decision, the server is asked by that name; each context
    is then a ``NamedRow``.
    """

    def ask(row: tuple[Any, str]) -> Answered:
        context, key = row
        try:
            if named is not None:
                answered = client.decision(named).decide(
                    context.context, fields=context.fields or None, idempotency_key=key
                )
            else:
                answered = client.decide(context, **request, idempotency_key=key)
        except UnprocessableError as error:
            return error
        decisions: dict[str, Any] = msgspec.to_builtins(answered.decisions)
        if named is not None and answered.rule:
            decisions[RULE_ID] = answered.rule.action
        return decisions

    def answer(contexts: Sequence[Any], keys: Sequence[str]) -> list[Answered]:
        return ask_in_threads(zip(contexts, keys, strict=True), ask, RowResult.result, _CALLS)

    return answer
