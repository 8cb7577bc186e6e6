"""Decoding into types that no thread has read before."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import steelyard
from steelyard.wire import decoding

#: Structs that are new to msgspec, read first by several threads at once, again and again.
_FIRST_READS = """
import sys, threading
import msgspec
from steelyard.wire.decoding import decode

sys.setswitchinterval(1e-6)
body = msgspec.json.encode({f"l{n}": {f"f{m}": {"a": [1]} for m in range(12)} for n in range(12)})

def work():
    barrier.wait()
    decode(body, outer)

for _ in range(20):
    fields = [(f"f{m}", dict[str, list[int]]) for m in range(12)]
    inner = [msgspec.defstruct("Inner", fields) for _ in range(12)]
    outer = msgspec.defstruct("Outer", [(f"l{11 - n}", kind) for n, kind in enumerate(inner)])
    barrier = threading.Barrier(8)
    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""


def test_threads_that_read_a_type_first_at_once_end_no_process():
    subprocess.run([sys.executable, "-c", _FIRST_READS], check=True, timeout=60)


def test_nothing_else_decodes_into_a_type():
    own = re.compile(r"msgspec\.convert\(|\.Decoder\(|\.decode\([^()]*(\([^()]*\))?[^()]*\btype=")
    server = Path(steelyard.__file__).parent
    packages = (server, server.parents[1] / "workbench" / "steelyard_workbench")
    files = [path for package in packages for path in package.rglob("*.py")]
    assert len(files) > 500
    found = [str(path) for path in files if own.search(path.read_text())]
    assert found == [decoding.__file__]
