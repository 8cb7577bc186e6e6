"""The process of one judge: llama.cpp's server on a Unix socket, until standard input ends.

``python -m steelyard.serving.judge.child``: the first line of standard input has the options as JSON.
One line of JSON on standard output says that it answers, or why it does not.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

#: How far it gives way: callers of the shipped model come first.
_NICENESS = 5
#: Tokens of a pass: between two passes the server notices requests that were given up.
_BATCH_TOKENS = 256


def main() -> int:
    """Serve until standard input ends; return the exit status."""
    options = json.loads(sys.stdin.readline())
    # What native code writes must not come between the lines of the protocol.
    answers = os.dup(1)
    os.dup2(2, 1)
    niceness = os.nice(_NICENESS)
    with suppress(OSError):  # Linux may share the processors out by session first: this one is ours
        Path("/proc/self/autogroup").write_text(str(niceness), encoding="ascii")
    try:
        server = _start(options)  # noqa: F841  it serves as long as it is held
    except ImportError:
        error = "xllamacpp is not installed: pip install 'steelyard[judge]'"
    except Exception as failure:  # noqa: BLE001  the parent says so
        error = f"llama.cpp cannot load the file ({failure})"
    else:
        os.write(answers, b'{"ready": true}\n')
        while os.read(0, 4096):
            pass
        os._exit(0)  # the pass at work is not waited for
    os.write(answers, json.dumps({"error": error}).encode() + b"\n")
    return 1


def _start(options: dict[str, Any]) -> Any:
    import xllamacpp  # noqa: PLC0415  in this process alone

    params = xllamacpp.CommonParams()
    params.model.path = options["file"]
    # One more for its own text, so that no context has to be read again.
    params.n_parallel = options["slots"] + 1
    params.n_ctx = options["context_tokens"] * params.n_parallel
    params.n_batch = params.n_ubatch = _BATCH_TOKENS
    params.n_gpu_layers = options["gpu_layers"]
    for threads in (params.cpuparams, params.cpuparams_batch):
        threads.n_threads = options["threads"]
        threads.poll = 0  # spinning takes the cores from the models beside it
    params.hostnames = [options["socket"]]
    params.api_keys = [options["key"]]
    params.fit_params = False  # memory was checked before
    params.cache_ram_mib = 0
    # Weights stay as the file has them: processes share its pages, and loading takes a moment.
    params.no_extra_bufts = True
    params.warmup = False
    params.verbosity = -1
    return xllamacpp.Server(params)


if __name__ == "__main__":
    sys.exit(main())
