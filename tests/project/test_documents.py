"""The documents build without a warning, and agree with the code."""

from __future__ import annotations

import html
import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import click
import numpy as np
import pytest
import yaml

from steelyard.app.application import ROUTES
from steelyard.app.deployment import open_deployment
from steelyard.cli.main import COMMANDS, main
from steelyard.decisions.lint.registry import RULES
from steelyard.decisions.lint.service import lint_dict
from steelyard.errors import InvalidRequestError, error_classes
from steelyard.evaluations.measures.gate_rules import REASONS
from steelyard.scoring.shipped import BASE
from steelyard.settings import SETTINGS, read_settings
from steelyard_workbench.frame.navigation import ENTRIES
from support.tree.documents import DOCS, PAGES, ROOT_PAGES, blocks, check_command, first_cells, page
from support.tree.repository import ROOT

TOOLS = DOCS / "tools"
#: Bytes of the pictures of the loop.
_MOST_PICTURES = 1_500_000


def tool(name: str):
    """A script of the documents, as a module."""
    spec = importlib.util.spec_from_file_location(f"documents_{name}", TOOLS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """The documents, built strictly: a warning ends it."""
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, str(TOOLS / "build.py"), str(folder)],
        check=False,
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert built.returncode == 0, built.stdout[-4000:] + built.stderr[-4000:]
    return folder


@pytest.fixture(scope="module")
def text_of(site):
    """The text of a built page, without its tags."""

    def read(name: str) -> str:
        whole = (site / name).read_text(encoding="utf-8")
        article = whole.split("<article", 1)[1].split("</article>")[0]
        return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", article)).split())

    return read


def in_order(text: str, parts: list[str]) -> bool:
    place = 0
    for part in parts:
        place = text.find(part, place)
        if place < 0:
            return False
        place += len(part)
    return True


def plain(text: str) -> str:
    return " ".join(text.replace("`", " ").split())


@pytest.mark.slow
def test_a_site_loads_nothing_from_outside(site):
    for path in site.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        loaded = re.findall(r"<(?:script|img|iframe|source)\b[^>]*\bsrc=\"([^\"]*)", text)
        loaded += re.findall(r"<link\b[^>]*\bhref=\"([^\"]*)", text)
        assert [url for url in loaded if re.match(r"(https?:)?//", url)] == [], path
    for path in (*site.rglob("*.css"), *site.rglob("*.svg")):
        assert not re.search(r"url\(['\"]?(?:https?:)?//", path.read_text(encoding="utf-8")), path


def test_the_base_models_page_is_its_card(text_of):
    assert f"Model card: {BASE.name}" in text_of("models/base-model.html")


def test_every_setting_is_in_its_table(text_of):
    text = text_of("operators/settings.html")
    rows = [
        plain(
            f"{setting.variable} "
            f"{'unset' if setting.default in {None, ''} else setting.default} {setting.help}"
        )
        for setting in SETTINGS
    ]
    assert in_order(
        re.sub(r" (?=[.,;:)])", "", text), [re.sub(r" (?=[.,;:)])", "", row) for row in rows]
    )


def test_every_error_is_in_its_table(text_of):
    text = text_of("applications/errors.html").split("class of ")[1]
    found = re.findall(r"\b(\d{3}) ([a-z_]+) ", text)
    assert {code: int(status) for status, code in found} == {
        code: cls.status for code, cls in error_classes().items()
    }
    assert all(f" {cls.__name__} " in f"{text} " for cls in error_classes().values())


def test_every_lint_rule_is_in_its_table(text_of):
    text = text_of("applications/wording.html")
    assert in_order(
        text,
        [
            plain(
                f"{rule.name} {rule.severity} "
                f"{', '.join(rule.kinds) if len(rule.kinds) < 3 else 'all'} {rule.summary}"
            )
            for rule in RULES
        ],
    )


def test_the_page_of_the_loop_agrees_with_its_test():
    folder = DOCS / "pictures" / "loop"
    text = " ".join((DOCS / "start" / "the-loop.md").read_text(encoding="utf-8").split())
    measured = json.loads((folder / "figures.json").read_text(encoding="utf-8"))
    assert f"here {measured['rows']} mails" in text
    assert f"{measured['corrected']} of the mails are under the wrong team" in text
    assert len(tool("tables").loop_table().splitlines()) == 2 + len(measured["gates"])
    assert "| new rows | " in tool("tables").first_family_table()
    modules = "".join(map(Path.read_text, (ROOT / "workbench").rglob("*.py")))
    names = re.findall(r"\*{1,2}([A-Z][^*]+?)\*{1,2}", text)
    assert [name for name in names if f'"{name}"' not in modules] == []
    pictures = {path.name for path in folder.glob("*.webp")}
    assert set(re.findall(r"pictures/loop/([\w-]+\.webp)", text)) <= pictures
    by_theme = {"light": set(), "dark": set()}
    for name, theme in re.findall(r"pictures/loop/([\w-]+)\.webp#only-(light|dark)", text):
        by_theme[theme].add(name)
    assert {f"{name}-dark" for name in by_theme["light"]} == by_theme["dark"] != set()
    assert sum(path.stat().st_size for path in folder.iterdir()) < _MOST_PICTURES


def test_the_first_pages_have_the_measured_figures():
    dataset, family = (
        (DOCS / "start" / f"first-{name}.md").read_text(encoding="utf-8")
        for name in ("dataset", "family")
    )
    measured = json.loads((DOCS / "plots" / "first_family.json").read_text(encoding="utf-8"))
    training, held_out = measured["training_rows"], measured["held_out_rows"]
    assert f"the {training} training rows" in family
    assert f"the {held_out} rows that neither" in family
    assert f"3 of {held_out} rows, version 1" in dataset
    assert f"scores {held_out} rows" in dataset
    assert "about 0.6 of the decisions are\nright" in dataset
    [right] = [line[5] for line in measured["groups"] if line[0] == "new rows"]
    assert round(float(right.split()[0]), 1) == 0.6


def test_every_command_and_option_is_in_its_list(text_of):
    text = text_of("operators/commands.html")
    for name in COMMANDS:
        command = main.get_command(click.Context(main), name)
        parts = command.commands if isinstance(command, click.Group) else {"": command}
        for part, inner in parts.items():
            assert f"{name} {part}".strip() in text
            for option in inner.params:
                if isinstance(option, click.Option) and not option.hidden:
                    assert option.opts[-1] in text


def test_every_route_is_described(text_of, site):
    overview = text_of("applications/http/index.html")
    for route in ROUTES:
        assert f"{route.method} {route.path} {plain(route.summary)}" in overview
        told = text_of(f"applications/http/{route.tags[0]}.html")
        assert f"{route.method} {route.path}" in told
    document = json.loads((ROOT / "server/steelyard/http/openapi.json").read_text(encoding="utf-8"))
    shapes = (site / "applications/http/shapes.html").read_text(encoding="utf-8")
    assert all(f'id="{name.lower()}"' in shapes for name in document["components"]["schemas"])


def test_the_answer_and_an_error_have_the_fields_that_are_described():
    [request] = (json.loads(block) for block in blocks(page("start/first-decision.md"), "json"))
    with open_deployment(read_settings({"engine": "hashing"}, environ={})) as deployment:
        answer = deployment.answers.answer_dict(request)
    assert [decision["kind"] for decision in answer["decisions"].values()] == [
        "single",
        "binary",
        "ordinal",
    ]
    described = page("applications/decide.md").split("## The answer")[1].split("\n## ")[0]
    assert answer.keys() <= set(first_cells(described))
    [error] = (json.loads(block) for block in blocks(page("applications/errors.md"), "json"))
    with pytest.raises(InvalidRequestError) as refused:
        lint_dict(
            {"context": "", "decisions": [{"id": "a", "question": "Paid?", "outcomes": ["yes"]}]}
        )
    assert error == refused.value.body(error["error"]["request_id"])


def test_the_first_decision_has_its_lint_findings():
    text = page("start/first-decision.md")
    [request] = (json.loads(block) for block in blocks(text, "json"))
    [warning] = lint_dict(request)["warnings"]
    assert f"`{warning['rule']}` on `{warning['decision']}`" in text


def test_the_reasons_of_a_gate_are_explained():
    assert first_cells(page("analysts/gate.md")) == list(REASONS)


def test_the_pages_of_the_workbench_are_listed():
    listed = re.findall(r"^\| (\w[\w ]*) \|", page("analysts/workbench.md"), flags=re.MULTILINE)
    assert listed[1:] == [entry.title for entry in ENTRIES]


def test_notebooks_are_listed():
    cells = first_cells(page("analysts/notebooks.md"))
    listed = [cell for cell in cells if cell.endswith(".ipynb")]
    assert listed == sorted(path.name for path in (ROOT / "notebooks").glob("*.ipynb"))


def test_the_readme_is_short_and_its_links_lead_somewhere():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 150
    for file in ROOT_PAGES:
        for link in re.findall(r"\]\(([^)#]+)", file.read_text(encoding="utf-8")):
            assert link.startswith("https://") or (ROOT / link).exists(), f"{file.name}: {link}"


def test_the_answer_of_the_readme_is_the_shipped_models(shipped):
    request, decisions = (
        json.loads(block)
        for block in blocks((ROOT / "README.md").read_text(encoding="utf-8"), "json")
    )
    answered = shipped.answers.answer_dict(request)["decisions"]
    assert answered.keys() == decisions.keys()
    for name, shown in decisions.items():
        result = answered[name]
        assert result.keys() == shown.keys()
        assert result["probabilities"] == pytest.approx(shown["probabilities"], abs=0.02)
        assert (result["top"], result["action"]) == (shown["top"], shown["action"])


@pytest.mark.parametrize(
    "path",
    [ROOT / "CONTRIBUTING.md", *sorted((DOCS / "contributors").rglob("*.md"))],
    ids=lambda path: path.name,
)
def test_the_paths_for_contributors_exist(path):
    text = path.read_text(encoding="utf-8")
    named = set(re.findall(r"\b(?:server|workbench|tests|deploy|scripts)/[\w./-]*[\w/]", text))
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []
    modules = set(re.findall(r"`(?:python -m )?(steelyard(?:\.[a-z_0-9]+)+)[` ]", text))
    missing = [
        name
        for name in sorted(modules)
        if not (ROOT / "server" / (name.replace(".", "/") + ".py")).exists()
        and not (ROOT / "server" / name.replace(".", "/")).is_dir()
    ]
    assert missing == []


def test_the_architecture_names_every_package():
    text = page("contributors/architecture.md")
    folders = {init.parent.name for init in (ROOT / "server" / "steelyard").glob("*/__init__.py")}
    assert {name for name in folders if f"| `server/steelyard/{name}/` |" not in text} == set()


def test_no_page_speaks_of_a_place_outside_the_repository():
    for path in (*PAGES, *ROOT_PAGES):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"(?<![\w.-])/(?:work|root)/", text), path


@pytest.mark.parametrize("source", sorted((DOCS / "pictures").glob("*.txt")), ids=lambda p: p.stem)
def test_a_picture_agrees_with_its_text(source):
    drawn = tool("pictures").draw(source.read_text(encoding="utf-8"))
    assert source.with_suffix(".svg").read_text(encoding="utf-8") == drawn


@pytest.fixture(scope="module")
def shipped():
    with open_deployment(read_settings({}, environ={})) as deployment:
        yield deployment


def test_the_plots_are_drawn_from_the_models_answers(shipped, monkeypatch):
    monkeypatch.syspath_prepend(str(TOOLS))
    plots = tool("plots")
    for name, svg in plots.draw().items():
        assert (plots.PLOTS / name).read_text(encoding="utf-8") == svg
    numbers = json.loads(plots.NUMBERS.read_text(encoding="utf-8"))
    rows = plots.asked_rows()
    assert len(numbers["probabilities"]) == len(rows)
    monkeypatch.setattr("steelyard.app.deployment.default_deployment", lambda *_: shipped)
    some = [0, 1, 100, 300, 500, 697]
    answered = plots.score([rows[index] for index in some])
    # int8 rounds otherwise on a processor without VNNI: .13 at the most, .015 in the mean.
    assert np.abs(answered - np.array(numbers["probabilities"])[some]).max() < 0.15


def test_the_one_test_that_contributors_are_shown_exists():
    [(file, word)] = re.findall(
        r"pytest (tests/\S+\.py) -k (\w+)", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    )
    assert re.search(
        rf"^def test_\w*{word}", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE
    )


def test_the_programs_named_exist():
    for name in ("scripts/test", "scripts/release", ".ci/run"):
        path = ROOT / name
        assert path.stat().st_mode & 0o111, f"{name} is not executable"
        subprocess.run(["bash", "-n", str(path)], check=True)
    assert "scripts/test" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    for file in (ROOT / "README.md", ROOT / "CONTRIBUTING.md"):
        assert "scripts/test\n" in blocks(file.read_text(encoding="utf-8"), "console")


class TestDeploy:
    """Checks of the files for containers that need no container engine."""

    FOLDER = ROOT / "deploy"
    INSTRUCTIONS = frozenset(
        {
            *("FROM", "WORKDIR", "COPY", "ARG", "RUN", "USER", "ENV", "VOLUME", "EXPOSE"),
            *("STOPSIGNAL", "HEALTHCHECK", "ENTRYPOINT", "CMD"),
        }
    )

    def instructions(self) -> list[tuple[str, str]]:
        text = (self.FOLDER / "Containerfile").read_text(encoding="utf-8")
        lines = [line for line in text.splitlines() if line and not line.startswith("#")]
        joined = "\n".join(lines).replace("\\\n", " ")
        return [tuple(line.split(" ", 1)) for line in joined.splitlines()]

    def test_a_container_runs_a_command_that_there_is(self):
        found = self.instructions()
        assert {name for name, _ in found} <= self.INSTRUCTIONS
        assert found[0][0] == "FROM"
        for name, rest in found:
            if name == "COPY" and "--from" not in rest:
                assert all((ROOT / source).exists() for source in rest.split()[:-1])
            if name == "RUN":
                subprocess.run(["bash", "-n", "-c", rest], check=True)
        given = dict(found)
        check_command([*json.loads(given["ENTRYPOINT"]), *json.loads(given["CMD"])])
        program = json.loads(given["HEALTHCHECK"].split(" CMD ")[1])
        compile(program[-1], "HEALTHCHECK", "exec")

    def test_several_machines_run_with_settings_that_there_are(self):
        composed = yaml.safe_load((self.FOLDER / "compose.yaml").read_text(encoding="utf-8"))
        services, volumes = composed["services"], set(composed["volumes"])
        variables = {setting.variable: setting.name for setting in SETTINGS}
        for name, service in services.items():
            for volume in service.get("volumes", ()):
                source = volume.split(":")[0]
                assert source in volumes or (self.FOLDER / source).is_file(), name
            assert set(service.get("depends_on", ())) <= services.keys()
            if service["image"] == "steelyard":
                assert (
                    self.FOLDER / service["build"]["context"] / service["build"]["dockerfile"]
                ).exists()
                check_command(["steelyard", *service["command"]])
                environ = service["environment"]
                assert environ.keys() <= variables.keys()
                settings = read_settings(environ=environ)
                assert settings.accounts == "on"
                assert settings.state_url.startswith("postgresql+psycopg://")


def test_every_page_is_listed_once():
    config = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    named = re.findall(r"[\w/-]+\.md", json.dumps(config["nav"]))
    assert len(named) == len(set(named))
    assert {str(path.relative_to(DOCS)) for path in PAGES} <= set(named)
