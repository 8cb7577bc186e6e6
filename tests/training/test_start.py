from __future__ import annotations

import hashlib

import pytest

from steelyard.training.base import start
from steelyard.training.base.start import PACKAGE, find_encoder


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    return tmp_path


def test_weights_of_another_hash_are_refused(folder) -> None:
    digest = hashlib.sha256(b"weights").hexdigest()
    with pytest.raises(ValueError, match=rf"SHA-256 {digest}; expected {start.WEIGHTS_SHA256}"):
        find_encoder(folder)


def test_the_expected_weights_are_found(folder, monkeypatch) -> None:
    monkeypatch.setattr(start, "WEIGHTS_SHA256", hashlib.sha256(b"weights").hexdigest())
    assert find_encoder(folder) == folder


def test_a_folder_without_weights_is_an_error(tmp_path) -> None:
    with pytest.raises(FileNotFoundError):
        find_encoder(tmp_path)


def test_without_a_folder_the_package_is_looked_for(monkeypatch, tmp_path) -> None:
    asked = []
    monkeypatch.setattr(start.util, "find_spec", asked.append)
    with pytest.raises(FileNotFoundError, match="--encoder"):
        find_encoder()
    assert asked == [PACKAGE]


def test_the_packages_folder_is_checked_too(monkeypatch, tmp_path) -> None:
    class Spec:
        origin = str(tmp_path / "__init__.py")

    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "model.safetensors").write_bytes(b"weights")
    monkeypatch.setattr(start.util, "find_spec", lambda _: Spec)
    with pytest.raises(ValueError, match="expected"):
        find_encoder()
    monkeypatch.setattr(start, "WEIGHTS_SHA256", hashlib.sha256(b"weights").hexdigest())
    assert find_encoder() == tmp_path / "model"
