"""The exact terms of the field for the everyday words on pages, shown where a pointer rests on a word."""

from __future__ import annotations

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


def term_of(words: str) -> str:
    """Return the exact term for everyday words; empty where they are exact.

    >>> term_of("Share right"), term_of("version")
    ('accuracy', '')
    """
    return _TERMS.get(words.lower(), "")
