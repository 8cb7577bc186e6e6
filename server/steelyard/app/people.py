"""The composition of what answers for people: sign-in, sessions, members, keys, letters."""

from __future__ import annotations

from dataclasses import dataclass

from steelyard.app.foundation import Foundation
from steelyard.jobs.ticker import Ticker
from steelyard.people.key_service import Keys
from steelyard.people.limits import ForwardClock
from steelyard.people.mail_service import MailRoom
from steelyard.people.member_service import Members
from steelyard.people.oidc_service import OidcSignIns
from steelyard.people.passkey_service import Passkeys
from steelyard.people.removal import AccountRemoval
from steelyard.people.session_service import Sessions
from steelyard.people.sign_in_service import SignIns

#: Seconds between two looks for accounts whose time is over.
_REMOVAL_S = 60.0


@dataclass(frozen=True, slots=True)
class People:
    """What answers for people."""

    keys: Keys
    members: Members
    oidc_sign_ins: OidcSignIns
    passkeys: Passkeys
    sessions: Sessions
    sign_ins: SignIns


def open_people(on: Foundation) -> People:
    """Return who lets people in; letters are sent where accounts are on."""
    now = ForwardClock()
    mail = MailRoom(on.state, on.settings, now=now)
    if on.settings.accounts == "on":
        ticker = Ticker(
            mail.tick,
            name="steelyard-mail",
            failure="Could not send mail",
            explain=on.state.explain,
        )
        on.closing.callback(ticker.close)
        removal = Ticker(
            AccountRemoval(on.state, now=now).tick,
            name="steelyard-removal",
            failure="Could not remove an account",
            explain=on.state.explain,
            interval_s=_REMOVAL_S,
        )
        on.closing.callback(removal.close)
    sign_ins = SignIns(on.state, mail, on.settings, now=now)
    return People(
        Keys(on.state, now=now),
        Members(on.state, mail, now=now),
        OidcSignIns(on.state, sign_ins, on.settings, now=now),
        Passkeys(on.state, sign_ins, on.settings, now=now),
        Sessions(on.state, on.settings, now=now),
        sign_ins,
    )
