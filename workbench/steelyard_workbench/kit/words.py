"""Words for people: numbers and times, everyday words for the server's, and the changes between two texts."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from difflib import SequenceMatcher
from html import escape

from steelyard.evaluations.wire import Change
from steelyard.wire.measures import Measure, interval_text
from steelyard_workbench.kit.theme import token

#: Measures that are shares, and read in percent; their changes read in points.
SHARES = frozenset({"accuracy", "scaled_reward", "picked_best", "ece"})
_MARKS = {mark: f"\\{mark}" for mark in "\\`*_[]#|~"} | {"<": "&lt;", "&": "&amp;"}
_ESCAPES = str.maketrans(_MARKS)
#: What makes a list, a quotation or a heading of the line that it begins.
_BEGINS = re.compile(r"^(\d*)([-+=>:.)])")
#: The exact terms of the field for everyday words, shown where a pointer rests on a word.
_TERMS = {
    "answers to choose from": "outcomes",
    "answers": "outcomes",
    "better on nothing": "dominated: another model is nowhere worse and somewhere better",
    "gap between sure and right": "expected calibration error (ECE)",
    "changed by small edits": "flips under pressure",
    "combined models": "routes",
    "for": "side: training or evaluation",
    "how sure and right": "reliability: calibration in bins",
    "loss": "log loss, in nats",
    "share right": "accuracy",
    "random start (seed)": "seed",
    "right answer": "the expected outcome, or target",
    "right": "accuracy, with a 95 % interval",
    "rows for the check": "evaluation rows, held out",
    "squared miss": "Brier score",
    "model line": "family",
    "model line right": "how often the family is right",
    "text": "context",
    "texts": "contexts",
    "to train on": "training rows",
    "for the check": "evaluation rows, held out",
    "what changed": "flips: answers that differ between the two",
    "versions in use": "aliases, each with the version that it points to",
}
#: By exact term in sentences of the server the everyday words; what holds another comes before it.
_EVERYDAY = {
    'the kind "binary" and leave outcomes out': "the kind “yes or no” and leave the answers out",
    'the kind "ordinal"': "the kind “levels in order”",
    "in rubric": "after a colon",
    "or give statement": "or write what yes to it states",
    "held-out rows": "rows for the check",
    "evaluation decisions": "decisions for the check",
    "evaluation rows": "rows for the check",
    "calibration error": "gap between sure and right",
    "text baseline": "answer by words alone",
    "log loss": "loss",
    " nats": "",
    "abstains": "leaves it to a person",
    "abstaining": "leaving it to a person",
    "aliases": "names",
    "alias": "name",
    "contexts": "texts",
    "context": "text",
    "families": "model lines",
    "family": "model line",
    "gates": "checks",
    "gate": "check",
    "outcomes": "answers",
    "outcome": "answer",
    "policies": "rules",
    "policy": "rule",
    "rubric": "description",
}
#: Quoted texts and parts of a longer name are a user's own, but for the kinds above.
_TERM = re.compile(
    r"(?<![\w:@-])(?:{})(?![\w@-])|\"[^\"]*\"|`[^`]*`".format("|".join(map(re.escape, _EVERYDAY))),
    re.IGNORECASE,
)
_GONE = f"color:{token('bad')};background:{token('bad-tint')};text-decoration:line-through"
_NEW = f"color:{token('good')};background:{token('good-tint')};text-decoration:none;font-weight:600"


def measure_text(measure: Measure | None, *, places: int = 3) -> str:
    """Return a measure with its 95 % interval and n; ``—`` where there is none.

    >>> from steelyard.wire.measures import Measure
    >>> measure_text(Measure(value=0.5, low=0.4, high=0.6, n=80))
    '0.500 (0.400 to 0.600, n = 80)'
    """
    if measure is None:
        return "—"
    ends = interval_text(measure.low, measure.high, form=f".{places}f", to=" to ")
    return f"{measure.value:.{places}f} ({ends}, n = {measure.n:,})"


def counted(n: int, noun: str) -> str:
    """Return a number of things in words.

    >>> counted(1, "row"), counted(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def percent_text(share: float) -> str:
    """Return a share in whole percent.

    >>> percent_text(0.25)
    '25 %'
    """
    return f"{share * 100:.0f} %"


def share_text(measure: Measure | None) -> str:
    """Return a share in percent with its 95 % interval and n; ``not known yet`` where there is none.

    >>> from steelyard.wire.measures import Measure
    >>> share_text(Measure(value=0.5, low=0.4, high=0.6, n=80))
    '50 % (40 to 60, of 80)'
    """
    if measure is None:
        return "not known yet"
    low, high = measure.low, measure.high
    ends = "" if low is None or high is None else f"{low * 100:.0f} to {high * 100:.0f}, "
    return f"{percent_text(measure.value)} ({ends}of {measure.n:,})"


def named_text(name: str, measure: Measure | None) -> str:
    """Return a measure of a name: a share in percent, another one as it is."""
    return share_text(measure) if name in SHARES else measure_text(measure)


def named_change_text(name: str, change: Change) -> str:
    """Return the paired change of a measure of a name: a share's in points.

    >>> change = Change(before=0.5, after=0.6, change=0.1, low=0.05, high=0.15, n=80)
    >>> named_change_text("accuracy", change), named_change_text("loss", change)
    ('+10 points (+5 to +15, of 80)', '+0.100 (+0.050 to +0.150, n = 80)')
    """
    if name not in SHARES:
        return change_text(change)
    low, high = change.low, change.high
    ends = "" if low is None or high is None else f"{low * 100:+.0f} to {high * 100:+.0f}, "
    return f"{change.change * 100:+.0f} points ({ends}of {change.n:,})"


def change_text(change: Change | None, form: str = ".3f") -> str:
    """Return a paired change with its 95 % interval and n; ``—`` where there is none."""
    if change is None:
        return "—"
    ends = interval_text(change.low, change.high, form=f"+{form}", to=" to ")
    return f"{change.change:+{form}} ({ends}, n = {change.n:,})"


def is_free(price_usd: str) -> bool:
    """Whether a price is nothing.

    >>> is_free("0"), is_free("0.00"), is_free("0.25")
    (True, True, False)
    """
    return float(price_usd) == 0


def ago(at: float | None, now: float | None = None) -> str:
    """Return how long ago a time in Unix seconds was, in words.

    >>> ago(1000.0, 1090.0), ago(None)
    ('2 min ago', 'never')
    """
    if at is None:
        return "never"
    passed = max(0.0, (time.time() if now is None else now) - at)
    for seconds, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if passed >= seconds:
            return f"{passed / seconds:.0f} {unit} ago"
    return "just now"


def ahead(at: float | None, now: float | None = None) -> str:
    """Return how far off a coming time in Unix seconds is, in words.

    >>> ahead(1000.0 + 6 * 86_400, 1000.0), ahead(None)
    ('in 6 d', 'never')
    """
    if at is None:
        return "never"
    left = max(0.0, at - (time.time() if now is None else now))
    for seconds, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if left >= seconds:
            return f"in {left / seconds:.0f} {unit}"
    return "in less than a minute"


def moment(at: float | None) -> str:
    """Return a time in Unix seconds in UTC, to the minute; ``—`` where there is none.

    >>> moment(0.0), moment(None)
    ('1 Jan 1970 00:00', '—')
    """
    if at is None:
        return "—"
    moment_utc = datetime.fromtimestamp(at, UTC)
    return f"{moment_utc.day} {moment_utc:%b %Y %H:%M}"


def cut(text: str, most: int) -> str:
    """Return a text of at most some characters; one that is longer ends with an ellipsis.

    >>> cut("abcdef", 6), cut("abcdefg", 6)
    ('abcdef', 'abcde…')
    """
    return text if len(text) <= most else f"{text[: most - 1]}…"


def escape_markdown(text: str) -> str:
    r"""Return a text as Markdown that shows it as it is, on one line.

    >>> escape_markdown("1. **now** <b>")
    '1\\. \\*\\*now\\*\\* &lt;b>'
    """
    return _BEGINS.sub(r"\1\\\2", " ".join(text.split()).translate(_ESCAPES))


def term_of(words: str) -> str:
    """Return the exact term for everyday words; empty where they are exact.

    >>> term_of("Share right"), term_of("version")
    ('accuracy', '')
    """
    return _TERMS.get(words.lower(), "")


def everyday(sentence: str) -> str:
    """Return a sentence of the server in everyday words; what it quotes stays as it is.

    >>> everyday('No outcome takes a case that fits none of them. Add one such as "outcome".')
    'No answer takes a case that fits none of them. Add one such as "outcome".'
    >>> everyday("Family desk passed its gate on 40 held-out rows.")
    'Model line desk passed its check on 40 rows for the check.'
    >>> everyday("Family context-router was not moved.")
    'Model line context-router was not moved.'
    """

    def in_words(match: re.Match[str]) -> str:
        term = match[0]
        words = _EVERYDAY.get(term.lower(), term)
        return words[:1].upper() + words[1:] if term[:1].isupper() else words

    return _TERM.sub(in_words, sentence)


def changed_words(before: str, after: str) -> str:
    """Return HTML of a text whose changed words are marked as deleted and inserted.

    >>> changed_words("Is it paid?", "Is it settled?").count("<del")
    1
    """
    return "".join(
        escape(new) if old == new else _marked("del", old) + _marked("ins", new)
        for old, new in _pieces(before, after)
    )


def changed_sides(before: str, after: str) -> tuple[str, str]:
    """Return HTML of both texts: removed words are marked in the first, new ones in the second.

    >>> [side.count("<ins") for side in changed_sides("Is it paid?", "Is it settled?")]
    [0, 1]
    """
    pieces = list(_pieces(before, after))
    return (
        "".join(escape(old) if old == new else _marked("del", old) for old, new in pieces),
        "".join(escape(new) if old == new else _marked("ins", new) for old, new in pieces),
    )


def _pieces(before: str, after: str) -> Iterator[tuple[str, str]]:
    """Return the stretches of both texts in order, equal ones and changed ones."""
    old, new = (re.findall(r"\s+|[\w']+|[^\w\s]", text) for text in (before, after))
    for _, i, j, k, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        yield "".join(old[i:j]), "".join(new[k:m])


def _marked(tag: str, text: str) -> str:
    style = _GONE if tag == "del" else _NEW
    return f'<{tag} style="{style}">{escape(text)}</{tag}>' if text else ""
