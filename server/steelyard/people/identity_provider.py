"""An organisation's identity provider, by OpenID Connect: where to sign in there, and who did.

It is asked from this server alone, with a secret that only the two know; the browser brings back a code
that is worth nothing without it.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

import httpx

from steelyard.errors import IdentityProviderError, InvalidCodeError
from steelyard.http_clients import open_async_http
from steelyard.people.limits import SESSION_S
from steelyard.people.roles import is_address
from steelyard.settings import InvalidSettingError, Settings
from steelyard.wire.addresses import is_public_address
from steelyard.wire.hosts import is_loopback

_log = logging.getLogger(__name__)

_SCOPE = "openid email"
#: Signatures that are taken; none with a secret, which a public key would pass for.
_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "EdDSA"]
_TIMEOUT_S = 10.0
#: Seconds that a provider's description of itself is kept, and that clocks may differ by.
_KEEP_S, _LEEWAY_S = 3600.0, 60
_HELP = "Whoever runs this server looks at its log and at oidc_issuer (STEELYARD_OIDC_ISSUER)."


@dataclass(frozen=True, slots=True)
class Identity:
    """A provider's user: a verified address, and the time of the last login, or 0."""

    email: str
    proved_at: float


@dataclass(slots=True)
class IdentityProvider:
    """One provider, which knows this server as a client."""

    issuer: str
    client_id: str
    client_secret: str = field(repr=False)
    now: Callable[[], float] = time.time
    _known: tuple[float, dict[str, Any], Any] | None = field(default=None, repr=False)

    @classmethod
    def of(cls, settings: Settings) -> IdentityProvider | None:
        """Return the provider that settings name; ``None`` where they name none."""
        given = (settings.oidc_issuer, settings.oidc_client_id, settings.oidc_client_secret)
        issuer, client_id, client_secret = given
        if not any(given):
            return None
        if not issuer or not client_id or not client_secret:
            raise InvalidSettingError(
                "Signing in with an identity provider needs all three of oidc_issuer "
                "(STEELYARD_OIDC_ISSUER), oidc_client_id and oidc_client_secret; give them all."
            )
        url = urlsplit(issuer)
        if not url.hostname or not _is_safe(issuer) or url.query or url.fragment:
            raise InvalidSettingError(
                "The setting oidc_issuer (STEELYARD_OIDC_ISSUER) is not the https address of an "
                "identity provider; write it as its own document has it."
            )
        if find_spec("authlib") is None or find_spec("joserfc") is None:
            raise InvalidSettingError(
                "Signing in with an identity provider (STEELYARD_OIDC_ISSUER) needs: pip install "
                "'steelyard[oidc]'."
            )
        return cls(issuer, client_id, client_secret)

    async def authorize_url(self, state: str, redirect_uri: str) -> str:
        """Return the provider's page to sign in at, which leads back with a code."""
        from authlib.oauth2.rfc6749.parameters import prepare_grant_uri  # noqa: PLC0415
        from authlib.oauth2.rfc7636 import create_s256_code_challenge  # noqa: PLC0415

        about, _ = await self._about()
        url: str = prepare_grant_uri(
            about["authorization_endpoint"],
            client_id=self.client_id,
            response_type="code",
            redirect_uri=redirect_uri,
            scope=_SCOPE,
            state=state,
            nonce=self._derived("nonce", state),
            # Asked for a bound, a provider has to say in `auth_time` when it last asked who it is.
            max_age=str(int(SESSION_S)),
            code_challenge=create_s256_code_challenge(self._derived("verifier", state)),
            code_challenge_method="S256",
        )
        return url

    async def identity_of(self, state: str, code: str, redirect_uri: str) -> Identity:
        """Return who came back with a code."""
        about, _ = await self._about()
        given = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": self._derived("verifier", state),
        }
        try:
            async with open_async_http(timeout=_TIMEOUT_S, trust_env=True) as client:
                answer = await client.post(
                    about["token_endpoint"],
                    data=given,
                    auth=(self.client_id, self.client_secret),
                    headers={"Accept": "application/json"},
                )
            if answer.status_code in {400, 401, 403}:
                # A code that is none, or a client that the provider does not know.
                _log.warning("The identity provider refused a code: %s", answer.text[:200])
                raise _refused()
            id_token = answer.raise_for_status().json()["id_token"]
        except (httpx.HTTPError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise _unavailable(error) from error
        if not isinstance(id_token, str):
            raise _refused()
        claims = await self._claims_of(id_token, self._derived("nonce", state))
        email = claims.get("email")
        is_verified = claims.get("email_verified") is True
        if not is_verified or not isinstance(email, str) or not is_address(email.lower()):
            raise InvalidCodeError(
                "The identity provider has verified no e-mail address of yours that can be used; "
                "have one verified there, or sign in with a code by mail."
            )
        authenticated_at = claims.get("auth_time")
        return Identity(
            email, authenticated_at if isinstance(authenticated_at, int | float) else 0.0
        )

    async def _claims_of(self, id_token: str, nonce: str) -> dict[str, Any]:
        """Return the provider's signed claims, for this client and this sign-in."""
        from joserfc import jwt  # noqa: PLC0415
        from joserfc.errors import JoseError  # noqa: PLC0415

        registry = jwt.JWTClaimsRegistry(
            int(self.now()),
            _LEEWAY_S,
            iss={"essential": True, "value": self.issuer},
            aud={"essential": True, "value": self.client_id},
            exp={"essential": True},
            iat={"essential": True},
            nonce={"essential": True, "value": nonce},
        )
        # A provider may have changed its keys since they were read.
        for is_last in (False, True):
            _, keys = await self._about(is_new=is_last)
            try:
                claims = jwt.decode(id_token, keys, algorithms=_ALGORITHMS).claims
                break
            except (JoseError, ValueError, TypeError, RecursionError) as error:
                if is_last:
                    raise _refused() from error
        else:  # the last turn breaks or raises
            raise _refused()
        try:
            registry.validate(claims)
        except (JoseError, ValueError, TypeError) as error:
            raise _refused() from error
        audience = claims["aud"]
        is_for_several = isinstance(audience, list) and len(audience) > 1
        if claims.get("azp", None if is_for_several else self.client_id) != self.client_id:
            raise _refused()
        return dict(claims)

    async def _about(self, *, is_new: bool = False) -> tuple[dict[str, Any], Any]:
        """Return the provider's metadata and its keys."""
        from joserfc.errors import JoseError  # noqa: PLC0415
        from joserfc.jwk import KeySet  # noqa: PLC0415

        if self._known is not None and not is_new and self.now() - self._known[0] < _KEEP_S:
            return self._known[1], self._known[2]
        address = f"{self.issuer.rstrip('/')}/.well-known/openid-configuration"
        try:
            async with open_async_http(timeout=_TIMEOUT_S, trust_env=True) as client:
                about = (await client.get(address)).raise_for_status().json()
                self._check(about)
                keys = (await client.get(about["jwks_uri"])).raise_for_status().json()
            key_set = KeySet.import_key_set(keys)
        except (
            httpx.HTTPError,
            ValueError,
            KeyError,
            TypeError,
            AttributeError,
            RecursionError,
            JoseError,
        ) as error:
            raise _unavailable(error) from error
        self._known = (self.now(), about, key_set)
        return about, key_set

    def _check(self, about: dict[str, Any]) -> None:
        """Refuse a provider with another issuer or an unencrypted address."""
        if about["issuer"] != self.issuer:
            raise ValueError("The provider names another issuer.")
        for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
            url = about[name]
            if not _is_safe(url):
                raise ValueError(f"The provider's {name} is not https.")
            host, own = (urlsplit(address).hostname or "" for address in (url, self.issuer))
            if host != own and (is_loopback(host) or is_public_address(host) is False):
                raise ValueError(f"The provider's {name} is an address of a private network.")

    def _derived(self, what: str, state: str) -> str:
        """Return a value of one sign-in that only the holder of the secret can compute: none is stored."""
        text = f"{what} {state}".encode()
        return hmac.new(self.client_secret.encode(), text, hashlib.sha256).hexdigest()


def _is_safe(url: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or ""))


def _refused() -> InvalidCodeError:
    return InvalidCodeError(
        "The identity provider did not confirm this sign-in; begin it anew with POST /v1/auth/oidc."
    )


def _unavailable(error: Exception) -> IdentityProviderError:
    _log.warning("The identity provider cannot be used: %s", error)
    return IdentityProviderError(
        f"The identity provider cannot be used ({type(error).__name__}). {_HELP}"
    )
