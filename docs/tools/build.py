"""Build the documents into a folder, ``site`` without a name: ``python docs/tools/build.py [FOLDER]``.

Zensical runs nothing of ours, so the pages that are made of other files are written first: the HTTP
pages, generated tables, and the files that stand at the root of the repository.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import http_pages
import tables

ROOT = Path(__file__).resolve().parents[2]
#: Files that stand where everybody looks for them, and their places in the site.
ROOT_FILES = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributors/contributing.md",
    "SECURITY.md": "contributors/security.md",
}
_ASSETS = ROOT / "server" / "steelyard" / "assets"
CARDS = {
    "models/base-model.md": _ASSETS / "steelyard-base-2" / "MODEL_CARD.md",
    "models/reader-card.md": _ASSETS / "steelyard-reader-1" / "MODEL_CARD.md",
}
_TABLE = re.compile(r"^<!-- table: ([a-z-]+) -->$", re.MULTILINE)


def write_sources(folder: Path) -> None:
    """Write the configuration and every page, with what is generated in it."""
    docs = folder / "docs"
    unread = shutil.ignore_patterns("tools", "*.txt", "*.json")
    shutil.copytree(ROOT / "docs", docs, ignore=unread)
    pages = http_pages.pages(ROOT)
    for name, place in ROOT_FILES.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        pages[place] = text.replace("](docs/", "](../" if "/" in place else "](")
    for place, card in CARDS.items():
        pages[place] = card.read_text(encoding="utf-8")
    for place, text in pages.items():
        (docs / place).parent.mkdir(exist_ok=True)
        (docs / place).write_text(text, encoding="utf-8")
    for page in docs.rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        if _TABLE.search(text):
            filled = _TABLE.sub(lambda found: tables.TABLES[found[1]](), text)
            page.write_text(filled, encoding="utf-8")
    config = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = "".join(
        f"\n          - {title}: {place}" for title, place in http_pages.navigation(ROOT).items()
    )
    config = config.replace("HTTP API: generated", f"HTTP API:{listed}")
    config = config.replace("paths: [server]", f"paths: [{ROOT / 'server'}]")
    (folder / "mkdocs.yml").write_text(config, encoding="utf-8")


def build(site: Path) -> int:
    """Build the documents into a folder; return the exit status, 1 where anything is doubtful."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_sources(folder)
        command = [sys.executable, "-m", "zensical", "build", "--strict"]
        status = subprocess.run(command, cwd=folder, check=False).returncode
        if status == 0:
            shutil.rmtree(site, ignore_errors=True)
            shutil.copytree(folder / "site", site)
    return status


if __name__ == "__main__":
    sys.exit(build(Path(sys.argv[1] if len(sys.argv) > 1 else "site")))
