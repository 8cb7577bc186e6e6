"""``client.auth``: signing in, for a client that is made with a session."""

# Made of asynchronous/auth.py by scripts/blocking_client.py: edit that one.

from __future__ import annotations

from steelyard.client import console_calls as calls
from steelyard.client.blocking.resource import Resource
from steelyard.client.calls import blocking_method as _method


class Auth(Resource):
    """Signing in with a code that comes by mail, a passkey, or an identity provider: ``client.auth``.

    Of a client whose ``ClientOptions`` have ``session=""``, or the token of a session.
    """

    ways = _method(calls.ways)
    start = _method(calls.start)
    verify = _method(calls.verify)
    start_oidc = _method(calls.start_oidc)
    verify_oidc = _method(calls.verify_oidc)
    start_passkey = _method(calls.start_passkey)
    verify_passkey = _method(calls.verify_passkey)
    passkeys = _method(calls.passkeys)
    start_adding_passkey = _method(calls.start_adding_passkey)
    add_passkey = _method(calls.add_passkey)
    remove_passkey = _method(calls.remove_passkey)
    session = _method(calls.session)
    sign_out = _method(calls.sign_out)
