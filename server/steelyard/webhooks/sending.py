"""One try of a delivery: bounded, to an address that was checked, and to no other."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Collection, Mapping

import httpx

from steelyard.http_clients import open_async_http
from steelyard.version import __version__
from steelyard.webhooks.store import TryOutcome
from steelyard.webhooks.targets import RefusedTargetError, Target, check_addresses, read_target

#: Seconds that a try may take, its name's resolution included.
TRY_S = 15.0
#: Characters that are kept of an answer, and bytes that are read for them.
STORED_CHARACTERS, _READ_BYTES = 1_000, 4_000
#: Addresses of a name that are tried.
_MAX_ADDRESSES = 3


def open_client(places: int, verify: ssl.SSLContext | bool = True) -> httpx.AsyncClient:
    """Return a client that connects directly, anew for every try, and follows no redirect.

    Connections are not kept: they are to addresses, and names that share one must not share it.
    """
    limits = httpx.Limits(max_connections=places, max_keepalive_connections=0)
    return open_async_http(timeout=TRY_S, limits=limits, verify=verify)


async def send(
    client: httpx.AsyncClient,
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    allowed: Collection[str],
    *,
    timeout_s: float = TRY_S,
) -> TryOutcome:
    """Send a delivery once, and return the outcome of any kind."""
    try:
        async with asyncio.timeout(timeout_s):
            target = read_target(url, allowed)
            addresses = await _resolve(target)
            check_addresses(target.host, addresses, allowed)
            return await _post_to_any(client, target, addresses, body, headers)
    except RefusedTargetError as error:
        return TryOutcome(error=str(error))
    except TimeoutError:
        return TryOutcome(error=f"It did not answer within {timeout_s:g} s.")
    except (httpx.HTTPError, httpx.InvalidURL, OSError, UnicodeError) as error:
        return TryOutcome(error=_failure_text(error))


async def _resolve(target: Target) -> list[str]:
    """Return the addresses of a host, each once, in the system's order."""
    entries = await asyncio.get_running_loop().getaddrinfo(
        target.host, target.port, type=socket.SOCK_STREAM
    )
    return list(dict.fromkeys(str(entry[4][0]) for entry in entries))


async def _post_to_any(
    client: httpx.AsyncClient,
    target: Target,
    addresses: Collection[str],
    body: bytes,
    headers: Mapping[str, str],
) -> TryOutcome:
    """Send to the first address that takes a connection."""
    *others, last = list(addresses)[:_MAX_ADDRESSES]
    for address in others:
        try:
            return await _post(client, target, address, body, headers)
        except httpx.ConnectError:
            continue
    return await _post(client, target, last, body, headers)


async def _post(
    client: httpx.AsyncClient,
    target: Target,
    address: str,
    body: bytes,
    headers: Mapping[str, str],
) -> TryOutcome:
    # The connection goes to the address that was checked; name and certificate stay the host's.
    request = client.build_request(
        "POST",
        target.url_at(address),
        content=body,
        headers={
            **headers,
            "Host": target.authority,
            "Content-Type": "application/json",
            "Accept-Encoding": "identity",
            "User-Agent": f"steelyard/{__version__}",
        },
        extensions={"sni_hostname": target.host},
    )
    response = await client.send(request, stream=True)
    try:
        text = await _read_some(response)
    finally:
        await response.aclose()
    status = response.status_code
    if 200 <= status < 300:
        return TryOutcome(status=status, response=text)
    hint = "; redirects are not followed: give the address itself" if 300 <= status < 400 else ""
    return TryOutcome(status=status, response=text, error=f"It answered {status}{hint}.")


async def _read_some(response: httpx.Response) -> str:
    received = bytearray()
    async for piece in response.aiter_raw(_READ_BYTES):
        received += piece
        if len(received) >= _READ_BYTES:
            break
    # A database's text has no null character.
    text = bytes(received[:_READ_BYTES]).decode(errors="replace").replace("\0", "�")
    return text[:STORED_CHARACTERS]


def _failure_text(error: Exception) -> str:
    if isinstance(error, socket.gaierror):
        return "Its name cannot be resolved."
    if isinstance(error, httpx.ConnectError):
        return f"It cannot be reached: {str(error)[:200]}"
    return f"The connection broke off: {type(error).__name__}."
