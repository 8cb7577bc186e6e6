"""Calls of a signed-in user: one function a route."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import UNSET, UnsetType

from steelyard.accounts.wire import AccountSummary, ApiKey
from steelyard.billing.wire import (
    EndedTopUp,
    NewPurchase,
    Purchase,
    RedeemedReferral,
    Referral,
    TopUp,
)
from steelyard.caller import Scope
from steelyard.client.calls import Call, read, remove, segment, write
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

_ACCOUNT, _BILLING, _OPERATOR = "/v1/account", "/v1/billing", "/v1/operator"


def start(email: str) -> Call[Challenge]:
    """Send a code to an address; the answer is alike for every address: ``POST /v1/auth/email``."""
    return write("/v1/auth/email", Challenge, {"email": email}, key=None)


def verify(challenge_id: str, code: str) -> Call[SignedInUser]:
    """Sign in with the code of a letter; the client calls with the session from then on.

    ``POST /v1/auth/email/verify``; a client without a session does nothing with the token.
    """
    fields = {"challenge_id": challenge_id, "code": code}
    return write("/v1/auth/email/verify", SignedInUser, fields, key=None)


def ways() -> Call[SignInWays]:
    """Return how people sign in here, beside a code by mail: ``GET /v1/auth``."""
    return read("/v1/auth", SignInWays)


def start_oidc(redirect_uri: str) -> Call[OidcSignIn]:
    """Return the identity provider's page to sign in at: ``POST /v1/auth/oidc``.

    It leads back to ``redirect_uri`` with a ``code`` and the ``state``, which is kept with the
    browser until then.
    """
    return write("/v1/auth/oidc", OidcSignIn, {"redirect_uri": redirect_uri}, key=None)


def verify_oidc(state: str, code: str, redirect_uri: str) -> Call[SignedInUser]:
    """Sign in with the identity provider's reply: ``POST /v1/auth/oidc/verify``."""
    fields = {"state": state, "code": code, "redirect_uri": redirect_uri}
    return write("/v1/auth/oidc/verify", SignedInUser, fields, key=None)


def start_passkey(origin: str) -> Call[PasskeyChallenge]:
    """Return the challenge for a passkey: ``POST /v1/auth/passkey``.

    ``origin`` is ``location.origin`` of the page that asks it.
    """
    return write("/v1/auth/passkey", PasskeyChallenge, {"origin": origin}, key=None)


def verify_passkey(credential: Mapping[str, Any]) -> Call[SignedInUser]:
    """Sign in with a passkey's signature: ``POST /v1/auth/passkey/verify``.

    ``credential`` is ``toJSON()`` of the result of ``navigator.credentials.get``.
    """
    fields = {"credential": credential}
    return write("/v1/auth/passkey/verify", SignedInUser, fields, key=None)


def passkeys() -> Call[PasskeyList]:
    """Return the user's passkeys: ``GET /v1/account/passkeys``."""
    return read(f"{_ACCOUNT}/passkeys", PasskeyList)


def start_adding_passkey(origin: str) -> Call[PasskeyChallenge]:
    """Return the challenge for a new passkey: ``POST /v1/account/passkeys/challenge``."""
    path = f"{_ACCOUNT}/passkeys/challenge"
    return write(path, PasskeyChallenge, {"origin": origin}, key=None)


def add_passkey(name: str, credential: Mapping[str, Any]) -> Call[Passkey]:
    """Keep a passkey that a browser made, under a name for people: ``POST /v1/account/passkeys``.

    ``credential`` is ``toJSON()`` of the result of ``navigator.credentials.create``.
    """
    fields = {"name": name, "credential": credential}
    return write(f"{_ACCOUNT}/passkeys", Passkey, fields, key=None)


def remove_passkey(passkey_id: str) -> Call[RemovedPasskey]:
    """Remove one of the user's passkeys: ``DELETE /v1/account/passkeys/{passkey}``."""
    return remove(f"{_ACCOUNT}/passkeys/{segment(passkey_id)}", RemovedPasskey)


def session() -> Call[CurrentSession]:
    """Return who is signed in, and in which accounts: ``GET /v1/auth/session``."""
    return read("/v1/auth/session", CurrentSession)


def sign_out() -> Call[EndedSessions]:
    """End the client's session: ``POST /v1/auth/sign-out``."""
    return write("/v1/auth/sign-out", EndedSessions, {}, key=None)


def sessions() -> Call[SessionList]:
    """Return the user's sessions that live: ``GET /v1/account/sessions``."""
    return read(f"{_ACCOUNT}/sessions", SessionList)


def end_session(session_id: str) -> Call[EndedSessions]:
    """End one of the user's sessions: ``DELETE /v1/account/sessions/{session}``."""
    return remove(f"{_ACCOUNT}/sessions/{segment(session_id)}", EndedSessions)


def end_other_sessions() -> Call[EndedSessions]:
    """End all of the user's sessions but this: ``DELETE /v1/account/sessions``."""
    return remove(f"{_ACCOUNT}/sessions", EndedSessions)


def audit_page(*, page_size: int = 200, cursor: str | None = None) -> Call[AuditPage]:
    """List actions in the console, newest first: ``GET /v1/account/audit``."""
    return read(f"{_ACCOUNT}/audit", AuditPage, limit=page_size, cursor=cursor)


def list_members() -> Call[MemberList]:
    """Return the account's members and who is invited: ``GET /v1/account/members``."""
    return read(f"{_ACCOUNT}/members", MemberList)


def invite(email: str, role: Role) -> Call[Member]:
    """Invite a person by mail: ``POST /v1/account/members``."""
    return write(f"{_ACCOUNT}/members", Member, {"email": email, "role": role}, key=None)


def change_member(member_id: str, role: Role) -> Call[Member]:
    """Change a member's role: ``PATCH /v1/account/members/{member}``."""
    return write(_member(member_id), Member, {"role": role}, key=None, method="PATCH")


def remove_member(member_id: str) -> Call[RemovedMember]:
    """Remove a member or an invitation: ``DELETE /v1/account/members/{member}``."""
    return remove(_member(member_id), RemovedMember)


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
    fields = {
        "name": name,
        "scope": scope,
        "monthly_cap_usd": monthly_cap_usd,
        "expires_at": expires_at,
        "store": store,
    }
    return write(f"{_ACCOUNT}/keys", NewApiKey, fields, key=None)


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
    guards = {"monthly_cap_usd": monthly_cap_usd}
    fields = {"name": name, "store": store}
    return write(_key(key_id), ApiKey, fields, key=None, guards=guards, method="PATCH")


def revoke_key(key_id: str) -> Call[ApiKey]:
    """Revoke an API key for good: ``DELETE /v1/account/keys/{key}``."""
    return remove(_key(key_id), ApiKey)


def usage(
    *, since: float | None = None, until: float | None = None, by: UsageBy = "day"
) -> Call[Usage]:
    """Return calls, tokens, decisions and cost of a span of time: ``GET /v1/account/usage``.

    ``since`` and ``until`` are Unix seconds; the last 30 days when left out.
    """
    return read(f"{_ACCOUNT}/usage", Usage, since=since, until=until, by=by)


def rename_account(name: str) -> Call[AccountSummary]:
    """Rename the account: ``PATCH /v1/account``."""
    return write(_ACCOUNT, AccountSummary, {"name": name}, key=None, method="PATCH")


def limit_storing(store: StoreSetting) -> Call[AccountSummary]:
    """Set the most that is stored of the account's answers: ``PATCH /v1/account``."""
    return write(_ACCOUNT, AccountSummary, {"store": store}, key=None, method="PATCH")


def delete_account() -> Call[AccountSummary]:
    """Delete the account and all that it has, after seven days: ``DELETE /v1/account``."""
    return remove(_ACCOUNT, AccountSummary)


def restore_account() -> Call[AccountSummary]:
    """Take the account's deletion back, within the seven days: ``POST /v1/account/restore``."""
    return write(f"{_ACCOUNT}/restore", AccountSummary, {}, key=None)


def export_account() -> Call[bytes]:
    """Return all of the account's data as a zip, three times an hour: ``GET /v1/account/export``."""
    return read(f"{_ACCOUNT}/export", bytes)


def purchase(purchase_id: str) -> Call[Purchase]:
    """Return a purchase: ``GET /v1/billing/purchases/{purchase}``."""
    return read(_purchase(purchase_id), Purchase)


def buy(amount_usd: str, *, idempotency_key: str | None = None) -> Call[NewPurchase]:
    """Begin a purchase of 5 to 10000 USD, in whole cents: ``POST /v1/billing/purchases``."""
    fields = {"amount_usd": amount_usd}
    return write(f"{_BILLING}/purchases", NewPurchase, fields, key=idempotency_key)


def receipt(purchase_id: str) -> Call[bytes]:
    """Return a receipt as HTML that prints: ``GET /v1/billing/purchases/{purchase}/receipt``."""
    return read(f"{_purchase(purchase_id)}/receipt", bytes)


def transactions_csv() -> Call[bytes]:
    """Return the account's whole ledger as CSV: ``GET /v1/billing/transactions?format=csv``."""
    return read(f"{_BILLING}/transactions", bytes, format="csv")


def set_top_up(threshold_usd: str, amount_usd: str, monthly_cap_usd: str) -> Call[TopUp]:
    """Set when the account buys by itself: ``PUT /v1/billing/top-up``.

    It buys ``amount_usd`` when less than ``threshold_usd`` is available, and at most
    ``monthly_cap_usd`` in a UTC month.
    """
    fields = {
        "threshold_usd": threshold_usd,
        "amount_usd": amount_usd,
        "monthly_cap_usd": monthly_cap_usd,
    }
    return write(f"{_BILLING}/top-up", TopUp, fields, key=None, method="PUT")


def end_top_up() -> Call[EndedTopUp]:
    """End the purchases that the account makes by itself: ``DELETE /v1/billing/top-up``."""
    return remove(f"{_BILLING}/top-up", EndedTopUp)


def referral() -> Call[Referral]:
    """Return the account's own referral code: ``GET /v1/billing/referral``."""
    return read(f"{_BILLING}/referral", Referral)


def redeem(code: str) -> Call[RedeemedReferral]:
    """Redeem a referral code before a first purchase: ``POST /v1/billing/referral/redeem``."""
    return write(f"{_BILLING}/referral/redeem", RedeemedReferral, {"code": code}, key=None)


def accounts_page(*, page_size: int = 200, cursor: str | None = None) -> Call[AccountEntryPage]:
    """List every account, newest first: ``GET /v1/operator/accounts``."""
    return read(f"{_OPERATOR}/accounts", AccountEntryPage, limit=page_size, cursor=cursor)


def add_credit(
    account_id: str, amount_usd: str, *, idempotency_key: str | None = None
) -> Call[AccountEntry]:
    """Add credit to an account: ``POST /v1/operator/accounts/{account}/credit``."""
    path = f"{_OPERATOR}/accounts/{segment(account_id)}/credit"
    return write(path, AccountEntry, {"amount_usd": amount_usd}, key=idempotency_key)


def confirm_purchase(purchase_id: str) -> Call[Purchase]:
    """Note that a bank transfer came: ``POST /v1/operator/purchases/{purchase}/confirm``."""
    return write(f"{_OPERATOR}/purchases/{segment(purchase_id)}/confirm", Purchase, {}, key=None)


def notices() -> Call[ParkedNoticeList]:
    """Return provider events that contradict their purchase: ``GET /v1/operator/notices``."""
    return read(f"{_OPERATOR}/notices", ParkedNoticeList)


def clear_notice(notice_id: str) -> Call[ClearedNotice]:
    """Put a notice away: ``POST /v1/operator/notices/{notice}/clear``."""
    return write(f"{_OPERATOR}/notices/{segment(notice_id)}/clear", ClearedNotice, {}, key=None)


def connected_models() -> Call[ConnectedModelList]:
    """Return the models that answer on other servers: ``GET /v1/operator/models``."""
    return read(f"{_OPERATOR}/models", ConnectedModelList)


def _member(member_id: str) -> str:
    return f"{_ACCOUNT}/members/{segment(member_id)}"


def _key(key_id: str) -> str:
    return f"{_ACCOUNT}/keys/{segment(key_id)}"


def _purchase(purchase_id: str) -> str:
    return f"{_BILLING}/purchases/{segment(purchase_id)}"
