"""The route ``auto``: the shipped model for choices, a reader for yes/no and doubtful ones, then a judge.

Any of the three may be missing. A route of an operator's under that name stays; the plain
route of a judge gets the reader in its middle.
"""

from __future__ import annotations

import msgspec

from steelyard.decisions.wire import Kind
from steelyard.scoring.shipped import BASE
from steelyard.serving.connected.declared import ModelsFile
from steelyard.serving.connected.declared_route import DeclaredRoute, RouteStep
from steelyard.serving.reader.declaring import BUNDLED, WIRE, has_bundled, reader_model

ROUTE = "auto"
#: The name of the judge of the setting ``judge``.
JUDGE = "judge"
#: Top probability from which the shipped model decides a choice: of 600 decisions of public tasks two
#: fifths reach it, and .76 of those are right (tests/benchmarks/judge.py). It decides no yes/no.
AUTO_THRESHOLD = 0.6
_NO_YES_NO: dict[Kind, float] = {"binary": 1.0}
#: Top probability from which a reader decides where a judge could: see docs/models/reader.md.
READER_THRESHOLD = 0.6
_READER_YES_NO: dict[Kind, float] = {"binary": 0.75}
#: Above it a reader's answer to a yes/no goes to a judge too: see docs/models/reader.md.
READER_UNSTATED = 0.5
#: Weight of the shipped model's answer to a yes/no beside that of the reader that ships: of those
#: tried with the lowest log loss over six sets (MODEL_CARD.md of the reader).
BUNDLED_CARRIES = 1.0


def auto_route(base: str, reader: str | None, judge: str | None) -> DeclaredRoute:
    """Return the route over the shipped model and a reader or a judge, or both in this order.

    The reader that ships answers yes/no beside the shipped model, whose answer it weighs in, and leaves
    choices to it.
    """
    ships = reader == BUNDLED.name
    threshold = 0.0 if ships and judge is None else AUTO_THRESHOLD
    steps = [RouteStep(model=base, threshold=threshold, by_kind=dict(_NO_YES_NO))]
    if reader is not None:
        reading = RouteStep(model=reader, carries=BUNDLED_CARRIES if ships else 0.0)
        if judge is not None:
            reading = msgspec.structs.replace(
                reading,
                threshold=READER_THRESHOLD,
                by_kind=dict(_READER_YES_NO),
                max_unstated=READER_UNSTATED,
            )
        steps.append(reading)
    if judge is not None:
        steps.append(RouteStep(model=judge))
    return DeclaredRoute(steps=tuple(steps))


def completed(file: ModelsFile, base: str) -> ModelsFile:
    """Return a home's declared models, with the shipped reader and the route ``auto`` through a reader.

    The reader that ships stands beside the base model that ships, whose name ``base`` then is. One
    that was declared goes before it.
    """
    models = dict(file.models)
    if base == BASE.name and has_bundled():
        declared = models.get(BUNDLED.name)
        # Calibrated, it is declared with the folder of the installation that was there then.
        models[BUNDLED.name] = (
            reader_model(BUNDLED)
            if declared is None
            else msgspec.structs.replace(declared, file=str(BUNDLED))
        )
    reader = next((name for name, model in models.items() if model.wire == WIRE), None)
    routes = dict(file.routes)
    if reader is not None and ROUTE not in models:
        route, judge = routes.get(ROUTE), JUDGE if JUDGE in models else None
        if route is not None:
            last = route.models[-1]
            is_plain = route.steps == auto_route(base, None, last).steps and not route.dataset
            is_judge = last in models and models[last].wire != WIRE
            judge = last if is_plain and is_judge else None
        if route is None or judge is not None:
            routes[ROUTE] = auto_route(base, reader, judge)
    return ModelsFile(models, routes)
