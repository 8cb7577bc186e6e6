"""A program in a network without a route: its lookups, connections and files are recorded.

This file is run in the namespace too, where it must import nothing of ours: a package's settings of the
process would reach the programs that it starts.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

#: Begins a shell in namespaces of its own, as root of them.
_APART = ("unshare", "--map-root-user", "--mount", "--net")
_RESOLVER = "127.0.0.1"
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1
#: What a process needs of the environment; anything else might quiet a library.
_INHERITED = ("LANG", "LD_LIBRARY_PATH", "PATH", "PYTHONPATH", "VIRTUAL_ENV")
PATIENCE_S = 120


@dataclass(frozen=True)
class Seen:
    """The traces of a program beyond its own machine and home."""

    status: int
    looked_up: list[str]
    #: Connections that were tried and had nowhere to go.
    n_connections: int
    #: Files that stayed, below the folder that is its whole disk.
    files: list[str]


def is_possible() -> bool:
    """Whether this machine lets a program have a network of its own."""
    try:
        mounts = [*_APART, "mount", "--bind", os.devnull, "/etc/resolv.conf"]
        return subprocess.run(mounts, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def run_without_route(folder: Path, *command: str, **variables: str) -> tuple[Seen, str]:
    """Run a command on a new disk, and return its traces and its output."""
    for name in ("user", "work", "tmp"):
        (folder / name).mkdir(exist_ok=True)
    environment = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    environment |= {"HOME": str(folder / "user"), "TMPDIR": str(folder / "tmp"), **variables}
    done = subprocess.run(
        [*_APART, sys.executable, __file__, str(folder / "seen.json"), *command],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
        cwd=folder / "work",
        env=environment,
        text=True,
        timeout=PATIENCE_S,
    )
    seen = json.loads((folder / "seen.json").read_text())
    (folder / "seen.json").unlink()
    files = [str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()]
    return Seen(**seen, files=sorted(files)), done.stdout + done.stderr


def _record(path: Path, command: list[str]) -> None:
    """Run a command in the namespace that this process is in, and write its traces."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as resolver:
        fcntl.ioctl(resolver, _SIOCSIFFLAGS, struct.pack("16sh", b"lo", _IFF_UP))
        resolver.bind((_RESOLVER, 53))
        settings = path.with_name("resolv.conf")
        settings.write_text(f"nameserver {_RESOLVER}\n")
        subprocess.run(["mount", "--bind", settings, "/etc/resolv.conf"], check=True)
        names: list[str] = []
        threading.Thread(target=_answer, args=(resolver, names), daemon=True).start()
        status = subprocess.run(command, check=False).returncode
        seen = {"status": status, "looked_up": names, "n_connections": _n_without_route()}
        path.write_text(json.dumps(seen))
        settings.unlink()


def _answer(resolver: socket.socket, names: list[str]) -> None:
    """Write down each name that is asked for, and answer that there is none."""
    while True:
        asked, address = resolver.recvfrom(2048)
        labels, at = [], 12
        while size := asked[at]:
            labels.append(asked[at + 1 : at + 1 + size].decode("latin1"))
            at += 1 + size
        names.append(".".join(labels))
        resolver.sendto(
            asked[:2] + b"\x81\x83" + asked[4:6] + bytes(6) + asked[12 : at + 5], address
        )


def _n_without_route() -> int:
    """Return how often something of this network was sent, or connected, to elsewhere."""
    names, values = [
        line.split()
        for line in Path("/proc/net/snmp").read_text().splitlines()
        if line[:3] == "Ip:"
    ]
    counts = dict(line.split() for line in Path("/proc/net/snmp6").read_text().splitlines())
    return int(values[names.index("OutNoRoutes")]) + int(counts["Ip6OutNoRoutes"])


if __name__ == "__main__":
    _record(Path(sys.argv[1]), sys.argv[2:])
