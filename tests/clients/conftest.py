"""Published clients against the real server on a loopback port; nothing of them is changed."""

from __future__ import annotations

import functools
import inspect
import json
import shutil
import subprocess
import sys
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest
import sqwishai.client

from steelyard.ledger.money import from_usd
from support.api.openapi_validation import AnsweredResponses
from support.servers.live_server import LiveServer, live_server


@pytest.fixture(scope="module", autouse=True)
def answers_over_http_are_checked(every_response_is_checked: None) -> None:
    """Check every answer to a client of this folder against the document."""


@pytest.fixture(scope="session")
def answered() -> AnsweredResponses:
    return AnsweredResponses()


@pytest.fixture(autouse=True)
def answers_to_other_processes_are_checked(answered: AnsweredResponses) -> Iterator[None]:
    """The same for clients that are programs of their own."""
    yield
    answered.raise_problems()


@pytest.fixture(scope="session", autouse=True)
def answers_fit_the_types_that_sqwishai_declares() -> Iterator[None]:
    """Whatever a method of its clients returns has the fields and types of its annotation."""
    with pytest.MonkeyPatch.context() as patch:
        for one in vars(sqwishai.client).values():
            if not inspect.isclass(one) or one.__module__ != sqwishai.client.__name__:
                continue
            for name, method in list(vars(one).items()):
                if inspect.isfunction(method) and not name.startswith("_"):
                    declared = typing.get_type_hints(method).get("return")
                    is_of_dicts = typing.get_origin(declared) is list
                    if (is_of_dicts or typing.is_typeddict(declared)) and _is_known(declared):
                        patch.setattr(one, name, _fitting(method, declared))
        yield


def _is_known(declared: object) -> bool:
    """Whether a type can be held against an answer: a family's choice of two dictionaries cannot."""
    try:
        msgspec.json.Decoder(declared)
    except TypeError:
        return False
    return True


def _fitting(method: Callable, declared: object) -> Callable:
    if inspect.iscoroutinefunction(method):

        @functools.wraps(method)
        async def awaited(*arguments, **given):
            return _fit(await method(*arguments, **given), declared)

        return awaited

    @functools.wraps(method)
    def called(*arguments, **given):
        return _fit(method(*arguments, **given), declared)

    return called


def _fit(answer: object, declared: object) -> object:
    shown = answer
    if isinstance(answer, dict) and answer.get("fallback", 0) is None:
        # The specification has null where this client may leave it out.
        shown = {name: value for name, value in answer.items() if name != "fallback"}
    msgspec.convert(shown, declared)
    return answer


@pytest.fixture(scope="session")
def running_server(answered: AnsweredResponses) -> Iterator[LiveServer]:
    with live_server(answered.watch) as server:
        yield server


@pytest.fixture
def server(running_server: LiveServer) -> Iterator[LiveServer]:
    running_server.scorer.reset()
    yield running_server
    running_server.scorer.reset()


@dataclass(frozen=True)
class Accounts:
    """A server where calls need a key and cost a thousand nano-dollars an input token."""

    server: LiveServer
    account: str

    def key(self, scope: str = "full") -> str:
        """A new key of the account."""
        made = self.server.services.accounts.create_key(account=self.account, scope=scope)
        return made.secret

    def add_credit(self, usd: str) -> None:
        self.server.services.accounts.add_credit(self.account, from_usd(usd))


@pytest.fixture(scope="session")
def accounts(answered: AnsweredResponses) -> Iterator[Accounts]:
    with live_server(answered.watch, accounts="on", prices="hashing=1000") as server:
        entry = server.services.accounts.create_account("clients")
        yield Accounts(server, entry.id)


@pytest.fixture
def fail_first(server: LiveServer, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], list[int]]:
    """Make the engine fail on its next calls; the list given back grows with every call."""

    def arm(n_failures: int) -> list[int]:
        calls: list[int] = []
        score = server.scorer.score

        def flaky(requests):
            calls.append(len(requests))
            if len(calls) <= n_failures:
                raise RuntimeError("the engine is made to fail")
            return score(requests)

        monkeypatch.setattr(server.scorer, "score", flaky)
        return calls

    return arm


@pytest.fixture(scope="session")
def client_folder(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Path]:
    """A folder for a client's files that outlasts the session, where pytest keeps a cache."""

    def make(name: str) -> Path:
        cache = getattr(request.config, "cache", None)
        return tmp_path_factory.mktemp(name) if cache is None else cache.mkdir(name)

    return make


@pytest.fixture(scope="session")
def pip_install() -> Callable[[str, Path], None]:
    """Install one package without its dependencies into a folder; skip where pip cannot."""

    def install(requirement: str, folder: Path) -> None:
        done = folder / f".{requirement}"
        if done.exists():
            return
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--upgrade"]
        pip = subprocess.run(
            [*command, "--target", str(folder), requirement],
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        if pip.returncode:
            pytest.skip(f"pip cannot install {requirement}: {pip.stderr.strip()[-300:]}")
        done.touch()

    return install


@pytest.fixture(scope="session")
def npm_install(client_folder: Callable[[str], Path]) -> Callable[..., Path]:
    """Install packages, given as `NAME@VERSION`, into a folder; skip where npm cannot."""

    def install(name: str, *packages: str) -> Path:
        npm = shutil.which("npm")
        if npm is None or shutil.which("node") is None:
            pytest.skip("node or npm is not installed")
        folder = client_folder(name)
        if all(_npm_version(folder, package) for package in packages):
            return folder
        (folder / "package.json").write_text('{"private": true}')
        command = [npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", *packages]
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=100, check=False
        )
        if done.returncode:
            pytest.skip(f"npm cannot install {packages}: {done.stderr.strip()[-300:]}")
        return folder

    return install


def _npm_version(folder: Path, package: str) -> bool:
    name, _, version = package.rpartition("@")
    description = folder / "node_modules" / name / "package.json"
    return description.exists() and bool(json.loads(description.read_text())["version"] == version)
