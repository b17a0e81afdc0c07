"""The declaration of a study: models, pairs, merges, and evaluation settings."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from forgetmap.evaluation import ProtocolName, Scoring

LEVEL = 0.95
MARGIN = 0.15
"""Default forgetting above which a study calls it catastrophic."""
Style = Literal["plain", "chat", "few-shot"]
UNKNOWN = "unknown"
_SIZE = re.compile(r"(?P<number>\d+(\.\d+)?)\s*(?P<unit>[MBT])")
_UNITS = {"M": 1e-3, "B": 1.0, "T": 1e3}


def write_size(billions: float) -> str:
    """Return a number of parameters as text, in the format of `parse_size`."""
    return f"{billions:g}B" if billions >= 1 else f"{1e3 * billions:.3g}M"


def parse_size(size: Any) -> Any:
    """Parse a size into billions of parameters: 7, "7B", "135M"; "unknown" is kept."""
    match = _SIZE.fullmatch(size) if isinstance(size, str) else None
    if match:
        return float(match["number"]) * _UNITS[match["unit"]]
    if isinstance(size, str) and size != UNKNOWN:
        raise ValueError(f'{size!r} is not a size; write "7B" or "135M", or "{UNKNOWN}"')
    return float(size) if isinstance(size, int) and not isinstance(size, bool) else size


Size = Annotated[
    Annotated[float, Field(gt=0, allow_inf_nan=False)] | Literal["unknown"],
    BeforeValidator(parse_size),
]
Name = Annotated[str, Field(min_length=1)]
Names = Annotated[tuple[Name, ...], Field(strict=False)]


class _StudySection(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class AskedAs(_StudySection):
    """Prompt settings of a model; the defaults are those of the study."""

    style: Style | None = None
    shots: int | None = Field(default=None, ge=0)
    temperature: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    top_p: float | None = Field(default=None, gt=0, le=1)
    max_new_tokens: int | None = Field(default=None, ge=1)
    limit: int | None = Field(default=None, ge=1, description="Maximum number of items per task.")


class StudyProtocol(AskedAs):
    """Prompt settings of all models."""

    name: ProtocolName = "same"
    scoring: Scoring = "auto"
    repeats: int | None = Field(default=None, ge=1)
    seed: int = 0


class StudyModel(AskedAs):
    """One model: type, location and parent."""

    id: Name
    title: str = ""
    path: Name | None = None
    hub: Name | None = None
    server: Name | None = None
    logs: Names = ()
    family: Name | None = None
    series: Name | None = Field(
        default=None,
        description="Name of the series of comparable models at several sizes "
        "[default: its family].",
    )
    size: Size | None = Field(default=None, description="Number of parameters in billions.")
    stage: Name | None = None
    parent: Name | None = None
    label: str = Field(default="", description="Stage of the pair with its parent.")
    data: Literal["low", "high"] | None = Field(default=None, description="Amount of its data.")
    domains: Names = Field(default=(), description="Its training data.")
    method: Name | None = Field(default=None, description="SFT, DPO, RL, ...")
    assumed: tuple[Literal["domains", "method", "data", "size"], ...] = Field(
        default=(), strict=False, description="Fields whose values are not checked."
    )

    @model_validator(mode="after")
    def _has_one_source(self) -> Self:
        sources = [name for name in ("path", "hub", "server") if getattr(self, name) is not None]
        if len(sources) > 1:
            raise ValueError(f"it has both {sources[0]} and {sources[1]}; keep only one")
        if not sources and not self.logs:
            raise ValueError("it has no source; add path, hub, server or logs")
        return self

    @property
    def made_like(self) -> str | None:
        """The series or family; models of one series differ mainly in size."""
        return self.series or self.family

    @property
    def billions(self) -> float | None:
        """Its size, if known."""
        return self.size if isinstance(self.size, float) else None


class StudyPair(_StudySection):
    """A model before and a model after."""

    before: Name
    after: Name
    label: str = ""
    group: str = Field(default="", description="Title of pairs that are shown together.")


class StudyMerge(_StudySection):
    """A merge, and the models with which it is compared."""

    id: Name
    label: str = ""
    recipe: Name | None = None
    method: Name | None = None
    models: Names = Field(default=(), description="The earlier model, then the later one.")
    weight: float | None = Field(default=None, ge=0, le=1, description="Share of the later model.")
    logs: Names = ()
    references: Names = Field(default=(), description="[default: its models]")

    @model_validator(mode="after")
    def _has_one_recipe(self) -> Self:
        by_weight = self.method is not None and self.weight is not None and len(self.models) == 2
        if self.recipe is None and not by_weight and not self.logs:
            raise ValueError("it has no source; add recipe, or method, models and weight")
        if self.recipe is not None and (self.method is not None or self.weight is not None):
            raise ValueError("it has a recipe and a method or weight; keep only one")
        if not self.references and not self.models:
            raise ValueError("it has no reference; add references")
        return self

    @property
    def compared_with(self) -> tuple[str, ...]:
        """The models whose knowledge it may have lost."""
        return self.references or self.models


class Study(_StudySection):
    """Models, pairs and merges, with the settings of their evaluation.

    Attributes:
        name: short name.
        title: title for readers.
        suite: name or file of a suite.
        items: number of items of the suite, for cost estimates.
        taxonomy: taxonomy of capabilities, if drift is measured.
        rollup: how tasks are averaged, as for `forgetmap compare --rollup`.
        task_table: table of tasks, as for `forgetmap compare --task-table`.
        level: confidence level of the intervals.
        margin: forgetting above which it is called catastrophic.
        selected: whether answers of a model before helped to choose the items, as for `compare`.
        pairs_by_parent: whether every model forms a pair with its parent.
        protocol: prompt settings of all models.
        models: models with their parents.
        named_pairs: further pairs, or pairs with their own label.
        merges: merges with their references.
        origin: path of the study file.
    """

    name: Name
    title: str = ""
    suite: Name | None = None
    items: int | None = Field(default=None, ge=1)
    taxonomy: Name | None = None
    rollup: Name | None = None
    task_table: Name | None = None
    level: float = Field(default=LEVEL, gt=0.5, le=0.9999)
    margin: float = Field(default=MARGIN, gt=0, lt=1)
    selected: bool | None = None
    pairs_by_parent: bool = True
    protocol: StudyProtocol = StudyProtocol()
    models: tuple[StudyModel, ...] = Field(strict=False, min_length=1, alias="model")
    named_pairs: tuple[StudyPair, ...] = Field(default=(), strict=False, alias="pair")
    merges: tuple[StudyMerge, ...] = Field(default=(), strict=False, alias="merge")
    origin: str = Field(default="", exclude=True)

    def model(self, name: str) -> StudyModel:
        """Return the model with this id."""
        return next(model for model in self.models if model.id == name)

    @property
    def pairs(self) -> list[StudyPair]:
        """Every model with its parent, then the named pairs; each pair once."""
        named = {(pair.before, pair.after): pair for pair in self.named_pairs}
        pairs = []
        for model in self.models if self.pairs_by_parent else ():
            if model.parent is not None:
                own = named.pop((model.parent, model.id), None)
                pairs.append(own or StudyPair(before=model.parent, after=model.id))
        return [self._labelled(pair) for pair in [*pairs, *named.values()]]

    @property
    def merge_pairs(self) -> list[StudyPair]:
        """Every merge with each of its references."""
        return [
            StudyPair(before=before, after=merge.id, label=merge.label or merge.id, group="merges")
            for merge in self.merges
            for before in merge.compared_with
        ]

    def _labelled(self, pair: StudyPair) -> StudyPair:
        after = self.model(pair.after)
        label = pair.label or after.label or after.title or after.id
        stage = after.stage or "all"
        group = pair.group or (f"{stage}, {after.data} data" if after.data else stage)
        return pair.model_copy(update={"label": label, "group": group})

    @property
    def folder(self) -> Path:
        """Folder to which paths in the file are relative."""
        return Path(self.origin).parent

    def is_missing(self, path: str) -> bool:
        """Whether a path does not exist; names with an adapter or backend are not checked."""
        if "+" in path or ":" in path:
            return False
        return not (self.folder / Path(path).expanduser()).exists() and not Path(path).exists()
