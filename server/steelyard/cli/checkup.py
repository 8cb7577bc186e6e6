"""The checks of ``steelyard doctor``: each yields findings, and none changes anything.

A state that is not there yet is not made, and an older one is not migrated.
"""

from __future__ import annotations

import errno
import json
import os
import platform
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.cli.findings import CheckFinding, Status, fail, ok, warn
from steelyard.cli.going_out import check_network
from steelyard.cli.state_checkup import check_state, declared_for_checks
from steelyard.errors import SteelyardError
from steelyard.processes import bound_socket, count_processors, is_running
from steelyard.settings import (
    InvalidSettingError,
    Settings,
    home_of,
    openmp_variables,
    read_settings,
)
from steelyard.version import __version__

if TYPE_CHECKING:
    from steelyard.scoring.remote.triton_address import TritonAddress

#: What the extras bring, beside which the package itself is whole.
EXTRAS = {
    "judge": ("xllamacpp",),
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
_PROBE = {
    "context": "Invoice 118 was paid twice.",
    "decisions": [{"id": "probe", "kind": "binary", "question": "Was something paid?"}],
}


def examine(
    url: str | None = None,
    overrides: Mapping[str, str | None] | None = None,
    *,
    deep: bool = False,
) -> Iterator[CheckFinding]:
    """Run every check and yield its findings, in the order of the report."""
    yield from _guarded("python", check_python)
    yield from _guarded("package", check_packages)
    try:
        settings = read_settings(overrides)
    except InvalidSettingError as error:
        yield fail("settings", str(error), "Correct or unset the variable.")
        return
    checks: tuple[tuple[str, Callable[[Settings], Iterator[CheckFinding]]], ...] = (
        ("threads", check_threads),
        ("processor", check_processor),
        ("model", check_model),
        ("engine", check_engine),
        ("scorer", check_scorer),
        ("judge", check_judges),
        ("reader", check_readers),
        ("network", check_network),
        ("disk", check_disk),
        ("state", lambda settings: check_state(settings, deep=deep)),
        ("leftovers", check_leftovers),
        ("server", lambda settings: check_server(settings, url)),
    )
    for name, check in checks:
        yield from _guarded(name, lambda check=check: check(settings))  # type: ignore[misc]


def check_python() -> Iterator[CheckFinding]:
    """Look at the interpreter and the machine."""
    yield ok(
        "python",
        f"{platform.python_implementation()} {platform.python_version()} on {platform.system()} "
        f"{platform.machine()} ({sys.executable})",
    )


def check_packages() -> Iterator[CheckFinding]:
    """Check the installed packages, extras included."""
    yield ok("package", f"steelyard {__version__} in {Path(__file__).parent.parent}")
    if _installed("steelyard-client") is not None:
        yield warn(
            "client",
            "steelyard-client is installed too, and brings some of the same files",
            "pip uninstall steelyard-client, and install steelyard again.",
        )
    versions = {name: _installed(name) for name in REQUIRED}
    missing = [name for name, number in versions.items() if number is None]
    if missing:
        yield fail(
            "requirements",
            f"not installed: {', '.join(missing)}",
            "Install steelyard again with pip.",
        )
    else:
        shown = ", ".join(f"{name} {number}" for name, number in versions.items())
        yield ok("requirements", shown)
    for extra, names in EXTRAS.items():
        installed = {name: _installed(name) for name in names}
        absent = [name for name, number in installed.items() if number is None]
        if not absent:
            shown = ", ".join(f"{name} {number}" for name, number in installed.items())
            yield ok(f"extra {extra}", shown)
        else:
            yield ok(
                f"extra {extra}",
                f"not installed ({', '.join(absent)})",
                f"Where it is needed: pip install 'steelyard[{extra}]'.",
            )


def check_threads(settings: Settings) -> Iterator[CheckFinding]:
    """Look at the cores, the engine's threads and OpenMP's settings."""
    cores = count_processors()
    threads = settings.threads or "all cores"
    message = f"{cores} cores; engine threads: {threads}; workers: {settings.workers}"
    if settings.threads * settings.workers > cores:
        yield warn(
            "threads",
            message,
            "More threads than cores slow each other down; lower STEELYARD_THREADS or "
            "STEELYARD_WORKERS.",
        )
    else:
        yield ok("threads", message)
    openmp = openmp_variables()
    shown = ", ".join(f"{name}={value}" for name, value in openmp.items()) or "nothing set"
    if openmp.get("OMP_WAIT_POLICY", "").upper() == "ACTIVE":
        yield warn(
            "openmp",
            shown,
            "Threads that spin while they wait slow other work down many times; set "
            "OMP_WAIT_POLICY=PASSIVE.",
        )
    else:
        yield ok("openmp", shown)


def check_processor(settings: Settings) -> Iterator[CheckFinding]:
    """Show which engine was found to suit this processor, where the settings leave it open."""
    from steelyard.serving.fitted import FILE, describe_machine, is_open, stored

    path = home_of(settings).absolute() / FILE
    choice = stored(path)
    if not is_open(settings):
        yield ok("processor", f"{describe_machine()}; the engine is set, not measured")
    elif choice is None:
        yield ok("processor", f"{describe_machine()}; the first start here measures its engine")
    else:
        advice = f"To measure again, remove {path} and start the server."
        yield ok("processor", f"{choice.machine}; {choice.summary}", advice)


def check_model(_: Settings) -> Iterator[CheckFinding]:
    """Hold every file of the model that ships against its SHA-256."""
    import hashlib

    from steelyard.scoring.assets import read_manifest
    from steelyard.scoring.shipped import BASE

    manifest = read_manifest(BASE)
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
        yield fail("model", f"{BASE}: {'; '.join(wrong)}", "Install steelyard again.")
        return
    n_files = len(manifest["files"])
    yield ok("model", f"{manifest['name']}: {n_files} files, every SHA-256 as stated")


def check_engine(settings: Settings) -> Iterator[CheckFinding]:
    """Load the engine and have it answer one question."""
    from steelyard.app.deployment import open_deployment
    from steelyard.scoring.shipped import HASHING
    from steelyard.serving.fitted import fitted

    start = time.perf_counter()
    with open_deployment(fitted(settings)) as deployment:
        loaded = time.perf_counter()
        deployment.answers.answer_dict(_PROBE)
        answered = time.perf_counter()
        name = f"{deployment.model_name} on {deployment.engine}"
    message = (
        f"{name}: loaded in {(loaded - start) * 1000:.0f} ms, one question answered in "
        f"{(answered - loaded) * 1000:.1f} ms"
    )
    if settings.engine == HASHING:
        yield warn("engine", message, "Its answers mean nothing; unset STEELYARD_ENGINE.")
    else:
        yield ok("engine", message)


def check_judges(settings: Settings) -> Iterator[CheckFinding]:
    """Look at the file of each judge: that it is there, and that it fits into memory."""
    from steelyard.serving.judge.checkup import examine_judge
    from steelyard.serving.judge_setting import CONCURRENCY, CONTEXT_TOKENS

    home = home_of(settings)
    files = {
        name: (home / model.file, model.context_tokens, model.concurrency)
        for name, model in declared_for_checks(settings).models.items()
        if model.wire == "gguf"
    }
    if settings.judge is not None:
        files["judge"] = (settings.judge.expanduser().absolute(), CONTEXT_TOKENS, CONCURRENCY)
    for name, (file, context_tokens, slots) in files.items():
        message, advice = examine_judge(name, file, context_tokens, slots)
        if advice is None:
            yield ok("judge", message)
        else:
            yield fail("judge", message, advice)


def check_readers(settings: Settings) -> Iterator[CheckFinding]:
    """Check each reader's folder: its files, and the memory it takes."""
    from steelyard.scoring.entailment.folder import read_folder
    from steelyard.scoring.shipped import default_name
    from steelyard.serving.auto import completed

    home = home_of(settings)
    for name, model in completed(
        declared_for_checks(settings), default_name(settings)
    ).models.items():
        if model.wire != "entailment":
            continue
        try:
            facts = read_folder(
                home / model.file, labels=model.labels, hypothesis_first=model.hypothesis_first
            )
        except InvalidSettingError as error:
            yield fail("reader", f"{name}: {error}", "Add or download it again.")
        else:
            yield ok("reader", f"{name} needs about {facts.memory_bytes / 1e6:.0f} MB of memory")


def check_scorer(settings: Settings) -> Iterator[CheckFinding]:
    """Ask the server of the setting ``scorer`` for each model: that it has these very weights."""
    from steelyard.scoring.remote.triton_address import parse_scorer, read_tls
    from steelyard.scoring.shipped import HASHING
    from steelyard.serving.base import parse_base_models

    if not settings.scorer:
        return
    address = parse_scorer(settings.scorer, read_tls(settings)).read()
    if address is None:
        yield ok("scorer", f"{settings.scorer}: passes run in the server's own process")
        return
    if settings.engine == HASHING:
        yield warn("scorer", f"{address.url} is not used: the engine is a test double")
        return
    folders: dict[str, Path | None] = {"": None}
    for name, source in parse_base_models(settings.base_models).items():
        if source != HASHING:
            folders[name] = Path(source).expanduser()
    for name, folder in folders.items():
        yield _ask_triton(address, name, folder, settings)


def _ask_triton(
    address: TritonAddress, name: str, folder: Path | None, settings: Settings
) -> CheckFinding:
    from steelyard.scoring.assets import read_base_files

    try:
        from steelyard.scoring.remote.routed import probe_inputs
        from steelyard.scoring.remote.triton_engine import TritonEngine
    except ImportError:
        advice = "pip install 'steelyard[triton]'."
        return fail("scorer", "Triton's client is not installed", advice)
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
            return warn("scorer", error.message, advice)
        return fail("scorer", error.message)
    finally:
        engine.close()
    message = f"{name} in {address.url}: these weights, a small pass took {took_ms:.1f} ms"
    return ok("scorer", message)


def check_disk(settings: Settings) -> Iterator[CheckFinding]:
    """Look at the home directory and how much may still be written there."""
    home = home_of(settings).absolute()
    existing = next(path for path in (home, *home.parents) if path.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        what = "cannot be written" if existing.is_dir() else "is no directory"
        yield fail("disk", f"{existing} {what}", "Give another home with STEELYARD_HOME.")
        return
    free = shutil.disk_usage(existing).free
    message = f"{home}: {free / 1024**3:.1f} GiB free"
    status: Status = "ok"
    if free < LOW_DISK_BYTES:
        status = "fail" if free < FULL_DISK_BYTES else "warn"
    advice = None if status == "ok" else "Free space there, or give another STEELYARD_HOME."
    yield CheckFinding("disk", status, message, advice)


def check_leftovers(settings: Settings) -> Iterator[CheckFinding]:
    """Look for files that a killed server left in the home."""
    home = home_of(settings).absolute()
    address = _read_address(home)
    left = []
    if address is not None and not is_running(address["pid"]):
        left.append("serve.json")
    if home.is_dir():
        left += sorted(path.name for path in home.glob("*.partial"))
    if left:
        yield warn(
            "leftovers",
            f"{home}: {', '.join(left)} of a server that no longer runs",
            "Remove them, or start the server there again.",
        )
    else:
        yield ok("leftovers", "none")


def check_server(settings: Settings, url: str | None = None) -> Iterator[CheckFinding]:
    """Ask a server how it is, or say that the port is free for one."""
    address = _read_address(home_of(settings).absolute())
    if url is None and address is not None and is_running(address["pid"]):
        url = str(address["url"])
    if url is not None:
        yield from _ask(url, settings)
        return
    host, port = settings.host, settings.port
    shown = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    obstacle = None if port == 0 else _obstacle_to_listening(host, port)
    if obstacle is None:
        yield ok("server", f"none runs; {shown} is free for `steelyard serve`")
        return
    if obstacle.errno != errno.EADDRINUSE:
        yield fail(
            "server",
            f"cannot listen on {shown}: {obstacle.strerror}",
            "Give another STEELYARD_HOST or STEELYARD_PORT.",
        )
        return
    findings = tuple(_ask(f"http://{shown}", settings))
    if findings[0].status == "fail":
        yield fail(
            "server",
            f"{shown} is taken by something that does not answer as a Steelyard server",
            "Stop that program, or give another STEELYARD_PORT.",
        )
        return
    yield from findings


def _guarded(name: str, check: Callable[[], Iterator[CheckFinding]]) -> Iterator[CheckFinding]:
    """Yield a check's findings; one that breaks is a finding too, and the rest go on."""
    try:
        yield from check()
    except InvalidSettingError as error:
        yield fail(name, str(error), "Correct or unset the variable.")
    except SteelyardError as error:
        yield fail(name, error.message)
    except Exception as error:  # noqa: BLE001  # a broken installation breaks in any way
        yield fail(
            name,
            f"could not be checked: {type(error).__name__}: {error}",
            "Install steelyard again; if it stays, report it with this line.",
        )


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _read_address(home: Path) -> dict[str, Any] | None:
    try:
        address = json.loads((home / "serve.json").read_bytes())
    except (OSError, ValueError):
        return None
    fits = isinstance(address, dict) and isinstance(address.get("pid"), int) and "url" in address
    return address if fits else None


def _obstacle_to_listening(host: str, port: int) -> OSError | None:
    try:
        bound_socket(host, port).close()
    except OSError as error:
        return error
    return None


def _ask(url: str, settings: Settings) -> Iterator[CheckFinding]:
    from steelyard.client import Client, ClientOptions
    from steelyard.errors import InvalidApiKeyError, KeyScopeError, MissingApiKeyError

    try:
        options = ClientOptions(url, settings.api_key, timeout_s=_SERVER_S, max_retries=0)
    except ValueError as error:
        yield fail("server", str(error), "Give the address with --url.")
        return
    with Client(options) as client:
        try:
            health = client.health()
        except SteelyardError as error:
            yield fail("server", error.message)
            return
        message = f"{client.url} answers: version {health.version}, {health.model}"
        if health.version == __version__:
            yield ok("server", message)
        else:
            advice = f"This is version {__version__}; restart the server, or install its version."
            yield warn("server", message, advice)
        try:
            parts = client.ready().parts
        except (InvalidApiKeyError, KeyScopeError, MissingApiKeyError):
            advice = "Ask on its machine, or with a key of scope full in STEELYARD_API_KEY."
            yield warn("ready", "the server tells only whoever runs it", advice)
        except SteelyardError as error:
            yield fail("ready", error.message)
        else:
            yield ok("ready", ", ".join(sorted(parts)))
