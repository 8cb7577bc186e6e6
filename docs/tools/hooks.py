"""What MkDocs calls while it builds the documents: generated tables, the HTTP pages, root files."""

from __future__ import annotations

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import http_pages
import tables
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

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
}
_TABLE = re.compile(r"^<!-- table: ([a-z-]+) -->$", re.MULTILINE)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """List the HTTP pages in the navigation."""
    pages = [{title: path} for title, path in http_pages.navigation(ROOT).items()]
    for section in config.nav or []:
        for entries in section.values():
            if isinstance(entries, list):
                for entry in entries:
                    if isinstance(entry, dict) and entry.get("HTTP API") == "generated":
                        entry["HTTP API"] = pages
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that no file in docs/ holds."""
    pages = http_pages.pages(ROOT)
    for name, place in ROOT_FILES.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        pages[place] = text.replace("](docs/", "](../" if "/" in place else "](")
    for place, card in CARDS.items():
        pages[place] = card.read_text(encoding="utf-8")
    for path, text in pages.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Put the generated tables where a page asks for them."""
    return _TABLE.sub(lambda found: tables.TABLES[found[1]](), markdown)
