"""How a base model reads a request: as token ids, with the sentences of its context.

A base model has a reading, a number that its manifest holds, and what is trained on a base model
keeps the reading that it was trained with. Reading 1 takes names as they are written and compares
outcomes with the whole context. Reading 2 splits names into words. Reading 3 compares the outcomes
of a choice with each sentence of the context, and with their mean: what surrounds the sentence that
decides then hides it less. Reading 4 asks a negated yes/no question without its negation, with "yes"
and "no" in each other's place. Reading 5 leaves quoted mail and markup out of a context, and knows a
context in another language for unread.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from itertools import islice

from steelyard.decisions.contexts import CLEANED_READING, read_context
from steelyard.decisions.rendering import RenderedDecision, RenderedRequest, read_outcomes
from steelyard.decisions.words import STRAIGHT, word_set
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

#: What asks whether a statement is false.
_FALSE = re.compile(
    r"\s*(?P<start>is it|would it be|is the statement|is this) "
    r"(?:false|untrue|wrong|incorrect|not true|not right|not correct|not the case|not so)"
    r"(?P<say> to say| to conclude)?(?P<that>,? that|:) (?P<rest>\S.*)",
    re.IGNORECASE | re.DOTALL,
)
#: What asks whether a statement is true, up to the statement.
_TRUE = re.compile(
    r"\s*(?:is it|would it be) (?:true|right|correct|the case|so)(?: to say| to conclude)?(?:,? that|:) ",
    re.IGNORECASE,
)
#: Verbs whose "not" says that what follows is not so. Not "should", "must" and "may": not being
#: obliged and being obliged not to are two things.
_VERBS = word_set("is are was were am does do did has have had can could will would")
_CONTRACTED = {
    "isn't": "is",
    "aren't": "are",
    "wasn't": "was",
    "weren't": "were",
    "doesn't": "does",
    "don't": "do",
    "didn't": "did",
    "hasn't": "has",
    "haven't": "have",
    "hadn't": "had",
    "can't": "can",
    "cannot": "can",
    "couldn't": "could",
    "won't": "will",
    "wouldn't": "would",
}
#: Where one of these stands, what a "not" covers hangs on more than its place.
_SCOPES = word_set(
    "and or nor but if unless because since until while although though when whenever that which "
    "who whose whom whether why how where what all every everyone everybody everything each both "
    "any anyone anybody anything some someone somebody something most many much few several none "
    "nobody nothing never neither only just even always often hardly "
    "say says said claim claims claimed tell tells told think thinks thought believe believes "
    "believed write writes wrote state states stated mean means meant know knows knew"
)
#: What a "not" is not before: it then denies this word and not the verb.
_AFTER = word_set("to one yet necessarily entirely exactly quite very too so")
#: What a subject of two or three words begins with; any other has one word.
_DETERMINERS = word_set("the a an this that these those my your his her its our their")
_WORD = re.compile(r"[\w'\u2019]+")


def identity_at(sha256: str, reading: int) -> str:
    """Return what names the answers of a model's files under a reading."""
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


def plain_question(question: str) -> tuple[str, bool]:
    """Return the question without its negations, and whether its answer is the other one then.

    >>> plain_question("Is it false that the invoice is paid?")
    ('Is it true that the invoice is paid?', True)
    >>> plain_question("Has the invoice not been paid?")
    ('Has the invoice been paid?', True)
    >>> plain_question("Is it untrue that the invoice is not paid?")
    ('Is it true that the invoice is paid?', False)
    >>> plain_question("Does the customer say that it is not paid?")
    ('Does the customer say that it is not paid?', False)
    """
    text, is_turned = question, False
    match = _FALSE.fullmatch(text)
    if match is not None:
        say = match["say"] or ""
        text = f"{match['start']} {'right' if say else 'true'}{say}{match['that']} {match['rest']}"
        is_turned = True
    opening = _TRUE.match(text)
    start = opening.end() if opening else 0
    affirmed = _affirmed(text[start:], is_question=not start)
    if affirmed is not None:
        text, is_turned = text[:start] + affirmed, not is_turned
    return text, is_turned


def _affirmed(clause: str, *, is_question: bool) -> str | None:
    """Return a clause without the negation of its verb; None where it has none or its scope is open."""
    matches = list(_WORD.finditer(clause))
    words = [match[0].translate(STRAIGHT).casefold() for match in matches]
    places = [i for i, word in enumerate(words) if word in {"not", "no"} or word in _CONTRACTED]
    if len(places) != 1 or not _SCOPES.isdisjoint(words):
        return None
    [at] = places
    verbs = [i for i, word in enumerate(words[:at]) if word in _VERBS]
    after = words[at + 1] if at + 1 < len(words) else ""
    # "Isn't it paid?" and "Is not the bill paid?" ask whether it is paid.
    is_short = words[at] in _CONTRACTED
    if at < (1 if is_short else 2) or after in _AFTER or (is_short and verbs):
        return None
    start, end = matches[at].span()
    if is_short:
        return clause[:start] + _CONTRACTED[words[at]] + clause[end:]
    instead = ""
    if words[at] == "no":
        is_there = is_question and words[1:at] == ["there"]
        if not is_there and after != "longer":
            return None
        instead = " still" if after == "longer" else " any"
        end = matches[at + 1].end() if after == "longer" else end
    # After a longer subject it may be of a noun: "Does it hold goods not yet paid?"
    longest = 3 if words[1] in _DETERMINERS else 1
    is_of_verb = verbs == [at - 1] or (is_question and verbs == [0] and at - 1 <= longest)
    return clause[:start].rstrip() + instead + clause[end:] if is_of_verb else None
