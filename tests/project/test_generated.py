"""What is made of other files and committed is what they make now."""

from __future__ import annotations

import subprocess
import sys

from support.repository import PACKAGE, ROOT


def test_the_blocking_client_is_what_the_asynchronous_one_makes(tmp_path):
    script = ROOT / "scripts" / "blocking_client.py"
    subprocess.run([sys.executable, script, tmp_path], check=True)
    made = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    committed = (PACKAGE / "client" / "blocking").glob("*.py")
    assert made == {path.name: path.read_bytes() for path in committed}, "run: scripts/fix"
