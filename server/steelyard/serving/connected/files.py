"""Files of connected models: stored by hash where several hosts have one state, and fetched by the others."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath

import msgspec
from msgspec import structs

from steelyard.errors import DataDamagedError, SteelyardError
from steelyard.serving.connected.declarations import Declarations, open_declarations
from steelyard.serving.connected.declared import HERE, ConnectedModel, DeclaredInHome, ModelsFile
from steelyard.settings import Settings, home_of
from steelyard.storage.frame_store import SWEEP_AFTER_S, FrameStore, raised_as_unavailable

_SUFFIX = ".file"
#: Where fetched files are in a home.
_FETCHED, _PARTIAL = "models/fetched", ".fetching-"
_COPY_BYTES = 4 * 1024 * 1024


def in_place(model: ConnectedModel, files: Mapping[str, str], home: Path) -> ConnectedModel:
    """Return a model with where its files are on this machine, or will be once they are fetched."""
    field = HERE.get(model.wire)
    if field is None:
        return model
    place = home / getattr(model, field)
    if files and not place.exists():
        place = _fetched(files, home)
        if model.wire == "gguf":
            place /= next(iter(files))
    return structs.replace(model, **{field: str(place)})


def is_here(model: ConnectedModel) -> bool:
    """Whether the files of a model in place, of those that need some, are on this machine."""
    field = HERE.get(model.wire)
    return field is None or Path(getattr(model, field)).exists()


def _fetched(files: Mapping[str, str], home: Path) -> Path:
    encoded = msgspec.json.encode(files, order="deterministic")
    return home / _FETCHED / hashlib.sha256(encoded).hexdigest()


def declared_in_place(settings: Settings) -> ModelsFile:
    """Return the connected models, with where their files are on this machine, and the routes."""
    with open_declarations(settings) as declarations:
        routes = declarations.read().routes
        return ModelsFile(models_in_place(declarations, home_of(settings)), routes)


def models_in_place(
    declarations: Declarations | DeclaredInHome, home: Path
) -> dict[str, ConnectedModel]:
    """Return the connected models with where their files are on this machine; it blocks."""
    files = declarations.files()
    return {
        name: in_place(model, files.get(name, {}), home)
        for name, model in declarations.stored().models.items()
    }


def _is_new(folder: Path) -> bool:
    with suppress(FileNotFoundError):  # it is in place by now
        return folder.stat().st_mtime > time.time() - SWEEP_AFTER_S
    return True


class ModelFiles:
    """Stores the files that this machine has, and fetches those that it lacks."""

    def __init__(
        self, declarations: Declarations, store: FrameStore, home: Path, *, is_shared: bool
    ) -> None:
        self._declarations, self._store, self._home = declarations, store, home
        self._is_shared = is_shared
        self._number: int | None = None

    def tick(self) -> None:
        """Look at every model after a change; it blocks for as long as files take."""
        number = self._declarations.number()
        if number == self._number:
            return
        declared, files = self._declarations.stored(), self._declarations.files()
        failures: list[SteelyardError | OSError] = []
        for name, model in declared.models.items():
            try:
                self._bring(name, model, files.get(name))
            except (SteelyardError, OSError) as error:  # the others come all the same
                failures.append(error)
        self._drop_others({_fetched(each, self._home) for each in files.values()})
        if failures:
            raise failures[0]
        self._number = number

    def _bring(self, name: str, model: ConnectedModel, files: Mapping[str, str] | None) -> None:
        field = HERE.get(model.wire)
        if field is None:
            return
        place = self._home / getattr(model, field)
        if files is not None:
            if not place.exists():
                self._fetch(files)
        elif self._is_shared and place.exists():
            self._declarations.note_files(name, model, self._put(place))

    def _drop_others(self, needed: Collection[Path]) -> None:
        for folder in (self._home / _FETCHED).glob("*"):
            # A partial one outlives its fetch only when the process died.
            is_partial = folder.name.startswith(_PARTIAL)
            if folder not in needed and not (is_partial and _is_new(folder)):
                shutil.rmtree(folder, ignore_errors=True)

    def _put(self, place: Path) -> dict[str, str]:
        paths = [place] if place.is_file() else sorted(filter(Path.is_file, place.rglob("*")))
        files = {}
        for path in paths:
            with self._store.draft() as draft, raised_as_unavailable():
                shutil.copyfile(path, draft)
                sha256, _ = self._store.adopt(draft, _SUFFIX)
            name = path.name if path == place else path.relative_to(place).as_posix()
            files[name] = sha256
        return files

    def _fetch(self, files: Mapping[str, str]) -> None:
        folder = _fetched(files, self._home)
        if folder.is_dir():
            return
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=_PARTIAL, dir=folder.parent))
        try:
            for name, sha256 in files.items():
                path = partial / PurePosixPath(name)
                path.parent.mkdir(parents=True, exist_ok=True)
                self._copy(sha256, path)
            with suppress(OSError):  # another process of this machine was first
                partial.rename(folder)
        finally:
            shutil.rmtree(partial, ignore_errors=True)

    def _copy(self, sha256: str, path: Path) -> None:
        digest = hashlib.sha256()
        with self._store.open(f"{sha256}{_SUFFIX}") as source, path.open("wb") as copied:
            while chunk := source.read(_COPY_BYTES):
                digest.update(chunk)
                copied.write(chunk)
        if digest.hexdigest() != sha256:
            raise DataDamagedError(
                f"The stored file {sha256} of a connected model was altered; restore it from a backup, "
                "or add the model again."
            )
