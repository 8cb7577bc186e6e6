"""The base models that ship in the package: files, hashes, and the scorers made of them."""

from __future__ import annotations

import hashlib
import mmap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from steelyard.calibration.temperature import TemperatureTable
from steelyard.errors import EngineUnavailableError
from steelyard.scoring.engine import FLOAT32, INT8, Engine, PassEngine
from steelyard.scoring.lower import LowerLayers
from steelyard.scoring.onnx import LongLayers, OnnxScorer
from steelyard.scoring.passes import no_long_past
from steelyard.scoring.reading import FIRST_READING
from steelyard.scoring.remote.engine_host import RemoteHost
from steelyard.scoring.shipped import BASE
from steelyard.scoring.tokenizer import Tokenizer, shared_tokenizer
from steelyard.scoring.word_vectors import WordVectors
from steelyard.wire.decoding import convert, decode

MANIFEST = "manifest.json"
TOKENIZER = "tokenizer.json"
CARD = "MODEL_CARD.md"
WEIGHTS = ("word_embeddings.safetensors", "encoder.safetensors")
GRAPHS = {FLOAT32: "graph.float32.onnx", INT8: "graph.int8.onnx"}
#: The same graphs in two, of models whose lowest layers read questions apart from the context.
LOWER_GRAPHS = {FLOAT32: "lower.float32.onnx", INT8: "lower.int8.onnx"}
UPPER_GRAPHS = {FLOAT32: "upper.float32.onnx", INT8: "upper.int8.onnx"}
#: The upper graph for long contexts, which gives the same bits: no part of a model's identity.
LONG_GRAPHS = {FLOAT32: "long.float32.onnx", INT8: "long.int8.onnx"}
#: How safetensors names the types of a base model's tensors.
_DTYPES = {"I8": np.int8, "U8": np.uint8, "I64": np.int64, "F16": np.float16, "F32": np.float32}
#: Engine names, and the precision of each.
ENGINES = {"onnxruntime-float32": FLOAT32, "onnxruntime-int8": INT8}
AUTO = "auto"

Content = TypeVar("Content", bytes, bytearray, mmap.mmap)


class _Manifest(msgspec.Struct):
    """The required fields of a manifest; other fields are preserved."""

    name: str
    engine: str
    files: dict[str, str]
    tokenizer: dict[str, str]
    temperatures: dict[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class BaseModel:
    """A loaded base model."""

    scorer: OnnxScorer
    tokenizer: Tokenizer
    temperatures: TemperatureTable
    card: Path
    manifest: dict[str, Any]


@dataclass(frozen=True, slots=True)
class BaseFiles:
    """A base model's files, checked and not yet run; ``weights`` are as stored."""

    engine: str
    precision: str
    graph: bytes
    weights: dict[str, NDArray[np.generic]]
    tokenizer: Tokenizer
    manifest: dict[str, Any]
    folder: Path
    #: The graph in two: the lowest layers, that read questions apart, and those above.
    apart_graphs: tuple[bytes, bytes] | None = None
    #: The upper of them for long contexts, where the model has it.
    long_graph: bytes | None = None
    #: The files that ``weights`` are read from as they are needed.
    mapped: tuple[mmap.mmap, ...] = ()

    @property
    def sha256(self) -> str:
        """Identifies the model, on any engine."""
        return _files_sha256(self.manifest["files"])

    @property
    def reading(self) -> int:
        """How the model reads requests: see ``steelyard.scoring.reading``."""
        return int(self.manifest.get("reading", FIRST_READING))

    @property
    def apart(self) -> int:
        """In how many of the lowest layers its questions do not see the context."""
        return apart_of(self.manifest)

    def scorer(
        self,
        weights: Mapping[str, NDArray[np.generic]],
        *,
        threads: int,
        engine: PassEngine | None = None,
    ) -> OnnxScorer:
        """Make a scorer of these weights; by default run in this process."""
        lower = long = None
        if engine is None:
            engine, lower, long = self._engines(weights, threads)
            for file in self.mapped:
                # The engine has most of it in a form of its own; the rest is read when it is used.
                file.madvise(mmap.MADV_DONTNEED)
        # An engine elsewhere has its own weights; its word vectors are those of the files.
        stored = weights or self.weights
        return OnnxScorer(
            engine,
            self.tokenizer,
            name=self.manifest["name"],
            engine_name=self.engine,
            # With other weights it is another model than the files are.
            sha256=self.sha256 if weights is self.weights else "",
            folder=self.folder if weights is self.weights else None,
            reading=self.reading,
            lower=lower,
            long=long,
            words=WordVectors(stored["word_embeddings.weight"], stored["word_embeddings.scale"]),
        )

    def _engines(
        self, weights: Mapping[str, NDArray[np.generic]], threads: int
    ) -> tuple[Engine, LowerLayers | None, LongLayers | None]:
        """Return the engine of this process, and its separate parts: lowest layers, and long contexts."""

        def load(graph: bytes, part: Mapping[str, NDArray[np.generic]]) -> Engine:
            return Engine(graph, part, precision=self.precision, threads=threads)

        if self.apart_graphs is None:
            return load(self.graph, weights), None, None
        below, above = parts_of(weights, self.apart)
        lower, upper = self.apart_graphs
        long = None
        if self.long_graph is not None:
            kind = np.uint8 if self.precision == INT8 else np.float32
            long = LongLayers(partial(load, self.long_graph, above), no_long_past(self.apart, kind))
        return load(upper, above), LowerLayers(load(lower, below), self.apart), long


def load_base_model(
    engine: str = AUTO,
    threads: int | None = None,
    folder: Path | None = None,
    *,
    host: RemoteHost | None = None,
    hosted_name: str | None = None,
) -> BaseModel:
    """Load a base model, every file's SHA-256 checked; ``auto`` is its manifest's default engine.

    Raises ``EngineUnavailableError`` when a file is missing or altered, or there is no such engine.
    """
    files = read_base_files(engine, folder)

    def load_local() -> Engine:
        # Read again: held for as long as the engine may be asked for, the files would cost what not
        # having it here saves.
        again = read_base_files(engine, folder)
        return Engine(again.graph, again.weights, precision=again.precision, threads=threads or 0)

    hosted: PassEngine | None = None
    if host is not None:
        hosted = host.engine(
            hosted_name or files.manifest["name"],
            sha256=files.sha256,
            precision=files.precision,
            load_local=load_local,
        )
    return BaseModel(
        scorer=files.scorer(files.weights, threads=threads or 0, engine=hosted),
        tokenizer=files.tokenizer,
        temperatures=TemperatureTable.from_dict(files.manifest["temperatures"][files.precision]),
        card=(folder or BASE) / CARD,
        manifest=files.manifest,
    )


def read_base_files(engine: str = AUTO, folder: Path | None = None) -> BaseFiles:
    """Read a base model's files; raise as ``load_base_model`` does."""
    folder = folder or BASE
    manifest = read_manifest(folder)
    name = manifest["engine"] if engine == AUTO else engine
    if name not in ENGINES:
        known = ", ".join([AUTO, *ENGINES])
        message = f"There is no engine {engine!r}; set STEELYARD_ENGINE to one of {known}."
        raise EngineUnavailableError(message)
    precision = ENGINES[name]
    files = [TOKENIZER, GRAPHS[precision]]
    apart_graphs = (LOWER_GRAPHS[precision], UPPER_GRAPHS[precision])
    if apart_of(manifest):
        files += apart_graphs
    long = LONG_GRAPHS[precision]
    if long in manifest["files"]:
        files.append(long)
    hashes = manifest["files"]
    contents = {file: _checked(folder / file, hashes, Path.read_bytes) for file in files}
    # What ships is replaced and never written to. A file of an operator's that is cut short while it is
    # mapped would end the process.
    mapped = [_checked(folder / file, hashes, _map) for file in WEIGHTS if folder == BASE]
    stored: Sequence[bytearray | mmap.mmap] = mapped
    if not mapped:
        stored = [_checked(folder / file, hashes, _read) for file in WEIGHTS]
    return BaseFiles(
        engine=name,
        precision=precision,
        graph=contents[GRAPHS[precision]],
        weights={
            name: tensor for content in stored for name, tensor in _tensors_of(content).items()
        },
        tokenizer=shared_tokenizer(
            contents[TOKENIZER],
            name=manifest["tokenizer"]["name"],
            revision=manifest["tokenizer"]["revision"],
        ),
        manifest=manifest,
        folder=folder,
        apart_graphs=(contents[apart_graphs[0]], contents[apart_graphs[1]])
        if apart_of(manifest)
        else None,
        long_graph=contents.get(long),
        mapped=tuple(mapped),
    )


def apart_of(manifest: Mapping[str, Any]) -> int:
    """Return in how many of the lowest layers a model's questions do not see the context."""
    return int(manifest.get("apart", 0))


def read_manifest(folder: Path | None = None) -> dict[str, Any]:
    """Read a base model's manifest; raises ``EngineUnavailableError`` when it cannot be used."""
    path = (folder or BASE) / MANIFEST
    try:
        manifest = decode(path.read_bytes(), dict[str, Any])
        convert(manifest, _Manifest)
    except (OSError, msgspec.DecodeError) as error:
        message = f"The base model's manifest {path} cannot be read; install steelyard again."
        raise EngineUnavailableError(message) from error
    return manifest


def _files_sha256(hashes: Mapping[str, str]) -> str:
    """Name the files, whichever engine runs them."""
    decisive = {file: hashes.get(file) for file in (TOKENIZER, *WEIGHTS, *GRAPHS.values())}
    of_parts = (*LOWER_GRAPHS.values(), *UPPER_GRAPHS.values())
    decisive |= {file: hashes[file] for file in of_parts if file in hashes}
    return hashlib.sha256(msgspec.json.encode(decisive, order="deterministic")).hexdigest()


def parts_of(
    weights: Mapping[str, NDArray[np.generic]], apart: int
) -> tuple[dict[str, NDArray[np.generic]], dict[str, NDArray[np.generic]]]:
    """Return the weights of the lowest layers with the embeddings, and those of the layers above."""
    below = ("word_", "position_", "role_", "embedding_", *(f"layers.{i}." for i in range(apart)))
    lower = {name: value for name, value in weights.items() if name.startswith(below)}
    return lower, {name: value for name, value in weights.items() if name not in lower}


def _checked(path: Path, hashes: Mapping[str, str], read: Callable[[Path], Content]) -> Content:
    try:
        content = read(path)
    except (OSError, ValueError) as error:
        message = f"The base model's file {path} is missing or empty; install steelyard again."
        raise EngineUnavailableError(message) from error
    digest = hashlib.sha256(content).hexdigest()
    if digest != hashes.get(path.name):
        message = (
            f"The base model's file {path} has SHA-256 {digest}, not the manifest's "
            f"{hashes.get(path.name)}; it was altered or cut short: install steelyard again."
        )
        raise EngineUnavailableError(message)
    return content


def _read(path: Path) -> bytearray:
    return bytearray(path.read_bytes())


def _map(path: Path) -> mmap.mmap:
    """Map a file: its pages are shared with other processes, and in memory while they are used."""
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)


def _tensors_of(content: bytearray | mmap.mmap) -> dict[str, NDArray[np.generic]]:
    """Return the tensors of a safetensors file as views of its content."""
    start = 8 + int.from_bytes(content[:8], "little")
    header = decode(content[8:start], dict[str, Any])
    header.pop("__metadata__", None)
    tensors: dict[str, NDArray[np.generic]] = {}
    for name, described in header.items():
        first, end = described["data_offsets"]
        dtype = np.dtype(_DTYPES[described["dtype"]])
        tensor = np.frombuffer(content, dtype, (end - first) // dtype.itemsize, start + first)
        tensors[name] = tensor.reshape(described["shape"])
    return tensors
