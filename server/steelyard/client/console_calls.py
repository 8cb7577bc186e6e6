"""Calls of a signed-in user: one function a route."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import UNSET, UnsetType

from steelyard.accounts.wire import AccountSummary, ApiKey
from steelyard.backups.wire import BackupList
from steelyard.billing.wire import (
    EndedTopUp,
    NewPurchase,
    Purchase,
    RedeemedReferral,
    Referral,
    TopUp,
)
from steelyard.caller import Scope
from steelyard.client.calls import Call, read
from steelyard.client.routes import route
from steelyard.people.operator_wire import (
    AccountEntry,
    AccountEntryPage,
    ClearedNotice,
    ConnectedModelList,
    ParkedNoticeList,
)
from steelyard.people.roles import Role
from steelyard.people.wire import (
    AuditPage,
    Challenge,
    CurrentSession,
    EndedSessions,
    Member,
    MemberList,
    NewApiKey,
    OidcSignIn,
    Passkey,
    PasskeyChallenge,
    PasskeyList,
    RemovedMember,
    RemovedPasskey,
    SessionList,
    SignedInUser,
    SignInWays,
    Usage,
    UsageBy,
)
from steelyard.wire.storing import StoreSetting


@route("POST /v1/auth/email", Challenge)
def start(email: str) -> Call[Challenge]:
    """Send a code to an address; the answer is alike for every address: ``POST /v1/auth/email``."""


@route("POST /v1/auth/email/verify", SignedInUser)
def verify(challenge_id: str, code: str) -> Call[SignedInUser]:
    """Sign in with the code of a letter; the client calls with the session from then on.

    ``POST /v1/auth/email/verify``; a client without a session does nothing with the token.
    """


@route("GET /v1/auth", SignInWays)
def ways() -> Call[SignInWays]:
    """Return how people sign in here, beside a code by mail: ``GET /v1/auth``."""


@route("POST /v1/auth/oidc", OidcSignIn)
def start_oidc(redirect_uri: str) -> Call[OidcSignIn]:
    """Return the identity provider's page to sign in at: ``POST /v1/auth/oidc``.

    It leads back to ``redirect_uri`` with a ``code`` and the ``state``, which is kept with the
    browser until then.
    """


@route("POST /v1/auth/oidc/verify", SignedInUser)
def verify_oidc(state: str, code: str, redirect_uri: str) -> Call[SignedInUser]:
    """Sign in with the identity provider's reply: ``POST /v1/auth/oidc/verify``."""


@route("POST /v1/auth/passkey", PasskeyChallenge)
def start_passkey(origin: str) -> Call[PasskeyChallenge]:
    """Return the challenge for a passkey: ``POST /v1/auth/passkey``.

    ``origin`` is ``location.origin`` of the page that asks it.
    """


@route("POST /v1/auth/passkey/verify", SignedInUser)
def verify_passkey(credential: Mapping[str, Any]) -> Call[SignedInUser]:
    """Sign in with a passkey's signature: ``POST /v1/auth/passkey/verify``.

    ``credential`` is ``toJSON()`` of the result of ``navigator.credentials.get``.
    """


@route("GET /v1/account/passkeys", PasskeyList)
def passkeys() -> Call[PasskeyList]:
    """Return the user's passkeys: ``GET /v1/account/passkeys``."""


@route("POST /v1/account/passkeys/challenge", PasskeyChallenge)
def start_adding_passkey(origin: str) -> Call[PasskeyChallenge]:
    """Return the challenge for a new passkey: ``POST /v1/account/passkeys/challenge``."""


@route("POST /v1/account/passkeys", Passkey)
def add_passkey(name: str, credential: Mapping[str, Any]) -> Call[Passkey]:
    """Keep a passkey that a browser made, under a name for people: ``POST /v1/account/passkeys``.

    ``credential`` is ``toJSON()`` of the result of ``navigator.credentials.create``.
    """


@route("DELETE /v1/account/passkeys/{passkey_id}", RemovedPasskey)
def remove_passkey(passkey_id: str) -> Call[RemovedPasskey]:
    """Remove one of the user's passkeys: ``DELETE /v1/account/passkeys/{passkey}``."""


@route("GET /v1/auth/session", CurrentSession)
def session() -> Call[CurrentSession]:
    """Return who is signed in, and in which accounts: ``GET /v1/auth/session``."""


@route("POST /v1/auth/sign-out", EndedSessions)
def sign_out() -> Call[EndedSessions]:
    """End the client's session: ``POST /v1/auth/sign-out``."""


@route("GET /v1/account/sessions", SessionList)
def sessions() -> Call[SessionList]:
    """Return the user's sessions that live: ``GET /v1/account/sessions``."""


@route("DELETE /v1/account/sessions/{session_id}", EndedSessions)
def end_session(session_id: str) -> Call[EndedSessions]:
    """End one of the user's sessions: ``DELETE /v1/account/sessions/{session}``."""


@route("DELETE /v1/account/sessions", EndedSessions)
def end_other_sessions() -> Call[EndedSessions]:
    """End all of the user's sessions but this: ``DELETE /v1/account/sessions``."""


@route("GET /v1/account/audit", AuditPage)
def audit_page(*, page_size: int = 200, cursor: str | None = None) -> Call[AuditPage]:
    """List actions in the console, newest first: ``GET /v1/account/audit``."""


@route("GET /v1/account/members", MemberList)
def list_members() -> Call[MemberList]:
    """Return the account's members and who is invited: ``GET /v1/account/members``."""


@route("POST /v1/account/members", Member)
def invite(email: str, role: Role) -> Call[Member]:
    """Invite a person by mail: ``POST /v1/account/members``."""


@route("PATCH /v1/account/members/{member_id}", Member)
def change_member(member_id: str, role: Role) -> Call[Member]:
    """Change a member's role: ``PATCH /v1/account/members/{member}``."""


@route("DELETE /v1/account/members/{member_id}", RemovedMember)
def remove_member(member_id: str) -> Call[RemovedMember]:
    """Remove a member or an invitation: ``DELETE /v1/account/members/{member}``."""


@route("POST /v1/account/keys", NewApiKey)
def create_key(
    name: str,
    scope: Scope,
    *,
    monthly_cap_usd: str | None = None,
    expires_at: float | None = None,
    store: StoreSetting | None = None,
) -> Call[NewApiKey]:
    """Make an API key. Its ``secret`` is returned here only: ``POST /v1/account/keys``.

    ``monthly_cap_usd`` is the most that a key of scope ``inference`` may spend in a UTC month;
    ``expires_at``, in Unix seconds, is when it ends by itself. ``store`` is the most that is
    stored of its answers, whatever a request says.
    """


@route("PATCH /v1/account/keys/{key_id}", ApiKey)
def change_key(
    key_id: str,
    *,
    name: str | None = None,
    monthly_cap_usd: str | UnsetType | None = UNSET,
    store: StoreSetting | None = None,
) -> Call[ApiKey]:
    """Change an API key's name, cap or storing; fields left out stay: ``PATCH /v1/account/keys/{key}``.

    A cap of ``None`` takes it away.
    """


@route("DELETE /v1/account/keys/{key_id}", ApiKey)
def revoke_key(key_id: str) -> Call[ApiKey]:
    """Revoke an API key for good: ``DELETE /v1/account/keys/{key}``."""


@route("GET /v1/account/usage", Usage)
def usage(
    *, since: float | None = None, until: float | None = None, by: UsageBy = "day"
) -> Call[Usage]:
    """Return calls, tokens, decisions and cost of a span of time: ``GET /v1/account/usage``.

    ``since`` and ``until`` are Unix seconds; the last 30 days when left out.
    """


@route("PATCH /v1/account", AccountSummary)
def rename_account(name: str) -> Call[AccountSummary]:
    """Rename the account: ``PATCH /v1/account``."""


@route("PATCH /v1/account", AccountSummary)
def limit_storing(store: StoreSetting) -> Call[AccountSummary]:
    """Set the most that is stored of the account's answers: ``PATCH /v1/account``."""


@route("DELETE /v1/account", AccountSummary)
def delete_account() -> Call[AccountSummary]:
    """Delete the account and all that it has, after seven days: ``DELETE /v1/account``."""


@route("POST /v1/account/restore", AccountSummary)
def restore_account() -> Call[AccountSummary]:
    """Take the account's deletion back, within the seven days: ``POST /v1/account/restore``."""


@route("GET /v1/account/export", bytes)
def export_account() -> Call[bytes]:
    """Return all of the account's data as a zip, three times an hour: ``GET /v1/account/export``."""


@route("GET /v1/billing/purchases/{purchase_id}", Purchase)
def purchase(purchase_id: str) -> Call[Purchase]:
    """Return a purchase: ``GET /v1/billing/purchases/{purchase}``."""


@route("POST /v1/billing/purchases", NewPurchase)
def buy(amount_usd: str, *, idempotency_key: str | None = None) -> Call[NewPurchase]:
    """Begin a purchase of 5 to 10000 USD, in whole cents: ``POST /v1/billing/purchases``."""


@route("GET /v1/billing/purchases/{purchase_id}/receipt", bytes)
def receipt(purchase_id: str) -> Call[bytes]:
    """Return a receipt as HTML that prints: ``GET /v1/billing/purchases/{purchase}/receipt``."""


def transactions_csv() -> Call[bytes]:
    """Return the account's whole ledger as CSV: ``GET /v1/billing/transactions?format=csv``."""
    return read("/v1/billing/transactions", bytes, format="csv")


@route("PUT /v1/billing/top-up", TopUp)
def set_top_up(threshold_usd: str, amount_usd: str, monthly_cap_usd: str) -> Call[TopUp]:
    """Set when the account buys by itself: ``PUT /v1/billing/top-up``.

    It buys ``amount_usd`` when less than ``threshold_usd`` is available, and at most
    ``monthly_cap_usd`` in a UTC month.
    """


@route("DELETE /v1/billing/top-up", EndedTopUp)
def end_top_up() -> Call[EndedTopUp]:
    """End the purchases that the account makes by itself: ``DELETE /v1/billing/top-up``."""


@route("GET /v1/billing/referral", Referral)
def referral() -> Call[Referral]:
    """Return the account's own referral code: ``GET /v1/billing/referral``."""


@route("POST /v1/billing/referral/redeem", RedeemedReferral)
def redeem(code: str) -> Call[RedeemedReferral]:
    """Redeem a referral code before a first purchase: ``POST /v1/billing/referral/redeem``."""


@route("GET /v1/operator/accounts", AccountEntryPage)
def accounts_page(*, page_size: int = 200, cursor: str | None = None) -> Call[AccountEntryPage]:
    """List every account, newest first: ``GET /v1/operator/accounts``."""


@route("POST /v1/operator/accounts/{account_id}/credit", AccountEntry)
def add_credit(
    account_id: str, amount_usd: str, *, idempotency_key: str | None = None
) -> Call[AccountEntry]:
    """Add credit to an account: ``POST /v1/operator/accounts/{account}/credit``."""


@route("POST /v1/operator/purchases/{purchase_id}/confirm", Purchase)
def confirm_purchase(purchase_id: str) -> Call[Purchase]:
    """Note that a bank transfer came: ``POST /v1/operator/purchases/{purchase}/confirm``."""


@route("GET /v1/operator/notices", ParkedNoticeList)
def notices() -> Call[ParkedNoticeList]:
    """Return provider events that contradict their purchase: ``GET /v1/operator/notices``."""


@route("POST /v1/operator/notices/{notice_id}/clear", ClearedNotice)
def clear_notice(notice_id: str) -> Call[ClearedNotice]:
    """Put a notice away: ``POST /v1/operator/notices/{notice}/clear``."""


@route("GET /v1/operator/models", ConnectedModelList)
def connected_models() -> Call[ConnectedModelList]:
    """Return the models that answer on other servers: ``GET /v1/operator/models``."""


@route("GET /v1/backups", BackupList)
def backups() -> Call[BackupList]:
    """Return the backups of the server's home, the newest first: ``GET /v1/backups``."""


@route("POST /v1/backups", BackupList)
def back_up(*, idempotency_key: str | None = None) -> Call[BackupList]:
    """Begin a backup of the server's home, and return at once: ``POST /v1/backups``."""
