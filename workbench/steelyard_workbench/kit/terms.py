"""The exact terms of the field for the everyday words on pages, shown where a pointer rests on a word."""

from __future__ import annotations

_TERMS = {
    "answers to choose from": "outcomes",
    "better on nothing": "dominated: another model is nowhere worse and somewhere better",
    "gap between sure and right": "expected calibration error (ECE)",
    "for": "side: training or evaluation",
    "loss": "log loss, in nats",
    "share right": "accuracy",
    "right": "accuracy, with a 95 % interval",
    "squared miss": "Brier score",
    "model line": "family",
    "model line right": "how often the family is right",
    "text": "context",
    "texts": "contexts",
    "to train on": "training rows",
    "for the check": "evaluation rows, held out",
    "versions in use": "aliases, each with the version that it points to",
}


def term_of(words: str) -> str:
    """Return the exact term for everyday words; empty where they are exact.

    >>> term_of("Share right"), term_of("version")
    ('accuracy', '')
    """
    return _TERMS.get(words.lower(), "")
