"""The text of letters, plain and as HTML."""

from __future__ import annotations

from dataclasses import dataclass, field
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from html import escape


@dataclass(frozen=True, slots=True)
class Letter:
    """A letter to one address."""

    to: str
    subject: str
    paragraphs: tuple[str, ...] = field(repr=False)
    #: Shown by itself, large: a code.
    highlight: str | None = field(default=None, repr=False)

    def text(self) -> str:
        """Return it as plain text."""
        return "\n\n".join(self._parts()) + "\n"

    def html(self) -> str:
        """Return it as HTML, which loads nothing."""
        shown = []
        for part in self._parts():
            style = "font-size:28px;letter-spacing:3px;font-family:monospace"
            is_code = part == self.highlight
            shown.append(f'<p style="{style}">{part}</p>' if is_code else f"<p>{escape(part)}</p>")
        return (
            '<!doctype html><html lang="en"><body style="font-family:sans-serif">'
            f"{''.join(shown)}</body></html>"
        )

    def message(self, sender: str) -> EmailMessage:
        """Return it as it is sent."""
        message = EmailMessage()
        message["From"] = sender
        message["To"] = self.to
        message["Subject"] = self.subject
        message["Date"] = formatdate()
        message["Message-ID"] = make_msgid(domain=sender.rpartition("@")[2].rstrip(">"))
        message["Auto-Submitted"] = "auto-generated"
        message.set_content(self.text())
        message.add_alternative(self.html(), subtype="html")
        return message

    def _parts(self) -> tuple[str, ...]:
        if self.highlight is None:
            return self.paragraphs
        return (self.paragraphs[0], self.highlight, *self.paragraphs[1:])


def code_letter(to: str, code: str) -> Letter:
    """Return the letter with a code; the same for every address."""
    return Letter(
        to,
        "Your sign-in code",
        (
            "Type this code to sign in to Steelyard:",
            "It works once, for ten minutes. Whoever asks you for it is not Steelyard.",
            "If you did not ask for it, do nothing: without the code nobody gets in.",
        ),
        code,
    )


def invitation_letter(to: str, account: str, sender: str) -> Letter:
    """Return the letter that invites a person into an account."""
    return Letter(
        to,
        "You are invited to Steelyard",
        (
            f"{sender} invites you to the account {account} of a Steelyard server.",
            "Sign in there with this address within 14 days; you need no password.",
        ),
    )


def deletion_letter(to: str, account: str, sender: str) -> Letter:
    """Return the letter that tells an owner of an account's deletion."""
    return Letter(
        to,
        "Your Steelyard account is to be deleted",
        (
            f"{sender} asked for the deletion of the account {account}.",
            "Everything in it is removed after seven days. Until then an owner can take that back.",
            "All of its data can be exported in the console, too.",
        ),
    )


def top_up_letter(to: str, account: str, reason: str) -> Letter:
    """Return the letter that tells an owner that an account buys no more credit by itself."""
    return Letter(
        to,
        "Automatic top-ups are off",
        (
            f"The account {account} of a Steelyard server buys no more credit by itself.",
            reason,
        ),
    )


def alarm_letter(to: str, account: str, message: str) -> Letter:
    """Return the letter that tells an owner of an alarm."""
    return Letter(
        to,
        "Steelyard raised an alarm",
        (
            f"An alarm of the account {account} was raised:",
            message,
            "The page Live of the workbench shows the decisions behind it.",
        ),
    )
