"""``client.auth``: signing in with a code, for a client that is made with a session."""

from __future__ import annotations

from steelyard.client import console_calls as calls
from steelyard.client.asynchronous.resource import AsyncResource
from steelyard.client.calls import async_method as _method


class AsyncAuth(AsyncResource):
    """Signing in with a code that comes by mail: ``client.auth``.

    Of a client whose ``ClientOptions`` have ``session=""``, or the token of a session.
    """

    start = _method(calls.start)
    verify = _method(calls.verify)
    session = _method(calls.session)
    sign_out = _method(calls.sign_out)
