"""Rules about references of a question: other decisions, which it cannot see, and fields."""

from __future__ import annotations

import re
from collections.abc import Iterator

from steelyard.decisions.lint.subjects import SHOWN_AFTER, Subject
from steelyard.decisions.words import straighten
from steelyard.wire.violations import show

_TOKEN = re.compile(r"[\w-]+")
# An id in a form that plain English does not have: refund_request, isUrgent, q3.
_CODED_ID = re.compile(
    r"\w*[^\W_]_[^\W_]\w*|[a-z]{2,}(?:[A-Z][a-z]+)+|(?:q|d|question|decision)[_-]?\d+"
)

# "The previous question" is another decision; "answer the previous question" is a talk's.
_PREVIOUS_QUESTION = re.compile(
    r"(?P<verb>\b(?:answer|reply|replies|respon[ds]|refer|address|repeat|follow|relat)[\w-]* "
    r"(?:(?:up )?(?:on|to) )?)?\b(?:the|this|that|your) (?:previous|preceding|prior|earlier) "
    r"questions?\b"
)
_ANSWER_TO = re.compile(r"(?:answers?|repl(?:y|ies)|responses?) (?:on|to) \Z")
_DETERMINER_BEFORE = re.compile(r"\b(?:the|your|an|its|from|with|in|of|on) \Z")
_OTHER_DECISION = re.compile(
    r"\b(?:given|based on|using|use|per|see|according to|depending on|from|if) (?:the|your) "
    r"(?:previous|preceding|prior|earlier|above) (?:decision|answer|result)s?\b"
    r"|\b(?:the|your) (?:question|decision|answer)s? (?:above|below)\b"
    r"|\bthe above (?:question|decision)s?\b|\bthe other decisions?\b|\bsame as (?:above|before)\b"
)

# Around an id that is an ordinary word: marks that make it a decision's name.
_POINTS_BEFORE = re.compile(
    r"\b(?:answer|result|outcome|decision)s? (?:to|of|for|from|on) (?P<quote>[\"'`])?\Z"
    r"|\b(?:the|this|in|from|on|per) (?:decision|question) [\"'`]?\Z",
)
_QUOTED_BEFORE = re.compile(r"[\"'`]\Z")
_QUOTED_AFTER = re.compile(r"[\"'`] (?:decision|question|answer)s?\b")
_ENDS_AFTER = re.compile(r"[\"'`]?(?:\s*\Z|\s*[.,;:?!)]|\s(?:is|was|are|and|or|if|says|above)\b)")
_IF_BEFORE = re.compile(r"\b(?:if|when|where|given|that) [\"'`]?\Z")
_IS_AFTER = re.compile(r"[\"'`]? (?:is|was|==?|equals|says) [\"'`]?")
_SHOWN_BEFORE, _MAX_PLACES = 40, 20

_BACK_QUOTED = re.compile(r"`([^`\n]{1,200})`")
_PATH = re.compile(r"\$?\.?[A-Za-z_][\w-]*(?:\[\d*\]|\.[A-Za-z_][\w-]*)*\Z")
_PATH_STEP = re.compile(r"[A-Za-z_][\w-]*")
_LITERALS = frozenset(("true", "false", "null", "yes", "no", "none"))


def references_ids(subject: Subject) -> str | None:
    """Find a question that names another decision, by its id or as *the previous question*.

    Every decision is read on its own: ids are never shown, and there is no previous question. An id
    that is an ordinary word counts only where the wording makes it a decision's: ``the answer to
    refund``, ``if refund is yes``.
    """
    raw = subject.question.raw
    text = straighten(raw)
    other_question = _find_other_question(text)
    if other_question:
        return (
            f"The question points to another one ({show(other_question)}), which is not shown with it. Say "
            "here what it needs, or put it in the context."
        )
    tokens = frozenset(_TOKEN.findall(raw))
    own = frozenset(subject.names) | {subject.decision.id}
    for decision in subject.request.decisions:
        name = decision.id
        if name in own or name in subject.request.context_fields:
            continue
        is_coded = name in tokens and _CODED_ID.fullmatch(name) is not None
        outcomes = subject.request.straight_outcomes[name]
        if is_coded or f"`{name}`" in raw or _is_pointed_at(name, outcomes, text):
            return (
                f"The question names the decision {show(name)}, and ids are never shown. Say here "
                "what it needs, or put that decision's answer in the context."
            )
    return None


def _find_other_question(text: str) -> str | None:
    for match in _PREVIOUS_QUESTION.finditer(text):
        verb = match.group("verb")
        before = text[max(0, match.start() - 12) : match.start()]
        if verb is None or (_ANSWER_TO.match(verb) and _DETERMINER_BEFORE.search(before)):
            return match.group()
    match_other = _OTHER_DECISION.search(text)
    return match_other.group() if match_other else None


def _is_pointed_at(name: str, outcomes: tuple[str, ...], text: str) -> bool:
    """Return whether a text makes a decision's id, an ordinary word maybe, the name of a decision."""
    id_ = straighten(name)
    for place in _places(id_, text):
        before = text[max(0, place - _SHOWN_BEFORE) : place]
        after = text[place + len(id_) : place + len(id_) + SHOWN_AFTER]
        if after[:1].isalnum():
            continue
        if _POINTS_BEFORE.search(before) and _ENDS_AFTER.match(after):
            return True
        if _QUOTED_BEFORE.search(before) and _QUOTED_AFTER.match(after):
            return True
        is_ = _IS_AFTER.match(after)
        if is_ and _IF_BEFORE.search(before) and after.startswith(outcomes, is_.end()):
            return True
    return False


def _places(part: str, text: str) -> Iterator[int]:
    place = text.find(part)
    for _ in range(_MAX_PLACES):
        if place < 0:
            return
        yield place
        place = text.find(part, place + 1)


def missing_field_reference(subject: Subject) -> str | None:
    """Find a back-quoted field in a question that the JSON context does not have.

    The model then answers from something else, and nothing says so: a field renamed on one side is
    the usual cause. A path such as ``order.items[0].price`` needs each of its keys in the context.
    An outcome or a word of the context is not a field.
    """
    request = subject.request
    if not isinstance(request.context, dict | list | tuple):
        return None
    for match in _BACK_QUOTED.finditer(subject.question.raw):
        path = match.group(1).strip()
        if not _PATH.match(path) or path.casefold() in _LITERALS:
            continue
        if path in request.outcomes or path in request.ids or path in request.context_words:
            continue
        steps = _PATH_STEP.findall(path)
        missing = [step for step in steps if step not in request.context_fields]
        if missing:
            return (
                f"The question names the field {show(path)}, and the context has no "
                f"{show(missing[0])}. Name a field that it has, or add it."
            )
    return None
