"""The models that tests of the scorer share, loaded once."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import settings

from steelyard.scoring.assets import BaseModel, load_base_model
from steelyard.scoring.shipped import BASE
from steelyard.storage import State, open_state
from support.api.openapi_validation import responses_checked
from support.models.random_model import write_random_model
from support.servers.postgres_server import PostgresMissingError, PostgresServer, postgres_server
from support.tree import file_spreading
from support.tree.quick_tests import QuickTests
from support.tree.recorded_tables import tables_recorded
from support.waiting import PATIENCE_S

pytest_plugins = ["support.servers.http_fixtures", "support.servers.s3_server"]

# The same examples in every run, so that a red run is about the change. To explore:
# pytest --hypothesis-profile=default
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")

# An exchange that says no time of its own has httpx's 5 s, too few on a machine with much to do.
_EXCHANGES: tuple[Any, ...] = (httpx.get, httpx.post, httpx.put, httpx.patch, httpx.delete)
for _exchange in (*_EXCHANGES, httpx.request, httpx.Client.__init__, httpx.AsyncClient.__init__):
    _exchange.__kwdefaults__["timeout"] = PATIENCE_S


def pytest_configure(config: pytest.Config) -> None:
    """Register the order of the tests, and the mark of quick ones where requested."""
    config.pluginmanager.register(file_spreading)
    # To look through what all tests call takes a second of each worker.
    if "quick" in config.option.markexpr:
        config.pluginmanager.register(QuickTests())


@pytest.hookimpl(hookwrapper=True)
def pytest_collection() -> Iterator[None]:
    """Freeze the objects that live as long as the run, for Python's cycle collector.

    All tests and their modules are a million objects: going through them took a sixth of the time
    of a worker's tests.
    """
    gc.disable()
    yield
    gc.freeze()
    gc.enable()
    # A page of the workbench makes thousands of objects: at Python's 700 a fifteenth of its tests'
    # time went into collections.
    gc.set_threshold(20_000, 20, 20)


@pytest.fixture(scope="session", autouse=True)
def _tables_are_recorded() -> Iterator[None]:
    with tables_recorded():
        yield


@pytest.fixture(scope="module")
def every_response_is_checked() -> Iterator[None]:
    """Check every HTTP answer of our servers against the OpenAPI document."""
    with responses_checked():
        yield


@pytest.fixture(scope="session")
def random_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of a base model with random weights; not to be changed."""
    folder = tmp_path_factory.mktemp("random-model")
    write_random_model(folder)
    return folder


@pytest.fixture(scope="session")
def load(request: pytest.FixtureRequest) -> Iterator[Callable[[str, str], BaseModel]]:
    """Load a model once: ``random`` or ``shipped``, on an engine. Not to be closed."""
    loaded: dict[tuple[str, str], BaseModel] = {}
    folders: dict[str, Callable[[], Path]] = {
        "shipped": lambda: BASE,
        "random": lambda: request.getfixturevalue("random_folder"),
    }

    def load_once(source: str, engine: str) -> BaseModel:
        if (source, engine) not in loaded:
            loaded[source, engine] = load_base_model(engine, folder=folders[source](), threads=1)
        return loaded[source, engine]

    yield load_once
    for model in loaded.values():
        model.scorer.close()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server of our own; skips where none is installed."""
    try:
        with postgres_server() as server:
            yield server
    except PostgresMissingError as error:
        pytest.skip(str(error))


@pytest.fixture(params=["sqlite", "postgresql"])
def state_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A new database, once of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'state.sqlite'}"
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.new_state()


@pytest.fixture
def state(state_url: str) -> Iterator[State]:
    """An open state, once on each kind of database."""
    opened = open_state(state_url)
    yield opened
    opened.close()
