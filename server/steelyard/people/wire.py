"""Signing in, sessions, members and the audit on the wire; times are Unix seconds."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

from steelyard.accounts.wire import ApiKey, StoreLimit, Usd
from steelyard.caller import Scope
from steelyard.decision_log.wire import Time
from steelyard.people.roles import Role
from steelyard.wire.queries import CursorPage, NextCursor, PageSize
from steelyard.wire.schemas import doc

Email = Annotated[str, Meta(min_length=3, max_length=254, description="An e-mail address.")]


class StartSignIn(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The address to send a code to."""

    email: Email


class Challenge(Struct, frozen=True, kw_only=True):
    """A code that was asked for; alike whether or not the address is known."""

    challenge_id: str
    expires_at: float


class VerifyCode(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The code of a letter."""

    challenge_id: Annotated[str, Meta(min_length=1, max_length=64)]
    code: Annotated[str, Meta(min_length=1, max_length=32)]


RedirectUri = Annotated[
    str,
    Meta(min_length=1, max_length=2048, description="A page of this server's, to come back to."),
]


class StartOidc(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Where to come back to from the identity provider."""

    redirect_uri: RedirectUri


class OidcSignIn(Struct, frozen=True, kw_only=True):
    """Where to sign in, and the values that come back beside a code."""

    authorize_url: str
    state: Annotated[str, doc("Keep it with the browser, and take nothing back with another.")]
    expires_at: float


class VerifyOidc(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The identity provider's reply."""

    state: Annotated[str, Meta(min_length=1, max_length=64)]
    code: Annotated[str, Meta(min_length=1, max_length=4096)]
    redirect_uri: RedirectUri


class SignInWays(Struct, frozen=True, kw_only=True):
    """How people sign in here, beside a code by mail."""

    passkeys: Annotated[bool, doc("Whether this server reads passkeys.")]
    issuer: Annotated[str | None, doc("The identity provider (OpenID Connect), where it has one.")]


class StartPasskey(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The page that shows a passkey's dialog."""

    origin: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=300,
            description="Its `location.origin`: https on a host of the server's, or `localhost`.",
        ),
    ]


class PasskeyChallenge(Struct, frozen=True, kw_only=True):
    """A challenge for a browser, valid once."""

    options: Annotated[
        dict[str, Any],
        doc("`publicKey` of `navigator.credentials`, as JSON: its bytes are base64url."),
    ]
    expires_at: float


#: Bytes as base64url.
_BYTES = r"^[A-Za-z0-9_-]+\Z"
CredentialId = Annotated[str, Meta(min_length=1, max_length=1400, pattern=_BYTES)]
ClientData = Annotated[str, Meta(min_length=1, max_length=4096, pattern=_BYTES)]
Attestation = Annotated[str, Meta(min_length=1, max_length=32768, pattern=_BYTES)]
AuthenticatorData = Annotated[str, Meta(min_length=1, max_length=4096, pattern=_BYTES)]
Signature = Annotated[str, Meta(min_length=1, max_length=2048, pattern=_BYTES)]
UserHandle = Annotated[str, Meta(min_length=1, max_length=128, pattern=_BYTES)]


# A browser's `toJSON` has further fields, which may be sent.
class GivenAssertion(Struct, frozen=True, kw_only=True):
    """How a passkey signed a challenge."""

    client_data: ClientData = field(name="clientDataJSON")
    authenticator_data: AuthenticatorData = field(name="authenticatorData")
    signature: Signature
    user_handle: UserHandle = field(name="userHandle")


class GivenPasskey(Struct, frozen=True, kw_only=True):
    """A passkey that signed, as a browser's `toJSON` gives it."""

    id: CredentialId
    response: GivenAssertion


class VerifyPasskey(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The result of `navigator.credentials.get`."""

    credential: GivenPasskey


class MadeAttestation(Struct, frozen=True, kw_only=True):
    """How a passkey was made."""

    client_data: ClientData = field(name="clientDataJSON")
    attestation: Attestation = field(name="attestationObject")


class MadePasskey(Struct, frozen=True, kw_only=True):
    """A passkey that was made, as a browser's `toJSON` gives it."""

    id: CredentialId
    response: MadeAttestation


KeyName = Annotated[str, Meta(min_length=1, max_length=128, description="For people.")]


class AddPasskey(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The result of `navigator.credentials.create`, and the passkey's name."""

    name: KeyName
    credential: MadePasskey


class Passkey(Struct, frozen=True, kw_only=True):
    """A passkey that its user can sign in with."""

    id: str
    name: str
    host: Annotated[str, doc("Where it was made; it works on pages of that alone.")]
    created_at: float
    last_used_at: float | None


class PasskeyList(Struct, frozen=True, kw_only=True):
    """The passkeys of a user, the newest first."""

    data: list[Passkey]


class RemovedPasskey(Struct, frozen=True, kw_only=True):
    """A removed passkey."""

    id: str
    removed: Literal[True] = True


class User(Struct, frozen=True, kw_only=True):
    """The signed-in user."""

    id: str
    email: str
    is_operator: bool


class AccountRole(Struct, frozen=True, kw_only=True):
    """An account that a user is a member of."""

    id: str
    name: str
    role: Role
    store: StoreLimit = "on"


class Session(Struct, frozen=True, kw_only=True):
    """One sign-in of a user."""

    id: str
    network: Annotated[str, doc("From where: an address, or an IPv6 network.")]
    agent: Annotated[str, doc("The browser or program, as it named itself.")]
    created_at: float
    last_used_at: Annotated[float, doc("To the minute.")]
    idle_until: Annotated[float, doc("When it ends without another use.")]
    expires_at: Annotated[float, doc("When it ends in any case.")]
    confirmed_at: Annotated[
        float,
        doc(
            "When a code, or a passkey, was last given, or when an identity provider last "
            "asked who it is; 0 where it does not say."
        ),
    ]
    is_current: bool


class NewSession(Session, frozen=True, kw_only=True):
    """A session just begun."""

    token: Annotated[str, doc("The secret that its cookie holds; told this once.")]


class SignedInUser(Struct, frozen=True, kw_only=True):
    """A session just begun, whose it is, and in which accounts."""

    session: NewSession
    user: User
    accounts: list[AccountRole]


class CurrentSession(Struct, frozen=True, kw_only=True):
    """The signed-in user, with the accounts."""

    session: Session
    user: User
    accounts: list[AccountRole]
    account_id: Annotated[
        str | None, doc("The account that calls are for; `X-Steelyard-Account` names it.")
    ]
    is_confirmed: Annotated[bool, doc("Whether that was within the last 15 minutes.")]


class EndedSessions(Struct, frozen=True, kw_only=True):
    """Sessions that were ended."""

    ended: int


class SessionList(Struct, frozen=True, kw_only=True):
    """The sessions of a user that live, the newest first."""

    data: list[Session]


class AuditQuery(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which page of the audit."""

    limit: Annotated[PageSize, doc("Entries of a page.")] = 50
    cursor: NextCursor = None


class AuditEntry(Struct, frozen=True, kw_only=True):
    """One thing that was done in the console."""

    id: str
    email: Annotated[str, doc("Who did it.")]
    action: Annotated[str, doc("What, such as `member.invited`.")]
    subject: Annotated[str | None, doc("To what: an id, an address or a name.")]
    address: Annotated[str, doc("From where.")]
    created_at: float


class AuditPage(CursorPage[AuditEntry], frozen=True):
    """A page of the audit, the newest first."""


class Member(Struct, frozen=True, kw_only=True):
    """A person's part in an account."""

    id: str
    email: str
    role: Role
    state: Literal["invited", "expired", "joined"]
    invited_by: str | None
    created_at: float
    joined_at: float | None


class MemberList(Struct, frozen=True, kw_only=True):
    """The members of an account and who is invited, the oldest first."""

    data: list[Member]


class InviteMember(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The address to invite, and its role."""

    email: Email
    role: Role


class ChangeMember(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A member's new role."""

    role: Role


class RemovedMember(Struct, frozen=True, kw_only=True):
    """A member that was removed."""

    id: str
    removed: Literal[True] = True


#: An amount that a request names.
GivenUsd = Annotated[str, Meta(min_length=1, max_length=32)]


class CreateKey(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The permissions of a new API key."""

    name: KeyName
    scope: Annotated[Scope, doc("What it may call.")]
    monthly_cap_usd: Annotated[
        GivenUsd | None, doc("The most to spend in a UTC month; of `inference` keys.")
    ] = None
    expires_at: Annotated[float | None, doc("When it ends by itself; never by default.")] = None
    store: StoreLimit = "on"


class NewApiKey(ApiKey, frozen=True, kw_only=True):
    """An API key just made."""

    secret: Annotated[str, doc("The key itself; shown this once and not kept.")]


class ChangeKey(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A change of an API key; fields left out stay."""

    name: KeyName | UnsetType = UNSET
    monthly_cap_usd: Annotated[GivenUsd | UnsetType | None, doc("Without a cap where null.")] = (
        UNSET
    )
    expires_at: Annotated[float | UnsetType | None, doc("Without an end where null.")] = UNSET
    store: StoreLimit | UnsetType = UNSET


UsageBy = Literal["day", "key", "model", "family", "decision"]


class UsageQuery(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The span of time, and the grouping."""

    since: Annotated[Time | None, doc("Charged at this time or later; 30 days before `until`.")] = (
        None
    )
    until: Annotated[Time | None, doc("Charged before this time; now. At most 400 days.")] = None
    by: Annotated[UsageBy, doc("What a line is of; days are of UTC.")] = "day"


class UsageLine(Struct, frozen=True, kw_only=True):
    """The usage of one day, key, model, family or version of a named decision."""

    name: Annotated[
        str | None,
        doc(
            "A day such as `2026-11-24`, a key's id, a model, a family, a version of a "
            "named decision such as `support_triage@7`; else null."
        ),
    ]
    label: Annotated[str | None, doc("For people: a key's name.")]
    calls: Annotated[int, doc("Calls and jobs that were charged.")]
    tokens: Annotated[int, doc("Input tokens of calls.")]
    decisions: Annotated[int, doc("Decisions of calls.")]
    cost_usd: Usd


class Usage(Struct, frozen=True, kw_only=True):
    """An account's usage, with its totals."""

    since: float
    until: float
    by: UsageBy
    data: list[UsageLine]
    total: UsageLine


class ChangeAccount(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A change of an account; fields left out stay."""

    name: KeyName | UnsetType = UNSET
    store: StoreLimit | UnsetType = UNSET
