"""Map: the rows of a dataset as points, near each other where they are alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice

import panel as pn
from panel.viewable import Viewable

from steelyard.datasets.wire import Dataset
from steelyard.maps.wire import MAX_POINTS, DatasetMap
from steelyard.wire.jobs import UNFINISHED
from steelyard_workbench.kit.basics import stack
from steelyard_workbench.kit.components.progress_bar import ProgressBar
from steelyard_workbench.kit.page import Loaded, OnePartPage
from steelyard_workbench.kit.session import Session
from steelyard_workbench.kit.theme import Status
from steelyard_workbench.kit.views import empty, heading, verdict
from steelyard_workbench.pages.evaluations.page import dataset_select
from steelyard_workbench.pages.map.map_view import Mapped, MapView, fetch_mapped
from steelyard_workbench.parts.datasets.names import no_datasets

_MOST_DATASETS = 200
#: Maps of a dataset that are looked through for that of a version.
_MOST_MAPS = 200
_DOING = {
    "embedding": "reading the rows",
    "comparing": "comparing the rows",
    "laying_out": "laying the rows out",
}


@dataclass(frozen=True, slots=True)
class _MappedVersion:
    """A dataset, a version with its map if it has one, and others ``offered`` where none is chosen."""

    dataset: Dataset
    version: int
    map: DatasetMap | None
    mapped: Mapped | None = None
    offered: Sequence[Dataset] = ()


class MapPage(OnePartPage):
    """The map of the chosen dataset, or of the newest one that has a map."""

    slug = "map"
    title = "Map"
    summary = "Rows of a dataset as points: those that are alike lie near each other."
    watched = ("dataset", "version")
    look_ms = 2000

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.view: MapView | None = None

    async def look(self) -> None:
        """Bring a map that is computed up to date."""
        part = self.shown
        if part is None or part.state != "shown" or not isinstance(part.data, _MappedVersion):
            return
        if part.data.map is not None and part.data.map.status in UNFINISHED:
            await part.refresh(quietly=True)

    def content(self) -> list[Viewable]:
        """Return the map, or the next step to one."""
        self.view = None
        self.shown = Loaded("The map", self._fetch, self._show, n_lines=8)
        return [self.part(self.shown)]

    def _fetch(self) -> _MappedVersion | None:
        """Return the map of the chosen dataset; ``None`` where there is no dataset."""
        if self.session.dataset:
            dataset = self.client.datasets.get(self.session.dataset)
            return self._fetch_version(dataset, self.session.version or dataset.version)
        offered = list(islice(self.client.datasets.iterate(), _MOST_DATASETS))
        if not offered:
            return None
        with_map = {
            (each.dataset_id, each.dataset_version)
            for each in islice(self.client.maps.list(), _MOST_MAPS)
            if each.status == "succeeded"
        }
        newest = next((each for each in offered if (each.id, each.version) in with_map), offered[0])
        return replace(self._fetch_version(newest, newest.version), offered=offered)

    def _fetch_version(self, dataset: Dataset, version: int) -> _MappedVersion:
        listed = islice(self.client.maps.list(dataset_id=dataset.id), _MOST_MAPS)
        dataset_map = next((map_ for map_ in listed if map_.dataset_version == version), None)
        if dataset_map is None or dataset_map.status != "succeeded":
            return _MappedVersion(dataset, version, dataset_map)
        mapped = fetch_mapped(self.client, dataset_map, has_answers=self.session.may_change)
        return _MappedVersion(dataset, version, dataset_map, mapped)

    def _show(self, mapped_version: _MappedVersion | None) -> Viewable:
        if mapped_version is None:
            return no_datasets(self.session, "A map shows the rows of one.")
        title = heading(f"Version {mapped_version.version}")
        if mapped_version.offered:
            title = dataset_select(self.session, mapped_version.offered, mapped_version.dataset.id)
        if mapped_version.mapped is not None:
            self.view = MapView(self.session, mapped_version.mapped, self.visit)
            self.view.recolour.start()
            return stack(title, self.view)
        place = stack()
        view = (
            self._show_none(mapped_version, place)
            if mapped_version.map is None
            else self._show_job(mapped_version.map, place)
        )
        return stack(title, *view, place)

    def _show_none(self, mapped_version: _MappedVersion, place: pn.Column) -> list[Viewable]:
        dataset, most = mapped_version.dataset, ""
        if dataset.rows > MAX_POINTS:
            most = (
                f" Of its {dataset.rows:,} rows {MAX_POINTS:,} are shown, taken at even distances."
            )
        start = self.button(
            "Lay out the rows",
            partial(self.client.maps.create, dataset.id, version=mapped_version.version),
            place,
            variant="contained",
            refused="Lay out the rows",
        )
        return [
            empty(
                "**No map of this version yet.** Alike texts are put near each other, once "
                f"and in the background: some minutes for 20,000 rows of a line or two.{most}",
                *([start] if self.session.may_change else []),
            )
        ]

    def _show_job(self, dataset_map: DatasetMap, place: pn.Column) -> list[Viewable]:
        if dataset_map.status in UNFINISHED:
            now = dataset_map.progress
            description = "It waits for its turn."
            if now is not None:
                description = f"It is {_DOING[now.phase]}: {now.step:,} of {now.steps:,}."
            bar = ProgressBar(
                label="Progress of the map",
                sizing_mode="stretch_width",
                value=0 if now is None else round(100 * now.step / now.steps),
            )
            cancel = self.button(
                "Cancel", lambda: self.client.maps.cancel(dataset_map.id), place, refused="Cancel"
            )
            cancel.disabled = dataset_map.status == "cancelling"
            buttons = [cancel] if self.session.may_change else []
            return [verdict("running", "The map is computed.", description), bar, *buttons]
        description = (
            "Its progress is stored for a day." if dataset_map.error is None else dataset_map.error
        )
        again = self.button(
            "Go on",
            partial(
                self.client.maps.create,
                dataset_map.dataset_id,
                version=dataset_map.dataset_version,
                model=dataset_map.model,
            ),
            place,
            variant="contained",
            refused="Go on",
        )
        status: Status = "off" if dataset_map.status == "cancelled" else "bad"
        buttons = [again] if self.session.may_change else []
        return [verdict(status, f"The map is {dataset_map.status}.", description), *buttons]
