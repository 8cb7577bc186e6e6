"""``models.toml``: its fields, how it is written, and where keys come from."""

from __future__ import annotations

import datetime as dt

import pytest

from steelyard.serving.connected.declared import (
    FILE,
    Calibration,
    ConnectedModel,
    read_models,
    write_models,
)
from steelyard.settings import InvalidSettingError

URL = "http://127.0.0.1:8080"


def model(**given):
    return ConnectedModel(**{"wire": "chat", "url": URL, **given})


def test_what_is_written_is_read(tmp_path):
    assert read_models(tmp_path) == {}
    fitted = Calibration(number=1, dataset="ds_1", version=2, temperatures={"single": {"2": 1.5}})
    models = {
        "julia": model(wire="systemone", model="julia-144m"),
        "qwen": model(
            key_env="KEY", price_in="0.15", added=dt.date(2026, 1, 2), calibrations=(fitted,)
        ),
    }
    write_models(tmp_path / "home", models)
    assert read_models(tmp_path / "home") == models
    assert (tmp_path / "home" / FILE).stat().st_mode & 0o777 == 0o600
    assert models["qwen"].price_nano == 150


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("", {}),
        ("a b", {}),
        ("jev-1", {}),
        ("a", {"url": "ftp://host/"}),
        ("a", {"url": "http://"}),
        ("a", {"url": "http://host:99999"}),
        ("a", {"url": "http://user:secret@host"}),
        ("a", {"url": "http://host/?key=1"}),
        ("a", {"price_in": "-1"}),
        ("a", {"price_in": "cheap"}),
        ("a", {"price_in": "NaN"}),
        ("a", {"price_in": "0.0001"}),
        ("a", {"key_env": "A", "key_file": "b"}),
        ("a", {"folder": "hub/1"}),
        ("a", {"wire": "hub"}),
        ("a", {"wire": "hub", "folder": "hub/1"}),
    ],
)
def test_unusable_models_are_refused(name, given):
    with pytest.raises(InvalidSettingError) as caught:
        model(**given).check(name)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "models = 1",
        "[models.a]\nwire = 'telepathy'\nurl = 'http://a'",
        "[models.a]\nwire = 'chat'",
        "[models.a]\nwire = 'chat'\nurl = 'http://a'\nkey = 'secret'",
        "[models.a]\nwire = 'chat'\nurl = 'http://a'\nconcurrency = 0",
        "[models.a\n",
    ],
)
def test_a_file_that_cannot_be_used_is_told(tmp_path, text):
    (tmp_path / FILE).write_text(text)
    with pytest.raises(InvalidSettingError, match=FILE):
        read_models(tmp_path)


def test_a_key_comes_from_a_variable_or_a_file(tmp_path, monkeypatch):
    monkeypatch.setenv("FAR_KEY", " k1 ")
    file = tmp_path / "key"
    file.write_text("k2\n")
    assert model(key_env="FAR_KEY").key() == "k1"
    assert model(key_file=str(file)).key() == "k2"
    assert model().key() is None
    monkeypatch.delenv("FAR_KEY")
    file.write_bytes(b"two\nlines")
    for given in ({"key_env": "FAR_KEY"}, {"key_file": str(file)}, {"key_file": "/nowhere"}):
        with pytest.raises(InvalidSettingError):
            model(**given).key()


@pytest.mark.parametrize(
    ("given", "reads"),
    [
        ({"wire": "gguf", "file": "j.gguf"}, 3_584),
        ({"wire": "gguf", "file": "j.gguf", "context_tokens": 8_192}, 7_680),
        ({"wire": "gguf", "file": "j.gguf", "max_input_tokens": 900}, 900),
        ({"wire": "chat", "url": "http://x"}, 65_536),
    ],
)
def test_a_judge_reads_as_much_as_fits_its_context(given, reads):
    assert ConnectedModel(**given).reads_tokens == reads
