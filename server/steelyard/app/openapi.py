"""The OpenAPI document of every route, as a command.

``python -m steelyard.app.openapi`` prints it, and with ``--write`` it renews the copy in the package,
which a test compares with the routes.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from steelyard import http
from steelyard.app.application import ROUTES
from steelyard.http.openapi import build_document, to_text

#: The copy in the package.
COMMITTED = Path(http.__file__).with_name("openapi.json")


def main(arguments: Sequence[str]) -> int:
    """Print the document, or write it with ``--write``; return the exit status."""
    text = to_text(build_document(ROUTES))
    if not arguments:
        sys.stdout.write(text)
    elif list(arguments) == ["--write"]:
        COMMITTED.write_text(text, encoding="utf-8")
    else:
        sys.stderr.write("usage: python -m steelyard.app.openapi [--write]\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
