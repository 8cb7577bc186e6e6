"""``steelyard labeling next``: which unlabelled rows to label first.

The shipped model reads the rows in this process, so that nothing is charged; with ``--model`` the
server answers them, as any request.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from steelyard.cli.local_state import show_table
from steelyard.cli.nouns import Shown, asking
from steelyard.cli.options import NEW_FILE, read_list

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.client import Client
    from steelyard.scoring.assets import BaseModel

_EPILOG = """\b
Examples:
  steelyard labeling next queries.jsonl --n 200 --output next.jsonl
  steelyard labeling next src_01k… --model router --dataset ds_01k… --n 100
  steelyard labeling next lab_01k… --n 50
"""
#: Rows that are embedded together.
_BATCH = 256
_SHOWN_CHARACTERS = 60
_MAX_LABELLED = 50_000


@asking("next", "rows", epilog=_EPILOG)
@click.option("--n", type=click.IntRange(1, 10_000), default=100, help="Rows to print.")
@click.option("--dataset", help="Rows labelled so far: those that are like them come later.")
@click.option("--model", help="The model or family whose doubts count; the shipped one by default.")
@click.option("--decisions", type=click.File("rb"), help="JSON of decisions for rows without any.")
@click.option("--output", type=NEW_FILE, help="Write them as JSON Lines.")
def command(
    client: Client,
    rows: str,
    *,
    n: int,
    dataset: str | None,
    model: str | None,
    decisions: Any,
    output: Path | None,
) -> Shown:
    """Order unlabelled ROWS by how much their labels would teach, and print the first.

    ROWS is a file of JSON Lines, a source (src_…), or a labeling job (lab_…), whose teachers' doubts
    and disagreement then count. Rows come first that a model doubts and that are unlike the ones
    before them.
    """
    import numpy as np

    from steelyard.client.progress import progress_bar
    from steelyard.labeling.choosing import choose, mean_doubt
    from steelyard.scoring.assets import load_base_model

    shared = read_list(decisions, "--decisions")
    queries, probabilities = _read(client, rows, shared)
    shipped = load_base_model()
    with progress_bar("Reading rows") as show:
        if probabilities is None:
            probabilities = []
            for place, query in enumerate(queries):
                probabilities.append(_ask(client, shipped, model, query))
                show(place + 1, len(queries), "asked")
        vectors = _embed(shipped, [_text(query["context"]) for query in queries])
        labelled = None
        if dataset is not None:
            labelled = _embed(shipped, _contexts(client, dataset))
    doubts = [mean_doubt(row_probabilities) for row_probabilities in probabilities]
    places = choose(np.asarray(vectors), doubts, n, labelled=labelled)
    chosen_rows = [
        {"row": place, "doubt": round(doubts[place], 4), **queries[place]} for place in places
    ]
    if output is not None:
        lines = (json.dumps(queries[place], ensure_ascii=False) for place in places)
        output.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        click.echo(f"{len(places)} rows are in {output}.", err=True)
    return chosen_rows, _show


#: What models said of a row: by decision, the probabilities of each model.
_Probabilities = list[list[list[float]]]


def _read(
    client: Client, rows: str, shared: Any
) -> tuple[list[dict[str, Any]], list[_Probabilities] | None]:
    """Return queries, with the teachers' answers where they come from a labeling job."""
    from msgspec import UNSET

    if rows.startswith("lab_"):
        results = list(client.labeling.results(rows))
        queries = [{"context": result.context, "decisions": result.decisions} for result in results]
        probabilities = []
        for result in results:
            answers = [
                each.probabilities for each in result.teachers if each.probabilities is not UNSET
            ]
            names = list(answers[0]) if answers else []
            probabilities.append(
                [[list(each[name].values()) for each in answers] for name in names]
            )
        return queries, probabilities
    if rows.startswith("src_"):
        queries = [
            {
                "context": source_row.context,
                "decisions": None if source_row.decisions is UNSET else source_row.decisions,
            }
            for source_row in client.labeling.source_rows(rows)
        ]
    else:
        queries = _read_file(Path(rows))
    for query in queries:
        query["decisions"] = query.get("decisions") or shared
    return [
        {name: value for name, value in query.items() if value is not None} for query in queries
    ], None


def _read_file(path: Path) -> list[dict[str, Any]]:
    if not path.is_file():
        raise click.BadParameter(
            f"{str(path)!r} is no file, and no id of a source or a labeling job.", param_hint="ROWS"
        )
    queries = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            context = row["context"]
        except (ValueError, TypeError, KeyError, RecursionError):
            raise click.BadParameter(
                f"line {number} is no JSON object with a context.", param_hint="ROWS"
            ) from None
        queries.append({"context": context, "decisions": row.get("decisions")})
    return queries


def _ask(
    client: Client, shipped: BaseModel, model: str | None, query: dict[str, Any]
) -> _Probabilities:
    """Return a model's probabilities for a row; an empty list for a row without decisions."""
    if "decisions" not in query:
        return []
    if model is not None:
        answer = client.decide(query["context"], query["decisions"], model=model, store=False)
        return [[list(decision.probabilities.values())] for decision in answer.decisions.values()]
    from steelyard.serving.decide import DecideLimits, DecideService

    decide = DecideService(
        model_name=shipped.scorer.name,
        temperatures=shipped.temperatures,
        tokenizer=shipped.tokenizer,
        limits=DecideLimits(),
    )
    prepared = decide.prepare(query)
    [scored] = shipped.scorer.score([prepared.rendered])
    pairs = zip(prepared.request.decisions, scored, strict=True)
    return [[decide.probabilities(decision, score)] for decision, score in pairs]


def _embed(shipped: BaseModel, texts: Sequence[str]) -> Any:
    import numpy as np

    batches = [
        shipped.scorer.embed(texts[start : start + _BATCH])
        for start in range(0, len(texts), _BATCH)
    ]
    return np.concatenate(batches) if batches else np.zeros((0, 1), dtype=np.float32)


def _contexts(client: Client, dataset: str) -> list[str]:
    """Return the contexts of a dataset's rows, at most so many."""
    contexts: list[str] = []
    has_more = True
    while has_more and len(contexts) < _MAX_LABELLED:
        page = client.datasets.rows(dataset, offset=len(contexts), limit=500)
        contexts += [_text(row.context) for row in page.data]
        has_more = page.has_more and bool(page.data)
    return contexts


def _text(context: Any) -> str:
    from steelyard.decisions.rendering import render_value

    return render_value(context)


def _show(chosen_rows: Sequence[dict[str, Any]]) -> None:
    show_table(
        ("ROW", "DOUBT", "CONTEXT"),
        [
            (row["row"], row["doubt"], _text(row["context"])[:_SHOWN_CHARACTERS])
            for row in chosen_rows
        ],
    )
