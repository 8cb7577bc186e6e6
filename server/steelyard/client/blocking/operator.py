"""``client.operator``: the whole server, for somebody signed in as an operator of it."""

# Made of asynchronous/operator.py by scripts/blocking_client.py: edit that one.

from __future__ import annotations

from collections.abc import Iterator

from steelyard.client import console_calls as calls
from steelyard.client.blocking.resource import Resource
from steelyard.client.calls import blocking_method as _method
from steelyard.people.operator_wire import AccountEntry


class Operator(Resource):
    """Every account, payments to look into, and connected models: ``client.operator``."""

    add_credit = _method(calls.add_credit)
    confirm_purchase = _method(calls.confirm_purchase)
    notices = _method(calls.notices)
    clear_notice = _method(calls.clear_notice)
    models = _method(calls.connected_models)

    def accounts(self, *, page_size: int = 200) -> Iterator[AccountEntry]:
        """Iterate over every account, newest first."""
        return self._iterate(lambda cursor: calls.accounts_page(limit=page_size, cursor=cursor))
