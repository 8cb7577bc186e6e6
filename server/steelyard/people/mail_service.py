"""Letters sent: one after the other from a queue in the state, tried again until their time is over.

The code of a letter is made when the letter goes out, and only its hash is kept: no code waits in
the queue. Where a try failed, the next sends another code, and only the last works.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

from sqlalchemy import Connection, Row

from steelyard.accounts.store import find_account
from steelyard.billing.store import delete_billing_event, oldest_billing_event
from steelyard.errors import MailUnavailableError
from steelyard.people import letters
from steelyard.people import store as rows
from steelyard.people.codes import hash_code, new_code, shown
from steelyard.people.limits import ForwardClock
from steelyard.people.member_store import owners_of
from steelyard.people.roles import read_address
from steelyard.settings import InvalidSettingError, Settings
from steelyard.storage import State
from steelyard.wire.hosts import is_loopback

_log = logging.getLogger(__name__)

#: Seconds for a server of mail to take a letter, in which no other process tries to send it.
_SEND_S = 30.0
_LEASE_S = 60.0
#: Seconds until the second try, doubled each time, up to the second.
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 5.0, 3600.0
#: Letters sent in one turn.
_AT_ONCE = 20
#: Seconds for which a letter on purchases is worth sending.
_BILLING_S = 3 * 86_400.0
_PORTS = {"smtp": 587, "smtps": 465}


@dataclass(frozen=True, slots=True)
class MailServer:
    """Where mail goes."""

    host: str
    port: int
    is_tls: bool
    sender: str
    username: str | None = None
    password: str | None = field(default=None, repr=False)

    @classmethod
    def of(cls, settings: Settings) -> MailServer | None:
        """Return the server that settings name."""
        if settings.smtp_url is None:
            return None
        try:
            url = urlsplit(settings.smtp_url)
            host, port = url.hostname, url.port or _PORTS.get(url.scheme, 0)
        except ValueError:
            host, port, url = None, 0, urlsplit("")
        if url.scheme not in _PORTS or not host or url.path not in {"", "/"} or url.query:
            raise InvalidSettingError(
                "The setting smtp_url (STEELYARD_SMTP_URL) names no mail server; give "
                "smtps://USER:PASSWORD@HOST or smtp://HOST:PORT."
            )
        if not settings.mail_from:
            raise InvalidSettingError(
                "The setting mail_from (STEELYARD_MAIL_FROM) is empty, and smtp_url is set; give "
                "the address that mail comes from."
            )
        try:
            sender = read_address(settings.mail_from)
        except ValueError as error:
            raise InvalidSettingError(
                f"The setting mail_from (STEELYARD_MAIL_FROM) cannot be used: {error}"
            ) from None
        username = None if url.username is None else unquote(url.username)
        password = None if url.password is None else unquote(url.password)
        return cls(host, port, url.scheme == "smtps", sender, username, password)

    def send(self, letter: letters.Letter) -> None:
        """Hand a letter over, blocking; a name and password never go out without TLS."""
        import aiosmtplib  # noqa: PLC0415  only a server that sends mail loads it

        needs_tls = self.username is not None and not is_loopback(self.host)
        asyncio.run(
            aiosmtplib.send(
                letter.message(self.sender),
                hostname=self.host,
                port=self.port,
                username=self.username,
                password=self.password,
                use_tls=self.is_tls,
                start_tls=True if needs_tls and not self.is_tls else None,
                timeout=_SEND_S,
            )
        )


def write_to_terminal(letter: letters.Letter) -> None:
    """Write a letter to the server's terminal: the way of a server on loopback without SMTP."""
    sys.stderr.write(f"\nTo {letter.to}: {letter.subject}\n\n{letter.text()}\n")
    sys.stderr.flush()


class MailRoom:
    """Sends the letters that wait."""

    def __init__(
        self,
        state: State,
        settings: Settings,
        *,
        now: Callable[[], float] | None = None,
        send: Callable[[letters.Letter], None] | None = None,
    ) -> None:
        server = MailServer.of(settings)
        self.state = state
        self._now = now or ForwardClock()
        self.send: Callable[[letters.Letter], None] | None = send
        if send is None and server is not None:
            self.send = server.send
        elif send is None and is_loopback(settings.host):
            self.send = write_to_terminal

    def check(self) -> None:
        """Refuse a request that needs mail where none can be sent."""
        if self.send is None:
            raise MailUnavailableError(
                "This server has no mail server, so nobody can sign in; whoever runs it sets "
                "smtp_url (STEELYARD_SMTP_URL) and mail_from (STEELYARD_MAIL_FROM)."
            )

    def tick(self) -> None:
        """Queue letters to owners about their purchases, and send waiting letters."""
        for _ in range(_AT_ONCE):
            event = self.state.read_now(oldest_billing_event)
            if event is None:
                break
            self.state.write_now(functools.partial(_queue_told, event=event))
        for _ in range(_AT_ONCE):
            if self.send is None or not self._send_letter(self.send):
                return

    def _send_letter(self, send: Callable[[letters.Letter], None]) -> bool:
        now = self._now()
        # To look takes no turn of the one writer.
        if not self.state.read_now(functools.partial(rows.is_letter_due, now=now)):
            return False
        take = functools.partial(rows.take_letter, now=now, until=now + _LEASE_S)
        row = self.state.write_now(take)
        if row is None:
            return False
        letter = self._written(row)
        if letter is not None:
            try:
                send(letter)
            except Exception as error:  # noqa: BLE001  whatever the mail server or network does
                # Answers of mail servers may repeat addresses and texts: the kind alone is logged.
                _log.warning(
                    "a letter was not sent, try %d: %s", row.tries + 1, type(error).__name__
                )
                pause_s = min(_FIRST_PAUSE_S * 2**row.tries, _LONGEST_PAUSE_S)
                later, tries = self._now() + pause_s, row.tries + 1
                self.state.write_now(
                    lambda connection: rows.delay_letter(connection, row.id, later, tries)
                )
                return True
        self.state.write_now(lambda connection: rows.LETTERS.delete(connection, row.id))
        return True

    def _written(self, row: Row[Any]) -> letters.Letter | None:
        """Return a letter, with a new code where it has one; ``None`` where it is no longer needed."""
        if row.kind == "invitation":
            return letters.invitation_letter(row.email, row.account_name, row.sender)
        if row.kind == "deletion":
            return letters.deletion_letter(row.email, row.account_name, row.sender)
        if row.kind == "alarm":
            return letters.alarm_letter(row.email, row.account_name, row.text)
        if row.kind == "top_up_off":
            return letters.top_up_letter(row.email, row.account_name, row.text)
        code = new_code()
        code_hash = hash_code(row.challenge_id, code)

        def keep(connection: Connection) -> bool:
            if rows.find_challenge(connection, row.challenge_id) is None:
                return False
            rows.CHALLENGES.change(connection, row.challenge_id, code_hash=code_hash)
            return True

        return letters.code_letter(row.email, shown(code)) if self.state.write_now(keep) else None


def _queue_told(connection: Connection, event: Row[Any]) -> None:
    """Queue the letters of an event in the transaction that removes it: each goes out once."""
    if not delete_billing_event(connection, event.id):
        return
    account = find_account(connection, event.account_id)
    for email in owners_of(connection, event.account_id):
        rows.insert_letter(
            connection,
            event.kind,
            email,
            at=event.created_at,
            expires_at=event.created_at + _BILLING_S,
            account_name="" if account is None else account.name,
            text=event.message,
        )
