"""Statements of the yes/no questions that grammar declines, as a judge writes each of them once."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import msgspec

from steelyard.decisions.rendering import RenderedDecision, RenderedRequest
from steelyard.decisions.statements import Reading, read_decision
from steelyard.durable import write_atomically
from steelyard.errors import SteelyardError
from steelyard.wire.decoding import decoder_of

_log = logging.getLogger(__name__)
#: Writes an answer to messages, in so many tokens at most; ``None``: no model here may write.
Write = Callable[[list[dict[str, str]], int], Awaitable[str | None]]
#: Where a home keeps them: by question, the statements of yes and no, or null without them.
FILE = "statements.json"
_MOST, _MAX_TOKENS, _MAX_CHARACTERS = 10_000, 160, 600
#: Seconds that a request waits for its statements, and that a judge which failed is not asked again.
_PATIENCE_S, _REST_S = 5.0, 60.0
#: Questions that a judge is asked at once.
_AT_ONCE = 4
_PROMPT = """\
Write what the answers yes and no to a question about a text state, each as one sentence. Write NONE where \
the question cannot be answered by yes or no.

Question: Urgent or can it wait until Monday, i.e. is it urgent?
Yes: It is urgent.
No: It is not urgent.
Question: Is it praise or a complaint?
NONE
Question: {question}
"""
_WRITTEN = re.compile(r"\s*Yes:[ \t]*(\S.*?)\s*\n\s*No:[ \t]*(\S.*?)\s*(?:\n.*)?", re.DOTALL)
_decode = decoder_of(dict[str, tuple[str, str] | None]).decode


class Wordings:
    """The statements that a judge wrote, which outlast the process; for one event loop.

    A request waits for all of its own a short while. One that is not there by then, or that no judge
    writes, leaves its question as it was typed.
    """

    def __init__(self, home: Path, write: Write) -> None:
        self._path, self._write = home / FILE, write
        self._known: dict[str, tuple[str, str] | None] | None = None
        self._writing: dict[str, asyncio.Task[None]] = {}
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._rests_until = 0.0

    async def complete(self, request: RenderedRequest) -> RenderedRequest:
        """Return a request in which questions that grammar declines have the statements of a judge."""
        questions = [_declined(decision) for decision in request.decisions]
        if not any(questions):
            return request
        known = self._read()
        tasks = {
            question: self._writing.get(question) or asyncio.create_task(self._ask(question))
            for question in dict.fromkeys(questions)
            if question and question not in known
        }
        if tasks:
            self._writing |= tasks
            await asyncio.wait(tasks.values(), timeout=_PATIENCE_S)
        decisions = map(self._with_statement, request.decisions, questions)
        return replace(request, decisions=tuple(decisions))

    def _with_statement(self, decision: RenderedDecision, question: str) -> RenderedDecision:
        written = self._read().get(question)
        if written is None:
            return decision
        return replace(decision, statement=written[0], opposite=decision.opposite or written[1])

    def _read(self) -> dict[str, tuple[str, str] | None]:
        if self._known is None:
            try:
                self._known = _decode(self._path.read_bytes())
            except (OSError, msgspec.MsgspecError):  # none yet, or of another version
                self._known = {}
        return self._known

    async def _ask(self, question: str) -> None:
        """Ask for the statements of a question, and store them; never raise."""
        try:
            async with self._turns:
                if time.monotonic() < self._rests_until:
                    return
                messages = [{"role": "user", "content": _PROMPT.format(question=question)}]
                text = await self._write(messages, _MAX_TOKENS)
            if text is not None:
                self._note(question, read_written(text))
        except (SteelyardError, TimeoutError, OSError) as error:
            self._rests_until = time.monotonic() + _REST_S
            _log.warning("No statement was written, and the question is read as typed: %s", error)
        finally:
            self._writing.pop(question, None)

    def _note(self, question: str, written: Reading | None) -> None:
        self._known = None  # another process may have added some
        pair = None if written is None else (written.statement, written.negation)
        known = {**self._read(), question: pair}
        for oldest in list(known)[: max(0, len(known) - _MOST)]:
            del known[oldest]
        self._known = known
        write_atomically(self._path, msgspec.json.encode(known))


def _declined(decision: RenderedDecision) -> str:
    """Return the question of a yes/no of which grammar makes no statement; empty for others."""
    if decision.kind != "binary" or read_decision(decision) is not None:
        return ""
    question = " ".join(decision.question.split())
    return question if len(question) <= _MAX_CHARACTERS else ""


def read_written(text: str) -> Reading | None:
    r"""Return the statements in a judge's text; None where it has none.

    >>> read_written("Yes: The parcel is late.\nNo: The parcel is in time.").negation
    'The parcel is in time.'
    """
    match = _WRITTEN.fullmatch(text.strip())
    if match is None:
        return None
    yes, no = match.groups()
    is_usable = all(part.isprintable() and len(part) <= _MAX_CHARACTERS for part in (yes, no))
    return Reading(yes, no) if is_usable and yes.casefold() != no.casefold() else None
