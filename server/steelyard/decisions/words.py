"""Texts as words: how questions, names and descriptions are cut up to be compared."""

from __future__ import annotations

import re

# A word may hold hyphens, apostrophes and underscores, a number its decimals and dates their dashes.
_WORD = re.compile(r"[^\W_]+(?:['_-][^\W_]+|[.,]\d+)*|[^\w\s]|_")
_CAMEL = re.compile(r"(?<=[a-z][a-z])(?=[A-Z][a-z])")
# In names a dash between words separates; before a number or after a word it says something.
_NAME_PART = re.compile(
    r"[^\W_]+|(?<![^\W_])-(?=\d)|(?<=[^\W_])-$|[^\w\s\-_/,.:;()\[\]{}\"'’“”|\\&]"  # noqa: RUF001
)
#: Curly quotes to straight ones.
STRAIGHT = str.maketrans("‘’“”", "''\"\"")  # noqa: RUF001
_SPACES = re.compile(r"\s+")


def word_set(words: str) -> frozenset[str]:
    """Return the words of a list that is written as one text."""
    return frozenset(words.split())


_ARTICLES = frozenset(("a", "an", "the"))
#: Words that carry no content of their own when two descriptions are compared.
_EMPTY_WORDS = _ARTICLES | word_set(
    "about and any are as at be been being by for from has have her his how in is it its my of on "
    "or our such that their there these they this those to was were what when which who with "
    "your"
)


def straighten(text: str) -> str:
    """Return a text in lower case, with straight quotes."""
    return text.translate(STRAIGHT).casefold()


def normalise(text: str) -> str:
    r"""Return a text in normal form: lower case, single blanks, no last full stop.

    >>> normalise("  A late\nparcel. ")
    'a late parcel'
    """
    return _SPACES.sub(" ", straighten(text)).strip(" .;,!")


def read_words(text: str) -> tuple[str, ...]:
    """Return the words and marks of a text that is straightened, in order.

    >>> read_words("isn't it time-sensitive, or 2.5%?")
    ("isn't", 'it', 'time-sensitive', ',', 'or', '2.5', '%', '?')
    """
    return tuple(_WORD.findall(text))


def name_parts(name: str) -> tuple[str, ...]:
    """Return the words of an outcome's name as they are, without articles.

    Marks that separate words are no words; others are, so that ``C`` is not ``C++``.

    >>> name_parts("the lateDeliveries"), name_parts("< 5")
    (('late', 'deliveries'), ('<', '5'))
    """
    parts = _NAME_PART.findall(straighten(_CAMEL.sub(" ", name)))
    # "Plan A" ends with a letter, not with an article.
    return tuple([part for part in parts[:-1] if part not in _ARTICLES] + parts[-1:])


def name_words(name: str) -> tuple[str, ...]:
    """Return the words of an outcome's name in the singular, to be compared with others.

    >>> name_words("refund_Requests")
    ('refund', 'request')
    """
    return tuple(map(singular, name_parts(name)))


def content_words(text: str) -> frozenset[str]:
    """Return the words of a description that carry content, in the singular.

    >>> sorted(content_words("Problems with a payment, or with an invoice."))
    ['invoice', 'payment', 'problem']
    """
    words = [word for word in read_words(straighten(text)) if word[0].isalnum()]
    content = [word for word in words if word not in _EMPTY_WORDS]
    return frozenset(singular(word) for word in content or words)


def singular(word: str) -> str:
    """Return an English plural's singular, roughly: both forms must become the same word.

    >>> [singular(word) for word in ("refunds", "queries", "boxes", "status", "class")]
    ['refund', 'query', 'box', 'status', 'class']
    """
    if len(word) <= 3 or word.endswith(("ss", "us", "is")) or not word.endswith("s"):
        return word
    if word.endswith("ies"):
        return f"{word[:-3]}y"
    if word.endswith(("ses", "xes", "zes", "ches", "shes")):
        return word[:-2]
    return word[:-1]
