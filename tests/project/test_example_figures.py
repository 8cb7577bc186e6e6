"""The page of the figures to sign: each example prints the page's figures.

``STEELYARD_WRITE_EXAMPLES=1 python -m pytest -m slow tests/project/test_example_figures.py`` writes
their output into the page.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import re
import shlex
import sys
import traceback

import pytest
from click.testing import CliRunner

import steelyard
from steelyard.app.deployment import open_deployment
from steelyard.app.job_runtime import open_worker
from steelyard.cli.main import main
from steelyard.cli.samples import sample_file
from steelyard.client import Client
from steelyard.settings import read_settings
from support.servers.live_server import live_server
from support.tree.documents import DOCS, all_blocks, page
from support.tree.repository import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

PAGE = "analysts/figures.md"
NUMBER = re.compile(r"\d*\.?\d+")
#: The section whose examples need vectors of texts, which the test double has not.
OF_THE_SHIPPED_MODEL = "Texts unlike any seen"
#: What differs from run to run, and what stands for it.
CHANGING = (
    (r"\b([a-z]{2,6})_[0-9a-z]{26}\b", r"\1_…"),
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?Z?", "2026-11-28 12:00"),
    (r"[\d.,]+ ms\b", "… ms"),
    (r"\b[0-9a-f]{64}\b", "…"),
    (r"[ \t]+$", ""),
)


def shortened(text: str) -> str:
    for pattern, short in CHANGING:
        text = re.sub(pattern, short, text, flags=re.MULTILINE)
    return text.strip() + "\n"


class Desk:
    """A folder and a server, and the output of a page's blocks on them."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._names: dict[str, object] = {}

    def run(self, language: str, code: str) -> str:
        if language == "python":
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(code, "the page", "exec"), self._names)
            return printed.getvalue()
        commands = [line.removeprefix("$ ") for line in code.splitlines()]
        return "".join(f"$ {command}\n{self._command(command)}\n" for command in commands)

    def close(self) -> None:
        for value in self._names.values():
            if isinstance(value, Client):
                value.close()

    def _command(self, command: str) -> str:
        words = shlex.split(command)
        if words[0] == "python":
            return self.run("python", words[2])
        if "EVALUATION_ID" in words:
            with steelyard.connect(self._url) as client:
                dataset = next(d for d in client.datasets.list().data if d.name == "support_triage")
                newest = next(client.evaluations.list(dataset.id)).id
            words = [newest if word == "EVALUATION_ID" else word for word in words]
        done = CliRunner().invoke(main, words[1:])
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            traceback.print_exception(done.exception, file=sys.stderr)
        assert done.exit_code in (0, 1), done.output
        if words[1:3] == ["family", "create"]:
            with steelyard.connect(self._url) as client:
                client.families.wait(words[3], next(client.jobs.list()))
        return f"{done.output.strip()}\n" + ("(exit status 1)\n" if done.exit_code else "")


@contextlib.contextmanager
def desk(folder, patch, *, engine, n_rows):
    """Open a folder with the first tickets, and a server of an engine."""
    tickets = ROOT / "datasets" / "support_triage.jsonl"
    lines = tickets.read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "datasets").mkdir()
    for name, n in {"few": 20, "datasets/support_triage": n_rows}.items():
        (folder / f"{name}.jsonl").write_text("".join(lines[:n]), encoding="utf-8")
    patch.chdir(folder)
    patch.setenv("STEELYARD_ENGINE", "hashing")
    patch.setenv("STEELYARD_HOME", str(folder / "home"))
    patch.setenv("COLUMNS", "120")
    # A dataset's id says which of its rows are held out.
    numbers = itertools.count(1)
    patch.setattr("steelyard.datasets.service.new_id", lambda kind: f"{kind}_{next(numbers):026}")
    settings = read_settings({"engine": "hashing"}, environ={})
    with (
        open_deployment(settings) as deployment,
        live_server(
            home=folder / "home", jobs="off", engine=engine, base_models="double=hashing", threads=1
        ) as server,
        open_worker(server.services.settings),
    ):
        patch.setattr("steelyard.app.deployment.default_deployment", lambda *_: deployment)
        patch.setenv("STEELYARD_URL", server.url)
        opened = Desk(server.url)
        yield opened
        opened.close()


def blocks_of(*, is_shipped: bool):
    """The examples of the page, and their expected output."""
    for section in page(PAGE).split("\n## "):
        if section.startswith(OF_THE_SHIPPED_MODEL) == is_shipped:
            blocks = all_blocks(section)
            yield from zip(blocks[::2], blocks[1::2], strict=True)


def check(desk: Desk, *, is_shipped: bool) -> None:
    """Compare the examples' output with the page, or write it there."""
    is_trained = False
    for (language, _, code), (_, _, shown) in blocks_of(is_shipped=is_shipped):
        printed = shortened(desk.run(language, code))
        if os.environ.get("STEELYARD_WRITE_EXAMPLES"):
            before = f"{code}```\n\n```text\n{shown}```"
            text = page(PAGE).replace(before, f"{code}```\n\n```text\n{printed}```")
            (DOCS / PAGE).write_text(text, encoding="utf-8")
        else:
            # What is trained differs by processor, and so may an answer; the words do not.
            assert NUMBER.sub("#", printed) == NUMBER.sub("#", shown), code
            if is_shipped:
                continue
            is_trained |= "family create" in code
            if not is_trained:
                assert printed == shown, code
            for ours, theirs in zip(*map(NUMBER.findall, (printed, shown)), strict=True):
                least = 0.1 if "." in ours else 2
                assert float(ours) == pytest.approx(float(theirs), abs=least, rel=0.03), (
                    code,
                    printed,
                )


def test_the_examples_print_the_figures_of_the_page(tmp_path, monkeypatch):
    with desk(tmp_path, monkeypatch, engine="hashing", n_rows=300) as opened:
        check(opened, is_shipped=False)
    # The line that another page shows is of this run.
    (line,) = re.findall("^ +(Held-out labels that count: .*)$", page(PAGE), re.MULTILINE)
    assert f"```text\n{line}\n```" in page("analysts/gate.md")


def test_the_shipped_model_tells_texts_unlike_any_seen(tmp_path, monkeypatch):
    with desk(tmp_path, monkeypatch, engine="auto", n_rows=200) as opened:
        opened.run(
            "console", "$ steelyard dataset create datasets/support_triage.jsonl --name tickets"
        )
        opened.run("console", "$ steelyard family create triage tickets --follow")
        check(opened, is_shipped=True)


def test_the_first_dataset_is_answered_as_well_as_its_page_says(tmp_path):
    (shown,) = re.findall(r"about (0\.\d) of the decisions", page("start/first-dataset.md"))
    with steelyard.embed(tmp_path) as server:
        client = server.client
        dataset = client.datasets.create("support_triage", sample_file("support_triage"))
        [evaluation] = client.evaluations.create(dataset.id, "steelyard-base-2").data
        measured = client.evaluations.wait(evaluation, timeout_s=300, progress=False)
    # Half of the last digit, and two standard errors of 400 decisions.
    assert measured.metrics.accuracy == pytest.approx(float(shown), abs=0.05 + 2 * 0.025)
