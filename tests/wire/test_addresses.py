"""Which addresses are public is the same on every Python, whatever its own list says."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest

from steelyard.wire import addresses

PUBLIC = [
    "1.1.1.1", "9.255.255.255", "100.63.255.255", "100.128.0.0", "168.63.129.17", "172.32.0.0",
    "192.0.1.0", "192.88.98.255", "198.17.255.255", "198.20.0.0", "223.255.255.255",
    "2001:200::", "2001:4860:4860::8888", "2606:4700::1111", "2620:4f:8001::", "3fff:1000::",
    "::ffff:1.1.1.1", "64:ff9b::101:101", "2002:101:101::1",
]  # fmt: skip
SPECIAL = [
    "0.0.0.0", "10.0.0.1", "100.64.0.1", "127.0.0.1", "168.63.129.16", "169.254.169.254",
    "172.16.0.1", "192.0.0.8", "192.0.0.9", "192.0.0.192", "192.0.2.1", "192.31.196.1",
    "192.52.193.1", "192.88.99.1", "192.168.0.1", "192.175.48.1", "198.18.0.1", "198.51.100.1",
    "203.0.113.1", "224.0.0.1", "240.0.0.1", "255.255.255.255",
    "::", "::1", "::127.0.0.1", "::1.1.1.1", "64:ff9b:1::1", "100::1", "100:0:0:1::1", "2001::1",
    "2001:1::1", "2001:2::1", "2001:3::1", "2001:10::1", "2001:20::1", "2001:30::1",
    "2001:db8::1", "2620:4f:8000::1", "3fff::1", "4000::1", "5f00::1", "fc00::1", "fd00::1",
    "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1",
    "::ffff:10.0.0.1", "::ffff:168.63.129.16", "64:ff9b::a00:1", "64:ff9b::c000:c0",
    "2002:a00:1::", "2002:c058:6301::", "2001:0:4136:e378:8000:63bf:3fff:fdd2",
]  # fmt: skip
LOOPBACK = ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"]
#: What another Python answers: of itself, of each address, and of each that is loopback.
PROGRAM = """
import importlib.util, json, sys
spec = importlib.util.spec_from_file_location("addresses", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
texts = json.load(sys.stdin)
json.dump([[module.is_public_address(one), module.is_loopback_address(one)] for one in texts],
          sys.stdout)
"""


def test_addresses_of_every_registry():
    assert [one for one in PUBLIC if addresses.is_public_address(one) is not True] == []
    assert [one for one in SPECIAL if addresses.is_public_address(one) is not False] == []
    assert [one for one in PUBLIC + SPECIAL if addresses.is_loopback_address(one)] == [
        one for one in SPECIAL if one in LOOPBACK
    ]
    assert all(map(addresses.is_loopback_address, LOOPBACK))
    assert addresses.is_public_address("2130706433") is None


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14"])
def test_every_python_answers_alike(version):
    python = shutil.which(f"python{version}")
    if (
        python is None
        or subprocess.run([python, "-V"], check=False, capture_output=True).returncode
    ):
        pytest.skip(f"needs Python {version}")
    texts = PUBLIC + SPECIAL + LOOPBACK
    answered = subprocess.run(
        [python, "-IS", "-c", PROGRAM, addresses.__file__],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        check=True,
    )
    expected = [[one in PUBLIC, one in LOOPBACK] for one in texts]
    assert json.loads(answered.stdout) == expected
