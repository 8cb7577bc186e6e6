"""Signing in with an identity provider: begun with a state, and ended with the code that it gave."""

from __future__ import annotations

import functools
import secrets
from collections.abc import Callable

from sqlalchemy import Connection

from steelyard import errors
from steelyard.http.access import address_group
from steelyard.people import beginnings, limits
from steelyard.people.identity_provider import IdentityProvider
from steelyard.people.own_pages import OwnPages
from steelyard.people.roles import read_address
from steelyard.people.sign_in_service import Proof, SignIns
from steelyard.people.wire import OidcSignIn, SignedInUser, StartOidc, VerifyOidc
from steelyard.settings import Settings
from steelyard.storage import State
from steelyard.wire.violations import BODY

_STATE_BYTES = 32
_KIND = "oidc"


class OidcSignIns:
    """Begins sessions for users of an identity provider."""

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
        self._pages = OwnPages(settings)

    @property
    def issuer(self) -> str | None:
        """The identity provider's name of itself; ``None`` where the server has none."""
        return None if self._provider is None else self._provider.issuer

    async def start(self, request: StartOidc, address: str) -> OidcSignIn:
        """Return the provider's page to sign in at; it leads back to a page of one's own."""
        provider = self._required()
        self._check_page(request.redirect_uri)
        state, network = secrets.token_urlsafe(_STATE_BYTES), address_group(address)
        url = await provider.authorize_url(state, request.redirect_uri)

        def work(connection: Connection) -> OidcSignIn:
            ends_at = beginnings.begin(
                connection,
                _KIND,
                state,
                now=self._now(),
                limit=limits.SIGN_INS_PER_NETWORK,
                network=network,
            )
            return OidcSignIn(authorize_url=url, state=state, expires_at=ends_at)

        return await self._state.write(work)

    async def verify(
        self, request: VerifyOidc, address: str, *, agent: str, replaced: str | None
    ) -> SignedInUser:
        """Begin a session for a user who came back with a code; a state is accepted once."""
        provider = self._required()
        self._check_page(request.redirect_uri)

        take = functools.partial(beginnings.take, kind=_KIND, secret=request.state, now=self._now())
        if not await self._state.write(take):
            raise errors.InvalidCodeError(
                "This sign-in was not begun here, is over, or was used; begin it anew with POST "
                "/v1/auth/oidc."
            )
        known = await provider.identity_of(request.state, request.code, request.redirect_uri)
        # A provider sends back a user who signed in there before, perhaps days ago, without asking.
        proof = Proof(read_address(known.email), "identity provider", known.proved_at)
        return await self._sign_ins.enter(
            lambda _connection, _now: proof, address, agent=agent, replaced=replaced
        )

    def _required(self) -> IdentityProvider:
        if self._provider is None:
            raise errors.OidcOffError(
                "This server has no identity provider; sign in with POST /v1/auth/email, or have "
                "whoever runs it set oidc_issuer (STEELYARD_OIDC_ISSUER)."
            )
        return self._provider

    def _check_page(self, redirect_uri: str) -> None:
        """Refuse to lead anywhere but to pages of one's own."""
        if not self._pages.may_return_to(redirect_uri):
            message = (
                "redirect_uri is no page of this server. Add its host to the setting hosts "
                "(STEELYARD_HOSTS), or give the page /oidc of a workbench; list one on loopback that "
                "is not beside this server in the setting workbenches (STEELYARD_WORKBENCHES)."
            )
            raise errors.InvalidRequestError.at((*BODY, "redirect_uri"), message, "not_allowed")
