"""A home of every release opens in this version, and everything in it is read as it was left."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

import steelyard

HOMES = sorted(Path(__file__).with_name("homes").glob("*.tar.xz"))


@pytest.mark.parametrize("packed", HOMES, ids=lambda path: path.name.removesuffix(".tar.xz"))
def test_a_home_of_a_release_opens_and_goes_on(packed: Path, tmp_path: Path):
    with tarfile.open(packed) as archive:
        # Python 3.11.2, which Debian has, knows no filters.
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(tmp_path)
    with steelyard.embed(tmp_path, engine="hashing", jobs="off") as server:
        client = server.client
        [dataset] = client.datasets.iterate()
        assert (dataset.name, dataset.version) == ("tickets", 2)
        assert len(client.datasets.to_polars(dataset.id)) == 24
        [evaluation] = client.evaluations.list(dataset.id)
        assert evaluation.status == "succeeded"
        assert len(list(client.evaluations.records(evaluation.id))) == 8
        [stored] = client.decision_log().data
        assert client.stored_decision(stored.id).feedback == {"team": "billing"}
        answer = client.decision("triage").decide("Where is my parcel?")
        assert answer.decision.version == 1
        assert client.datasets.add_rows(dataset.id, [row("Parcel 99 is late.")]).version == 3


def row(context: str) -> dict[str, object]:
    question = {"id": "team", "question": "Which team?", "outcomes": ["billing", "shipping"]}
    return {"context": context, "decisions": [question], "targets": {"team": {"shipping": 1.0}}}
