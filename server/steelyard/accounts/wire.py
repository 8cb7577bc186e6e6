"""Wire forms of an account: permissions, money and API keys.

Money is exact decimal text in USD, times are Unix seconds.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from steelyard.wire.queries import CursorPage
from steelyard.wire.schemas import doc
from steelyard.wire.storing import StoreSetting

Usd = Annotated[str, Meta(pattern=r"^-?[0-9]+(\.[0-9]+)?\Z", description="Exact decimal text.")]
Scope = Literal["full", "inference", "read"]
Role = Literal["owner", "developer", "billing"]
StoreLimit = Annotated[
    StoreSetting,
    doc(
        "The most that is stored of answers, whatever a request says: `features` no text, "
        "`off` nothing; the strictest of account, key, named decision and server wins."
    ),
]


class AccountUser(Struct, frozen=True, kw_only=True):
    """An account, by its id and name."""

    id: Annotated[str, doc("The account's id.")]
    name: str


class WalletBalance(Struct, frozen=True, kw_only=True):
    """The money of an account."""

    currency: Literal["USD"] = "USD"
    paid_usd: Annotated[Usd, doc("Credit that was paid for, holds included.")]
    promotional_usd: Annotated[
        Usd, doc("Credit that was given, as for a referral; it is spent first.")
    ]
    balance_usd: Annotated[Usd, doc("Both together, holds included.")]
    available_usd: Annotated[Usd, doc("What may be spent now.")]
    reserved_usd: Annotated[Usd, doc("What work in progress holds.")]
    financial_shortfall_usd: Annotated[
        Usd, doc("What was spent beyond the credit; `0` where accounts are enabled.")
    ]


class AccountSummary(Struct, frozen=True, kw_only=True):
    """An account's permissions and money."""

    automatic_tier: Annotated[int, doc("Tiers do not exist here: 0.")] = 0
    minimum_tier: int = 0
    tier: int = 0
    next_tier: dict[str, Any] | None = None
    effective_limits: Annotated[dict[str, int], doc("Limits by name; 0 sets no bound on a rate.")]
    user: AccountUser
    accounts_enabled: Annotated[bool, doc("Whether calls need an API key and credit.")]
    waitlist: dict[str, Any] | None = None
    referrals: dict[str, Any] | None = None
    wallet: WalletBalance
    deletes_at: Annotated[
        float | None, doc("When all of it is removed, where an owner asked for that.")
    ] = None
    store: StoreLimit = "on"


class ApiKey(Struct, frozen=True, kw_only=True):
    """An API key; its secret was shown once and is not kept."""

    id: str
    name: str
    prefix: Annotated[str, doc("How the key begins; no secret.")]
    created_at: float
    last_used_at: Annotated[float | None, doc("To the minute.")] = None
    revoked_at: float | None = None
    expires_at: Annotated[float | None, doc("When it ends by itself.")] = None
    scope: Annotated[Scope, doc("What it may call.")]
    role: Annotated[Role, doc("What the member was that made it.")] = "owner"
    made_by: Annotated[str | None, doc("The member that made it; none where a command did.")] = None
    monthly_cap_usd: Annotated[Usd | None, doc("The most that it may spend in a UTC month.")] = None
    month_spent_usd: Annotated[
        Usd | None, doc("What it spent this UTC month, where it has a cap.")
    ] = None
    store: StoreLimit = "on"


class ApiKeyPage(CursorPage[ApiKey], frozen=True):
    """A page of API keys, the newest first."""
