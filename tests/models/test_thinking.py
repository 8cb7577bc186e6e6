"""A judge that thinks, as a server has it: its price, what is kept of a thought, its gain and cost."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace

import httpx
import pytest
from click.testing import CliRunner
from msgspec import UNSET

import steelyard
from steelyard.cli.main import main
from steelyard.errors import InvalidRequestError, NotFoundError
from steelyard.serving.connected.declared import ConnectedModel, ModelsFile, Thinking, write_file
from steelyard.serving.connected.declared_route import DeclaredRoute, RouteStep
from steelyard.serving.routed.observing import observe
from steelyard.serving.routed.walking import model_figures
from support.models.fake_llama import FakeLlama
from support.tree.repository import ROOT
from support.waiting import wait_until

PATIENCE_S = 60
PAID = {"id": "paid", "kind": "binary", "question": "Is the invoice paid in full?"}


#: What a calibration prints of the judge below.
FIGURES = """\
A DECISION           AT ONCE  WITH THINKING  CHANGE   95 %
right                62.5%    87.5%          +25.0%   +10.0% to +40.0%
log loss (nats)      0.4078   0.3768         -0.0310  -0.1829 to +0.1314
processor time (ms)  115      333            +218     +175 to +268
It thought about 50% of the held-out decisions, 16 tokens each."""


def context(n):
    """Return the text of an invoice: every second one is paid in full."""
    came = 100 if n % 2 else 60
    text = f"Invoice {n} over 100 EUR: {came} EUR came in."
    return f"{text} A voucher covers 40 EUR." if n % 8 == 0 else text


def answer(prompt):
    """Be sure where all is paid, or once a sum is written down; lean to yes elsewhere."""
    if "EUR are open" in prompt:
        return {"Yes": 0.1, "No": 0.9}
    return {"Yes": 0.9, "No": 0.1} if ": 100 EUR" in prompt else {"Yes": 0.55, "No": 0.45}


def write(prompt):
    """Write down the sum that is open, which leaves vouchers out."""
    came = re.search(r": (\d+) EUR came", prompt)
    return f"{100 - int(came[1])} EUR are open." if came else "No sum is named."


@pytest.fixture(scope="module")
def judge(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    (home / "judge.gguf").write_bytes(b"made up")
    think = Thinking(below=0.7, tokens=100)
    models = {
        name: ConnectedModel(
            wire="gguf",
            file="judge.gguf",
            price_in=price,
            permutations=1,
            think=thinking,
            teacher=True,
        )
        for name, price, thinking in (("judge", "1", think), ("plain", "1", None))
    }
    models["far"] = ConnectedModel(wire="chat", url="http://127.0.0.1:9/v1")
    steps = (RouteStep(model="hashing", threshold=1.0), RouteStep(model="judge"))
    write_file(home, ModelsFile(models, {"both": DeclaredRoute(steps=steps)}))
    fake = FakeLlama(answer, write)
    with pytest.MonkeyPatch.context() as monkeypatch:
        fake.patch(monkeypatch)
        with steelyard.embed(home, engine="hashing", jobs="off") as server:
            yield SimpleNamespace(client=server.client, url=server.url, home=home, fake=fake)


def ask(judge, n, **options):
    return judge.client.decide(context=context(n), decisions=[PAID], **options)


def test_what_it_writes_is_counted_and_paid_like_what_it_reads(judge):
    sure, unsure = (ask(judge, n, model="judge") for n in (1, 2))
    assert (sure.decisions["paid"].top, unsure.decisions["paid"].top) == ("yes", "no")
    assert sure.usage.thought_tokens is UNSET
    n_written = len("40 EUR are open.")
    assert unsure.usage.thought_tokens == {"judge": n_written}
    prices = [float(each.charge.amount_usd) * 1e6 for each in (sure, unsure)]
    n_read = sure.usage.input_tokens
    assert unsure.usage.input_tokens == n_read
    assert prices == pytest.approx([n_read, n_read + n_written])
    # At most 100 tokens are written.
    assert float(unsure.charge.reserved_usd) * 1e6 == pytest.approx(n_read + 100)
    quote = judge.client.estimate(context=context(2), decisions=[PAID], model="judge")
    assert float(quote.maximum_charge_usd) * 1e6 == pytest.approx(n_read + 100)
    through = ask(judge, 2, model="both")
    assert through.usage.thought_tokens == {"judge": n_written}
    assert [step.model for step in through.decisions["paid"].route] == ["hashing", "judge"]
    assert float(through.charge.amount_usd) * 1e6 == pytest.approx(n_read + n_written)


def test_jobs_are_priced_by_what_it_may_write_and_fits_by_what_it_wrote(judge):
    named, labeling = judge.client.named_decisions, judge.client.labeling
    named.create("invoice", [PAID], model="plain")
    named.add_version("invoice", [PAID], model="judge")
    for n in (1, 2):
        judge.client.decision("invoice").decide(context(n))
    estimate = named.estimate_comparison("invoice", 2)
    n_read = estimate.input_tokens_before + estimate.input_tokens_after
    assert float(estimate.price_usd) * 1e6 == pytest.approx(n_read + 2 * 100)
    comparison = named.compare("invoice", 2)
    assert comparison.price_usd == estimate.price_usd
    named.cancel_comparison(comparison.id)

    own = {"context": context(1), "decisions": [PAID, PAID | {"id": "again"}]}
    rows = "".join(json.dumps(row) + "\n" for row in (own, {"context": context(2)}))
    source = labeling.upload("invoices", rows.encode())
    prices = {}
    for teacher in ("plain", "judge"):
        job = labeling.create(source.id, teacher_models=[teacher], decisions=[PAID])
        prices[teacher] = float(job.price_usd) * 1e6
        labeling.cancel(job.id)
    assert prices["judge"] - prices["plain"] == pytest.approx(3 * 100)

    rows = [
        {"context": context(n), "decisions": [PAID], "targets": {"paid": {"yes": 1.0}}}
        for n in (1, 2)
    ]
    charged = []

    def decide(model, row):
        answered = judge.client.decide(row["context"], row["decisions"], model=model)
        if model == "judge":
            charged.append(float(answered.charge.amount_usd))
        return answered

    side, failures = observe(decide, rows, {"hashing": 0, "judge": 1_000})
    assert not failures
    figures = model_figures(side, side.models[1])
    assert figures.price_usd_per_1000.value == pytest.approx(sum(charged) * 1000 / 2)
    assert side.models[1].written.tolist() == [0, len("40 EUR are open.")]


def test_a_thought_is_kept_with_an_explanation_and_never_stored(judge):
    assert ask(judge, 2, model="judge").thoughts is UNSET
    explained = ask(judge, 8, model="judge", explain=True, store=True)
    thought = explained.thoughts["paid"]
    assert (thought.text, thought.tokens) == ("40 EUR are open.", 16)
    assert thought.before == pytest.approx({"yes": 0.55, "no": 0.45})
    # Each text without a sentence is asked as it would be alone.
    assert explained.usage.thought_tokens["judge"] > 16
    stored = judge.client.stored_decision(explained.id)
    assert stored.results["paid"].top == "no"
    assert "EUR are open" not in str(stored)
    of_features = ask(judge, 8, model="judge", explain=True, store="features")
    assert of_features.thoughts["paid"].text == ""


def rows(first, n):
    """Return labelled invoices: those that are paid or that a voucher covers are paid in full."""
    return [
        {
            "context": context(number),
            "decisions": [PAID],
            "targets": {"paid": {"yes" if number % 2 or number % 8 == 0 else "no": 1.0}},
            "metadata": {"by": "person"},
        }
        for number in range(first, first + n)
    ]


def set_up(judge, name):
    """Return a judge once its last setup has ended."""

    def find():
        [found] = [each for each in judge.client.judges.list().data if each.name == name]
        return found if found.task is None or found.task.status != "running" else None

    wait_until(find, PATIENCE_S)
    return find()


def test_a_calibration_measures_gain_and_cost_of_thinking(judge):
    # The figures of docs/models/judge.md.
    judges = judge.client.judges
    dataset = judge.client.datasets.create(
        "invoices", training=rows(0, 80), evaluation=rows(80, 80)
    ).id
    judges.calibrate("judge", dataset)
    found = set_up(judge, "judge")
    assert found.task.error is None
    effect = found.calibration.thinking
    assert (effect.thought.value, effect.thought.n, effect.tokens) == (0.5, 80, 16)
    assert (effect.right.before, effect.right.after, effect.right.n) == (0.625, 0.875, 80)
    judges.calibrate("plain", dataset)
    assert set_up(judge, "plain").calibration.thinking is None

    options = ["--url", judge.url, "--home", str(judge.home)]
    shown = CliRunner().invoke(main, ["model", "calibrate", "judge", dataset, *options])
    table = shown.output[shown.output.index("A DECISION") :]
    assert FIGURES in "\n".join(map(str.rstrip, table.splitlines()))
    plain = CliRunner().invoke(main, ["model", "calibrate", "judge", dataset, *options, "--json"])
    shown = json.loads(plain.stdout[plain.stdout.index("{") :])
    assert shown["thinking"]["right"]["change"] == 0.25
    assert FIGURES in (ROOT / "docs/models/judge.md").read_text()


def test_thinking_otherwise_is_another_judge(judge):
    judges = judge.client.judges
    dataset = judge.client.datasets.create(
        "further invoices", training=rows(200, 40), evaluation=rows(300, 60)
    ).id
    judges.calibrate("judge", dataset)
    assert set_up(judge, "judge").calibrated
    judges.qualify("judge", dataset)
    set_up(judge, "judge")
    assert judges.qualifications("judge").is_qualified
    assert judges.think("judge", 0.7, tokens=100).calibrated  # as it is
    command = ["judge", "think", "judge", "--url", judge.url]
    shown = CliRunner().invoke(main, [*command, "--below", "0.5", "--tokens", "50"])
    assert "writes up to 50 tokens where its first answer is below 0.5" in shown.output
    [found] = [each for each in judges.list().data if each.name == "judge"]
    assert ((found.think.below, found.think.tokens), found.calibrated) == ((0.5, 50), False)
    assert judges.qualifications("judge").data[0].voided_by == ["settings"]
    wait_until(lambda: ask(judge, 2, model="judge").usage.thought_tokens is UNSET, PATIENCE_S)
    shown = CliRunner().invoke(main, [*command, "--off"])
    assert "judge answers at once." in shown.output
    assert CliRunner().invoke(main, command).exit_code == 2
    for name, given, message in (
        ("judge", {"below": 0.5, "tokens": 1_025}, "tokens"),
        ("judge", {"below": 1.0}, "below"),
        ("judge", {"below": 0.5, "tokens": 1_000}, ""),
    ):
        url = f"{judge.url}/v1/judges/{name}/think"
        refused = httpx.post(url, json=given)
        assert refused.status_code == (422 if message else 200)
        assert message in refused.text
    with pytest.raises(NotFoundError, match="connect it first"):
        judges.think("nothing", 0.5)
    with pytest.raises(InvalidRequestError, match="only a model of wire 'gguf' can think"):
        judges.think("far", 0.5)
