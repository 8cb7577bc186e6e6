"""The network use that ``steelyard doctor`` reports: the addresses that this installation's settings allow."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from steelyard.cli.findings import CheckFinding, ok
from steelyard.cli.state_checkup import declared_for_checks
from steelyard.settings import Settings, read_variable
from steelyard.tracing import ENDPOINT


def addresses_of(settings: Settings) -> dict[str, str | None]:
    """Return the address that each setting names, of all that a server may reach by its settings."""
    return {
        "STEELYARD_STATE_URL": settings.state_url,
        "STEELYARD_FRAMES_URL": settings.frames_url,
        "STEELYARD_SCORER": settings.scorer,
        "STEELYARD_SMTP_URL": settings.smtp_url,
        "STEELYARD_OIDC_ISSUER": settings.oidc_issuer,
        ENDPOINT: read_variable(ENDPOINT),
        "STEELYARD_PAYMENTS": "https://api.stripe.com" if settings.payments == "stripe" else None,
    }


def check_network(settings: Settings) -> Iterator[CheckFinding]:
    """Name each host that the settings let this installation reach, and the setting that does."""
    reached = [
        f"{host} ({name})"
        for name, address in addresses_of(settings).items()
        if address and (host := urlsplit(address).netloc.rpartition("@")[2])
    ]
    reached += [
        f"{urlsplit(model.url).netloc.rpartition('@')[2]} (the connected model {name})"
        for name, model in declared_for_checks(settings).models.items()
        if model.url
    ]
    yield ok(
        "network",
        f"nothing goes out but to {', '.join([*reached, 'endpoints of webhooks that an account added'])}",
    )
