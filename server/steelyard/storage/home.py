"""The directory of a server's files: rows, answers and hashes of keys, for its user alone."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path
from urllib.parse import unquote

from sqlalchemy import URL, make_url

from steelyard.settings import InvalidSettingError, Settings, home_of

_FOR_ITS_USER = 0o700
_FILE_FOR_ITS_USER = 0o600
#: Bytes that must be free for a start: SQLite's index of its log, and the address.
_ROOM_BYTES = 64 * 1024


def state_url_of(settings: Settings) -> str:
    """Return the database of the state; ``state.sqlite`` in ``home_of`` where none is set.

    >>> from steelyard.settings import read_settings
    >>> state_url_of(read_settings({"home": "/srv/steelyard"}, environ={}))
    'sqlite:////srv/steelyard/state.sqlite'
    """
    if settings.state_url is not None:
        return settings.state_url
    return sqlite_url(home_of(settings).absolute() / "state.sqlite")


def state_path_of(settings: Settings) -> Path | None:
    """Return the file of the state; ``None`` where it is not in SQLite."""
    url = make_url(state_url_of(settings))
    if url.get_backend_name() != "sqlite" or not url.database:
        return None
    return Path(url.database).expanduser().absolute()


def sqlite_url(path: Path) -> str:
    """Return the address of a SQLite file, whatever characters its path has.

    >>> sqlite_url(Path("/srv/my%20data/what?/state.sqlite"))
    'sqlite:////srv/my%2520data/what%3F/state.sqlite'
    """
    return URL.create("sqlite", database=str(path)).render_as_string()


def make_home(home: Path) -> Path:
    """Make a server's directory where there is none, close it to other users, and return it.

    One that holds other things and no state keeps its mode: it may be a project's folder. Raise
    ``InvalidSettingError`` when its state is in a folder beside it, where earlier versions put it.
    """
    # They took the home's name for a part of an address, in which %20 is a space and ? an end.
    beside = Path(unquote(str(home).partition("?")[0]))
    if beside != home and (home / "frames").exists() and not (home / "state.sqlite").exists():
        states = [path for path in (beside / "state.sqlite", beside) if path.is_file()]
        if states:
            raise InvalidSettingError(
                f"The state of {home} is {states[0]}, where an earlier version put it. Stop its servers, "
                f"and move it with the files beside it that begin with its name to {home}."
            )
    home.mkdir(mode=_FOR_ITS_USER, parents=True, exist_ok=True)
    if (home / "state.sqlite").exists() or not any(home.iterdir()):
        home.chmod(_FOR_ITS_USER)
    return home


def check_room(folder: Path) -> None:
    """Raise the system's own error where a small file cannot be written to a folder."""
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        if file.write(bytes(_ROOM_BYTES)) < _ROOM_BYTES:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def write_private(path: Path, content: bytes) -> None:
    """Replace a file, which its user alone can read; a reader sees the old or the new content."""
    partial = path.with_suffix(".partial")
    partial.unlink(missing_ok=True)
    with os.fdopen(
        os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _FILE_FOR_ITS_USER), "wb"
    ) as file:
        file.write(content)
    partial.replace(path)
