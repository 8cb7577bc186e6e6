"""``client.auth``: signing in with a code, for a client that is made with a session."""

# Made of asynchronous/auth.py by scripts/blocking_client.py: edit that one.

from __future__ import annotations

from steelyard.client import console_calls as calls
from steelyard.client.blocking.resource import Resource
from steelyard.client.calls import blocking_method as _method


class Auth(Resource):
    """Signing in with a code that comes by mail: ``client.auth``.

    Of a client whose ``ClientOptions`` have ``session=""``, or the token of a session.
    """

    start = _method(calls.start)
    verify = _method(calls.verify)
    session = _method(calls.session)
    sign_out = _method(calls.sign_out)
