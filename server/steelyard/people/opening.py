"""Open the services of people: sign-in, sessions, members, keys, letters, and operators."""

from __future__ import annotations

from functools import partial

from steelyard.accounts.service import AccountService
from steelyard.billing.service import PurchaseService
from steelyard.house import House
from steelyard.people.account_service import OwnAccount
from steelyard.people.export_service import AccountExports
from steelyard.people.key_service import Keys
from steelyard.people.limits import ForwardClock
from steelyard.people.mail_service import MailRoom
from steelyard.people.member_service import Members
from steelyard.people.member_store import reviewers_of
from steelyard.people.oidc_service import OidcSignIns
from steelyard.people.operator_service import Operator
from steelyard.people.passkey_service import Passkeys
from steelyard.people.removal import AccountRemoval
from steelyard.people.session_service import Sessions, note
from steelyard.people.sign_in_service import SignIns
from steelyard.people.usage_service import UsageService
from steelyard.review.assigning import DraftAssignments
from steelyard.serving.registry import ModelRegistry

#: Seconds between two looks for accounts whose time is over.
_REMOVAL_S = 60.0


def open_people(
    house: House,
    accounts: AccountService,
    purchases: PurchaseService,
    assignments: DraftAssignments,
    registry: ModelRegistry,
) -> tuple[object, ...]:
    """Return who lets people in; letters are sent where accounts are on."""
    state, settings, now = house.state, house.settings, ForwardClock()
    mail = MailRoom(state, settings, now=now)
    if house.has_accounts:
        house.tick(mail.tick, name="steelyard-mail", failure="Could not send mail")
        house.tick(
            AccountRemoval(state, now=now).tick,
            name="steelyard-removal",
            failure="Could not remove an account",
            interval_s=_REMOVAL_S,
        )
    purchases.register_note(note)
    assignments.register_candidates(partial(reviewers_of, now=now))
    sign_ins = SignIns(state, mail, settings, now=now)
    members = Members(state, mail, now=now, release=assignments.release)
    sessions = Sessions(state, settings, now=now)
    own_account = OwnAccount(state, accounts)
    return (
        Keys(state, now=now),
        members,
        OidcSignIns(state, sign_ins, settings, now=now),
        Passkeys(state, sign_ins, settings, now=now),
        sessions,
        sign_ins,
        own_account,
        UsageService(state),
        Operator(state, accounts, purchases, registry),
        AccountExports(house, own_account, members, sessions),
    )
