"""The whole server for its operators: accounts, credit, payments to look into, connected models."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import time

from sqlalchemy import Connection

from steelyard.accounts import service
from steelyard.accounts.service import AccountService
from steelyard.billing.service import PurchaseService
from steelyard.billing.wire import Purchase
from steelyard.caller import LOCAL_ACCOUNT
from steelyard.errors import InvalidRequestError
from steelyard.ledger.money import InvalidAmountError, from_usd, to_usd
from steelyard.operations.idempotency import KeyedWrites
from steelyard.operations.write import Write
from steelyard.people import operator_wire
from steelyard.people import store as rows
from steelyard.people.session_service import session_of
from steelyard.serving.registry import ModelRegistry
from steelyard.storage import State
from steelyard.wire.filling import filled
from steelyard.wire.queries import PageQuery
from steelyard.wire.violations import BODY


class Operator:
    """Actions of operators; their routes admit only them (``Route.for_operators``)."""

    def __init__(
        self,
        state: State,
        accounts: AccountService,
        purchases: PurchaseService,
        models: ModelRegistry,
    ) -> None:
        self._state = state
        self._writes = KeyedWrites(state)
        self._accounts, self._purchases, self._models = accounts, purchases, models

    async def accounts(self, query: PageQuery) -> operator_wire.AccountEntryPage:
        """Return a page of every account."""
        find = functools.partial(
            self._accounts.page_accounts, limit=query.limit, cursor=query.cursor
        )
        account_rows, next_cursor = await self._state.read(find)
        data = [_shown(row) for row in account_rows]
        return operator_wire.AccountEntryPage(
            data=data, has_more=next_cursor is not None, next_cursor=next_cursor
        )

    async def add_credit(
        self, write: Write, account_id: str, request: operator_wire.AddCredit
    ) -> operator_wire.AccountEntry:
        """Add credit to an account, once for each key, with an entry in its audit."""
        session = session_of(write.caller)
        try:
            amount = from_usd(request.amount_usd)
        except InvalidAmountError as error:
            message = f"amount_usd cannot be used: {error}"
            raise InvalidRequestError.at((*BODY, "amount_usd"), message, "invalid_amount") from None

        def work(connection: Connection) -> operator_wire.AccountEntry:
            entry = self._accounts.credit(connection, account_id, amount)
            rows.note(
                connection,
                entry.id,
                session.email,
                "credit.added",
                address=write.caller.address,
                at=time.time(),
                subject=f"{to_usd(amount)} USD",
            )
            return _shown(entry)

        # An operator need not have an account: its keys are kept with those of the server's own.
        local_caller = dataclasses.replace(write.caller, account_id=LOCAL_ACCOUNT)
        return await self._writes.once(dataclasses.replace(write, caller=local_caller), work)

    async def confirm(self, purchase_id: str) -> Purchase:
        """Note that the money of a bank transfer came; a second time changes nothing."""
        return await asyncio.to_thread(self._purchases.confirm, purchase_id)

    async def notices(self) -> operator_wire.ParkedNoticeList:
        """Return the payment notices that disagree with a purchase."""
        notices = await asyncio.to_thread(self._purchases.parked)
        return operator_wire.ParkedNoticeList(data=notices)

    async def clear(self, notice_id: str) -> operator_wire.ClearedNotice:
        """Put a notice away that was looked into."""
        await asyncio.to_thread(self._purchases.clear, notice_id)
        return operator_wire.ClearedNotice(id=notice_id)

    async def models(self) -> operator_wire.ConnectedModelList:
        """Return the models that answer elsewhere, and how they are."""
        return operator_wire.ConnectedModelList(
            data=[
                filled(
                    operator_wire.ConnectedModel,
                    model,
                    is_available=model.can_answer,
                    n_waiting=model.queue.n_waiting,
                )
                for model in self._models.hosted
                if model.is_connected
            ]
        )


def _shown(entry: service.AccountWallet) -> operator_wire.AccountEntry:
    """Return an account as the wire has it; its wallet is a value of the wire already."""
    return operator_wire.AccountEntry(**dataclasses.asdict(entry) | {"wallet": entry.wallet})
