"""The virtual environment of a CPU host: Triton's server, NumPy below 2, and ONNX Runtime.

Triton's server comes as a program inside the wheel of ``nvidia-pytriton``; nothing else of that
package is used. It has an environment of its own because its Python backend needs NumPy below 2,
which this package's own requirements refuse. The models in it run the ONNX Runtime of this process's
version, so that both give the same answers.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import msgspec

from steelyard.errors import EngineUnavailableError
from steelyard.settings import child_environment

#: What the environment holds besides ONNX Runtime. The server is installed without what its
#: Python package needs: only the program in it is run.
SERVER, NUMPY = "nvidia-pytriton==0.7.0", "numpy==1.26.4"
#: Versions of Python that the server's backend runs models on, and that NumPy below 2 exists for.
PYTHONS = ((3, 11), (3, 12))
#: The oldest C library that the server's program runs on.
GLIBC = (2, 35)
_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
_READY = "steelyard-environment.json"
_STUB = "triton_python_backend_stub"
#: Lines of a failed installation that its error repeats.
_SHOWN_LINES = 8
#: What a shell splits a path at, or replaces.
_SHELL = re.compile(r"""[\s|&;()<>'"\\$`*?{}\[\]]""")

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Environment:
    """An environment that is there and whole."""

    folder: Path

    @property
    def packages(self) -> Path:
        """Where its packages are."""
        return self.folder / "lib" / f"python{_PYTHON}" / "site-packages"

    @property
    def server(self) -> Path:
        """Triton's program."""
        return self.packages / "pytriton" / "tritonserver" / "bin" / "tritonserver"

    @property
    def backends(self) -> Path:
        """Where Triton finds the Python backend."""
        return self.packages / "pytriton" / "tritonserver" / "backends"

    def variables(self) -> dict[str, str]:
        """Return the variables under which the server is to be started."""
        libraries = [self.packages / "nvidia_pytriton.libs", _library_of_python().parent]
        return _variables(
            # The backend's Python is the one first in the path.
            PATH=os.pathsep.join([str(self.folder / "bin"), os.defpath]),
            LD_LIBRARY_PATH=os.pathsep.join(map(str, libraries)),
            # Else each of its threads keeps what the largest request took.
            MALLOC_ARENA_MAX="2",
            MALLOC_TRIM_THRESHOLD_=str(1024 * 1024),
        )


def requirements() -> tuple[str, str, str]:
    """Return the requirements: ONNX Runtime of this process's version, NumPy and the server."""
    return f"onnxruntime=={version('onnxruntime')}", NUMPY, SERVER


def environment_key() -> str:
    """Name the environment that this process needs, such as ``py3.11-1f0c2e4b``."""
    parts = [*requirements(), sys.base_prefix, platform.machine()]
    digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()
    return f"py{_PYTHON}-{digest[:8]}"


def find_environment(root: Path) -> Environment | None:
    """Return this process's environment below a folder; ``None`` before it is built."""
    environment = Environment(root / environment_key())
    is_whole = (environment.folder / _READY).is_file() and environment.server.is_file()
    return environment if is_whole else None


def build_environment(root: Path, tell: Tell = lambda _: None) -> Environment:
    """Build the environment of this process's versions, unless it is there."""
    check_machine()
    root.mkdir(parents=True, exist_ok=True)
    with _alone(root, tell):
        environment = find_environment(root)
        if environment is not None:
            tell(f"The environment in {environment.folder} is ready.")
            return environment
        environment = Environment(root / environment_key())
        tell(f"Building an environment for Triton in {environment.folder}; this is done once.")
        # A run that was stopped may have left half of one.
        shutil.rmtree(environment.folder, ignore_errors=True)
        _install(environment, tell)
        content = msgspec.json.encode({"requirements": requirements()})
        (environment.folder / _READY).write_bytes(content)
        tell("The environment is ready.")
        return environment


def check_machine() -> None:
    """Refuse a machine, or a Python, that the server of the wheel does not run on."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        raise EngineUnavailableError(
            "Triton's server comes for Linux on x86-64 alone; run it there, and name it with "
            "STEELYARD_SCORER=triton://HOST:PORT here."
        )
    library, libc_version = platform.libc_ver()
    if library != "glibc" or tuple(map(int, re.findall(r"\d+", libc_version)[:2])) < GLIBC:
        needed = ".".join(map(str, GLIBC))
        has = f"glibc {libc_version}" if library == "glibc" else "another C library"
        raise EngineUnavailableError(
            f"Triton's server needs glibc {needed} or newer, and this machine has {has}; use a "
            "newer distribution."
        )
    if sys.version_info[:2] not in PYTHONS:
        known = " or ".join(f"{major}.{minor}" for major, minor in PYTHONS)
        raise EngineUnavailableError(
            f"Triton's Python backend needs Python {known}, and this is "
            f"{platform.python_version()}; run `steelyard triton up` in an environment of one."
        )
    _library_of_python()


def is_plain(path: Path) -> bool:
    """Return whether a shell takes a path as it is.

    Triton's Python backend has one start each model's process, with paths that it does not quote.
    """
    return _SHELL.search(str(path)) is None


def _variables(**given: str) -> dict[str, str]:
    """Return the variables of a process with another Python than this one."""
    variables = child_environment(**given)
    # Of this Python, these would have the other find the wrong packages.
    for name in ("PYTHONHOME", "PYTHONPATH", "VIRTUAL_ENV"):
        variables.pop(name, None)
    return variables


def _library_of_python() -> Path:
    """Find the shared library of this Python, which the backend loads."""
    name = str(sysconfig.get_config_var("INSTSONAME") or "")
    if ".so" not in name:
        name = f"libpython{_PYTHON}.so.1.0"
    folders = [
        Path(sys.base_prefix) / "lib",
        Path(str(sysconfig.get_config_var("LIBDIR") or "")),
        Path("/usr/lib") / str(sysconfig.get_config_var("MULTIARCH") or ""),
    ]
    for folder in folders:
        if (folder / name).is_file():
            return folder / name
    raise EngineUnavailableError(
        f"Triton's Python backend loads {name}, and this Python has none; install the package that "
        f"has it (on Debian libpython{_PYTHON}), or use a Python built with --enable-shared."
    )


def _install(environment: Environment, tell: Tell) -> None:
    base = Path(sys.base_prefix) / "bin" / f"python{_PYTHON}"
    python = str(base if base.is_file() else sys.executable)
    _run([python, "-m", "venv", str(environment.folder)], tell)
    runtime, numpy, server = requirements()
    install = [
        str(environment.folder / "bin" / "python"),
        *("-m", "pip", "install", "--disable-pip-version-check", "--no-input"),
        *("--progress-bar", "off", "--only-binary", ":all:"),
    ]
    _run([*install, runtime, numpy], tell)
    _run([*install, "--no-deps", server], tell)
    stubs = environment.backends.parent / "python_backend_stubs"
    stub = stubs / _PYTHON / _STUB
    if not stub.is_file() or not environment.server.is_file():
        raise EngineUnavailableError(
            f"{SERVER} has no server for this Python; remove {environment.folder} and try again."
        )
    # The backend looks for the program that runs models beside itself.
    shutil.copy2(stub, environment.backends / "python" / _STUB)


def _run(command: Sequence[str], tell: Tell) -> None:
    """Run a step of an installation, and report its lines."""
    lines: list[str] = []
    with subprocess.Popen(  # noqa: S603  the command is built here
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=_variables(PIP_NO_PYTHON_VERSION_WARNING="1"),
    ) as process:
        try:
            assert process.stdout is not None  # noqa: S101  # it was asked for
            for line in process.stdout:
                lines.append(line.rstrip())
                tell(f"  {lines[-1]}")
        except BaseException:
            process.kill()
            raise
    if process.returncode != 0:
        output = " ".join(line.strip() for line in lines[-_SHOWN_LINES:])
        raise EngineUnavailableError(
            f"The environment for Triton could not be built: {output or command[0]}; see that the "
            "package index can be reached, and try again."
        )


@contextmanager
def _alone(root: Path, tell: Tell) -> Iterator[None]:
    """Hold the lock under which one process at a time builds below a folder."""
    with (root / ".lock").open("wb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            tell("Another process is building the environment; waiting for it.")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
