"""Connected models and routes as a state has them, so that every host knows them.

The ``models.toml`` of a home is read in: an entry when it is new there or changed, and one that the file no
longer has is removed. Between two changes of the file, what a command or the workbench wrote stands. A file
that is gone removes nothing.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import Connection, Row, func, select
from sqlalchemy import update as update_of

from steelyard.jobs.ticker import Ticker
from steelyard.serving.connected.declared import (
    ConnectedModel,
    DeclaredInHome,
    ModelsFile,
    file_version,
    read_file,
)
from steelyard.serving.connected.declared_route import DeclaredRoute
from steelyard.serving.tables import model_declarations
from steelyard.settings import Settings, home_of
from steelyard.storage import State, open_state
from steelyard.storage.home import state_path_of, state_url_of
from steelyard.wire.decoding import decoder_of

_Entry = ConnectedModel | DeclaredRoute
_decode_model = decoder_of(ConnectedModel).decode
_decode_route = decoder_of(DeclaredRoute).decode
_decode_files = decoder_of(dict[str, str]).decode
_encode = msgspec.json.Encoder(order="deterministic").encode
#: What a model's answers come from: with another of these its calibrations are another model's.
_SOURCE = ("wire", "url", "model", "folder", "file")


@contextmanager
def open_declarations(settings: Settings) -> Iterator[Declarations | DeclaredInHome]:
    """Yield the connected models and routes: in the state, or in a home's file before it has one."""
    path = state_path_of(settings)
    if path is not None and not path.exists():
        yield DeclaredInHome(home_of(settings))
        return
    with closing(open_state(state_url_of(settings))) as state:
        yield Declarations(state, home_of(settings))


def declared_in(settings: Settings) -> ModelsFile:
    """Return the connected models and routes of a machine."""
    with open_declarations(settings) as declarations:
        return declarations.read()


class Declarations:
    """The connected models and routes of a state, beside those of a home's file; thread-safe."""

    def __init__(self, state: State, home: Path) -> None:
        self._state, self._home = state, home
        #: Names the home among those of all hosts.
        self.host = f"{socket.gethostname()}:{home.absolute()}"
        self._lock = threading.Lock()
        self._file_version: object = None

    def read(self) -> ModelsFile:
        """Return all of them; raise ``InvalidSettingError`` where the home's file cannot be used."""
        self.read_in()
        return self.stored()

    def stored(self) -> ModelsFile:
        """Return those that were read in or written."""
        return self._state.read_now(_load)

    def files(self) -> dict[str, dict[str, str]]:
        """Return the hash of each file, by its name, of each model whose files are stored."""
        return self._state.read_now(_files)

    def note_files(self, name: str, model: ConnectedModel, files: dict[str, str]) -> None:
        """Write the files of a model, unless it is another one by now."""
        table = model_declarations
        is_same = (table.c.name == name) & (table.c.body == _encode(model))

        def work(connection: Connection) -> None:
            values = {"files": _encode(files), "number": _highest(connection) + 1}
            connection.execute(update_of(table).where(is_same).values(**values))

        self._state.write_now(work)

    def number(self) -> int:
        """Return a number that is another after every change."""
        return self._state.read_now(_highest)

    def watch(self, look: Callable[[], None]) -> Ticker:
        """Return a thread that looks at them once a second."""
        return Ticker(
            look,
            name="steelyard-models",
            failure="Could not look at the connected models",
            explain=self._state.explain,
        )

    def change(
        self,
        change: Callable[[ModelsFile], ModelsFile],
        *,
        beside: Callable[[Connection], object] = lambda _: None,
    ) -> None:
        """Write what a function returns of the entries as they are; a refusal of it changes nothing.

        ``beside`` writes more in the same transaction.
        """
        self.read_in()

        def work(connection: Connection) -> None:
            before = _load(connection)
            after = change(before)
            after.check()
            entries, changed = _entries(before), _entries(after)
            for name, entry in changed.items():
                if entries.get(name) != entry:
                    _write(connection, name, entry)
            for name in entries.keys() - changed.keys():
                _remove(connection, name)
            beside(connection)

        self._state.write_now(work)

    def read_in(self) -> Collection[str]:
        """Write the new or changed entries of the home's file; return its names, none where it was read."""
        with self._lock:
            version = file_version(self._home)
            if version is None or version == self._file_version:
                return ()
            declared = _entries(read_file(self._home))
            # Most starts find nothing that is new, and write nothing.
            if self._state.read_now(lambda connection: self._changes(connection, declared)):
                self._state.write_now(lambda connection: self._read_in(connection, declared))
            self._file_version = version
            return declared.keys()

    def _changes(self, connection: Connection, declared: Mapping[str, _Entry]) -> list[str]:
        """Return the names of entries that the file has otherwise than it had, or no longer."""
        rows = _rows(connection)
        changed = [
            name
            for name, entry in declared.items()
            if name not in rows or rows[name].declared != _encode(entry)
        ]
        return changed + [
            row.name for row in rows.values() if self._is_of_home(row) and row.name not in declared
        ]

    def _is_of_home(self, row: Row[Any]) -> bool:
        """Whether the file of this home declared an entry."""
        declared_by = str(row.declared_by)
        if self._state.is_shared:
            return declared_by == self.host
        # The machine is this one, though a container has another name each time that it is made.
        return declared_by.partition(":")[2] == self.host.partition(":")[2]

    def _read_in(self, connection: Connection, declared: Mapping[str, _Entry]) -> None:
        rows = _rows(connection)
        for name in self._changes(connection, declared):
            if name not in declared:
                _remove(connection, name, declared=None, declared_by=None)
                continue
            entry = declared[name]
            of_file = {"declared": _encode(entry), "declared_by": self.host}
            _write(connection, name, _with_calibrations(entry, rows.get(name)), **of_file)


def _with_calibrations(entry: _Entry, row: Row[Any] | None) -> _Entry:
    """Return an entry of a file with the calibrations that were made since, of the same model."""
    if row is None or row.body is None or row.section != "models":
        return entry
    known = _decode_model(row.body)
    if isinstance(entry, DeclaredRoute) or not _is_source_of(row, entry):
        return entry
    if len(entry.calibrations) >= len(known.calibrations):
        return entry
    return msgspec.structs.replace(entry, calibrations=known.calibrations)


def _is_source_of(row: Row[Any], entry: _Entry) -> bool:
    """Whether a stored model is asked at the same place as an entry."""
    if row.body is None or row.section != "models" or isinstance(entry, DeclaredRoute):
        return False
    known = _decode_model(row.body)
    return all(getattr(entry, field) == getattr(known, field) for field in _SOURCE)


def _entries(file: ModelsFile) -> dict[str, _Entry]:
    return {**file.models, **file.routes}


def _load(connection: Connection) -> ModelsFile:
    file = ModelsFile({}, {})
    for row in _rows(connection).values():
        if row.body is None:
            continue
        if row.section == "models":
            file.models[row.name] = _decode_model(row.body)
        else:
            file.routes[row.name] = _decode_route(row.body)
    return file


def _rows(connection: Connection) -> dict[str, Row[Any]]:
    rows = connection.execute(select(model_declarations).order_by(model_declarations.c.place))
    return {row.name: row for row in rows}


def _files(connection: Connection) -> dict[str, dict[str, str]]:
    of = model_declarations.c
    stored = select(of.name, of.files).where(of.files.is_not(None), of.body.is_not(None))
    return {row.name: _decode_files(row.files) for row in connection.execute(stored)}


def files_of_models(connection: Connection) -> set[str]:
    """Return the hash of every stored file that a model needs."""
    return {sha256 for files in _files(connection).values() for sha256 in files.values()}


def _highest(connection: Connection) -> int:
    return connection.execute(select(func.max(model_declarations.c.number))).scalar() or 0


def _write(connection: Connection, name: str, entry: _Entry, **of_file: Any) -> None:
    number = _highest(connection) + 1
    section = "models" if isinstance(entry, ConnectedModel) else "routes"
    values = {"section": section, "number": number, "body": _encode(entry), **of_file}
    table = model_declarations
    row = connection.execute(select(table).where(table.c.name == name)).first()
    if row is None:
        connection.execute(table.insert().values(name=name, place=number, **values))
        return
    if not _is_source_of(row, entry):
        values["files"] = None
    connection.execute(update_of(table).where(table.c.name == name).values(**values))


def _remove(connection: Connection, name: str, **of_file: Any) -> None:
    table = model_declarations
    values = {"number": _highest(connection) + 1, "body": None, **of_file}
    connection.execute(update_of(table).where(table.c.name == name).values(**values))
