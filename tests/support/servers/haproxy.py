"""HAProxy on the configuration that is shipped, in front of servers of this machine."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx

from steelyard.settings import child_environment
from support.tree.repository import ROOT
from support.waiting import wait_until

HAPROXY = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin")
CONFIGURATION = ROOT / "deploy" / "chart" / "haproxy.cfg"
NEEDS_HAPROXY = "needs HAProxy: the program haproxy"


@contextmanager
def haproxy(port: int, servers: Sequence[int], log: Path, trusts: str = "") -> Iterator[str]:
    """Run it on a port, in front of three others; give its address.

    ``trusts`` has the addresses of the proxies in front of it.
    """
    assert HAPROXY is not None
    addresses = {
        f"STEELYARD_SERVER_{number}": f"127.0.0.1:{server}"
        for number, server in enumerate(servers, 1)
    }
    with log.open("ab") as file:
        process = subprocess.Popen(
            [HAPROXY, "-db", "-f", str(CONFIGURATION)],
            env=child_environment(
                STEELYARD_PROXY_BIND=f"127.0.0.1:{port}",
                STEELYARD_PROXY_TRUSTS=trusts,
                **addresses,
            ),
            stdout=file,
            stderr=file,
        )
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def wait_for_servers(url: str) -> None:
    """Wait until a server answers through the proxy."""

    def answers() -> bool:
        with suppress(httpx.TransportError):
            # With a key's header, so that the proxy does not count it as one without.
            headers = {"Authorization": "Bearer none"}
            return httpx.get(f"{url}/v1/health", headers=headers, timeout=60).status_code == 200
        return False

    wait_until(answers)
