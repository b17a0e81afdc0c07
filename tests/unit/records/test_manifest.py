"""The manifest: read, migrated, validated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from forgetmap.errors import ManifestError
from forgetmap.records import manifest
from forgetmap.records.manifest import (
    RunInfo,
    is_unchanged,
    parse_manifest,
    read_manifest,
    write_manifest,
)


def test_unknown_is_null_and_never_a_guess() -> None:
    info = parse_manifest({"schema_version": 1}, origin="m")
    assert (info.run_id, info.model.name, info.parent, info.is_sampled) == (None, None, None, None)


def test_what_a_later_version_added_is_ignored() -> None:
    info = parse_manifest(
        {"schema_version": 1, "new": 1, "model": {"name": "m", "x": 2}}, origin=""
    )
    assert info.model.name == "m"


@pytest.mark.parametrize(("temperature", "sampled"), [(0, False), (0.7, True), (None, None)])
def test_answers_are_sampled_above_zero(temperature: float | None, sampled: bool | None) -> None:
    assert RunInfo(decoding={"temperature": temperature}).is_sampled is sampled


def test_a_manifest_survives_being_written() -> None:
    info = RunInfo(
        run_id="r",
        stage="sft",
        parent="base",
        decoding={"temperature": 0.7, "stop": ["a", "b"], "greedy": False, "top_k": 5},
        seeds=[1, 2],
        tasks={"t": manifest.TaskInfo(version="2", n_shot=5)},
        metrics={"judge": manifest.MetricInfo(low=1, high=10)},
    )
    assert RunInfo.model_validate_json(info.model_dump_json()) == info


@pytest.fixture
def version_3(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the schema had changed twice: `name` became `run_id`, then seeds became a list."""

    def rename(raw: dict[str, Any]) -> dict[str, Any]:
        return {"run_id" if key == "name" else key: value for key, value in raw.items()}

    def listed(raw: dict[str, Any]) -> dict[str, Any]:
        return raw | {"seeds": [raw["seeds"]]}

    monkeypatch.setattr(manifest, "SCHEMA_VERSION", 3)
    monkeypatch.setitem(manifest.MIGRATIONS, 1, rename)
    monkeypatch.setitem(manifest.MIGRATIONS, 2, listed)


@pytest.mark.usefixtures("version_3")
@pytest.mark.parametrize(
    "raw",
    [
        {"schema_version": 1, "name": "r", "seeds": 7},
        {"schema_version": 2, "run_id": "r", "seeds": 7},
        {"schema_version": 3, "run_id": "r", "seeds": [7]},
    ],
)
def test_older_manifests_are_brought_forward_step_by_step(raw: dict[str, Any]) -> None:
    info = parse_manifest(raw, origin="m")
    assert (info.schema_version, info.run_id, info.seeds) == (3, "r", [7])


@pytest.mark.usefixtures("version_3")
def test_newer_ones_are_refused() -> None:
    with pytest.raises(ManifestError, match="version 4; this forgetmap reads up to 3"):
        parse_manifest({"schema_version": 4}, origin="m")


def test_a_large_wrong_entry_does_not_fill_the_screen() -> None:
    with pytest.raises(ManifestError) as caught:
        parse_manifest({"schema_version": 1, "run_id": ["x" * 9999]}, origin="m")
    assert len(str(caught.value)) < 300


def test_a_name_that_is_no_text_is_written_as_near_as_it_gets(tmp_path: Path) -> None:
    """A folder of a model whose name is not UTF-8: its run must not fail at the very end."""
    info = RunInfo(run_id="caf\udce9", decoding={"stop": ["\ud800"], "top_p": 0.5})
    write_manifest(tmp_path / "m", info)
    read = read_manifest(tmp_path / "m")
    assert (read.run_id, read.decoding) == ("caf?", {"stop": ["?"], "top_p": 0.5})
    assert is_unchanged(tmp_path / "m", read)
