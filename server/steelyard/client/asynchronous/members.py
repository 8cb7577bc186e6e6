"""``client.members``: who has a part in an account, and as what."""

from __future__ import annotations

from steelyard.client import console_calls as calls
from steelyard.client.asynchronous.resource import AsyncResource
from steelyard.client.calls import async_method as _method


class AsyncMembers(AsyncResource):
    """The members of an account and who is invited: ``client.members``."""

    list = _method(calls.list_members)
    invite = _method(calls.invite)
    change = _method(calls.change_member)
    remove = _method(calls.remove_member)
