"""Which models are served: base models of the settings, and fine-tunes in use, with their weights."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from steelyard.errors import EngineUnavailableError, NotFoundError
from steelyard.families.lineage.lineage import Lineage, Switch, TunedFamily
from steelyard.families.store import StoredLineage
from steelyard.settings import Settings, read_settings
from steelyard.storage.artifacts import ArtifactStore
from steelyard.triton import sources
from steelyard.triton.repository import ModelSource
from steelyard.triton.sources import TunedModel, find_sources, models_in_use, tuned_source
from support.families.lineage_cases import grow
from support.triton.triton_hosting import write_artifact, write_lora_artifact


@pytest.fixture
def settings(tmp_path: Path, random_folder: Path) -> Settings:
    """A home without a state, with the random model beside the shipped one."""
    given = {"home": tmp_path / "home", "base_models": f"small={random_folder}, double=hashing"}
    return read_settings(given, environ={})


def test_base_models_are_found_under_the_names_that_requests_give(settings, base):
    found = find_sources(settings, engine="onnxruntime-float32")
    assert [source.name for source in found.sources] == ["steelyard-base-2", "small"]
    assert found.sources[1].sha256 == base.sha256
    assert found.left_out == {"double": "It is the test double, and has no weights."}
    # Looking makes no state.
    assert not settings.home.exists()


def test_some_are_found_by_name_and_an_unknown_name_is_refused(settings):
    found = find_sources(settings, names=["small"])
    assert ([one.name for one in found.sources], found.left_out) == (["small"], {})
    with pytest.raises(NotFoundError, match="no model 'smal' in use here; there are double, small"):
        find_sources(settings, names=["small", "smal"])


def stored(lineage: Lineage) -> StoredLineage:
    artifacts = {adapter: f"sha-{adapter}" for adapter in lineage.models}
    return StoredLineage(revision=1, lineage=lineage, artifacts=artifacts)


def changed(lineage: Lineage, family: TunedFamily) -> Lineage:
    return msgspec.structs.replace(lineage, families={**lineage.families, family.name: family})


def test_fine_tunes_in_use_answer_or_are_warm_or_are_the_newest_of_a_family_that_is_on():
    lineage = grow(Lineage(), "router", 3)
    family = lineage.families["router"]
    first, second, third = family.models
    assert [model.adapter for model in models_in_use(stored(lineage))] == [third]
    back = msgspec.structs.replace(family, served=first)
    found = models_in_use(stored(changed(lineage, back)))
    assert [model.adapter for model in found] == [first, third]
    assert found[0] == TunedModel(first, "router@1", "base-1", f"sha-{first}")
    off = changed(lineage, msgspec.structs.replace(family, switch=Switch()))
    assert models_in_use(stored(off)) == []
    warm = msgspec.structs.replace(off.models[second], keep_warm=True)
    kept = msgspec.structs.replace(off, models={**off.models, second: warm})
    assert [model.adapter for model in models_in_use(stored(kept))] == [second]


def test_one_without_an_artifact_yet_is_left_out():
    lineage = grow(Lineage(), "router", 1)
    assert models_in_use(StoredLineage(revision=1, lineage=lineage)) == []


@pytest.fixture
def in_use(settings, base, tmp_path, monkeypatch):
    """Put a fine-tune of the random model into the store and say that it is in use."""

    def put(artifact: ModelSource, *, of: str = "small") -> TunedModel:
        store = ArtifactStore(
            str(settings.home.absolute() / "frames" / "models"), settings.home / "models"
        )
        model = TunedModel("ft-ftj_test", "router@1", of, store.put(artifact.adapter))
        monkeypatch.setattr(sources, "tuned_models", lambda _: [model])
        return model

    return put


def test_a_lora_fine_tune_is_found_by_adapter_or_number(settings, base, tmp_path, in_use):
    model = in_use(write_lora_artifact(tmp_path / "artifact", base))
    for name in (model.adapter, model.ref):
        [found] = find_sources(settings, names=[name], engine="onnxruntime-float32").sources
        assert (found.name, found.sha256) == (model.adapter, model.artifact_sha256)
        assert found.adapter is not None


def test_one_of_heads_alone_has_no_model_of_its_own(settings, base, tmp_path, in_use):
    model = in_use(
        write_artifact(tmp_path / "artifact", base, {"heads.json": b"{}"}, has_adapter=False)
    )
    found = find_sources(settings, engine="onnxruntime-float32")
    assert [source.name for source in found.sources] == ["steelyard-base-2", "small"]
    assert list(found.left_out) == ["double"]
    asked_for = find_sources(settings, names=[model.ref], engine="onnxruntime-float32")
    assert asked_for.sources == []
    assert asked_for.left_out == {
        "ft-ftj_test": "It has heads alone: its passes are those of small."
    }


def test_one_of_another_engine_is_left_out_and_reported(settings, base, tmp_path, in_use):
    in_use(write_lora_artifact(tmp_path / "artifact", base))
    found = find_sources(settings, engine="onnxruntime-int8")
    assert len(found.sources) == 2
    assert "trained on the engine onnxruntime-float32" in found.left_out["ft-ftj_test"]


def test_one_of_other_weights_is_refused(base, tmp_path):
    artifact = write_lora_artifact(tmp_path / "artifact", base)
    other = ModelSource("small", "0" * 64, _renamed(base))
    model = TunedModel("ft-ftj_test", "router@1", "small", artifact.sha256)
    with pytest.raises(EngineUnavailableError, match="other weights"):
        tuned_source(artifact.adapter, model, other)


def _renamed(base: ModelSource):
    import dataclasses

    files = dict.fromkeys(base.files.manifest["files"], "0" * 64)
    return dataclasses.replace(base.files, manifest={**base.files.manifest, "files": files})
