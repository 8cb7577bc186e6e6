"""The command line, one module a command. Commands load what they need when they run."""

import sys

# HTTPX loads its own command line where Rich is installed: a third of a command's start.
sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]
