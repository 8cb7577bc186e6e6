"""Download a reader's files from the hub, or take those that were brought here."""

from __future__ import annotations

import platform
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path

from steelyard.errors import EngineUnavailableError, InvalidRequestError
from steelyard.scoring.entailment.folder import CONFIG, GRAPH, MANIFEST, TOKENIZER, read_folder
from steelyard.serving.fitted import processor_flags
from steelyard.serving.judge.download import (
    RemoteFile,
    connected,
    fetch,
    list_files,
    listed_file,
    sole_writer,
)
from steelyard.serving.reader.catalogue import ReaderEntry
from steelyard.settings import InvalidSettingError

#: Names of a graph for any processor, the best first; those for a kind of processor go before them.
_GRAPHS = ("model_int8.onnx", "model_quantized.onnx", "model.onnx")
_GRAPHS_FOR = {
    "avx512_vnni": ("model_qint8_avx512_vnni.onnx", "model_qint8_avx512.onnx"),
    "avx512": ("model_qint8_avx512.onnx",),
    "avx2": ("model_quint8_avx2.onnx",),
    "arm64": ("model_qint8_arm64.onnx",),
}
#: Instructions that a kind of processor must have, the best kind first.
_PROCESSORS = {"avx512_vnni": "avx512_vnni", "avx512": "avx512f", "avx2": "avx2"}
_ARM = {"aarch64", "arm64"}
#: Bytes of an archive's file; a longer one is none of a reader.
_MAX_FILE = 4 << 30


def processor() -> str:
    """Return the kind of this machine's processor; empty where no graphs are made for it alone."""
    if platform.machine().lower() in _ARM:
        return "arm64"
    flags = processor_flags()
    return next((kind for kind, flag in _PROCESSORS.items() if flag in flags), "")


def graph_for(kind: str, paths: Iterable[str]) -> str:
    """Return the best graph for a kind of processor among a repository's files; empty without any.

    >>> graph_for("avx2", ["onnx/model.onnx", "onnx/model_quint8_avx2.onnx", "README.md"])
    'onnx/model_quint8_avx2.onnx'
    """
    graphs = sorted((path for path in paths if path.endswith(".onnx")), key=len)
    by_name = {path.rpartition("/")[2]: path for path in reversed(graphs)}
    names = (*_GRAPHS_FOR.get(kind, ()), *_GRAPHS)
    # A graph of another name is taken where it is the only one.
    rest = graphs[0] if len(graphs) == 1 else ""
    return next((by_name[name] for name in names if name in by_name), rest)


def pull_reader(
    entry: ReaderEntry,
    folder: Path,
    hub: str,
    *,
    on_size: Callable[[int], None] = lambda _: None,
    on_bytes: Callable[[int], None] = lambda _: None,
) -> Path:
    """Download a reader's files into a folder, which is complete when it has its name; return it.

    An earlier attempt's part of a file is continued. Raises as ``judge.download.pull`` does.
    """
    if folder.exists():
        _require_reader(folder)
        return folder
    with sole_writer(folder), connected(hub) as client:
        if folder.exists():  # another process has ended its download meanwhile
            return folder
        listed = list_files(client, hub, entry.repository, recursive=True)
        graph = graph_for(processor(), listed)
        paths = {TOKENIZER: entry.tokenizer, CONFIG: entry.config, GRAPH: graph}
        if missing := [path for path in paths.values() if path not in listed]:
            raise EngineUnavailableError(
                f"{entry.repository} has no {missing[0] or 'ONNX graph for this processor'}; download a "
                "folder by hand, and give it with --from."
            )
        files = {
            name: listed_file(entry.repository, path, listed[path]) for name, path in paths.items()
        }
        on_size(sum(file.bytes for file in files.values()))
        part = folder.with_name(f"{folder.name}.part")
        before = 0
        for name, file in files.items():
            _forget_other(part / name, file)
            fetch(
                client,
                hub,
                entry.repository,
                file,
                part / name,
                lambda done, before=before: on_bytes(before + done),  # type: ignore[misc]
            )
            before += file.bytes
            on_bytes(before)
        _require_reader(part)
        part.replace(folder)
    return folder


def take_reader(source: Path, folder: Path) -> Path:
    """Copy a reader's files, from a folder or a zip archive of them, into a folder; return it."""
    with (
        sole_writer(folder),
        tempfile.TemporaryDirectory(dir=folder.parent, prefix=f"{folder.name}.") as temporary,
    ):
        files = Path(temporary) / folder.name
        files.mkdir()
        try:
            if source.is_dir():
                for name in (GRAPH, TOKENIZER, CONFIG, MANIFEST):
                    if (source / name).is_file():
                        shutil.copyfile(source / name, files / name)
            else:
                _unpack(source, files)
        except (OSError, zipfile.BadZipFile) as error:
            raise InvalidRequestError(
                f"{source} cannot be read ({error}). Give a folder with {GRAPH}, {TOKENIZER} and "
                f"{CONFIG}, or a zip archive of them."
            ) from error
        _require_reader(files, source)
        if folder.exists():
            shutil.rmtree(folder)
        files.replace(folder)
    return folder


def _unpack(source: Path, folder: Path) -> None:
    """Write the files of an archive that a reader has; their folder in it does not matter."""
    with zipfile.ZipFile(source) as archive:
        for entry in archive.infolist():
            name = Path(entry.filename).name
            if name in {GRAPH, TOKENIZER, CONFIG, MANIFEST} and entry.file_size <= _MAX_FILE:
                with archive.open(entry) as content, (folder / name).open("wb") as target:
                    shutil.copyfileobj(content, target)


def _forget_other(path: Path, file: RemoteFile) -> None:
    """Remove a downloaded file that is of another size: the repository has another version now."""
    if path.exists() and path.stat().st_size != file.bytes:
        path.unlink()


def _require_reader(folder: Path, source: Path | None = None) -> None:
    try:
        read_folder(folder)
    except InvalidSettingError as error:
        message = str(error).replace(str(folder), str(source or folder))
        raise InvalidRequestError(message) from error
