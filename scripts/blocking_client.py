"""Write the blocking client, made of the asynchronous one: ``scripts/blocking_client.py [FOLDER]``.

The same code without ``async`` and ``await``, and other names for what differs. Edit
``server/steelyard/client/asynchronous``; ``scripts/fix`` runs this, and a test compares.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import unasync

ROOT = Path(__file__).parents[1]
CLIENT = ROOT / "server" / "steelyard" / "client"
HEADER = "# Made of asynchronous/{name} by scripts/blocking_client.py: edit that one.\n\n"
IMPORTS = "from __future__ import annotations\n"
NAMES = {
    "aclose": "close",
    "async_method": "blocking_method",
    "asynchronous": "blocking",
    "asyncio": "time",
    "open_async_client": "open_client",
    "receive_async": "receive",
    "receive_to_async": "receive_to",
}


def write(folder: Path) -> None:
    """Write the modules of the blocking client into a folder."""
    sources = sorted((CLIENT / "asynchronous").glob("*.py"))
    text = "".join(path.read_text(encoding="utf-8") for path in sources)
    names = {name: name.removeprefix("Async") for name in re.findall(r"\bAsync[A-Z]\w*", text)}
    rule = unasync.Rule(f"{CLIENT / 'asynchronous'}/", f"{folder}/", {**names, **NAMES})
    unasync.unasync_files(list(map(str, sources)), [rule])
    for source in sources:
        path = folder / source.name
        doc, imports, code = path.read_text(encoding="utf-8").partition(IMPORTS)
        code = re.sub(r"Awaitable\[(\w+)\]", r"\1", code)
        header = HEADER.format(name=source.name)
        path.write_text(f"{doc}{header}{imports}{code}", encoding="utf-8")
    ruff, rules = [sys.executable, "-m", "ruff"], ["--unsafe-fixes", "--select=F401,I,UP028"]
    for command in (["check", "--fix", *rules], ["format"]):
        settings = ["--quiet", "--no-cache", "--config=pyproject.toml"]
        subprocess.run([*ruff, *command, *settings, folder], cwd=ROOT, check=True)


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else CLIENT / "blocking")
