"""Write the page of the documents that says who may call the console."""

from __future__ import annotations

from pathlib import Path

from steelyard.app.application import ROUTES
from steelyard.http.access_table import page

PAGE = Path(__file__).parents[1] / "docs" / "operators" / "access-table.md"

if __name__ == "__main__":
    PAGE.write_text(page(ROUTES), encoding="utf-8")
