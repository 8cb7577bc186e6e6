"""``client.operator``: the whole server, for somebody signed in as an operator of it."""

from __future__ import annotations

from collections.abc import AsyncIterator

from steelyard.client import console_calls as calls
from steelyard.client.asynchronous.resource import AsyncResource
from steelyard.client.calls import async_method as _method
from steelyard.people.operator_wire import AccountEntry


class AsyncOperator(AsyncResource):
    """Every account, payments to look into, and connected models: ``client.operator``."""

    add_credit = _method(calls.add_credit)
    confirm_purchase = _method(calls.confirm_purchase)
    notices = _method(calls.notices)
    clear_notice = _method(calls.clear_notice)
    models = _method(calls.connected_models)

    def accounts(self, *, page_size: int = 200) -> AsyncIterator[AccountEntry]:
        """Iterate over every account, newest first."""
        return self._iterate(lambda cursor: calls.accounts_page(limit=page_size, cursor=cursor))
