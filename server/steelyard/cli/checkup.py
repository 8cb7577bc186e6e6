"""What ``steelyard doctor`` looks at: each check gives findings, and none changes anything.

A state that is not there yet is not made, and an older one is not migrated.
"""

from __future__ import annotations

import errno
import json
import os
import platform
import shutil
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from steelyard.errors import SteelyardError
from steelyard.settings import (
    InvalidSettingError,
    Settings,
    home_of,
    openmp_variables,
    read_settings,
    state_url_of,
)
from steelyard.version import __version__

if TYPE_CHECKING:
    from sqlalchemy import URL

    from steelyard.scoring.remote.triton_address import TritonAddress

Status = Literal["ok", "warn", "fail"]

#: What the extras bring, beside which the package itself is whole.
EXTRAS = {
    "postgres": ("psycopg",),
    "triton": ("onnx", "tritonclient"),
    "train": ("onnx", "peft", "sentence-transformers", "torch"),
}
#: What every installation has and whose version matters when something is odd.
REQUIRED = ("numpy", "onnxruntime", "tokenizers", "sanic", "sqlalchemy", "msgspec", "httpx")

#: Free bytes below which a disk is nearly, and as good as, full.
LOW_DISK_BYTES, FULL_DISK_BYTES = 1024**3, 64 * 1024**2
#: Seconds that a server has to answer.
_SERVER_S = 10.0
#: Seconds that a database has to take a connection.
_CONNECT_S = 5

_RESTORE = "Restore it from a backup: steelyard restore."

_PROBE = {
    "context": "Invoice 118 was paid twice.",
    "decisions": [{"id": "probe", "kind": "binary", "question": "Was something paid?"}],
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report."""

    check: str
    status: Status
    message: str
    advice: str | None = None


def examine(
    url: str | None = None,
    overrides: Mapping[str, str | None] | None = None,
    *,
    deep: bool = False,
) -> Iterator[Finding]:
    """Run every check and give what each found, in the order of the report."""
    yield from _guarded("python", check_python)
    yield from _guarded("package", check_packages)
    try:
        settings = read_settings(overrides)
    except InvalidSettingError as error:
        yield Finding("settings", "fail", str(error), "Correct or unset the variable.")
        return
    checks: tuple[tuple[str, Callable[[Settings], Iterator[Finding]]], ...] = (
        ("threads", check_threads),
        ("model", check_model),
        ("engine", check_engine),
        ("scorer", check_scorer),
        ("disk", check_disk),
        ("state", lambda settings: check_state(settings, deep=deep)),
        ("leftovers", check_leftovers),
        ("server", lambda settings: check_server(settings, url)),
    )
    for name, check in checks:
        yield from _guarded(name, lambda check=check: check(settings))  # type: ignore[misc]


def check_python() -> Iterator[Finding]:
    """Look at the interpreter and the machine."""
    yield Finding(
        "python",
        "ok",
        f"{platform.python_implementation()} {platform.python_version()} on {platform.system()} "
        f"{platform.machine()} ({sys.executable})",
    )


def check_packages() -> Iterator[Finding]:
    """Look at what is installed, the extras too."""
    yield Finding("package", "ok", f"steelyard {__version__} in {Path(__file__).parent.parent}")
    versions = {name: _installed(name) for name in REQUIRED}
    missing = [name for name, found in versions.items() if found is None]
    if missing:
        yield Finding(
            "requirements",
            "fail",
            f"not installed: {', '.join(missing)}",
            "Install steelyard again with pip.",
        )
    else:
        shown = ", ".join(f"{name} {found}" for name, found in versions.items())
        yield Finding("requirements", "ok", shown)
    for extra, names in EXTRAS.items():
        found = {name: _installed(name) for name in names}
        absent = [name for name, number in found.items() if number is None]
        if not absent:
            shown = ", ".join(f"{name} {number}" for name, number in found.items())
            yield Finding(f"extra {extra}", "ok", shown)
        else:
            yield Finding(
                f"extra {extra}",
                "ok",
                f"not installed ({', '.join(absent)})",
                f"Where it is needed: pip install 'steelyard[{extra}]'.",
            )


def check_threads(settings: Settings) -> Iterator[Finding]:
    """Look at the cores, the engine's threads and OpenMP's settings."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    threads = settings.threads or "all cores"
    message = f"{cores} cores; engine threads: {threads}; workers: {settings.workers}"
    if cores is not None and settings.threads * settings.workers > cores:
        yield Finding(
            "threads",
            "warn",
            message,
            "More threads than cores slow each other down; lower STEELYARD_THREADS or "
            "STEELYARD_WORKERS.",
        )
    else:
        yield Finding("threads", "ok", message)
    openmp = openmp_variables()
    shown = ", ".join(f"{name}={value}" for name, value in openmp.items()) or "nothing set"
    if openmp.get("OMP_WAIT_POLICY", "").upper() == "ACTIVE":
        yield Finding(
            "openmp",
            "warn",
            shown,
            "Threads that spin while they wait slow other work down many times; set "
            "OMP_WAIT_POLICY=PASSIVE.",
        )
    else:
        yield Finding("openmp", "ok", shown)


def check_model(_: Settings) -> Iterator[Finding]:
    """Hold every file of the shipped model against its SHA-256."""
    import hashlib

    from steelyard.scoring.assets import BASE, read_manifest

    manifest = read_manifest()
    wrong = []
    for name, expected in manifest["files"].items():
        try:
            digest = hashlib.sha256((BASE / name).read_bytes()).hexdigest()
        except OSError:
            wrong.append(f"{name} is missing")
            continue
        if digest != expected:
            wrong.append(f"{name} was altered")
    if wrong:
        yield Finding("model", "fail", f"{BASE}: {'; '.join(wrong)}", "Install steelyard again.")
        return
    n_files = len(manifest["files"])
    yield Finding("model", "ok", f"{manifest['name']}: {n_files} files, every SHA-256 as stated")


def check_engine(settings: Settings) -> Iterator[Finding]:
    """Load the engine and have it answer one question."""
    from steelyard.app.deployment import open_deployment
    from steelyard.serving.base import HASHING

    start = time.perf_counter()
    with open_deployment(settings) as deployment:
        loaded = time.perf_counter()
        deployment.answers.answer_dict(_PROBE)
        answered = time.perf_counter()
        name = f"{deployment.model_name} on {deployment.engine}"
    message = (
        f"{name}: loaded in {(loaded - start) * 1000:.0f} ms, one question answered in "
        f"{(answered - loaded) * 1000:.1f} ms"
    )
    if settings.engine == HASHING:
        yield Finding(
            "engine", "warn", message, "Its answers mean nothing; unset STEELYARD_ENGINE."
        )
    else:
        yield Finding("engine", "ok", message)


def check_scorer(settings: Settings) -> Iterator[Finding]:
    """Ask the server of the setting ``scorer`` for each model: that it has these very weights."""
    from steelyard.scoring.remote.triton_address import parse_scorer, read_tls
    from steelyard.serving.base import HASHING, parse_base_models

    if not settings.scorer:
        return
    address = parse_scorer(settings.scorer, read_tls(settings)).read()
    if address is None:
        yield Finding("scorer", "ok", f"{settings.scorer}: passes run in the server's own process")
        return
    if settings.engine == HASHING:
        yield Finding("scorer", "warn", f"{address.url} is not used: the engine is a test double")
        return
    folders: dict[str, Path | None] = {"": None}
    for name, source in parse_base_models(settings.base_models).items():
        if source != HASHING:
            folders[name] = Path(source).expanduser()
    for name, folder in folders.items():
        yield _ask_triton(address, name, folder, settings)


def _ask_triton(
    address: TritonAddress, name: str, folder: Path | None, settings: Settings
) -> Finding:
    from steelyard.scoring.assets import read_base_files

    try:
        from steelyard.scoring.remote.routed import probe_inputs
        from steelyard.scoring.remote.triton_engine import TritonEngine
    except ImportError:
        advice = "pip install 'steelyard[triton]'."
        return Finding("scorer", "fail", "Triton's client is not installed", advice)
    files = read_base_files(settings.engine, folder)
    name = name or str(files.manifest["name"])
    engine = TritonEngine(
        address, name, sha256=files.sha256, precision=files.precision, timeout_s=_SERVER_S
    )
    falls_back = settings.scorer_fallback == "in-process"
    try:
        engine.open(loads=False)
        start = time.perf_counter()
        engine.run(probe_inputs(), ("logits",))
        took_ms = (time.perf_counter() - start) * 1000
    except SteelyardError as error:
        if falls_back:
            advice = "Until then passes run in the server's own process."
            return Finding("scorer", "warn", error.message, advice)
        return Finding("scorer", "fail", error.message)
    finally:
        engine.close()
    message = f"{name} in {address.url}: these weights, a small pass took {took_ms:.1f} ms"
    return Finding("scorer", "ok", message)


def check_disk(settings: Settings) -> Iterator[Finding]:
    """Look at the home directory and how much may still be written there."""
    home = home_of(settings).absolute()
    existing = next(path for path in (home, *home.parents) if path.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        what = "cannot be written" if existing.is_dir() else "is no directory"
        yield Finding(
            "disk", "fail", f"{existing} {what}", "Give another home with STEELYARD_HOME."
        )
        return
    free = shutil.disk_usage(existing).free
    message = f"{home}: {free / 1024**3:.1f} GiB free"
    status: Status = "ok"
    if free < LOW_DISK_BYTES:
        status = "fail" if free < FULL_DISK_BYTES else "warn"
    advice = None if status == "ok" else "Free space there, or give another STEELYARD_HOME."
    yield Finding("disk", status, message, advice)


def check_state(settings: Settings, *, deep: bool = False) -> Iterator[Finding]:
    """Look at the state: sound, of this version's tables, writable, and all files that it names."""
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    from steelyard.storage.migrate import HEAD

    url = state_url_of(settings)
    try:
        parsed = make_url(url)
    except ArgumentError:
        yield Finding(
            "state",
            "fail",
            "the setting state_url is no database URL",
            "Give STEELYARD_STATE_URL as sqlite:///PATH or postgresql+psycopg://….",
        )
        return
    if parsed.get_backend_name() == "sqlite":
        path = Path(parsed.database or "").expanduser().absolute()
        parsed = parsed.set(database=str(path))
        if not path.exists():
            yield Finding("state", "ok", f"{path} is not there yet; the first start makes it")
            return
        damaged = tuple(_check_databases(settings, path, deep=deep))
        yield from damaged
        if damaged:
            return
    # The password is masked in this form of the URL.
    shown = parsed.render_as_string(hide_password=True)
    revision = _revision(parsed)
    if revision != HEAD:
        yield Finding(
            "state",
            "warn",
            f"{shown} is at revision {revision or 'none'}, this version's is {HEAD}",
            "The next start of the server migrates it, where it is older; back it up first.",
        )
        return
    yield from _open_and_write(url, shown)
    yield from _check_files(settings, deep=deep)


def _check_databases(settings: Settings, path: Path, *, deep: bool) -> Iterator[Finding]:
    from steelyard.storage.damage import damage_of_database

    for one in (path, home_of(settings).absolute() / "rates.sqlite"):
        if not one.exists():
            continue
        wrong = damage_of_database(one, deep=deep)
        if wrong is not None:
            yield Finding(one.stem, "fail", f"{one} is damaged: {wrong}", _RESTORE)


def _check_files(settings: Settings, *, deep: bool) -> Iterator[Finding]:
    """Look at every file that the state names; a deep look compares its content with its hash."""
    from steelyard.app.foundation import open_frames
    from steelyard.app.stored_files import find_files, named_in
    from steelyard.storage import open_state

    state = open_state(state_url_of(settings))
    try:
        named = state.read_now(named_in)
    finally:
        state.close()
    n_files = n_damaged = 0
    for one, stored, wrong in find_files(named, partial(open_frames, settings), deep=deep):
        n_files += 1
        if wrong is not None:
            n_damaged += 1
            shown = f"{one.room}/{one.sha256}" if stored is None else stored.path
            yield Finding("files", "fail", f"{shown}, of {one.needed_by}, {wrong}", _RESTORE)
    if not n_damaged:
        looked = "each is what was written" if deep else "--deep reads them too"
        yield Finding("files", "ok", f"{n_files} files that the state names are there; {looked}")


def check_leftovers(settings: Settings) -> Iterator[Finding]:
    """Look for files that a killed server left in the home."""
    home = home_of(settings).absolute()
    address = _read_address(home)
    left = []
    if address is not None and not _is_alive(address["pid"]):
        left.append("serve.json")
    if home.is_dir():
        left += sorted(path.name for path in home.glob("*.partial"))
    if left:
        yield Finding(
            "leftovers",
            "warn",
            f"{home}: {', '.join(left)} of a server that no longer runs",
            "Remove them, or start the server there again.",
        )
    else:
        yield Finding("leftovers", "ok", "none")


def check_server(settings: Settings, url: str | None = None) -> Iterator[Finding]:
    """Ask a server how it is, or say that the port is free for one."""
    address = _read_address(home_of(settings).absolute())
    if url is None and address is not None and _is_alive(address["pid"]):
        url = str(address["url"])
    if url is not None:
        yield from _ask(url, settings)
        return
    host, port = settings.host, settings.port
    shown = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    obstacle = None if port == 0 else _obstacle_to_listening(host, port)
    if obstacle is None:
        yield Finding("server", "ok", f"none runs; {shown} is free for `steelyard serve`")
        return
    if obstacle.errno != errno.EADDRINUSE:
        yield Finding(
            "server",
            "fail",
            f"cannot listen on {shown}: {obstacle.strerror}",
            "Give another STEELYARD_HOST or STEELYARD_PORT.",
        )
        return
    findings = tuple(_ask(f"http://{shown}", settings))
    if findings[0].status == "fail":
        yield Finding(
            "server",
            "fail",
            f"{shown} is taken by something that does not answer as a Steelyard server",
            "Stop that program, or give another STEELYARD_PORT.",
        )
        return
    yield from findings


def _guarded(name: str, check: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    """Yield a check's findings; one that breaks is a finding too, and the rest go on."""
    try:
        yield from check()
    except InvalidSettingError as error:
        yield Finding(name, "fail", str(error), "Correct or unset the variable.")
    except SteelyardError as error:
        yield Finding(name, "fail", error.message)
    except Exception as error:  # noqa: BLE001  # a broken installation breaks in any way
        yield Finding(
            name,
            "fail",
            f"could not be checked: {type(error).__name__}: {error}",
            "Install steelyard again; if it stays, report it with this line.",
        )


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _revision(url: URL) -> str | None:
    """Return the revision of a database's tables, and leave it as it is."""
    from sqlalchemy import NullPool, create_engine
    from sqlalchemy.exc import DatabaseError

    from steelyard.errors import StorageUnavailableError
    from steelyard.storage.failures import damaged, unavailable
    from steelyard.storage.migrate import revision_of

    arguments: dict[str, Any] = {}
    if url.get_backend_name() == "postgresql":
        url, arguments = url.set(drivername="postgresql+psycopg"), {"connect_timeout": _CONNECT_S}
    try:
        engine = create_engine(
            url, poolclass=NullPool, connect_args=arguments, hide_parameters=True
        )
    except ImportError:
        raise StorageUnavailableError(
            "The database's driver is not installed; pip install 'steelyard[postgres]'."
        ) from None
    try:
        with engine.connect() as connection:
            return revision_of(connection)
    except DatabaseError as error:
        raise (unavailable(error) or damaged(error) or error) from error


def _open_and_write(url: str, shown: str) -> Iterator[Finding]:
    from sqlalchemy import Connection, text

    from steelyard.operations.store import pending_operations
    from steelyard.storage import open_state

    state = open_state(url)
    try:

        def count_orphans(connection: Connection) -> int:
            connection.execute(text("SELECT 1")).close()
            return sum(
                1
                for row in pending_operations(connection)
                if row.instance is None or not state.is_alive(connection, row.instance)
            )

        n_orphans = state.write_now(count_orphans)
    finally:
        state.close()
    yield Finding("state", "ok", f"{shown}: reachable, writable, tables of this version")
    if n_orphans:
        yield Finding(
            "operations",
            "warn",
            f"{n_orphans} accepted by a server that no longer runs, with credit still held",
            "Start the server: it ends them and frees what they hold.",
        )
    else:
        yield Finding("operations", "ok", "none left hanging")


def _read_address(home: Path) -> dict[str, Any] | None:
    try:
        address = json.loads((home / "serve.json").read_bytes())
    except (OSError, ValueError):
        return None
    fits = isinstance(address, dict) and isinstance(address.get("pid"), int) and "url" in address
    return address if fits else None


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _obstacle_to_listening(host: str, port: int) -> OSError | None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
        except OSError as error:
            return error
        return None


def _ask(url: str, settings: Settings) -> Iterator[Finding]:
    from steelyard.client import Client, ClientOptions
    from steelyard.errors import InvalidApiKeyError, KeyScopeError, MissingApiKeyError

    try:
        options = ClientOptions(url, settings.api_key, timeout_s=_SERVER_S, max_retries=0)
    except ValueError as error:
        yield Finding("server", "fail", str(error), "Give the address with --url.")
        return
    with Client(options) as client:
        try:
            health = client.health()
        except SteelyardError as error:
            yield Finding("server", "fail", error.message)
            return
        message = f"{client.url} answers: version {health.version}, {health.model}"
        if health.version == __version__:
            yield Finding("server", "ok", message)
        else:
            advice = f"This is version {__version__}; restart the server, or install its version."
            yield Finding("server", "warn", message, advice)
        try:
            parts = client.ready().parts
        except (InvalidApiKeyError, KeyScopeError, MissingApiKeyError):
            advice = "Ask on its machine, or with a key of scope full in STEELYARD_API_KEY."
            yield Finding("ready", "warn", "the server tells only whoever runs it", advice)
        except SteelyardError as error:
            yield Finding("ready", "fail", error.message)
        else:
            yield Finding("ready", "ok", ", ".join(sorted(parts)))
