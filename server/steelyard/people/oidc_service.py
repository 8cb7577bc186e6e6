"""Signing in with an identity provider: begun with a state, and ended with the code that it gave."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from urllib.parse import urlsplit

from sqlalchemy import Connection

from steelyard.errors import (
    InvalidCodeError,
    InvalidRequestError,
    OidcOffError,
    RateLimitedError,
    Violation,
)
from steelyard.http.access import address_group
from steelyard.people import limits
from steelyard.people import store as rows
from steelyard.people.identity_provider import IdentityProvider
from steelyard.people.roles import read_address
from steelyard.people.sign_in_service import SignIns
from steelyard.people.wire import OidcSignIn, SignedInUser, StartOidc, VerifyOidc
from steelyard.settings import Settings
from steelyard.storage import State
from steelyard.wire.hosts import host_names, is_loopback
from steelyard.wire.violations import BODY

_STATE_BYTES = 32


class OidcSignIns:
    """Begins sessions for whoever an identity provider knows."""

    def __init__(
        self,
        state: State,
        sign_ins: SignIns,
        settings: Settings,
        *,
        now: Callable[[], float] | None = None,
    ) -> None:
        self._state = state
        self._sign_ins = sign_ins
        self._now = now or limits.ForwardClock()
        self._provider = IdentityProvider.of(settings)
        if self._provider is not None:
            self._provider.now = self._now
        self._hosts = host_names(settings.hosts) | {urlsplit(settings.url).hostname or ""}

    async def start(self, request: StartOidc, address: str) -> OidcSignIn:
        """Return the provider's page to sign in at; it leads back to a page of one's own."""
        provider = self._required()
        self._check_page(request.redirect_uri)
        state, network = secrets.token_urlsafe(_STATE_BYTES), address_group(address)
        url = await provider.authorize_url(state, request.redirect_uri)

        def work(connection: Connection) -> OidcSignIn:
            now = self._now()
            times = rows.challenge_times(connection, now - limits.HOUR_S, network=network)
            wait_s = limits.wait_s(times, limits.SIGN_INS_PER_NETWORK, now)
            if wait_s is not None:
                raise RateLimitedError(
                    "Too many sign-ins were begun in this hour; wait.", retry_after_s=wait_s
                )
            ends_at = now + limits.CODE_S
            rows.insert_state(connection, _id_of(state), network=network, at=now, ends_at=ends_at)
            return OidcSignIn(authorize_url=url, state=state, expires_at=ends_at)

        return await self._state.write(work)

    async def verify(
        self, request: VerifyOidc, address: str, *, agent: str, replaced: str | None
    ) -> SignedInUser:
        """Begin a session for whoever came back with a code; a state is taken once."""
        provider = self._required()
        self._check_page(request.redirect_uri)

        def take(connection: Connection) -> bool:
            now, id_ = self._now(), _id_of(request.state)
            row = rows.find_challenge(connection, id_)
            if row is None or not limits.is_alive(row.created_at, row.expires_at, now):
                return False
            rows.change_challenge(connection, id_, ended_at=now)
            return True

        if not await self._state.write(take):
            raise InvalidCodeError(
                "This sign-in was not begun here, is over, or was used; begin it anew with POST "
                "/v1/auth/oidc."
            )
        given = await provider.address_of(request.state, request.code, request.redirect_uri)
        email = read_address(given)
        return await self._sign_ins.enter(
            lambda _connection, _now: email, address, agent=agent, replaced=replaced
        )

    def _required(self) -> IdentityProvider:
        if self._provider is None:
            raise OidcOffError(
                "This server has no identity provider; sign in with POST /v1/auth/email, or have "
                "whoever runs it set oidc_issuer (STEELYARD_OIDC_ISSUER)."
            )
        return self._provider

    def _check_page(self, redirect_uri: str) -> None:
        """Refuse to lead anywhere but to pages of one's own."""
        try:
            url = urlsplit(redirect_uri)
            name = url.hostname or ""
        except ValueError:
            url, name = urlsplit(""), ""
        is_local = url.scheme == "http" and is_loopback(name)
        if not is_local and not (url.scheme == "https" and name in self._hosts):
            message = (
                "redirect_uri is no page of this server; add its host to the setting hosts "
                "(STEELYARD_HOSTS), or give another."
            )
            raise InvalidRequestError(
                violations=[Violation((*BODY, "redirect_uri"), message, "not_allowed")]
            )


def _id_of(state: str) -> str:
    """Return what is kept of a state: it is a secret of the browser that began."""
    return f"oidc_{hashlib.sha256(state.encode()).hexdigest()}"
