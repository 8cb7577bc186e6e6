"""``client.billing``: an account's money, for somebody signed in; keys read it."""

# Made of asynchronous/billing.py by scripts/blocking_client.py: edit that one.

from __future__ import annotations

from collections.abc import Iterator

from steelyard.billing.wire import Purchase, Transaction
from steelyard.client import console_calls as calls
from steelyard.client import decide_calls as routes
from steelyard.client.blocking.resource import Resource
from steelyard.client.calls import blocking_method as _method


class Billing(Resource):
    """An account's balances, purchases, top-ups and referrals: ``client.billing``."""

    get = _method(routes.get_billing)
    purchase = _method(calls.purchase)
    buy = _method(calls.buy)
    receipt = _method(calls.receipt)
    transactions_csv = _method(calls.transactions_csv)
    set_top_up = _method(calls.set_top_up)
    end_top_up = _method(calls.end_top_up)
    referral = _method(calls.referral)
    redeem = _method(calls.redeem)

    def purchases(self, *, page_size: int = 200) -> Iterator[Purchase]:
        """Iterate over the account's purchases, newest first."""
        return self._iterate(lambda cursor: routes.list_purchases(limit=page_size, cursor=cursor))

    def transactions(self, *, page_size: int = 200) -> Iterator[Transaction]:
        """Iterate over the lines of the account's ledger, newest first."""
        return self._iterate(
            lambda cursor: routes.list_transactions(limit=page_size, cursor=cursor)
        )
