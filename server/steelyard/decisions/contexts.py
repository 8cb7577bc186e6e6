"""The text that a small model can read of a context, and warnings about it beside an answer.

A model that was trained on plain English cannot tell that it does not know: of a message in German it
says "no", and of a mail below the mail that it answers it reads both. Quoted mail and markup are left
out before reading; another language, unknown words and length can only be said.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from steelyard.decisions.tokens import TokenCounter
from steelyard.decisions.wire import AnswerWarning

#: The first reading of base models (``steelyard.scoring.reading``) that reads a context so.
CLEANED_READING = 5
#: Tokens of a context up to which answers were measured.
MEASURED_TOKENS = 512
#: Tokens a word from which a text is not made of words that the model knows: of 4,000 English texts one
#: in 300 has more. Shorter texts say nothing of it.
_TOKENS_A_WORD, _LEAST_WORDS = 2.6, 8
#: Characters whose language is looked for, and below which nothing is said.
_SAMPLE_CHARACTERS, _LEAST_LETTERS = 2_000, 10
#: Of a text's bytes, how many must be of another language, in per cent.
_LEAST_SHARE = 60
#: What is as English as the training data, or no language.
_ENGLISH = frozenset({"en", "sco", "un", "xxx", "zzp", "tlh"})
#: What a reply must have at least, in words, to be read without the mail that it answers.
_LEAST_REPLY = 2
#: Lines of a mail: quoted, the line above the mail that it answers, and the fields of that mail.
_QUOTED = re.compile(r"[ \t]*>")
_WROTE = re.compile(r"[ \t>]*On .{4,200} wrote:[ \t]*", re.IGNORECASE)
_ORIGINAL = re.compile(r"[ \t>]*(?:-{2,} ?Original Message ?-{2,}|_{10,})[ \t]*", re.IGNORECASE)
_FROM = re.compile(r"[ \t>]*\*?From:", re.IGNORECASE)
_FIELD = re.compile(r"[ \t>]*\*?(?:Sent|Date|To|Subject):", re.IGNORECASE)
#: Passed on, and so the subject of the message.
_FORWARDED = re.compile(r"forwarded message|^fwd?:", re.MULTILINE | re.IGNORECASE)
_TAG = re.compile(
    r"</?(?:html|head|body|style|div|span|p|br|hr|table|tbody|tr|td|th|ul|ol|li|a|b|i|u|em|strong|"
    r"font|img|h[1-6]|blockquote)\b[^<>]*>",
    re.IGNORECASE,
)
_LEAST_TAGS = 2
#: Characters that are not seen: blanks of no width, marks of direction and of the order of bytes.
UNSEEN = re.compile("[\u00ad\u200b\u200e\u200f\u2060\ufeff]")
_SPACES = re.compile(r"[ \t\xa0]+")
#: Contexts whose findings are kept, for who asks of one twice, and the longest of them.
_CACHED_CONTEXTS, _CACHED_CHARACTERS = 256, 4_000


@dataclass(frozen=True, slots=True)
class ReadContext:
    """A context as a model reads it.

    ``quoted`` and ``markup`` are the characters that were left out; ``language`` is the name of the
    language where it is another than English.
    """

    text: str
    quoted: int = 0
    markup: int = 0
    language: str | None = None


def read_context(context: str) -> ReadContext:
    """Return the readable text of a rendered context; each string of a JSON context is read.

    >>> read_context("<p>Where is <b>my</b> parcel?</p>").text
    'Where is my parcel?'
    >>> read_context("Ich möchte mein Geld zurück, bitte.").language
    'German'
    """
    return (_read_cached if len(context) <= _CACHED_CHARACTERS else _read)(context)


def context_warnings(read: ReadContext, counter: TokenCounter) -> list[AnswerWarning]:
    """Return the warnings about answers on such a context.

    ``counter`` is the model's own tokenizer, which has counted the text before.
    """
    n_tokens, n_words = counter.count(read.text), counter.least(read.text)
    is_unknown = n_words >= _LEAST_WORDS and n_tokens > _TOKENS_A_WORD * n_words
    findings = {code: check(read) for code, check in FINDINGS.items()}
    findings["unknown_words"] = _UNKNOWN if is_unknown and read.language is None else None
    if n_tokens > MEASURED_TOKENS:
        findings["long_context"] = (
            f"The context has {n_tokens:,} tokens, and answers were measured on up to "
            f"{MEASURED_TOKENS:,}. Send the part that decides."
        )
    return [AnswerWarning(code=code, message=text) for code, text in findings.items() if text]


def _unread_language(read: ReadContext) -> str | None:
    if read.language is None:
        return None
    return (
        f"The context is in {read.language}, and base models read English: their probabilities are "
        "drawn towards saying nothing. Translate it, or ask a connected model."
    )


def _quoted_mail(read: ReadContext) -> str | None:
    if not read.quoted:
        return None
    return (
        f"Quoted mail ({read.quoted:,} characters) is left out before reading. Send what the message "
        "itself says."
    )


def _markup(read: ReadContext) -> str | None:
    if not read.markup:
        return None
    return f"Markup ({read.markup:,} characters) is left out before reading. Send plain text."


_UNKNOWN = (
    "Most words of the context are unknown to the model: codes, encoded data, or misspelt text. Send "
    "what they stand for."
)
#: What is said of a context whichever tokenizer reads it, by the warning's code.
FINDINGS: dict[str, Callable[[ReadContext], str | None]] = {
    "unread_language": _unread_language,
    "quoted_mail": _quoted_mail,
    "markup": _markup,
}


def own_text(value: Any) -> str:
    """Return a context's own text: its strings without markup and without quoted mail.

    >>> own_text({"mail": "<p>Where is <b>my</b> parcel?</p>"})
    '{"mail": "Where is my parcel?"}'
    """
    try:
        cleaned = _Cleaner().clean(value)
    except RecursionError:
        cleaned = value
    return cleaned if isinstance(cleaned, str) else json.dumps(cleaned, sort_keys=True, default=str)


def plain_hash(value: Any, images: Any = None) -> int:
    """Return the hash of a context without case, blanks, markup and quoted mail, and of its images.

    >>> plain_hash("Paid &amp; sent") == plain_hash("PAID & <b>sent</b>&ZeroWidthSpace;")
    True
    """
    # A text may have characters as HTML names them without any tag.
    text = UNSEEN.sub("", html.unescape(own_text(value))).casefold()
    return hash((" ".join(text.split()), str(images)))


def _read(context: str) -> ReadContext:
    value: Any = context
    if context[:1] in {"{", "["}:
        # What is nested too deep to be walked, or looks like JSON alone, is read as it is.
        with suppress(ValueError, RecursionError):
            value = json.loads(context)
    cleaner = _Cleaner()
    try:
        cleaned = cleaner.clean(value)
    except RecursionError:
        cleaner = _Cleaner()
        cleaned = cleaner.clean(context)
    text = context
    if cleaner.quoted or cleaner.markup:
        text = cleaned if isinstance(cleaned, str) else json.dumps(cleaned, ensure_ascii=False)
    language = _language_of("\n".join(cleaner.texts))
    return ReadContext(text, cleaner.quoted, cleaner.markup, language)


_read_cached = lru_cache(maxsize=_CACHED_CONTEXTS)(_read)


class _Cleaner:
    """Takes markup and quoted mail out of each string of a value, and counts them."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.quoted = self.markup = 0

    def clean(self, value: Any) -> Any:
        if isinstance(value, str):
            plain = _without_markup(value)
            own = _without_quotes(plain)
            self.markup += len(value) - len(plain)
            self.quoted += len(plain) - len(own)
            self.texts.append(own)
            return own
        if isinstance(value, dict):
            return {key: self.clean(inner) for key, inner in value.items()}
        return [self.clean(inner) for inner in value] if isinstance(value, list) else value


def _without_markup(text: str) -> str:
    """Return a text without tags, and without its quoted blocks."""
    if "<" not in text or len(_TAG.findall(text, 0, _SAMPLE_CHARACTERS * 4)) < _LEAST_TAGS:
        return text
    from selectolax.lexbor import LexborHTMLParser  # noqa: PLC0415 (few contexts need it)

    document = LexborHTMLParser(" ".join(text.splitlines()))
    for node in document.css("head, style, script"):
        node.decompose()
    for node in document.css("p, div, br, tr, li, h1, h2, h3, h4, h5, h6, table, blockquote"):
        node.insert_before("\n")
        node.insert_after("\n")
    whole = _tidied(document.text())
    for node in document.css("blockquote, .gmail_quote"):
        node.decompose()
    own = _tidied(document.text())
    return next((part for part in (own, whole) if len(part.split()) >= _LEAST_REPLY), text)


def _tidied(text: str) -> str:
    lines = (line.strip() for line in _SPACES.sub(" ", text).splitlines())
    return "\n".join(line for line in lines if line)


def _without_quotes(text: str) -> str:
    """Return a mail without the mails that it answers, where there is enough of itself.

    By lines, in linear time: the library of mail patterns used before was quadratic and worse.
    """
    lines = text.splitlines()
    if len(lines) < 2 or _FORWARDED.search(text):
        return text
    own: list[str] = []
    marked = [place for place, line in enumerate(lines) if _QUOTED.match(line)]
    n_quoted, last_marked = len(marked), marked[-1] if marked else -1
    for place, line in enumerate(lines):
        if _begins_original(lines, place):
            n_quoted = len(lines)
            if _WROTE.fullmatch(line) is None and line.rstrip().lower().endswith("wrote:"):
                own = own[:-1]
            if last_marked < place:
                break
            # Its lines are marked, so that the others are the reply, wherever it stands.
        elif not _QUOTED.match(line):
            own.append(line)
    reply = "\n".join(own).strip()
    # One marked line alone may be anything.
    return reply if n_quoted > 1 and len(reply.split()) >= _LEAST_REPLY else text


def _begins_original(lines: list[str], place: int) -> bool:
    line = lines[place]
    if _WROTE.fullmatch(line) or _ORIGINAL.fullmatch(line):
        return True
    if line.rstrip().lower().endswith("wrote:") and place:  # broken in two
        return _WROTE.fullmatch(f"{lines[place - 1]} {line}") is not None
    return bool(_FROM.match(line)) and any(map(_FIELD.match, lines[place + 1 : place + 4]))


def _language_of(text: str) -> str | None:
    """Return the name of a text's language where it is surely another than English."""
    try:
        import pycld2  # noqa: PLC0415 (there are machines that it is not built for)
    except ImportError:  # pragma: no cover
        return None
    sample = text[:_SAMPLE_CHARACTERS]
    if sum(map(str.isalpha, sample)) < _LEAST_LETTERS:
        return None
    try:
        is_reliable, _, languages = pycld2.detect(
            sample.encode("utf-8", "ignore"), isPlainText=True
        )
    except pycld2.error:  # no text: control characters, lone surrogates
        return None
    name, code, share, _ = languages[0]
    if not is_reliable or code in _ENGLISH or share < _LEAST_SHARE:
        return None
    return str(name).title()
