"""A family grown over HTTP on a live server, for tests that need models that were really trained."""

from __future__ import annotations

from typing import Any

import httpx

from support.families.learnable_rows import learnable_rows
from support.waiting import wait_until

ENDED = {"succeeded", "failed", "cancelled"}


def post(http: httpx.Client, path: str, body: object) -> dict[str, Any]:
    """Send a body that must be taken, and give the answer."""
    response = http.post(path, json=body)
    assert response.is_success, response.text
    answer: dict[str, Any] = response.json()
    return answer


def ended(http: httpx.Client, job_id: str) -> dict[str, Any]:
    """A fine-tune once it has ended."""

    def look() -> dict[str, Any] | None:
        job = http.get(f"/v1/fine-tuning/jobs/{job_id}").json()
        return job if job["status"] in ENDED else None

    found: dict[str, Any] = wait_until(look, 90)
    return found


def served(http: httpx.Client, name: str, ref: str) -> dict[str, Any]:
    """A family once it serves a model."""

    def look() -> dict[str, Any] | None:
        family = http.get(f"/v1/families/{name}").json()
        return family if family["served"] and family["served"]["ref"] == ref else None

    found: dict[str, Any] = wait_until(look, 90)
    return found


def grow(http: httpx.Client, name: str, n_models: int = 1) -> dict[str, Any]:
    """Grow a family to so many models, each on rows of its own; gives it once it serves the last."""
    body = {"name": name, "examples": learnable_rows(0), "evaluation_fraction": 0.3}
    dataset_id = post(http, "/v1/datasets", body)["id"]
    job = post(http, "/v1/families", {"family": name, "dataset_id": dataset_id})
    for number in range(1, n_models + 1):
        if number > 1:
            rows = {"examples": learnable_rows(number - 1), "evaluation_fraction": 0.3}
            post(http, f"/v1/datasets/{dataset_id}/versions", rows)
            job = post(http, f"/v1/families/{name}/continue", {})
        job = ended(http, job["id"])
        assert job["outcome"] == "joined", job
        family = served(http, name, f"{name}@{number}")
    return family
