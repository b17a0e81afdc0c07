"""Metadata of a run (`manifest.json`): model, lineage, harness, decoding."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import PydanticSerializationError
from xxhash import xxh3_128_hexdigest

from forgetmap._disk import CHECKSUM
from forgetmap.errors import ManifestError
from forgetmap.records.problem import Contradiction
from forgetmap.records.schema import SCHEMA_VERSION

if TYPE_CHECKING:
    from pathlib import Path

MIGRATIONS: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {}
"""Step from schema version n to n + 1, applied to the raw manifest before it is validated."""
_CHECKSUM = re.compile(rf',\n  "{CHECKSUM}": "(?P<xxh3>[0-9a-f]{{32}})"\n}}\n$')


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class ModelInfo(_Part):
    """The evaluated model."""

    name: str | None = None
    revision: str | None = None
    adapter: str | None = None


class HarnessInfo(_Part):
    """The program that evaluated the model."""

    name: str | None = None
    version: str | None = None


class MetricInfo(_Part):
    """The range and direction of a metric; the default is a share of correctness."""

    low: float | None = 0.0
    high: float | None = 1.0
    higher_is_better: bool = True


class TaskInfo(_Part):
    """Settings of a task that must agree for two results to be comparable."""

    version: str | None = None
    n_shot: int | None = None
    main_metric: str | None = None
    main_scorer: str | None = None


class ServiceInfo(_Part):
    """The server of the model, if there was one, with requests, tokens and cost of all attempts."""

    address: str | None = None
    abilities: dict[str, bool] = Field(
        default_factory=dict, description="What was tested, and whether it is reliable."
    )
    notes: list[str] = Field(
        default_factory=list, description="What is unreliable, and what follows."
    )
    requests: int | None = None
    retries: int | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    cost: float | None = Field(default=None, description="At the given prices.")


class AskedInfo(_Part):
    """How forgetmap asked the model, so that it can be asked again in the same way."""

    model: str = Field(description="The model, as it was given.")
    suite: str | None = Field(
        default=None, description="The suite, as it was given; null if it was made in Python."
    )
    columns: dict[str, str] = Field(
        default_factory=dict, description="Column names of a file of items, if they were given."
    )
    settings: dict[str, Any] = Field(
        default_factory=dict, description="Settings that are not the default."
    )
    weights: str | None = Field(
        default=None, description="Changes when the files of the model are written again."
    )
    setup: str | None = Field(
        default=None, description="Engine, number format and device; null if they are not known."
    )
    again: bool = Field(
        default=False, description="Asked once more, in another order and in other batches."
    )


class TrainingInfo(_Part):
    """State of the training when the model was evaluated."""

    step: int = Field(description="Number of optimizer steps so far; 0 is the start.")
    epoch: float | None = None
    learning_rate: float | None = Field(default=None, description="Learning rate of the next step.")
    loss: float | None = Field(default=None, description="Training loss, as last logged.")


class FileInfo(_Part):
    """Size and checksum of a file of a run folder."""

    bytes: int
    xxh3: str = Field(description="XXH3 of the file, as 128 bits in hexadecimal.")


class RunInfo(_Part):
    """Metadata of a run. Unknown values are null, never guessed."""

    schema_version: int = SCHEMA_VERSION
    run_id: str | None = None
    model: ModelInfo = ModelInfo()
    stage: str | None = Field(default=None, description="base, cpt, sft, dpo, rl, merge, ...")
    parent: str | None = Field(default=None, description="run_id of the parent checkpoint.")
    harness: HarnessInfo = HarnessInfo()
    template_hash: str | None = Field(default=None, description="Hash of the chat template.")
    system_prompt_hash: str | None = None
    protocol: str | None = Field(default=None, description="Name of the prompting protocol.")
    decoding: dict[str, float | int | str | bool | list[str] | None] = Field(
        default_factory=dict, description="temperature, top_p, max_new_tokens, stop, ..."
    )
    seeds: list[int] = Field(default_factory=list, description="Seed of each repeat, in order.")
    created: str | None = Field(default=None, description="ISO 8601, UTC.")
    tasks: dict[str, TaskInfo] = Field(default_factory=dict)
    metrics: dict[str, MetricInfo] = Field(default_factory=dict)
    fingerprint: str | None = Field(
        default=None, description="Identical for the same model, suite and settings."
    )
    service: ServiceInfo | None = Field(default=None, description="Null for a model run locally.")
    asked: AskedInfo | None = Field(
        default=None, description="Null if another program asked, or a live model was asked."
    )
    command: str | None = Field(
        default=None, description="The other program that evaluated the model, if any."
    )
    cache: str | None = Field(
        default=None, description="Cache of responses that answers may come from, if any."
    )
    left_out: dict[str, int] = Field(
        default_factory=dict,
        description="Number of items per task left out because they exceed the context length.",
    )
    chosen_by: list[str | None] = Field(
        default_factory=list,
        description="run_id of each run by whose answers the items were chosen; null if unknown.",
    )
    notes: list[str] = Field(
        default_factory=list,
        description="Cautions about how the model was evaluated.",
    )
    training: TrainingInfo | None = Field(
        default=None, description="For a model evaluated during its training."
    )
    simulated: bool = Field(default=False, description="Made by the simulator, not by a model.")
    contradictions: list[Contradiction] = Field(
        default_factory=list,
        description="Statements of the log of the run that its records contradict.",
    )
    files: dict[str, FileInfo] = Field(
        default_factory=dict, description="Checksums of the files of a run folder."
    )

    @property
    def is_sampled(self) -> bool | None:
        """Whether answers were sampled; None if not recorded."""
        temperature = self.decoding.get("temperature")
        return temperature > 0 if isinstance(temperature, int | float) else None


def write_manifest(path: Path, info: RunInfo) -> None:
    """Write a manifest that ends in a checksum of itself."""
    # Left out if empty, as in manifests of older versions.
    optional = (
        "asked", "cache", "left_out", "chosen_by", "notes", "training", "contradictions", "files",
    )  # fmt: skip
    empty = {name for name in optional if not getattr(info, name)}
    try:
        dumped = info.model_dump_json(indent=2, exclude=empty)
    except PydanticSerializationError:  # a lone surrogate, as in file names that are not UTF-8
        whole = json.dumps(info.model_dump(), ensure_ascii=False).encode("utf-8", "replace")
        dumped = RunInfo.model_validate_json(whole).model_dump_json(indent=2, exclude=empty)
    body = dumped.removesuffix("\n}")
    text = f'{body},\n  "{CHECKSUM}": "{xxh3_128_hexdigest(body.encode())}"\n}}\n'
    path.write_text(text, encoding="utf-8")


def is_unchanged(path: Path, info: RunInfo) -> bool:
    """Whether a manifest is unchanged, by its checksum.

    Manifests of older versions have no checksums and count as unchanged.
    """
    text = path.read_text(encoding="utf-8")
    end = _CHECKSUM.search(text)
    if end is None:
        return not info.files and f'"{CHECKSUM}"' not in text
    return xxh3_128_hexdigest(text[: end.start()].encode()) == end["xxh3"]


def read_manifest(path: Path) -> RunInfo:
    """Read, migrate and validate a `manifest.json`."""
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ManifestError(
            f"the manifest cannot be read: {error.strerror}",
            file=str(path),
            hint="check read permission, or re-create the folder with `forgetmap records convert`.",
        ) from None
    except UnicodeDecodeError as error:
        raise ManifestError(
            f"the manifest is not UTF-8 (byte {error.start})",
            file=str(path),
            hint="re-create the run folder with `forgetmap records convert`.",
        ) from None
    except (ValueError, RecursionError) as error:
        raise ManifestError(
            f"the manifest is not JSON: {error}",
            file=str(path),
            line=getattr(error, "lineno", None),
            hint="re-create the run folder with `forgetmap records convert`.",
        ) from None
    return parse_manifest(raw, origin=str(path))


def parse_manifest(raw: object, *, origin: str) -> RunInfo:
    """Migrate and validate the content of a manifest."""
    if not isinstance(raw, Mapping):
        raise ManifestError(
            f"the manifest is a {type(raw).__name__}, not an object",
            file=origin,
            hint="re-create the run folder with `forgetmap records convert`.",
        )
    try:
        return RunInfo.model_validate(_migrate(dict(raw), origin))
    except ValidationError as error:
        first = error.errors()[0]
        raise ManifestError(
            f"{first['msg']} (got {repr(first['input'])[:60]})",
            file=origin,
            field=".".join(str(part) for part in first["loc"]),
            hint="correct this entry; see docs/records.md for the fields of a manifest.",
        ) from None


def _migrate(raw: dict[str, Any], origin: str) -> dict[str, Any]:
    version = raw.get("schema_version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise ManifestError(
            f"schema_version is {version!r}, expected a whole number from 1 to {SCHEMA_VERSION}",
            file=origin,
            field="schema_version",
            hint="check that this is the manifest of a forgetmap run; other tables can be read "
            "as files.",
        )
    if version > SCHEMA_VERSION:
        raise ManifestError(
            f"the manifest has schema version {version}; this forgetmap reads up to "
            f"{SCHEMA_VERSION}",
            file=origin,
            field="schema_version",
            hint="upgrade forgetmap: pip install -U forgetmap.",
        )
    for step in range(version, SCHEMA_VERSION):
        raw = MIGRATIONS[step](raw) | {"schema_version": step + 1}
    return raw
