"""``/v1/auth`` and the console's part of ``/v1/account``."""

from __future__ import annotations

import functools

from sanic import Request

from steelyard import errors
from steelyard.http.bodies import send_stream
from steelyard.http.browsers import Browser
from steelyard.http.routing import KEY_ERRORS, Access, Call, row
from steelyard.people import wire
from steelyard.people.account_service import OwnAccount
from steelyard.people.export_service import AccountExports
from steelyard.people.key_service import Keys
from steelyard.people.member_service import Members
from steelyard.people.oidc_service import OidcSignIns
from steelyard.people.passkey_service import Passkeys
from steelyard.people.roles import ANYBODY
from steelyard.people.session_service import Sessions, session_of
from steelyard.people.sign_in_service import SignIns
from steelyard.people.usage_service import UsageService

_open = functools.partial(row, access=Access.SIGN_IN, tags=("console",))
_console = functools.partial(row, access=Access.CONSOLE, tags=("console",))
_own = functools.partial(_console, roles=ANYBODY)
_own_passkeys = functools.partial(_own, confirms=True)
_members = functools.partial(_console, roles=("owner",), confirms=True)
_keys = functools.partial(_console, roles=("owner", "developer"), confirms=True)

_OIDC = (errors.OidcOffError, errors.IdentityProviderError)
_PASSKEYS = (errors.PasskeysOffError,)


def _browser(call: Call) -> Browser:
    assert call.browser is not None  # noqa: S101  every route of the console has one
    return call.browser


async def _ways(call: Call) -> wire.SignInWays:
    return wire.SignInWays(
        passkeys=call.service(Passkeys).are_read, issuer=call.service(OidcSignIns).issuer
    )


async def _verify(call: Call, by: type[SignIns | OidcSignIns | Passkeys]) -> wire.SignedInUser:
    browser = _browser(call)
    signed_in: wire.SignedInUser = await call.service(by).verify(
        call.body, call.caller.address, agent=browser.agent, replaced=browser.token
    )
    browser.keeps = signed_in.session.token
    return signed_in


async def _sign_out(call: Call) -> wire.EndedSessions:
    only = session_of(call.caller).session_id
    ended = await call.service(Sessions).end(call.caller, only=only)
    _browser(call).keeps = ""
    return ended


async def _end_others(call: Call) -> wire.EndedSessions:
    but = session_of(call.caller).session_id
    return await call.service(Sessions).end(call.caller, but=but)


async def _export(request: Request, call: Call) -> None:
    """Send all of an account's data as a zip."""
    pieces = await call.service(AccountExports).export(call.caller)
    await send_stream(request, pieces, "application/zip")


ROUTES = (
    _open("GET /v1/auth", _ways, "Return how people sign in here, beside a code by mail."),
    _open(
        "POST /v1/auth/email",
        lambda call: call.service(SignIns).start(call.body, call.caller.address),
        "Send a one-time code to an address.",
        status=202,
        request=wire.StartSignIn,
        response=wire.Challenge,
        errors=(errors.MailUnavailableError,),
    ),
    _open(
        "POST /v1/auth/email/verify",
        lambda call: _verify(call, SignIns),
        "Sign in with the code of a letter; the session's token comes as a cookie too.",
        request=wire.VerifyCode,
        response=wire.SignedInUser,
        errors=(errors.InvalidCodeError, errors.SignUpRefusedError),
    ),
    _open(
        "POST /v1/auth/oidc",
        lambda call: call.service(OidcSignIns).start(call.body, call.caller.address),
        "Return the page of the identity provider to sign in at.",
        request=wire.StartOidc,
        response=wire.OidcSignIn,
        errors=_OIDC,
    ),
    _open(
        "POST /v1/auth/oidc/verify",
        lambda call: _verify(call, OidcSignIns),
        "Sign in with the code of the identity provider; the token comes as a cookie too.",
        request=wire.VerifyOidc,
        response=wire.SignedInUser,
        errors=(*_OIDC, errors.InvalidCodeError, errors.SignUpRefusedError),
    ),
    _open(
        "POST /v1/auth/passkey",
        lambda call: call.service(Passkeys).start(call.body, call.caller.address),
        "Return what a browser is asked to sign in with a passkey.",
        request=wire.StartPasskey,
        response=wire.PasskeyChallenge,
        errors=_PASSKEYS,
    ),
    _open(
        "POST /v1/auth/passkey/verify",
        lambda call: _verify(call, Passkeys),
        "Sign in with what a passkey signed; the session's token comes as a cookie too.",
        request=wire.VerifyPasskey,
        response=wire.SignedInUser,
        errors=(*_PASSKEYS, errors.InvalidCodeError, errors.SignUpRefusedError),
    ),
    _own(
        "GET /v1/auth/session", Sessions.current, "Return who is signed in, and in which accounts."
    ),
    _own("POST /v1/auth/sign-out", _sign_out, "End this session."),
    _own("GET /v1/account/sessions", Sessions.list, "List the user's sessions."),
    _own(
        "DELETE /v1/account/sessions/{session}",
        lambda call: call.service(Sessions).end(call.caller, only=call.path["session"]),
        "End one of the user's sessions.",
        response=wire.EndedSessions,
        is_repeatable=True,
    ),
    _own(
        "DELETE /v1/account/sessions",
        _end_others,
        "End all of the user's sessions but this.",
        is_repeatable=True,
    ),
    _own("GET /v1/account/passkeys", Passkeys.list, "List the user's passkeys."),
    _own_passkeys(
        "POST /v1/account/passkeys/challenge",
        Passkeys.start_adding,
        "Return what a browser is asked to make a passkey of.",
        errors=(*_PASSKEYS, errors.PasskeyLimitError),
    ),
    _own_passkeys(
        "POST /v1/account/passkeys",
        Passkeys.add,
        "Keep a passkey that a browser made.",
        errors=(*_PASSKEYS, errors.PasskeyLimitError),
        is_repeatable=True,
    ),
    _own_passkeys(
        "DELETE /v1/account/passkeys/{passkey}",
        Passkeys.remove,
        "Remove one of the user's passkeys.",
        is_repeatable=True,
    ),
    _console(
        "GET /v1/account/audit",
        Sessions.audit,
        "Page what was done in the account's console, the newest first.",
        roles=("owner",),
    ),
    _console(
        "GET /v1/account/members",
        Members.list,
        "List the account's members and who is invited.",
        roles=("owner", "developer", "billing"),
    ),
    _members(
        "POST /v1/account/members",
        Members.invite,
        "Invite somebody by mail.",
        errors=(*KEY_ERRORS, errors.MemberExistsError, errors.MailUnavailableError),
    ),
    _members(
        "PATCH /v1/account/members/{member}",
        Members.change,
        "Change a member's role.",
        errors=(errors.LastOwnerError,),
        is_repeatable=True,
    ),
    _members(
        "DELETE /v1/account/members/{member}",
        Members.remove,
        "Remove a member or an invitation.",
        errors=(*KEY_ERRORS, errors.LastOwnerError),
    ),
    _keys(
        "POST /v1/account/keys",
        Keys.create,
        "Make an API key; its secret is shown this once.",
        errors=KEY_ERRORS,
    ),
    _keys(
        "PATCH /v1/account/keys/{key}",
        Keys.change,
        "Change an API key's name, cap, end or storing; a developer's own alone.",
        is_repeatable=True,
    ),
    _keys(
        "DELETE /v1/account/keys/{key}",
        Keys.revoke,
        "Revoke an API key for good; a developer's own alone.",
        is_repeatable=True,
    ),
    _console(
        "GET /v1/account/usage",
        UsageService.usage,
        "Return calls, tokens, decisions and cost by day, key, model or family.",
        roles=("owner", "developer", "billing"),
        takes_keys=True,
    ),
    _console(
        "PATCH /v1/account",
        OwnAccount.change,
        "Rename the account, or set the most that is stored of its answers.",
        roles=("owner",),
        errors=(errors.AccountNeededError,),
        is_repeatable=True,
    ),
    _members(
        "DELETE /v1/account",
        OwnAccount.delete,
        "Delete the account and all that it has, after seven days.",
        errors=(errors.AccountNeededError,),
        is_repeatable=True,
    ),
    _console(
        "POST /v1/account/restore",
        OwnAccount.restore,
        "Take the account's deletion back, within the seven days.",
        roles=("owner",),
        is_repeatable=True,
    ),
    _console(
        "GET /v1/account/export",
        handler=_export,
        summary="Send all of the account's data as a zip, three times an hour.",
        roles=("owner",),
        media_type="application/zip",
    ),
)
