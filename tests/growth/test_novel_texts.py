"""A family that was really trained, with the model that ships: texts unlike its rows go to the judge."""

from __future__ import annotations

import json

import pytest

import steelyard
from steelyard.cli.samples import sample_file
from steelyard.serving.connected.declared import ConnectedModel, write_models
from support.models.knowing_model import knows_tickets
from support.models.remote_models import remote_model

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

UNLIKE = (
    "Whisk the egg whites until stiff, then fold in the melted chocolate.",
    "The second moon of the planet takes nine days for its orbit.",
    "Her thesis compares the rhyme of two poets of the fifteenth century.",
    "Parliament votes on the reform of the water law on Thursday.",
    "The midfielder scored twice before the break, and the keeper saved a penalty.",
    "Chronic cough in adults: a review of 40 randomised trials.",
    "What is the capital of Mongolia?",
    "An eigenvalue of a triangular matrix stands on its diagonal.",
    "The wizard lifted his lantern, and the dragon opened one eye.",
    "Rain in the north, sunny spells in the south, up to 14 degrees.",
)


def test_a_family_of_tickets_leaves_texts_unlike_them_to_the_judge(tmp_path):
    rows = [json.loads(line) for line in sample_file("support_triage").read_text().splitlines()]
    rows = [
        {
            "context": row["context"],
            "decisions": [each for each in row["decisions"] if each["id"] == "team"],
            "targets": {"team": row["targets"]["team"]},
        }
        for row in rows
        if "team" in row["targets"]
    ]
    with remote_model(knows_tickets()) as judge:
        declared = ConnectedModel(wire="systemone", url=judge.url, price_in="2")
        write_models(tmp_path, {"judge": declared})
        with steelyard.embed(tmp_path, deadline_s=300) as running:
            client, named = running.client, running.client.named_decisions
            dataset = client.datasets.create("tickets", examples=rows[:-40])
            named.create("desk", rows[0]["decisions"], model="judge")
            named.change("desk", dataset_id=dataset.id)
            job = client.jobs.wait(client.families.create("desk", dataset.id), progress=False)
            assert job.outcome == "joined", job
            client.families.wait("desk", job, progress=False)
            named.grow("desk", "propose", at_least=1_000)
            growth = named.turn_growth("desk")
            assert "texts unlike its rows go back to judge" in growth.steps[0].message, growth

            def ask(texts):
                """Return the share that the judge answers, because the family is unsure."""
                answers = [client.decision("desk@2").decide(text) for text in texts]
                went_back = [answer.fallback for answer in answers if answer.model == "judge"]
                assert {each.reason for each in went_back} <= {"unsure"}
                return len(went_back) / len(texts)

            assert ask([row["context"] for row in rows[-40:]]) <= 0.2
            assert ask(UNLIKE) >= 0.8
