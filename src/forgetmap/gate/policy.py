"""Policies: rules, margins and tiers, read from a TOML file.

A rule names a quantity, its groups and the largest acceptable loss. A rule without groups applies
to every group of its scope.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)

from forgetmap.comparison import CORRECT_AT, LEVEL, MARGIN, estimator_names
from forgetmap.errors import FieldError, InputError, MissingInputError, UsageError
from forgetmap.gate.result import Accept, Scope, Tier
from forgetmap.pairing import PairBy

MIN_COVERAGE = 0.99
MOST_LOOKS = 10_000
"""Maximum number of looks; far beyond it, the intervals of one look would overflow."""
RuleQuantity = Literal["loss", "net_change", "drift"]
Condition = Literal["prompt", "scorer", "suite", "decoding", "harness"]
CONDITIONS: tuple[Condition, ...] = ("prompt", "scorer", "suite")
"""Conditions that must be the same in both runs by default; an LLM judge is a scorer."""
AUTO = "auto"
Share = Annotated[float, Field(gt=0, lt=1)]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class GateRule(_Section):
    """A requirement on a release."""

    name: Annotated[str, StringConstraints(strip_whitespace=True)] = Field(
        default="", description="Name in results [default: composed from the other fields]."
    )
    tier: Tier = "blocking"
    scope: Scope = "total"
    groups: tuple[str, ...] = Field(default=(), strict=False)
    quantity: RuleQuantity = "loss"
    accept: Accept | None = None
    estimator: str = AUTO
    margin: Share = MARGIN
    min_items: int = Field(default=0, ge=0)

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if (self.scope == "capability") != (self.quantity == "drift"):
            raise ValueError("drift applies to capabilities, other quantities to total, task, ...")
        if self.scope == "total" and self.groups:
            raise ValueError("the total has no groups")
        if not self.groups and "groups" in self.model_fields_set:
            raise ValueError(f"`groups` is empty; remove it to check every {self.scope}")
        if len(set(self.groups)) < len(self.groups):
            raise ValueError("`groups` contains a name twice")
        if self.quantity != "loss" and (self.estimator != AUTO or self.accept is not None):
            raise ValueError(f"remove `estimator` and `accept`, which {self.quantity} does not use")
        if self.estimator not in estimator_names():
            raise ValueError(f"there is no estimator {self.estimator!r}")
        return self

    @property
    def label(self) -> str:
        """The name of the rule, or one composed from its fields."""
        if self.name or self.scope == "total":
            return self.name or self._what
        return f"{self._what} of {', '.join(self.groups) if self.groups else f'every {self.scope}'}"

    def check_name(self, group: str) -> str:
        """Return the name of the check of one group, such as `loss of maths`."""
        if self.scope == "total" or self.name == group:
            return self.label
        return f"{self.name}: {group}" if self.name else f"{self._what} of {group}"

    @property
    def _what(self) -> str:
        return self.quantity.replace("_", " ")


class CompareSection(_Section):
    """Options of the comparison, as in `forgetmap compare`."""

    metric: str | None = None
    correct_at: float = Field(default=CORRECT_AT, allow_inf_nan=False)
    pair_by: PairBy = "auto"
    noise_floor: float | None = Field(default=None, ge=0, le=0.5)
    selected: bool | None = None
    task_table: str | None = None


class DriftSection(_Section):
    """Options of drift, as in `forgetmap drift`."""

    taxonomy: str = "captrack"


class GatePolicy(_Section):
    """The requirements on a release.

    Attributes:
        rules: rules that are evaluated on the comparison.
        accept: what passes, for rules about the loss that do not say it.
        coverage: minimum share of the items scored before that must be paired and scored after.
        level: confidence level of the intervals.
        looks: number of looks at the same models: fixed in advance, or "any".
        chosen_among: number of checkpoints among which the candidate was chosen by these items.
        required_tasks: tasks that a release must have, or it fails.
        unchanged: conditions that must not differ between the runs.
        compare: options of the comparison.
        drift: options of drift.
        origin: path of the file.
    """

    rules: tuple[GateRule, ...] = Field(strict=False, min_length=1, alias="rule")
    accept: Accept = "items"
    coverage: float = Field(default=MIN_COVERAGE, gt=0, le=1)
    level: float = Field(default=LEVEL, gt=0.5, le=0.9999)
    looks: Annotated[int, Field(ge=1, le=MOST_LOOKS)] | Literal["any"] = 1
    chosen_among: int = Field(default=1, ge=1)
    required_tasks: tuple[str, ...] = Field(default=(), strict=False)
    unchanged: tuple[Condition, ...] = Field(default=CONDITIONS, strict=False)
    compare: CompareSection = CompareSection()
    drift: DriftSection = DriftSection()
    origin: str = Field(default="default", exclude=True)

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        labels = [rule.label for rule in self.rules]
        doubled = {label for label in labels if labels.count(label) > 1}
        if doubled:
            raise ValueError(f"two rules have the name {min(doubled)!r}; give each its own `name`")
        return self

    def accept_of(self, rule: GateRule) -> Accept:
        """Return what passes a rule; the accuracy drop has only one limit."""
        return "items" if rule.quantity != "loss" else rule.accept or self.accept

    @property
    def hash(self) -> str:
        """Hash of the content, independent of the formatting of the file."""
        content = json.dumps(self.model_dump(mode="json"), sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()


def make_default_policy(margin: float = MARGIN, accept: Accept = "items") -> GatePolicy:
    """Return a policy: a loss of all items blocks, that of a category warns.

    Raises:
        UsageError: the margin is not between 0 and 1.
    """
    if not 0 < margin < 1:
        raise UsageError(
            f"--margin is {margin:g}", hint="give a share between 0 and 1, such as 0.02."
        )
    if accept not in get_args(Accept):
        raise UsageError(f"accept is {accept!r}", hint='choose "items" or "net".')
    rules = (
        GateRule(margin=margin),
        GateRule(scope="category", tier="warning", margin=margin),
    )
    return GatePolicy(rule=rules, accept=accept)


def read_policy(path: str | Path) -> GatePolicy:
    """Read a policy from a TOML file.

    Raises:
        InputError: the file is missing, is not TOML, or has an invalid field.
    """
    path = Path(path)
    content = read_toml(path, "create a policy to start from with `forgetmap gate init`.")
    if "origin" in content:
        raise FieldError(_MESSAGES["extra_forbidden"], file=str(path), field="origin", hint=_HINT)
    try:
        return GatePolicy(**content).model_copy(update={"origin": str(path)})
    except (ValidationError, TypeError) as error:
        raise field_error(error, path, _HINT) from None


def read_toml(path: Path, hint: str) -> dict[str, Any]:
    """Read a TOML file.

    Raises:
        InputError: the file is missing or is not TOML.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise MissingInputError("the file does not exist", file=str(path), hint=hint) from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"not a valid TOML file: {error}", file=str(path), hint=hint) from None


def field_error(
    error: ValidationError | TypeError, path: Path, hint: str, within: tuple[str | int, ...] = ()
) -> FieldError:
    """Return the first error of a file, with the field."""
    if isinstance(error, TypeError):
        return FieldError(f"not valid: {error}", file=str(path), hint=hint)
    # If a field is missing, the cause is often a misspelt one.
    first = min(error.errors(), key=lambda one: one["type"] != "extra_forbidden")
    message = _MESSAGES.get(first["type"], first["msg"].removeprefix("Value error, "))
    parts = (*within, *(first["loc"][:1] if first["loc"][:1] == ("looks",) else first["loc"]))
    location = "".join(f"[{part + 1}]" if isinstance(part, int) else f".{part}" for part in parts)
    return FieldError(message, file=str(path), field=location.lstrip(".") or "policy", hint=hint)


_MESSAGES = {
    "extra_forbidden": "unknown field",
    "tuple_type": "expected a list: [...], or tables [[...]]",
    "missing": "missing field",
    "too_short": "there is none",
}
_HINT = "see docs/gate.md for all fields, or create a policy with `forgetmap gate init`."
