"""``/v1/auth`` and the console's part of ``/v1/account``."""

from __future__ import annotations

import functools

from sanic import Request

from steelyard import errors
from steelyard.accounts.wire import AccountSummary, ApiKey
from steelyard.http.bodies import send_stream
from steelyard.http.browsers import Browser
from steelyard.http.routing import Access, Call, Route
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
from steelyard.people.wire import (
    AddPasskey,
    AuditPage,
    AuditQuery,
    Challenge,
    ChangeAccount,
    ChangeKey,
    ChangeMember,
    CreateKey,
    CurrentSession,
    EndedSessions,
    InviteMember,
    Member,
    MemberList,
    NewApiKey,
    OidcSignIn,
    Passkey,
    PasskeyChallenge,
    PasskeyList,
    RemovedMember,
    RemovedPasskey,
    SessionList,
    SignedInUser,
    SignInWays,
    StartOidc,
    StartPasskey,
    StartSignIn,
    Usage,
    UsageQuery,
    VerifyCode,
    VerifyOidc,
    VerifyPasskey,
)

_KEY_ERRORS = (errors.IdempotencyConflictError, errors.IdempotencyResponseExpiredError)
_open = functools.partial(Route, access=Access.SIGN_IN, tags=("console",))
_sign_in = functools.partial(_open, method="POST")
_console = functools.partial(Route, access=Access.CONSOLE, tags=("console",))
_own = functools.partial(_console, roles=ANYBODY)
_own_passkeys = functools.partial(_own, confirms=True)
_members = functools.partial(_console, roles=("owner",), confirms=True)
_keys = functools.partial(_console, roles=("owner", "developer"), confirms=True)

_OIDC = (errors.OidcOffError, errors.IdentityProviderError)
_PASSKEYS = (errors.PasskeysOffError,)


def _browser(call: Call) -> Browser:
    assert call.browser is not None  # noqa: S101  every route of the console has one
    return call.browser


async def _ways(call: Call) -> SignInWays:
    return SignInWays(
        passkeys=call.service(Passkeys).are_read, issuer=call.service(OidcSignIns).issuer
    )


async def _verify(call: Call, by: type[SignIns | OidcSignIns | Passkeys]) -> SignedInUser:
    browser = _browser(call)
    signed_in: SignedInUser = await call.service(by).verify(
        call.body, call.caller.address, agent=browser.agent, replaced=browser.token
    )
    browser.keeps = signed_in.session.token
    return signed_in


async def _sign_out(call: Call) -> EndedSessions:
    only = session_of(call.caller).session_id
    ended = await call.service(Sessions).end(call.caller, only=only)
    _browser(call).keeps = ""
    return ended


async def _end_others(call: Call) -> EndedSessions:
    but = session_of(call.caller).session_id
    return await call.service(Sessions).end(call.caller, but=but)


async def _export(request: Request, call: Call) -> None:
    """Send all of an account's data as a zip."""
    pieces = await call.service(AccountExports).export(call.caller)
    await send_stream(request, pieces, "application/zip")


ROUTES = (
    _open(
        method="GET",
        path="/v1/auth",
        use=_ways,
        summary="Return how people sign in here, beside a code by mail.",
        response=SignInWays,
    ),
    _sign_in(
        path="/v1/auth/email",
        use=lambda call: call.service(SignIns).start(call.body, call.caller.address),
        summary="Send a one-time code to an address.",
        status=202,
        request=StartSignIn,
        response=Challenge,
        errors=(errors.MailUnavailableError,),
    ),
    _sign_in(
        path="/v1/auth/email/verify",
        use=lambda call: _verify(call, SignIns),
        summary="Sign in with the code of a letter; the session's token comes as a cookie too.",
        request=VerifyCode,
        response=SignedInUser,
        errors=(errors.InvalidCodeError, errors.SignUpRefusedError),
    ),
    _sign_in(
        path="/v1/auth/oidc",
        use=lambda call: call.service(OidcSignIns).start(call.body, call.caller.address),
        summary="Return the page of the identity provider to sign in at.",
        request=StartOidc,
        response=OidcSignIn,
        errors=_OIDC,
    ),
    _sign_in(
        path="/v1/auth/oidc/verify",
        use=lambda call: _verify(call, OidcSignIns),
        summary="Sign in with the code of the identity provider; the token comes as a cookie too.",
        request=VerifyOidc,
        response=SignedInUser,
        errors=(*_OIDC, errors.InvalidCodeError, errors.SignUpRefusedError),
    ),
    _sign_in(
        path="/v1/auth/passkey",
        use=lambda call: call.service(Passkeys).start(call.body, call.caller.address),
        summary="Return what a browser is asked to sign in with a passkey.",
        request=StartPasskey,
        response=PasskeyChallenge,
        errors=_PASSKEYS,
    ),
    _sign_in(
        path="/v1/auth/passkey/verify",
        use=lambda call: _verify(call, Passkeys),
        summary="Sign in with what a passkey signed; the session's token comes as a cookie too.",
        request=VerifyPasskey,
        response=SignedInUser,
        errors=(*_PASSKEYS, errors.InvalidCodeError, errors.SignUpRefusedError),
    ),
    _own(
        method="GET",
        path="/v1/auth/session",
        use=lambda call: call.service(Sessions).current(call.caller),
        summary="Return who is signed in, and in which accounts.",
        response=CurrentSession,
    ),
    _own(
        method="POST",
        path="/v1/auth/sign-out",
        use=_sign_out,
        summary="End this session.",
        response=EndedSessions,
    ),
    _own(
        method="GET",
        path="/v1/account/sessions",
        use=lambda call: call.service(Sessions).list(call.caller),
        summary="List the user's sessions.",
        response=SessionList,
    ),
    _own(
        method="DELETE",
        path="/v1/account/sessions/{session}",
        use=lambda call: call.service(Sessions).end(call.caller, only=call.path["session"]),
        summary="End one of the user's sessions.",
        response=EndedSessions,
    ),
    _own(
        method="DELETE",
        path="/v1/account/sessions",
        use=_end_others,
        summary="End all of the user's sessions but this.",
        response=EndedSessions,
    ),
    _own(
        method="GET",
        path="/v1/account/passkeys",
        use=lambda call: call.service(Passkeys).list(call.caller),
        summary="List the user's passkeys.",
        response=PasskeyList,
    ),
    _own_passkeys(
        method="POST",
        path="/v1/account/passkeys/challenge",
        use=lambda call: call.service(Passkeys).start_adding(call.caller, call.body),
        summary="Return what a browser is asked to make a passkey of.",
        request=StartPasskey,
        response=PasskeyChallenge,
        errors=(*_PASSKEYS, errors.PasskeyLimitError),
    ),
    _own_passkeys(
        method="POST",
        path="/v1/account/passkeys",
        use=lambda call: call.service(Passkeys).add(call.caller, call.body),
        summary="Keep a passkey that a browser made.",
        request=AddPasskey,
        response=Passkey,
        errors=(*_PASSKEYS, errors.PasskeyLimitError),
    ),
    _own_passkeys(
        method="DELETE",
        path="/v1/account/passkeys/{passkey}",
        use=lambda call: call.service(Passkeys).remove(call.caller, call.path["passkey"]),
        summary="Remove one of the user's passkeys.",
        response=RemovedPasskey,
    ),
    _console(
        method="GET",
        path="/v1/account/audit",
        use=lambda call: call.service(Sessions).audit(call.caller, call.query),
        summary="Page what was done in the account's console, the newest first.",
        roles=("owner",),
        query=AuditQuery,
        response=AuditPage,
    ),
    _console(
        method="GET",
        path="/v1/account/members",
        use=lambda call: call.service(Members).list(call.caller),
        summary="List the account's members and who is invited.",
        roles=("owner", "developer", "billing"),
        response=MemberList,
    ),
    _members(
        method="POST",
        path="/v1/account/members",
        use=lambda call: call.service(Members).invite(call.write, call.body),
        summary="Invite somebody by mail.",
        request=InviteMember,
        response=Member,
        errors=(*_KEY_ERRORS, errors.MemberExistsError, errors.MailUnavailableError),
    ),
    _members(
        method="PATCH",
        path="/v1/account/members/{member}",
        use=lambda call: call.service(Members).change(call.caller, call.path["member"], call.body),
        summary="Change a member's role.",
        request=ChangeMember,
        response=Member,
        errors=(errors.LastOwnerError,),
    ),
    _members(
        method="DELETE",
        path="/v1/account/members/{member}",
        use=lambda call: call.service(Members).remove(call.write, call.path["member"]),
        summary="Remove a member or an invitation.",
        response=RemovedMember,
        errors=(*_KEY_ERRORS, errors.LastOwnerError),
    ),
    _keys(
        method="POST",
        path="/v1/account/keys",
        use=lambda call: call.service(Keys).create(call.write, call.body),
        summary="Make an API key; its secret is shown this once.",
        request=CreateKey,
        response=NewApiKey,
        errors=_KEY_ERRORS,
    ),
    _keys(
        method="PATCH",
        path="/v1/account/keys/{key}",
        use=lambda call: call.service(Keys).change(call.caller, call.path["key"], call.body),
        summary="Change an API key's name, cap or end; a developer's own alone.",
        request=ChangeKey,
        response=ApiKey,
    ),
    _keys(
        method="DELETE",
        path="/v1/account/keys/{key}",
        use=lambda call: call.service(Keys).revoke(call.caller, call.path["key"]),
        summary="Revoke an API key for good; a developer's own alone.",
        response=ApiKey,
    ),
    _console(
        method="GET",
        path="/v1/account/usage",
        use=lambda call: call.service(UsageService).usage(call.caller, call.query),
        summary="Return calls, tokens, decisions and cost by day, key, model or family.",
        roles=("owner", "developer", "billing"),
        takes_keys=True,
        query=UsageQuery,
        response=Usage,
    ),
    _console(
        method="PATCH",
        path="/v1/account",
        use=lambda call: call.service(OwnAccount).rename(call.caller, call.body),
        summary="Rename the account.",
        roles=("owner",),
        request=ChangeAccount,
        response=AccountSummary,
        errors=(errors.AccountNeededError,),
    ),
    _members(
        method="DELETE",
        path="/v1/account",
        use=lambda call: call.service(OwnAccount).delete(call.caller),
        summary="Delete the account and all that it has, after seven days.",
        response=AccountSummary,
        errors=(errors.AccountNeededError,),
    ),
    _console(
        method="POST",
        path="/v1/account/restore",
        use=lambda call: call.service(OwnAccount).restore(call.caller),
        summary="Take the account's deletion back, within the seven days.",
        roles=("owner",),
        response=AccountSummary,
    ),
    _console(
        method="GET",
        path="/v1/account/export",
        handler=_export,
        summary="Send all of the account's data as a zip, three times an hour.",
        roles=("owner",),
        media_type="application/zip",
    ),
)
