"""gRPC over TLS with Triton's own server: both sides are verified, and others are refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import trustme

from steelyard.errors import EngineUnavailableError
from steelyard.scoring.remote.triton_address import TlsFiles, parse_address
from steelyard.triton import parity
from steelyard.triton.environment import Environment
from steelyard.triton.host import ServerTls, TritonHost
from steelyard.triton.parity import check_server
from steelyard.triton.repository import ExportOptions, write_model
from support.models.random_model import WORDS

pytestmark = [pytest.mark.triton, pytest.mark.timeout(300)]


def write_certificate(folder: Path, authority: trustme.CA, name: str) -> tuple[Path, Path]:
    """Return the files of a certificate and of its key."""
    made = authority.issue_cert(name)
    certificate, key = folder / f"{name}.pem", folder / f"{name}.key"
    made.cert_chain_pems[0].write_to_path(certificate)
    made.private_key_pem.write_to_path(key)
    return certificate, key


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("tls")


@pytest.fixture(scope="module")
def known(folder: Path) -> TlsFiles:
    """The files of a client of the server's authority."""
    authority = trustme.CA()
    roots = folder / "roots.pem"
    authority.cert_pem.write_to_path(roots)
    write_certificate(folder, authority, "127.0.0.1")
    return TlsFiles(roots, *write_certificate(folder, authority, "service.example"))


@pytest.fixture(scope="module")
def host(environment: Environment, folder: Path, known: TlsFiles, base) -> Iterator[TritonHost]:
    write_model(folder / "models", base, ExportOptions())
    tls = ServerTls(folder / "127.0.0.1.pem", folder / "127.0.0.1.key", known.roots)
    # All addresses: HTTP must not be on them.
    with TritonHost(
        folder / "models", environment, load=["random"], host="0.0.0.0", tls=tls
    ) as running:
        yield running


@pytest.mark.slow
def test_a_client_that_is_known_is_answered_as_this_process_does(host, known, base, monkeypatch):
    monkeypatch.setattr(parity, "WORDS", WORDS)
    assert host.url.startswith("tritons://127.0.0.1:")
    [found] = check_server(parse_address(host.url, known), {"random": base})
    assert (found.model, found.verdict) == ("random", "equal")


@pytest.mark.parametrize("who", ["nobody", "a stranger", "in clear"])
def test_others_are_not_answered(host, known, base, tmp_path, who):
    url, tls = host.url, TlsFiles(known.roots)
    if who == "a stranger":
        tls = TlsFiles(known.roots, *write_certificate(tmp_path, trustme.CA(), "service.example"))
    elif who == "in clear":
        url = host.url.replace("tritons", "triton")
    with pytest.raises(EngineUnavailableError):
        check_server(parse_address(url, tls), {"random": base})


def test_a_server_of_another_authority_is_not_asked(host, known, base, tmp_path):
    roots = tmp_path / "roots.pem"
    trustme.CA().cert_pem.write_to_path(roots)
    tls = TlsFiles(roots, known.certificate, known.key)
    with pytest.raises(EngineUnavailableError):
        check_server(parse_address(host.url, tls), {"random": base})


@pytest.mark.slow
def test_http_is_on_loopback_alone(host):
    command = host._command()
    assert "--http-address=127.0.0.1" in command
    assert "--metrics-address=127.0.0.1" in command
    assert "--grpc-address=0.0.0.0" in command
    assert httpx.get(f"{host.http_url}/v2/health/ready").is_success
