"""Model repositories: a folder for each set of weights, as Triton reads them.

A CPU host's models are ``config.pbtxt`` and, in the version ``1``, the Python backend's program,
the graph and the tensors it takes. A GPU host's are one ONNX file with the weights inside. Each
folder also has an ``export.json``: its source, and every file's SHA-256.

A model is written beside its place and renamed, so that a server never reads half of one; one that
is as it would be written now is left as it is.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from steelyard.durable import flush, flush_tree
from steelyard.errors import EngineUnavailableError
from steelyard.scoring.assets import AUTO, BaseFiles, read_base_files
from steelyard.scoring.engine import FLOAT32, INT8, Engine, graph_weights
from steelyard.scoring.entailment.folder import GRAPH, EncoderFacts
from steelyard.scoring.merging import check_base, merge, read_adapter
from steelyard.triton import backend_model
from steelyard.triton.model_config import Backend, TensorSpec, render_config
from steelyard.version import __version__
from steelyard.wire.decoding import decode

Target = Literal["cpu", "gpu"]
Tensors = Mapping[str, NDArray[np.generic]]

#: The one version of every model.
VERSION = "1"
CONFIG, EXPORT, PROGRAM, GPU_GRAPH = "config.pbtxt", "export.json", "model.py", "model.onnx"
#: Parameters of a configuration that say which weights it is of.
SHA256, PRECISION, BASE = "steelyard_sha256", "precision", "base"
#: Counted up when what is written changes and nothing it is made from does.
_FORMAT = 1
#: Operations of which a graph in int8 has some.
_INT8_OPERATIONS = (b"QuantizeLinear", b"MatMulInteger", b"QLinearMatMul", b"QGemm")
_PARTIAL = ".partial-"
_OLD = ".old"


@dataclass(frozen=True, slots=True)
class ModelSource:
    """The source of a Triton model."""

    name: str
    sha256: str
    files: BaseFiles = field(repr=False)
    adapter: Path | None = None

    def weights(self) -> Tensors:
        """Return the weights as an ``Engine`` takes them."""
        if self.adapter is None:
            return self.files.weights
        adapter = read_adapter(self.adapter)
        check_base(adapter.facts, self.files)
        return merge(self.files.weights, adapter.pairs, self.files.precision)

    def engine(self, threads: int = 0) -> Engine:
        """Make an engine of the weights in this process."""
        files = self.files
        return Engine(files.graph, self.weights(), precision=files.precision, threads=threads)


@dataclass(frozen=True, slots=True)
class GraphFiles:
    """A graph with its weights inside, where ``BaseFiles`` has them beside it."""

    graph: bytes
    precision: str
    sha256: str
    manifest: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ReaderSource:
    """A reader: its Triton model takes a context and a statement as tokens, one pair a pass."""

    name: str
    facts: EncoderFacts
    files: GraphFiles = field(repr=False)
    adapter: None = None

    @property
    def sha256(self) -> str:
        """Identifies its weights."""
        return self.files.sha256

    def weights(self) -> Tensors:
        """Return none: they are in the graph."""
        return {}


Source = ModelSource | ReaderSource


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """How models are written."""

    backend: Backend = "python"
    threads: int = 0
    instances: int = 1

    @property
    def target(self) -> Target:
        """Which host the models are for."""
        return "cpu" if self.backend == "python" else "gpu"


class ExportRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The content of ``export.json``."""

    source: str
    model_sha256: str
    base: str
    precision: str
    target: Target
    files: dict[str, str]


def base_source(
    folder: Path | None = None, *, name: str | None = None, engine: str = AUTO
) -> ModelSource:
    """Read a base model, every file's SHA-256 checked."""
    files = read_base_files(engine, folder)
    return ModelSource(name or files.manifest["name"], files.sha256, files)


def reader_source(name: str, facts: EncoderFacts) -> ReaderSource:
    """Read a reader's graph."""
    graph = (facts.folder / GRAPH).read_bytes()
    precision = INT8 if any(operation in graph for operation in _INT8_OPERATIONS) else FLOAT32
    sha256 = hashlib.sha256(graph).hexdigest()
    return ReaderSource(name, facts, GraphFiles(graph, precision, sha256, {"name": name}))


def write_model(folder: Path, source: Source, options: ExportOptions) -> bool:
    """Write a model into a repository unless it is there; raises ``OSError`` when it cannot be."""
    if options.target == "gpu" and source.files.precision != FLOAT32:
        if isinstance(source, ReaderSource):
            raise EngineUnavailableError(
                f"The {source.files.precision} graph of {source.name} runs on the CPU alone; connect a "
                "folder with the reader's float32 graph, and export that for a GPU."
            )
        raise EngineUnavailableError(
            f"The {source.files.precision} graph of {source.name} runs on the CPU alone; export "
            "it for a GPU with --engine onnxruntime-float32, and give the service the same engine."
        )
    if is_current(folder, source, options):
        return False
    folder.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{source.name}{_PARTIAL}", dir=folder))
    try:
        partial.chmod(0o755)
        (partial / VERSION).mkdir()
        _fill(partial, source, options)
        _replace(partial, folder / source.name)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return True


def is_current(folder: Path, source: Source, options: ExportOptions) -> bool:
    """Return whether a repository has a model as it would be written now, every byte of it."""
    place = folder / source.name
    record = read_record(place)
    return (
        record is not None
        and record.source == _source_sha256(source, options)
        and all(_sha256(place / name) == file for name, file in record.files.items())
    )


def read_record(model: Path) -> ExportRecord | None:
    """Read the record of a model's folder; ``None`` where it is none of ours."""
    try:
        return decode((model / EXPORT).read_bytes(), ExportRecord)
    except (OSError, msgspec.DecodeError):
        return None


def exported(folder: Path) -> dict[str, ExportRecord]:
    """Return the models that were exported into a repository, by name."""
    if not folder.is_dir():
        return {}
    records = {
        place.name: read_record(place)
        for place in sorted(folder.iterdir())
        if not place.name.startswith(".")
    }
    return {name: record for name, record in records.items() if record is not None}


def remove_model(folder: Path, name: str) -> None:
    """Remove an exported model; the rest of the repository is left alone."""
    if read_record(folder / name) is not None:
        shutil.rmtree(folder / name)


def embed_weights(graph: bytes, tensors: Tensors) -> bytes:
    """Put tensors into a graph, for hosts that load one ONNX file, and check it."""
    try:
        import onnx
        from onnx import TensorProto, numpy_helper
    except ImportError as error:
        message = "An export for a GPU needs onnx; pip install 'steelyard[triton]'."
        raise EngineUnavailableError(message) from error
    model = onnx.load_model_from_string(graph)
    for tensor in model.graph.initializer:
        if tensor.data_location != TensorProto.EXTERNAL:
            continue
        value = tensors.get(tensor.name)
        if value is None:
            message = f"The model's graph takes a tensor {tensor.name} that its weights lack."
            raise EngineUnavailableError(message)
        tensor.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(value), tensor.name))
    onnx.checker.check_model(model)
    content: bytes = model.SerializeToString(deterministic=True)
    return content


def _source_sha256(source: Source, options: ExportOptions) -> str:
    decisive = {
        "format": _FORMAT,
        "version": __version__,
        "name": source.name,
        "sha256": source.sha256,
        "base": source.files.sha256,
        "precision": source.files.precision,
        "program": hashlib.sha256(_program()).hexdigest(),
        "backend": options.backend,
        "threads": options.threads,
        "instances": options.instances,
    }
    return hashlib.sha256(msgspec.json.encode(decisive, order="deterministic")).hexdigest()


def _fill(partial: Path, source: Source, options: ExportOptions) -> None:
    version = partial / VERSION
    tensors = graph_weights(source.weights(), source.files.precision)
    parameters = {
        SHA256: source.sha256,
        PRECISION: source.files.precision,
        BASE: source.files.manifest["name"],
        "steelyard_version": __version__,
    }
    if options.target == "gpu":
        (version / GPU_GRAPH).write_bytes(embed_weights(source.files.graph, tensors))
        hashed = [GPU_GRAPH]
    else:
        (version / PROGRAM).write_bytes(_program())
        (version / backend_model.GRAPH).write_bytes(source.files.graph)
        with (version / backend_model.WEIGHTS).open("wb") as file:
            np.savez(file, allow_pickle=False, **tensors)
        hashed = [backend_model.GRAPH, backend_model.WEIGHTS]
        parameters["threads"] = str(options.threads)
    parameters |= {f"{name}.sha256": _sha256(version / name) or "" for name in hashed}
    inputs, outputs = _specs(source.files.graph, tensors)
    text = render_config(
        source.name,
        backend=options.backend,
        inputs=inputs,
        outputs=outputs,
        parameters=parameters,
        instances=options.instances,
    )
    (partial / CONFIG).write_text(text, encoding="utf-8")
    record = ExportRecord(
        source=_source_sha256(source, options),
        model_sha256=source.sha256,
        base=source.files.manifest["name"],
        precision=source.files.precision,
        target=options.target,
        files={
            str(path.relative_to(partial)): _sha256(path) or ""
            for path in sorted(partial.rglob("*"))
            if path.is_file()
        },
    )
    (partial / EXPORT).write_bytes(msgspec.json.format(msgspec.json.encode(record), indent=2))
    flush_tree(partial)


def _specs(graph: bytes, tensors: Tensors) -> tuple[list[TensorSpec], list[TensorSpec]]:
    """Load a graph, which tests it too, and return its inputs and outputs."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    values = [onnxruntime.OrtValue.ortvalue_from_numpy(array) for array in tensors.values()]
    options.add_external_initializers(list(tensors), values)
    try:
        session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        message = "ONNX Runtime cannot load the model's graph; install steelyard again."
        raise EngineUnavailableError(message) from error

    def specs(nodes: list[Any]) -> list[TensorSpec]:
        return [
            TensorSpec(
                node.name,
                node.type,
                tuple(size if isinstance(size, int) else -1 for size in node.shape),
            )
            for node in nodes
        ]

    return specs(session.get_inputs()), specs(session.get_outputs())


def _program() -> bytes:
    return Path(backend_model.__file__).read_bytes()


def _sha256(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


def _replace(partial: Path, place: Path) -> None:
    """Move a folder into place; a crash between leaves none, or the whole new one."""
    old = place.with_name(f".{place.name}{_OLD}")
    shutil.rmtree(old, ignore_errors=True)
    if place.exists():
        place.rename(old)
    partial.rename(place)
    flush(place.parent)
    shutil.rmtree(old, ignore_errors=True)
