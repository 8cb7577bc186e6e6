"""The artifact of a fine-tune: its files gathered in a folder, and the manifest that names them.

Equal tasks, rows and versions of packages give equal bytes: nothing here has a time, an id of a job
or a path in it.
"""

from __future__ import annotations

import hashlib
import shutil
from importlib import metadata
from pathlib import Path

import msgspec

from steelyard.durable import flush, flush_tree
from steelyard.scoring.assets import CARD, MANIFEST
from steelyard.scoring.tuned import ArtifactManifest
from steelyard.version import __version__

_PARTIAL = ".partial"
#: Packages that the bytes of heads depend on, and those of LoRA beside them.
_HEADS_PACKAGES = ("lightgbm", "numpy", "scikit-learn", "scipy")
_LORA_PACKAGES = ("onnx", "peft", "torch")


def versions_of(*, with_lora: bool) -> dict[str, str]:
    """Return the versions of the installed packages that an artifact's bytes depend on."""
    versions = {"steelyard": __version__}
    for name in (*_HEADS_PACKAGES, *(_LORA_PACKAGES if with_lora else ())):
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions


def write_artifact(
    folder: Path, parts: dict[str, Path], card: str, manifest: ArtifactManifest
) -> str:
    """Write an artifact, complete or not at all, over the folder's earlier content."""
    partial = folder.with_name(folder.name + _PARTIAL)
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    for name, source in parts.items():
        (partial / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, partial / name)
    (partial / CARD).write_text(card, encoding="utf-8")
    files = {
        path.relative_to(partial).as_posix(): _sha256_of(path)
        for path in sorted(partial.rglob("*"))
        if path.is_file()
    }
    whole = msgspec.structs.replace(manifest, files=files)
    encoded = msgspec.json.format(msgspec.json.encode(whole, order="deterministic"), indent=2)
    (partial / MANIFEST).write_bytes(encoded + b"\n")
    flush_tree(partial)
    shutil.rmtree(folder, ignore_errors=True)
    partial.rename(folder)
    flush(folder.parent)
    return _sha256_of(folder / MANIFEST)


def _sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
