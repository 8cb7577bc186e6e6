"""Rules about the context; each reports on the first decision, as answers do."""

from __future__ import annotations

from steelyard.decisions.contexts import FINDINGS
from steelyard.decisions.lint.subjects import Subject

#: Characters from which a context is longer than those that answers were measured on.
MEASURED_CHARACTERS = 2_400


def unread_language(subject: Subject) -> str | None:
    """Find a context that is surely in another language than English.

    A base model reads English. Of other text it does not know that it does not know, so that its
    probabilities are drawn towards saying nothing.
    """
    return _finding(subject, "unread_language")


def quoted_mail(subject: Subject) -> str | None:
    """Find a mail with the mail that it answers below it, which is not read.

    The claims of quoted mail would be taken for those of the message.
    """
    return _finding(subject, "quoted_mail")


def markup(subject: Subject) -> str | None:
    """Find HTML around the text, which is not read.

    Tags and styles are words that the model would take for some of the text's.
    """
    return _finding(subject, "markup")


def long_context(subject: Subject) -> str | None:
    """Find a context longer than those on which answers were measured.

    The deciding words stand in one place, and the text around hides them.
    """
    n = len(subject.request.read.text)
    if subject.decision.index > 0 or n <= MEASURED_CHARACTERS:
        return None
    return (
        f"The context has {n:,} characters, and answers were measured on up to about "
        f"{MEASURED_CHARACTERS:,}. Send the part that decides."
    )


def _finding(subject: Subject, code: str) -> str | None:
    return None if subject.decision.index > 0 else FINDINGS[code](subject.request.read)
