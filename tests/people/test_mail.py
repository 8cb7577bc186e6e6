"""Mail: sent to a real mail server, retried, and refused where there is none."""

from __future__ import annotations

import email
import socket

import pytest
from aiosmtpd.controller import Controller

from steelyard.accounts.store import insert_account
from steelyard.billing.store import insert_billing_event
from steelyard.errors import MailUnavailableError
from steelyard.people import store as rows
from steelyard.people.letters import invitation_letter
from steelyard.people.mail_service import MailRoom, MailServer
from steelyard.people.member_store import insert_member
from steelyard.settings import InvalidSettingError, read_settings
from steelyard.storage import open_state
from support.accounts.console import Clock, code_of


class Box:
    """Takes letters, and refuses a set number."""

    def __init__(self):
        self.letters = []
        self.refuses = 0

    async def handle_DATA(self, server, session, envelope):  # noqa: N802
        if self.refuses:
            self.refuses -= 1
            return "451 4.3.0 Not now"
        self.letters.append((envelope, email.message_from_bytes(envelope.content)))
        return "250 OK"


@pytest.fixture
def box():
    return Box()


@pytest.fixture
def mail(box, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    controller = Controller(box, hostname="127.0.0.1", port=port)
    controller.start()
    settings = read_settings(
        {
            "smtp_url": f"smtp://127.0.0.1:{port}",
            "mail_from": "console@example.org",
            "host": "0.0.0.0",
        },
        environ={},
    )
    state = open_state(f"sqlite:///{tmp_path / 'state.sqlite'}")
    clock = Clock()
    room = MailRoom(state, settings, now=clock)
    room.clock = clock
    yield room
    state.close()
    controller.stop()


def queue(mail, kind="invitation", **values):
    def work(connection):
        rows.insert_letter(
            connection,
            kind,
            "mia@example.org",
            at=mail.clock.now,
            expires_at=mail.clock.now + 100,
            **values,
        )

    mail.state.write_now(work)


def test_a_letter_arrives_as_text_and_html(mail, box):
    queue(mail, account_name="<acme> & co", sender="leo@example.org")
    mail.tick()
    [(envelope, message)] = box.letters
    assert envelope.rcpt_tos == ["mia@example.org"]
    assert envelope.mail_from == message["From"] == "console@example.org"
    text, html = (part.get_payload(decode=True).decode() for part in message.get_payload())
    assert "<acme> & co" in text
    assert "&lt;acme&gt; &amp; co" in html
    mail.tick()
    assert len(box.letters) == 1


def test_a_letter_is_tried_again_and_given_up_when_it_is_over(mail, box, caplog):
    box.refuses = 1
    queue(mail, account_name="acme", sender="leo@example.org")
    mail.tick()
    assert box.letters == []
    assert "was not sent, try 1" in caplog.text
    assert "mia@example.org" not in caplog.text
    mail.clock.now += 5
    mail.tick()
    assert len(box.letters) == 1
    queue(mail, account_name="acme", sender="leo@example.org")
    mail.clock.now += 100
    mail.tick()
    assert len(box.letters) == 1


def test_the_owners_hear_once_that_top_ups_are_off(mail, box):
    def work(connection):
        account_id = "acct_1"
        insert_account(connection, account_id, "acme", mail.clock.now)
        for role in ("owner", "reviewer"):
            insert_member(
                connection,
                account_id,
                f"{role}@example.org",
                role,
                at=mail.clock.now,
                expires_at=mail.clock.now,
                joined_at=mail.clock.now,
            )
        insert_billing_event(
            connection,
            id="bev_1",
            account_id=account_id,
            kind="top_up_off",
            message="Three were not paid.",
            created_at=mail.clock.now,
        )

    mail.state.write_now(work)
    for _ in range(2):
        mail.tick()
    [(envelope, message)] = box.letters
    assert envelope.rcpt_tos == ["owner@example.org"]
    assert message["Subject"] == "Automatic top-ups are off"
    assert "Three were not paid." in message.get_payload()[0].get_payload(decode=True).decode()


def test_another_try_has_another_code_and_the_last_one_works(mail, box):
    def work(connection):
        rows.insert_challenge(
            connection,
            "chal_1",
            email="mia@example.org",
            network="n",
            tries=5,
            at=mail.clock.now,
            expires_at=mail.clock.now + 600,
        )

    mail.state.write_now(work)
    seen = []
    send, mail.send = mail.send, seen.append
    queue(mail, "code", challenge_id="chal_1")
    mail.send = lambda letter: (seen.append(letter), 1 / 0)
    mail.tick()
    mail.send = send
    mail.clock.now += 5
    mail.tick()
    [(_, message)] = box.letters
    assert code_of(seen[0]) not in message.as_string()


def test_a_server_on_loopback_without_mail_writes_to_its_terminal(tmp_path, capsys):
    state = open_state(f"sqlite:///{tmp_path / 'state.sqlite'}")
    try:
        room = MailRoom(state, read_settings(environ={}))
        room.check()
        room.send(invitation_letter("mia@example.org", "acme", "leo@example.org"))
        assert "acme" in capsys.readouterr().err
        with pytest.raises(MailUnavailableError, match="STEELYARD_SMTP_URL"):
            MailRoom(state, read_settings({"host": "0.0.0.0"}, environ={})).check()
    finally:
        state.close()


@pytest.mark.parametrize(
    ("url", "sender"),
    [
        ("http://mail.example.org", "a@b.org"),
        ("smtp://", "a@b.org"),
        ("smtp://host:port", "a@b.org"),
        ("smtp://user:hunter2@host", ""),
        ("smtp://user:hunter2@host", "nobody"),
    ],
)
def test_settings_of_mail_that_cannot_be_used(url, sender):
    with pytest.raises(InvalidSettingError) as refused:
        MailServer.of(read_settings({"smtp_url": url, "mail_from": sender}, environ={}))
    assert "hunter2" not in str(refused.value)


def test_a_mail_server_is_read_of_its_address():
    given = {"smtp_url": "smtps://me%40b.org:p%3Aw@mail.b.org", "mail_from": "a@b.org"}
    server = MailServer.of(read_settings(given, environ={}))
    assert (server.host, server.port, server.is_tls) == ("mail.b.org", 465, True)
    assert (server.username, server.password) == ("me@b.org", "p:w")
    assert "p:w" not in repr(server)
