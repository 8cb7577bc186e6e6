"""The meaning of a column's name."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.decisions.words import name_parts, word_set

#: Words with which the name of a label ends, and of them those of labels without an order.
_LABELS = word_set(
    "label labels category categories class classes intent intents target topic topics sentiment tag tags"
)
_NO_ORDER = word_set(
    "category class code department group id intent product queue subject tag team topic type"
)
#: Words behind these that say in which form, or by whom, a label is.
_FORMS = word_set("coarse fine id idx index name names str string text")
#: Words with which the name of a column ends that is about a row, and asks nothing of it.
_BESIDE = word_set(
    "annotator author confidence coord coordinates coords count counts created date datetime day email "
    "file filename fold handle hour id ids idx index lang lat latitude link locale location lon "
    "longitude modified month path rejected time timestamp timezone tz updated uri url user username uuid version "
    "worker year zone"
)
#: Words in the names of columns that have a model's answers.
_OF_MODELS = word_set("pred predicted prediction predictions")
#: Words in the names of columns that have the right answers.
_OF_TRUTH = word_set("adjudicated consensus expected gold golden ideal majority reference truth")
#: Columns that an error lists, and characters of the name of one.
_LISTED, _LONGEST_LISTED = 8, 80


def listed(columns: Sequence[str]) -> str:
    """Return the first names of columns, as an error has them.

    >>> listed("abcdefghij")
    'a, b, c, d, e, f, g, h, …'
    """
    names = [
        name if len(name) <= _LONGEST_LISTED else f"{name[:_LONGEST_LISTED]}…"
        for name in columns[:_LISTED]
    ]
    return ", ".join(names) + (", …" if len(columns) > _LISTED else "")


def is_label_name(column: str) -> bool:
    """Return whether a column is named as labels are; what a model predicted is none.

    >>> [is_label_name(name) for name in ("airline_sentiment", "labelText", "label confidence")]
    [True, True, False]
    >>> is_label_name("predicted_label")
    False
    """
    return _last_word(column) in _LABELS and not _is_of_model(column)


def is_beside_name(column: str) -> bool:
    """Return whether a column is named for facts about rows: times, places, people, counts.

    >>> [is_beside_name(name) for name in ("user_timezone", "retweetCount", "country")]
    [True, True, False]
    """
    return _last_word(column) in _BESIDE or _is_of_model(column)


def is_truth_name(column: str) -> bool:
    """Return whether a column is named for the right answers, beside those of people or models.

    >>> [is_truth_name(name) for name in ("gold_label", "expectedOutput", "label")]
    [True, True, False]
    """
    return not _OF_TRUTH.isdisjoint(name_parts(column))


def has_order(column: str) -> bool:
    """Return whether the numbers of a column may be levels, by its name.

    >>> has_order("stars"), has_order("class"), has_order("Ticket type")
    (True, False, False)
    """
    return _last_word(column) not in _NO_ORDER


def _is_of_model(column: str) -> bool:
    return not _OF_MODELS.isdisjoint(name_parts(column))


def _last_word(column: str) -> str:
    """Return the last word of a name that says the kind of its cells; a number behind it says which."""
    words = [word for word in name_parts(column) if not word.isdecimal()]
    while len(words) > 1 and words[-1] in _FORMS and {*words[:-1]} & _LABELS:
        words.pop()
    return words[-1] if words else ""
