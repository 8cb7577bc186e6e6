from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from steelyard.calibration.temperature import TemperatureTable
from steelyard.decisions.kinds import Decision, Outcomes
from steelyard.decisions.rendering import RenderedDecision, RenderedRequest
from steelyard.errors import EngineUnavailableError
from steelyard.scoring.hashing import HashingScorer, WordCounter
from steelyard.scoring.protocol import ScoredDecision
from steelyard.scoring.tuned import (
    FORMAT,
    ArtifactBase,
    ArtifactManifest,
    TunedScorer,
    check_artifact,
    check_base,
    identity_of,
    load_tuned,
    read_artifact,
)
from steelyard.serving.decide import DecideService

PLAIN = RenderedDecision("binary", "Is it urgent?", ("yes", "no"))
READING = RenderedDecision("single", "Which team?", ("billing", "sales", "support"))
EMBEDDING = RenderedDecision("binary", "Is it angry?", ("yes", "no"))
OTHER = RenderedDecision("binary", "Is it spam?", ("yes", "no"))


class FakeHead:
    """Answers from its input, so that a test sees the input."""

    def __init__(self, *, needs_base: bool, needs_embedding: bool) -> None:
        self.needs_base = needs_base
        self.needs_embedding = needs_embedding
        self.reads_words_alone = False  # those are answered together; see tests/trainer/test_words

    def log_probabilities(
        self,
        context: str,
        decision: RenderedDecision,
        base: ScoredDecision | None,
        embedding: NDArray[np.float32] | None,
        evidence: ScoredDecision | None,
    ) -> NDArray[np.float32]:
        assert evidence is None
        assert (embedding is not None) == self.needs_embedding
        # Float64 on purpose: what comes out is float32 whatever a head gives.
        logits = np.zeros(len(decision.outcomes))
        if self.needs_base:
            assert base is not None
            logits += base.logits
        logits[0] += len(context)
        return logits - np.log(np.exp(logits).sum())


class FakeHeads:
    def __init__(self) -> None:
        self.by_decision = {
            PLAIN: FakeHead(needs_base=False, needs_embedding=False),
            READING: FakeHead(needs_base=True, needs_embedding=False),
            EMBEDDING: FakeHead(needs_base=False, needs_embedding=True),
        }

    def find(self, decision: RenderedDecision) -> Any:
        return self.by_decision.get(decision)


class WatchedScorer(HashingScorer):
    """A base that notes its requests."""

    def __init__(self, key: str = "") -> None:
        super().__init__(key)
        self.asked: list[RenderedRequest] = []
        self.embedded: list[str] = []

    def score(self, requests: Sequence[RenderedRequest]) -> list[list[ScoredDecision]]:
        self.asked += requests
        return super().score(requests)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.embedded += texts
        return np.ones((len(texts), 4), np.float32)


def tuned_on(base: Any, **options: Any) -> TunedScorer:
    heads: Any = FakeHeads()
    return TunedScorer(heads, base, **options)


def test_a_decision_with_a_head_goes_through_it_and_any_other_through_the_base():
    base = WatchedScorer()
    request = RenderedRequest("It is late.", (OTHER, READING, PLAIN))
    [[other, reading, plain]] = tuned_on(base).score([request])
    [[alone, below]] = base.score([RenderedRequest("It is late.", (OTHER, READING))])
    np.testing.assert_array_equal(other.logits, alone.logits)
    assert not other.is_calibrated
    assert [scored.is_untrained for scored in (other, reading, plain)] == [True, False, False]
    for scored, n_outcomes in ((reading, 3), (plain, 2)):
        assert scored.is_calibrated
        assert scored.logits.shape == (n_outcomes,)
        assert scored.logits.dtype == np.float32
        assert np.exp(scored.logits.astype(float)).sum() == pytest.approx(1, abs=1e-6)
    np.testing.assert_array_equal(reading.marker_vectors, below.marker_vectors)
    assert plain.marker_vectors.shape == (2, 0)


def test_the_base_reads_only_inputs_of_heads_and_other_decisions():
    base = WatchedScorer()
    requests = [
        RenderedRequest("one", (PLAIN,)),
        RenderedRequest("two", (PLAIN, OTHER)),
        RenderedRequest("three", (EMBEDDING, PLAIN)),
        RenderedRequest("three", (EMBEDDING,)),
        RenderedRequest("four", (READING,)),
    ]
    scored = tuned_on(base).score(requests)
    assert [len(row) for row in scored] == [1, 2, 2, 1, 1]
    assert base.asked == [RenderedRequest("two", (OTHER,)), RenderedRequest("four", (READING,))]
    assert base.embedded == ["three"]


def test_other_requests_of_a_call_change_nothing():
    model = tuned_on(WatchedScorer())
    requests = [
        RenderedRequest(f"Text {n}", (READING, OTHER, PLAIN)[: 1 + n % 3]) for n in range(7)
    ]
    together = model.score(requests)
    for request, row in zip(requests, together, strict=True):
        for decision, scored in zip(request.decisions, row, strict=True):
            [[alone]] = model.score([RenderedRequest(request.context, (decision,))])
            np.testing.assert_array_equal(scored.logits, alone.logits)
    assert model.score([]) == []


def test_a_closed_model_answers_no_more_and_its_shared_base_does():
    base = WatchedScorer()
    model = tuned_on(base)
    model.close()
    for ask in (lambda: model.score([]), lambda: model.embed(["text"])):
        with pytest.raises(EngineUnavailableError, match="unloaded"):
            ask()
    assert base.score([RenderedRequest("text", (OTHER,))])
    own = tuned_on(base, owns_scorer=True)
    own.close()
    with pytest.raises(EngineUnavailableError):
        base.score([RenderedRequest("text", (OTHER,))])


def test_a_model_has_the_name_engine_and_vectors_of_its_base():
    model = tuned_on(WatchedScorer())
    assert (model.name, model.engine) == ("hashing", "hashing")
    assert model.embed(["a", "b"]).shape == (2, 4)
    with pytest.raises(EngineUnavailableError, match="no vectors"):
        tuned_on(HashingScorer()).embed(["a"])


def test_answers_of_a_head_are_not_tempered_again():
    decide = DecideService(
        model_name="m",
        temperatures=TemperatureTable({"binary": {"2": 5.0}}),
        tokenizer=WordCounter(),
    )
    decision = Decision("d", "binary", "Is it urgent?", Outcomes(("yes", "no"), (None, None)))
    logs = np.log(np.array([0.9, 0.1], np.float32))
    vectors = np.zeros((2, 0), np.float32)
    head = ScoredDecision(logs, vectors, is_calibrated=True)
    assert decide.probabilities(decision, head) == pytest.approx([0.9, 0.1])
    # What the caller asks for still comes on top.
    assert decide.probabilities(decision, head, 0.5)[0] == pytest.approx(0.81 / 0.82)
    base = ScoredDecision(logs, vectors)
    assert decide.probabilities(decision, base)[0] == pytest.approx(1 / (1 + 9**-0.2))


def write_manifest(folder: Path, base: ArtifactBase, **changed: Any) -> ArtifactManifest:
    folder.mkdir(exist_ok=True)
    (folder / "heads.json").write_bytes(b"{}")
    manifest = ArtifactManifest(
        format=FORMAT,
        base=base,
        method="sft",
        has_adapter=False,
        parent_sha256=None,
        versions={},
        files={"heads.json": hashlib.sha256(b"{}").hexdigest()},
    )
    manifest = msgspec.structs.replace(manifest, **changed)
    (folder / "manifest.json").write_bytes(msgspec.json.encode(manifest))
    return manifest


def origin_of(scorer: Any) -> ArtifactBase:
    return ArtifactBase(name=scorer.name, sha256=identity_of(scorer), engine=scorer.engine)


def reason_of(error: EngineUnavailableError) -> str:
    assert error.details is not None
    return str(error.details[0]["reason"])


def test_an_artifact_is_checked_file_by_file(tmp_path):
    folder = tmp_path / "model"
    manifest = write_manifest(folder, origin_of(HashingScorer()))
    name = hashlib.sha256((folder / "manifest.json").read_bytes()).hexdigest()
    assert check_artifact(folder, name) == manifest
    with pytest.raises(EngineUnavailableError, match="of another model") as caught:
        check_artifact(folder, "0" * 64)
    assert reason_of(caught.value) == "files_altered"
    (folder / "heads.json").write_bytes(b"{ }")
    with pytest.raises(EngineUnavailableError, match=r"heads\.json that was altered") as caught:
        load_tuned(folder, HashingScorer())
    assert reason_of(caught.value) == "files_altered"
    assert "continue its family" in caught.value.message
    (folder / "heads.json").unlink()
    with pytest.raises(EngineUnavailableError, match=r"lacks its file heads\.json") as caught:
        load_tuned(folder, HashingScorer())
    assert reason_of(caught.value) == "files_missing"


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b'{"format": "another-1"}', b'{"format": "steelyard-model-1"}'],
)
def test_an_unreadable_manifest_is_refused(tmp_path, content):
    with pytest.raises(EngineUnavailableError, match=r"has no manifest\.json") as caught:
        read_artifact(tmp_path)
    assert reason_of(caught.value) == "files_missing"
    (tmp_path / "manifest.json").write_bytes(content)
    with pytest.raises(EngineUnavailableError, match="cannot be read") as caught:
        read_artifact(tmp_path)
    assert reason_of(caught.value) == "files_altered"


@pytest.mark.parametrize("path", ["../heads.json", "/etc/hosts", "a/../../b"])
def test_a_manifest_that_leads_outside_is_refused(tmp_path, path):
    write_manifest(tmp_path, origin_of(HashingScorer()), files={path: "0" * 64})
    with pytest.raises(EngineUnavailableError, match="outside"):
        read_artifact(tmp_path)


def test_another_base_or_engine_is_recognised(tmp_path):
    manifest = write_manifest(tmp_path, origin_of(HashingScorer("trained")))
    check_base(manifest, HashingScorer("trained", name="renamed"))
    with pytest.raises(EngineUnavailableError, match="other weights") as caught:
        load_tuned(tmp_path, HashingScorer("served"))
    assert reason_of(caught.value) == "base_mismatch"
    origin = msgspec.structs.replace(manifest.base, engine="onnxruntime-int8")
    changed = write_manifest(tmp_path, origin)
    with pytest.raises(EngineUnavailableError, match="STEELYARD_ENGINE") as caught:
        check_base(changed, HashingScorer("trained"))
    assert reason_of(caught.value) == "engine_changed"


def test_a_scorer_is_known_by_its_files_and_not_by_its_engine(load):
    float32 = load("random", "onnxruntime-float32").scorer
    int8 = load("random", "onnxruntime-int8").scorer
    assert identity_of(float32) == identity_of(int8)
    assert identity_of(float32) != identity_of(HashingScorer())
    assert float32.folder is not None
    assert (float32.folder / "manifest.json").is_file()
