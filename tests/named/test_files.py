"""Named decisions as files: written, pushed, compared, tested and pulled by the command line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import steelyard
from steelyard.cli.main import main
from steelyard.decisions.lint.service import lint_dict
from steelyard.errors import InvalidRequestError
from steelyard.named.files import read_file, write_file
from steelyard.named.templates import list_templates
from support.servers.live_server import live_server

BINARY = 'name = "a"\n[[decisions]]\nid = "d"\nkind = "binary"\n'


@pytest.fixture(scope="module")
def server():
    with live_server() as live:
        yield live


@pytest.fixture
def run(server, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str, local: bool = False) -> tuple[int, str]:
        given = ["decision", *arguments, *([] if local else ["--url", server.url])]
        result = CliRunner().invoke(main, given)
        return result.exit_code, result.output

    return call


def test_a_file_goes_to_the_server_by_push_and_comes_back_by_pull(server, run):
    new = ("new", "desk", "--question", "Who is it for?", "--outcome", "billing=money")
    assert run(*new, "--outcome", "other", local=True)[0] == 0
    assert run(*new, "--outcome", "other", local=True)[0] != 0  # it is there already
    path = Path("decisions/desk.toml")
    assert run("diff")[0] == 1
    assert run("push", "--note", "first")[1].split() == [
        *("NAME", "VERSION", "ALIASES"),
        *("desk", "1", "production", "1"),
    ]
    assert run("diff") == (0, "")
    written = path.read_text()
    path.write_text(written.replace("Who is", "Which team is"))
    code, output = run("diff")
    assert (code, "+question = " in output) == (1, True)
    with steelyard.connect(server.url) as client:
        client.named_decisions.change("desk", owner="ann")
        assert "staging 2" in run("push", str(path), "--alias", "staging")[1]
        assert client.named_decisions.get("desk").owner == "ann"  # the file says nothing of it
        client.named_decisions.change("desk", owner="")
    assert run("diff", "--at", "staging") == (0, "")
    code, output = run("move", "desk", "production", "2")
    assert code != 0
    assert "desk@2 against 1: inconclusive" in output
    assert "decisions.desk.question" in output
    assert run("compare", "desk", "2")[0] == 1
    assert run("compare", "desk", "1")[0] == 0  # production is there
    assert run("move", "desk", "production", "2", "--overrule", "clearer")[0] == 0
    assert "production 1, staging 2" in run("rollback", "desk")[1]
    assert "clearer" in run("history", "desk")[1]
    assert run("pull")[0] == 0
    assert path.read_text() == written
    assert written in run("show", "desk")[1]
    assert run("store", "desk", "features")[1] == "desk stores answers without their texts.\n"
    assert run("pull")[0] == 0
    assert read_file(path.read_text()).store == "features"
    assert run("push")[0] == 0
    assert "desk" in run("list")[1]
    assert run("archive", "desk")[0] == run("archive", "desk", "--undo")[0] == 0


def test_examples_are_asked_and_the_exit_status_says_whether_all_came_out(server, run):
    decision = {"id": "team", "question": "Who?", "outcomes": ["billing", "shipping"]}
    with steelyard.connect(server.url) as client:
        top = client.decide("Where is it?", [decision]).decisions["team"].top
        client.named_decisions.create("checked", [decision])
    other = {"billing": "shipping", "shipping": "billing"}[top]
    text = (
        'name = "checked"\n[[decisions]]\nid = "team"\nquestion = "Who?"\n'
        'outcomes = ["billing", "shipping"]\n[[examples]]\ncontext = "Where is it?"\n'
    )
    Path("checked.toml").write_text(f'{text}expected = {{team = "{top}"}}\n')
    assert run("test", "checked.toml") == (0, "1 examples, 0 failed.\n")
    Path("checked.toml").write_text(f'{text}expected = {{team = "{other}"}}\n')
    for options in ((), ("--at", "production")):
        code, output = run("test", "checked.toml", *options)
        assert (code, output.splitlines()[-1]) == (1, "1 examples, 1 failed.")
    assert run("push", "checked.toml")[1].split()[3:5] == ["checked", "1"]  # the same content


def test_rules_of_a_file_are_said_in_words_and_tried_on_rows(server, run):
    text = (
        'name = "ruled"\notherwise = "person"\n[[decisions]]\nid = "desk"\nquestion = "What?"\n'
        'outcomes = ["refund", "other"]\n[fields]\namount = {type = "decimal"}\n'
        'vip = {type = "boolean", optional = true}\n[[rules]]\nwhen = "amount < 50"\n'
        'action = "refund"\n[[rules]]\nwhen = "vip"\naction = "call"\n[[examples]]\n'
        'context = "Broken"\nfields = {amount = 50, vip = true}\naction = "ACTION"\n'
    )
    Path("ruled.toml").write_text(text.replace("ACTION", "call"))
    words = "refund where amount below 50\ncall where vip\nperson otherwise\n"
    assert run("rules", "ruled.toml") == (0, words)
    assert run("push", "ruled.toml")[0] == 0
    assert run("diff", "ruled.toml") == (0, "")
    for options in ((), ("--at", "production")):
        assert run("test", "ruled.toml", *options) == (0, "1 examples, 0 failed.\n")
    Path("ruled.toml").write_text(text.replace("ACTION", "person"))
    code, output = run("test", "ruled.toml")
    assert (code, output.splitlines()[1].split()[:5]) == (
        1,
        ["ruled", "0", "rules", "person", "call"],
    )
    Path("ruled.toml").write_text(text.replace('action = "ACTION"\n', ""))
    assert "examples[0] expects nothing" in run("test", "ruled.toml")[1]
    rows = "text,amount,vip\nBroken,49.99,true\nBroken,50,TRUE\nBroken,50,\nBroken,,\n"
    Path("orders.csv").write_text(rows)
    code, output = run("rules", "ruled@production", "--rows", "orders.csv")
    assert code == 1
    assert [line.split()[-1] for line in output.splitlines()[1:4]] == ["1", "1", "1"]
    assert "row 4: fields.amount is missing; ruled@production needs a number" in output
    decision = {"id": "desk", "question": "What?", "outcomes": ["refund", "other"]}
    row = {"decisions": [decision], "targets": {"desk": {"refund": 1}}}
    with steelyard.connect(server.url) as client:
        rows = [
            row | {"context": f"Broken {amount}", "metadata": {"amount": amount}}
            for amount in (10, 20.5, 50)
        ]
        dataset = client.datasets.create("orders", evaluation=rows)
        client.named_decisions.create("plain", [decision])
    code, output = run("rules", "ruled", "--dataset", dataset.id)
    assert [line.split()[-1] for line in output.splitlines()[1:4]] == ["2", "0", "1"]
    assert "plain has no rules; add some in a version of it." in run("rules", "plain")[1]
    assert (
        "give --context one of text, amount, vip"
        in run("rules", "ruled", "--rows", "orders.csv", "--context", "body")[1]
    )


def test_a_decision_starts_from_a_template(run):
    listed = run("new", "--from", local=True)[1]
    for template in list_templates():
        assert len(template.examples) == 30
        asked = {"context": template.examples[0].context, **template.questions}
        assert lint_dict({name: asked[name] for name in ("context", "decisions")})["warnings"] == []
        assert {figures.decision for figures in template.measured} == set(
            template.examples[0].expected
        )
        assert template.name in listed
        code, output = run("new", "--from", template.name, local=True)
        assert (code, "Needs a family" in output) == (0, template.needs_more)
    assert {each.name for each in list_templates() if each.needs_more} == {
        "injection_guard",
        "moderation",
        "tool_choice",
    }
    assert run("new", "own", "--from", "moderation", "--model", "hashing", local=True)[0] == 0
    file = read_file(Path("decisions/own.toml").read_text())
    assert (file.name, file.model, len(file.examples)) == ("own", "hashing", 30)
    assert file.decisions == read_file(Path("decisions/moderation.toml").read_text()).decisions
    assert "there are contract_clause, " in run("new", "--from", "none", local=True)[1]
    assert run("new", "own", local=True)[0] == 2  # it needs a question, or a template
    run("new", "paid", "--question", "Is it paid?", "--kind", "binary", local=True)
    assert read_file(Path("decisions/paid.toml").read_text()).model == "auto"
    assert run("test", "decisions/own.toml", "--at-least", "0")[0] == 0
    assert run("test", "decisions/own.toml", "--at-least", "0.9")[0] == 1


def test_the_plugin_of_pytest_asks_a_file_and_its_examples(server, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("decisions").mkdir()
    decision = '[[decisions]]\nid = "team"\nquestion = "Who?"\noutcomes = ["a", "b"]\n'
    example = '[[examples]]\ncontext = "x"\nexpected = {team = "c"}\n'
    Path("decisions/desk.toml").write_text(f'name = "desk"\n{decision}{example}')
    Path("test_desk.py").write_text(
        "def test_desk(steelyard_decision):\n"
        "    desk = steelyard_decision('desk')\n"
        "    assert desk.actions('x')['team'] in {'a', 'b'}\n"
        "    [failure] = desk.failures()\n"
        "    assert failure.startswith('examples[0]: team is')\n"
        "    assert failure.endswith('not c')\n"
    )
    # An installation registers the plugin.
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command += ["--steelyard-url", server.url]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name = ", "not TOML"),
        (f'{BINARY}question = " "', "blank"),
        (
            f'{BINARY}question = "q"\n[[examples]]\ncontext = "c"\nexpected = {{e = "yes"}}',
            "not a decision here; there are d",
        ),
    ],
)
def test_a_file_with_something_wrong_in_it_is_refused(text, message):
    with pytest.raises(InvalidRequestError, match=message):
        read_file(text)


def test_a_file_equals_the_version_with_empty_descriptions(server):
    decision = {
        "id": "team",
        "question": "Who?",
        "outcomes": {"billing": None, "other": "the rest"},
        "policy": {"abstain_below": 0.5},
        "guideline": '# Whose?\n\n- a "voucher" is \\*billing*\n',
    }
    level = {"id": "urgency", "kind": "ordinal", "question": "How urgent?", "rubric": ["low", None]}
    with steelyard.connect(server.url) as client:
        made = client.named_decisions.create("whole", [decision, level], temperature=2)
        version = client.named_decisions.version("whole")
        file = read_file(write_file(made, version))
        assert client.named_decisions.add_version("whole", **file.content) == version
