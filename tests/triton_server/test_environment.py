"""The environment of a CPU host: its needs, its name, and its failures."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

from steelyard.errors import EngineUnavailableError
from steelyard.triton import environment
from steelyard.triton.environment import (
    Environment,
    build_environment,
    environment_key,
    find_environment,
    is_plain,
    requirements,
)


@pytest.fixture
def steps(monkeypatch):
    """Installations are recorded and leave empty environments."""
    monkeypatch.setattr(environment, "check_machine", lambda: None)
    done: list[list[str]] = []

    def run(command, tell) -> None:
        done.append(list(command))
        tell(f"  {command[-1]}")
        root, _, _ = next(part for part in command if environment_key() in part).partition("py3.")
        folder = Environment(Path(root) / environment_key())
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        stub = folder.backends.parent / "python_backend_stubs" / version
        for file in (
            folder.server,
            folder.backends / "python" / "libtriton_python.so",
            stub / "triton_python_backend_stub",
        ):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()

    monkeypatch.setattr(environment, "_run", run)
    return done


def test_it_is_built_once_and_reported_line_by_line(tmp_path, steps):
    lines: list[str] = []
    built = build_environment(tmp_path, lines.append)
    assert built == find_environment(tmp_path)
    assert (built.backends / "python" / "triton_python_backend_stub").is_file()
    assert [step[-1] for step in steps][1:] == ["numpy==1.26.4", "nvidia-pytriton==0.7.0"]
    assert lines[0].startswith("Building an environment")
    assert lines[-1] == "The environment is ready."
    lines.clear()
    assert build_environment(tmp_path, lines.append) == built
    assert len(steps) == 3
    assert lines == [f"The environment in {built.folder} is ready."]


def test_half_of_one_is_built_anew(tmp_path, steps):
    left = tmp_path / environment_key() / "left-behind"
    left.parent.mkdir()
    left.touch()
    assert find_environment(tmp_path) is None
    build_environment(tmp_path)
    assert not left.exists()


def test_two_builds_at_a_time_are_one(tmp_path, steps):
    threads = [threading.Thread(target=build_environment, args=(tmp_path,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(steps) == 3


def test_it_is_named_by_its_versions(monkeypatch):
    before = environment_key()
    assert requirements()[0].startswith("onnxruntime==")
    monkeypatch.setattr(environment, "version", lambda _: "0.0.1")
    assert environment_key() != before
    assert environment_key().startswith(f"py3.{sys.version_info.minor}-")


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("sys.platform", "darwin", "Linux on x86-64 alone"),
        ("platform.machine", lambda: "aarch64", "Linux on x86-64 alone"),
        ("platform.libc_ver", lambda: ("", ""), "glibc 2.35 or newer, .* has another C library"),
        ("platform.libc_ver", lambda: ("glibc", "2.31"), "2.35 or newer, .* has glibc 2.31"),
        ("platform.libc_ver", lambda: ("glibc", "2.4"), "2.35 or newer, .* has glibc 2.4"),
        ("PYTHONS", ((3, 8),), "needs Python 3.8, and this is"),
        ("sys.base_prefix", "/nowhere", "libpython"),
    ],
)
def test_an_unfit_machine_is_refused_with_a_reason(monkeypatch, name, value, said):
    monkeypatch.setattr(environment.sys, "platform", "linux")
    monkeypatch.setattr(environment.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(environment.platform, "libc_ver", lambda: ("glibc", "2.35"))
    monkeypatch.setattr(environment, "PYTHONS", (sys.version_info[:2],))
    monkeypatch.setattr(environment.sysconfig, "get_config_var", lambda _: None)
    monkeypatch.setattr(f"steelyard.triton.environment.{name}", value)
    with pytest.raises(EngineUnavailableError, match=said):
        environment.check_machine()


@pytest.mark.parametrize(
    ("path", "plain"),
    [
        ("/srv/josé/.local/share/steelyard/triton", True),
        ("/srv/a-b_c.d@e%f+g=h:i,j~k#l!", True),
        ("/srv/my models", False),
        ("/srv/a\tb", False),
        *((f"/srv/a{character}b", False) for character in "\n|&;()<>'\"\\$`*?{}[]"),
    ],
)
def test_paths_that_a_shell_would_change_are_recognised(path, plain):
    assert is_plain(Path(path)) is plain


def test_a_failed_installation_repeats_its_output(tmp_path, monkeypatch):
    lines: list[str] = []
    failing = [sys.executable, "-c", "print('no such package'); raise SystemExit(1)"]
    with pytest.raises(EngineUnavailableError, match="no such package; see that"):
        environment._run(failing, lines.append)
    assert lines == ["  no such package"]


def test_the_server_finds_its_own_python_and_libraries(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONHOME", "/elsewhere")
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    library = tmp_path / "libpython.so"
    monkeypatch.setattr(environment, "_library_of_python", lambda: library)
    built = Environment(tmp_path / "environment")
    variables = built.variables()
    assert variables["PATH"].startswith(f"{built.folder}/bin:")
    assert variables["LD_LIBRARY_PATH"].split(":") == [
        str(built.packages / "nvidia_pytriton.libs"),
        str(tmp_path),
    ]
    assert not {"PYTHONHOME", "PYTHONPATH"} & variables.keys()


def test_this_python_finds_its_library(tmp_path, monkeypatch):
    library = tmp_path / "lib" / "libpython.so.1.0"
    library.parent.mkdir()
    library.touch()
    monkeypatch.setattr(environment.sys, "base_prefix", str(tmp_path))
    monkeypatch.setattr(environment.sysconfig, "get_config_var", lambda _: "libpython.so.1.0")
    assert environment._library_of_python() == library
