"""How a base model reads a request: as token ids, with the sentences of its context.

A base model has a reading, a number that its manifest holds, and a fine-tune keeps the reading that it
was trained with. Reading 1 takes names as they are written and compares outcomes with the whole
context. Reading 2 splits names into words. Reading 3 compares the outcomes of a choice with each
sentence of the context, and with their mean: the text around the deciding sentence then hides it less.
Reading 4 asks a negated yes/no question without its negation, with "yes" and "no" in each other's
place. Reading 5 leaves quoted mail and markup out of a context, and knows a context in another language
for unread.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from itertools import islice

from steelyard.decisions.contexts import CLEANED_READING, read_context
from steelyard.decisions.rendering import RenderedDecision, RenderedRequest, read_outcomes
from steelyard.decisions.statements.plain import plain_question
from steelyard.scoring.packing import TokenizedDecision, TokenizedRequest, windows
from steelyard.scoring.tokenizer import Tokenizer

#: The reading of a manifest that names none, and that of base models trained today.
FIRST_READING, READING = 1, 5
_WORDS, _SENTENCES, _NEGATIONS = 2, 3, 4
_YES_NO, _NO_YES = ("yes", "no"), ("no", "yes")
#: Tokens of a sentence: shorter ones go with the next, longer ones are cut into windows.
MIN_SENTENCE, MAX_SENTENCE, SENTENCE_OVERLAP = 6, 64, 16
#: Where a sentence ends: after its mark and what closes with it, or at a line's end, which is
#: written as two characters in a context that is JSON.
_END = re.compile(r"""(?<=[.!?…。])["')\]}»”\u2019,]*\s+|\s*(?:\n|\\n)+\s*""")


def identity_at(sha256: str, reading: int) -> str:
    """Return the identity of a model's files under a reading."""
    if not sha256 or reading == FIRST_READING:
        return sha256
    return hashlib.sha256(f"{sha256} reading {reading}".encode()).hexdigest()


def read_request(
    request: RenderedRequest, tokenizer: Tokenizer, reading: int = READING
) -> TokenizedRequest:
    """Return a request as the model reads it."""
    texts: list[str] = []
    turned: list[bool] = []
    has_choices = False
    for decision in request.decisions:
        question, outcomes = decision_read(decision, reading)
        texts += [question, *outcomes]
        is_binary = decision.kind == "binary"
        turned.append(reading >= _NEGATIONS and is_binary and outcomes == _NO_YES)
        has_choices = has_choices or decision.kind == "single"
    context = request.context if reading < CLEANED_READING else read_context(request.context).text
    tokens = iter(tokenizer.encode_many([*texts, context]))
    decisions = [
        TokenizedDecision(
            decision.kind,
            next(tokens),
            list(islice(tokens, len(decision.outcomes))),
            int(is_turned),
        )
        for decision, is_turned in zip(request.decisions, turned, strict=True)
    ]
    sentences: Sequence[tuple[int, ...]] = ()
    if reading >= _SENTENCES and has_choices:
        sentences = sentences_of(context, tokenizer)
    return TokenizedRequest(next(tokens), decisions, sentences)


def is_unread(request: RenderedRequest, reading: int) -> bool:
    """Whether a request's context is in a language that a base model does not read."""
    return reading >= CLEANED_READING and read_context(request.context).language is not None


def decision_read(
    decision: RenderedDecision, reading: int = READING
) -> tuple[str, tuple[str, ...]]:
    """Return the texts of a question and of its outcomes that a reading puts before the tokenizer."""
    if reading < _WORDS:
        return decision.question, decision.outcomes
    if reading >= _NEGATIONS and decision.kind == "binary" and decision.outcomes == _YES_NO:
        question, is_turned = plain_question(decision.question)
        return question, _NO_YES if is_turned else _YES_NO
    return decision.question, read_outcomes(decision.outcomes)


def sentences_of(text: str, tokenizer: Tokenizer) -> list[tuple[int, ...]]:
    """Return the token ids of each sentence of a text; none where the text is one sentence.

    Their number is bounded by the text's tokens over ``MIN_SENTENCE``, and so is the memory that
    their vectors take.
    """
    sentences: list[tuple[int, ...]] = []
    short: tuple[int, ...] = ()
    for part in _END.split(text):
        tokens = (*short, *tokenizer.encode(part))
        short = ()
        if len(tokens) < MIN_SENTENCE:
            short = tokens
        elif len(tokens) <= MAX_SENTENCE:
            sentences.append(tokens)
        else:
            sentences += map(tuple, windows(tokens, MAX_SENTENCE, SENTENCE_OVERLAP))
    if short:
        sentences[-1:] = [(*sentences[-1], *short)] if sentences else [short]
    return sentences if len(sentences) > 1 else []
