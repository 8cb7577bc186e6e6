"""Purchases of credit, for the routes and ``steelyard billing``."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sqlalchemy import Connection, Row

from steelyard import errors
from steelyard.billing import applying, referrals, serializers, wire
from steelyard.billing import store as rows
from steelyard.billing.amounts import LEAST, MOST, read_amount, refused
from steelyard.billing.notices import Begun, Notice
from steelyard.billing.providers import Provider
from steelyard.caller import Caller
from steelyard.ids import new_id
from steelyard.ledger.money import to_usd
from steelyard.ledger.store import available, balances_of
from steelyard.operations.idempotency import KeyedWrites
from steelyard.operations.write import Write
from steelyard.storage import State
from steelyard.wire.queries import PageQuery

#: Lines of the ledger that are read at a time.
_CSV_LINES = 1_000


#: Writes what a caller did into the audit of its account.
Note = Callable[[Connection, Caller, str, float, str], None]
#: Roles that change an account's money.
_ROLES = ("owner", "billing")


def may_change_money(caller: Caller) -> str:
    """Return the account whose money a caller may change: the one place that knows who may.

    The session of an owner, or of a user with the role for it; an API key never does. Without a
    session it is the operator of the server, for the account ``local``.
    """
    session = caller.session
    if not (session.role in _ROLES if session else caller.is_operator):
        raise errors.ConsoleOnlyError(
            "An API key reads an account's money and does not change it; ask whoever runs this "
            "server, or do it in the console."
        )
    return caller.account_id


class PurchaseService:
    """The money of every account."""

    def __init__(
        self,
        state: State,
        provider: Provider,
        *,
        accounts_enabled: bool,
        referral_nano: int = 0,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._state = state
        self._writes = KeyedWrites(state, now=now)
        self.provider = provider
        self._accounts_enabled = accounts_enabled
        self._referral_nano = referral_nano
        self._now = now
        self._note: Note | None = None

    def register_note(self, note: Note) -> None:
        """Register the function that records who changed an account's money."""
        self._note = note

    async def billing(self, caller: Caller) -> wire.Billing:
        """Return an account's money."""
        account_id = self._reading(caller)

        def work(connection: Connection) -> wire.Billing:
            return serializers.billing(
                balances_of(connection, account_id),
                provider=self.provider.name,
                top_up=rows.find_top_up(connection, account_id),
                card=rows.find_card(connection, account_id, self.provider.name),
                least=LEAST,
                most=MOST,
            )

        return await self._state.read(work)

    async def transactions(
        self, caller: Caller, query: wire.TransactionsQuery
    ) -> wire.TransactionPage:
        """Return a page of an account's ledger, the newest line first."""
        account_id = self._reading(caller)
        before = _line(query.cursor)

        def work(connection: Connection) -> wire.TransactionPage:
            lines = rows.page_transactions(
                connection, account_id, limit=query.limit + 1, before=before
            )
            page = lines[: query.limit]
            has_more = len(lines) > query.limit
            return wire.TransactionPage(
                data=[serializers.transaction(row) for row in page],
                has_more=has_more,
                next_cursor=str(page[-1].id) if has_more else None,
            )

        return await self._state.read(work)

    def ledger_csv(self, caller: Caller) -> Iterator[bytes]:
        """Yield an account's whole ledger as CSV, the newest line first; each piece blocks."""
        account_id, before = self._reading(caller), None
        yield serializers.CSV_HEAD
        while True:
            lines = self._state.read_now(
                lambda connection, before=before: rows.page_transactions(  # type: ignore[misc]
                    connection, account_id, limit=_CSV_LINES, before=before
                )
            )
            if not lines:
                return
            yield serializers.csv_lines(lines)
            before = lines[-1].id

    async def purchases(self, caller: Caller, query: PageQuery) -> wire.PurchasePage:
        """Return a page of an account's purchases, the newest first."""
        account_id = self._reading(caller)

        def work(connection: Connection) -> wire.PurchasePage:
            page = rows.PURCHASES.page(
                connection, account_id, limit=query.limit, cursor=query.cursor
            )
            return page.to_wire(wire.PurchasePage, [serializers.purchase(row) for row in page.rows])

        return await self._state.read(work)

    async def purchase(self, caller: Caller, purchase_id: str) -> wire.Purchase:
        """Return one purchase of an account."""
        account_id = self._reading(caller)
        return serializers.purchase(
            await self._state.read(lambda connection: _get(connection, purchase_id, account_id))
        )

    async def receipt(self, caller: Caller, purchase_id: str) -> bytes:
        """Return the receipt of a purchase that was paid, as HTML."""
        account_id = self._reading(caller)

        def work(connection: Connection) -> bytes:
            row = _get(connection, purchase_id, account_id)
            if row.paid_at is None:
                raise errors.PurchaseStateError(
                    f"The purchase is {row.state}; there is a receipt once it is paid."
                )
            account = rows.find_account(connection, account_id)
            return serializers.receipt(row, account_id if account is None else account.name)

        return await self._state.read(work)

    async def create(self, write: Write, request: wire.CreatePurchase) -> wire.NewPurchase:
        """Begin a purchase; its credit comes when the provider says that it is paid.

        The purchase is durable under its key before the provider hears of it, so that a crash in
        between leaves one purchase, which the same request takes up.
        """
        account_id = self._changing(write.caller)
        amount = read_amount(request.amount_usd, "amount_usd")
        await self._writes.replay_known(write)
        purchase = await self._state.write(
            lambda connection: self._begin(connection, write, account_id, amount)
        )
        begun = await asyncio.to_thread(self.provider.begin, applying.ask_of(purchase))

        def answer(connection: Connection) -> wire.NewPurchase:
            rows.PURCHASES.change(
                connection,
                purchase.id,
                reference=begun.reference,
                checkout_url=begun.checkout_url,
            )
            return wire.NewPurchase(
                purchase=serializers.purchase(_get(connection, purchase.id, account_id)),
                checkout_url=begun.checkout_url,
            )

        return await self._writes.once(write, answer, window_s=self.provider.lifetime_s)

    async def set_top_up(self, write: Write, request: wire.SetTopUp) -> wire.TopUp:
        """Set the balance below which an account buys credit by itself."""
        account_id = self._changing(write.caller)
        values = {
            "threshold_nano": read_amount(request.threshold_usd, "threshold_usd", least=0),
            "amount_nano": read_amount(request.amount_usd, "amount_usd"),
            "monthly_cap_nano": read_amount(
                request.monthly_cap_usd, "monthly_cap_usd", most=100 * MOST
            ),
        }
        if values["monthly_cap_nano"] < values["amount_nano"]:
            raise refused("monthly_cap_usd", "is less than one purchase; give at least amount_usd.")

        def work(connection: Connection) -> wire.TopUp:
            card = rows.find_card(connection, account_id, self.provider.name)
            if self.provider.needs_card and card is None:
                raise errors.NoPaymentMethodError(
                    "The account has no saved card; buy credit once, which saves one."
                )
            rows.put_top_up(
                connection, account_id, failures=0, off_at=None, set_at=self._now(), **values
            )
            details = f"{request.amount_usd} USD below {request.threshold_usd} USD"
            self._noted(connection, write, "top_up.set", details)
            return serializers.top_up(rows.find_top_up(connection, account_id))

        return await self._writes.once(write, work)

    async def end_top_up(self, write: Write) -> wire.EndedTopUp:
        """End automatic purchases; a purchase in progress continues."""
        account_id = self._changing(write.caller)

        def work(connection: Connection) -> wire.EndedTopUp:
            ended = rows.delete_top_up(connection, account_id)
            if ended:
                self._noted(connection, write, "top_up.ended", "")
            return wire.EndedTopUp(ended=ended)

        return await self._writes.once(write, work)

    async def referral(self, caller: Caller) -> wire.Referral:
        """Return an account's own code, which is made when it is first asked for."""
        account_id = self._reading(caller)

        def work(connection: Connection) -> wire.Referral:
            code = referrals.code_of(connection, account_id, self._now())
            redeemed, earned = referrals.earned(connection, account_id)
            return wire.Referral(
                code=code,
                referral_usd=to_usd(self._referral_nano),
                redeemed=redeemed,
                earned_usd=to_usd(earned),
            )

        return await self._state.write(work)

    async def redeem(self, write: Write, request: wire.RedeemReferral) -> wire.RedeemedReferral:
        """Note whose code an account redeems with its first purchase."""
        account_id = self._changing(write.caller)
        now = self._now()

        def work(connection: Connection) -> wire.RedeemedReferral:
            referrals.redeem(connection, account_id, request.code, now)
            self._noted(connection, write, "referral.redeemed", request.code)
            return wire.RedeemedReferral(referral_usd=to_usd(self._referral_nano), redeemed_at=now)

        return await self._writes.once(write, work)

    async def receive(
        self, provider: str, body: bytes, headers: Mapping[str, str]
    ) -> wire.ReceivedEvent:
        """Verify a provider's event and apply it once."""
        self._require_accounts()
        if provider != self.provider.name:
            raise errors.NotFoundError(
                f"This server takes payments by {self.provider.name}; send events there."
            )
        event = self.provider.read(body, headers)
        notice = event.notice
        if notice is None:
            return wire.ReceivedEvent(outcome="ignored")
        outcome = await self._state.write(
            lambda connection: self.take(connection, event.id, notice)
        )
        return wire.ReceivedEvent(outcome=outcome)

    def take(self, connection: Connection, event_id: str, notice: Notice) -> applying.Outcome:
        """Apply a notice, once for each event."""
        return applying.take(
            connection,
            self.provider.name,
            event_id,
            notice,
            now=self._now(),
            referral_nano=self._referral_nano,
        )

    def heard(self, purchase: Row[Any], begun: Begun) -> None:
        """Write a provider's response to a top-up, blocking."""

        def work(connection: Connection) -> None:
            rows.PURCHASES.change(connection, purchase.id, reference=begun.reference or purchase.id)
            if begun.notice is not None:
                self.take(connection, f"charge {purchase.id}", begun.notice)

        self._state.write_now(work)

    def confirm(self, purchase_id: str) -> wire.Purchase:
        """Note that the money of a bank transfer came, blocking; a second time changes nothing."""

        def work(connection: Connection) -> wire.Purchase:
            row = _get(connection, purchase_id)
            if row.provider != "manual":
                raise errors.PurchaseStateError(
                    f"The purchase is paid by {row.provider}, which says itself when it is paid."
                )
            if row.state not in {"pending", "paid"}:
                raise errors.PurchaseStateError(
                    f"The purchase is {row.state}; if its money came after all, add it with "
                    "steelyard account credit."
                )
            notice = applying.notice_of(row, "paid")
            applying.take(
                connection,
                "manual",
                f"confirm {row.id}",
                notice,
                now=self._now(),
                referral_nano=self._referral_nano,
            )
            return serializers.purchase(_get(connection, purchase_id))

        return self._state.write_now(work)

    def refund(self, purchase_id: str, *, even_if_spent: bool = False) -> wire.Purchase:
        """Refund a purchase, blocking; a second call changes nothing."""
        row = self._state.read_now(lambda connection: _get(connection, purchase_id))
        if row.state == "refunded":
            return serializers.purchase(row)
        if row.state != "paid":
            raise errors.PurchaseStateError(
                f"The purchase is {row.state}; only a paid one is refunded."
            )
        if row.provider != self.provider.name:
            raise errors.PurchaseStateError(
                f"The purchase was paid by {row.provider}, and the setting payments is "
                f"{self.provider.name}; set it to {row.provider} for this."
            )
        has = self._state.read_now(lambda connection: available(connection, row.account_id))
        if has < row.amount_nano and not even_if_spent:
            raise errors.PurchaseStateError(
                f"The account has {to_usd(max(has, 0))} USD available, less than the purchase's "
                f"{to_usd(row.amount_nano)} USD; with --even-if-spent it owes the rest."
            )
        notice = self.provider.refund(applying.ask_of(row))

        def work(connection: Connection) -> wire.Purchase:
            if notice is not None:
                self.take(connection, f"refund {row.id}", notice)
            return serializers.purchase(_get(connection, purchase_id))

        return self._state.write_now(work)

    def parked(self) -> list[wire.ParkedNotice]:
        """Return events that contradict their purchase, the oldest first, blocking."""
        return self._state.read_now(
            lambda connection: [
                serializers.parked_event(row) for row in rows.parked_events(connection, 200)
            ]
        )

    def clear(self, event_id: str) -> None:
        """Put a parked event away, blocking: an operator has looked at it."""

        def work(connection: Connection) -> None:
            event = rows.find_event(connection, self.provider.name, event_id)
            if event is None or event.outcome != "parked":
                raise errors.NotFoundError(
                    f"No event {event_id!r} of {self.provider.name} is parked; steelyard billing "
                    "parked lists them."
                )
            rows.end_event(connection, event.provider, event.id, "cleared", event.reason)

        self._state.write_now(work)

    def balance(self, account: str) -> dict[str, str]:
        """Return an account's books by name in USD, blocking."""

        def work(connection: Connection) -> dict[str, str]:
            row = rows.find_account(connection, account)
            if row is None:
                raise errors.NotFoundError(
                    f"There is no account {account!r}; steelyard account list shows their ids and "
                    "names."
                )
            books = balances_of(connection, row.id)
            return {book: to_usd(amount) for book, amount in sorted(books.items())}

        return self._state.read_now(work)

    def _begin(
        self, connection: Connection, write: Write, account_id: str, amount: int
    ) -> Row[Any]:
        key = write.key
        if key is not None:
            known = rows.find_keyed(connection, account_id, key)
            if known is not None:
                if known.amount_nano != amount:
                    raise errors.IdempotencyConflictError(
                        "This Idempotency-Key was used with another request; send a new key with "
                        "this one."
                    )
                if known.state != "pending":
                    # Its page at the provider may be open still: a payment there gives no credit.
                    raise errors.PurchaseStateError(
                        f"The purchase of this Idempotency-Key is {known.state}; send a new key to "
                        "buy again."
                    )
                return known
        purchase_id = new_id("pur")
        applying.begin(
            connection,
            purchase_id,
            account_id=account_id,
            provider=self.provider.name,
            amount_nano=amount,
            now=self._now(),
            lifetime_s=self.provider.lifetime_s,
            key=key,
        )
        self._noted(connection, write, "purchase.begun", f"{purchase_id} {to_usd(amount)} USD")
        return _get(connection, purchase_id)

    def _noted(self, connection: Connection, write: Write, action: str, subject: str) -> None:
        """Write a signed-in user's change into the account's audit."""
        if self._note is not None and write.caller.session is not None:
            self._note(connection, write.caller, action, self._now(), subject)

    def _require_accounts(self) -> None:
        if not self._accounts_enabled:
            raise errors.AccountsOffError(
                "This server has no accounts, so nothing is bought; start it with accounts on "
                "(STEELYARD_ACCOUNTS=on)."
            )

    def _reading(self, caller: Caller) -> str:
        self._require_accounts()
        return caller.account_id

    def _changing(self, caller: Caller) -> str:
        self._require_accounts()
        return may_change_money(caller)


def _line(cursor: str | None) -> int | None:
    if cursor is None:
        return None
    if cursor.isascii() and cursor.isdigit() and int(cursor) < 2**63:
        return int(cursor)
    message = "cursor names no line of this ledger; start without one."
    raise errors.InvalidRequestError.at(("query", "cursor"), message, "unknown_cursor")


def _get(connection: Connection, purchase_id: str, account_id: str | None = None) -> Row[Any]:
    row = rows.find_purchase(connection, purchase_id, account_id)
    if row is None:
        raise errors.NotFoundError(
            f"There is no purchase {purchase_id!r}; list them to see their ids."
        )
    return row
