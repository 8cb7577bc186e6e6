"""``client.members``: who has a part in an account, and as what."""

# Made of asynchronous/members.py by scripts/blocking_client.py: edit that one.

from __future__ import annotations

from steelyard.client import console_calls as calls
from steelyard.client.blocking.resource import Resource
from steelyard.client.calls import blocking_method as _method


class Members(Resource):
    """The members of an account and who is invited: ``client.members``."""

    list = _method(calls.list_members)
    invite = _method(calls.invite)
    change = _method(calls.change_member)
    remove = _method(calls.remove_member)
