"""Regression of forgetting on divergence over several post-trained models.

forgetting = c1 KL + c2 KL^2, without a constant, as an unchanged model forgot nothing. The
prediction is evaluated on methods that were left out of the fit.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field, TypeAdapter, ValidationError

from forgetmap.comparison import ComparisonResult
from forgetmap.errors import (
    ColumnError,
    FieldError,
    InputError,
    MissingInputError,
    TooFewPairedError,
    UnknownFormatError,
    UnreadableError,
)
from forgetmap.overlap.result import OverlapGroup, OverlapNotice, OverlapResult
from forgetmap.overlap.samples import Floats
from forgetmap.results import Value

FEWEST_METHODS = 3
FOR_A_CURVE = 4
"""Minimum number of models to fit two coefficients and estimate an error."""
DIVERGENCES = ("kl", "kl_old", "kl_new", "reverse_kl", "reverse_kl_old", "reverse_kl_new")


class ModelRow(Value):
    """One post-trained model."""

    method: str
    model: str
    forgetting: float
    low: float | None = None
    high: float | None = None
    divergences: dict[str, float] = Field(description="Divergences by name, in nats.")


class Prediction(Value):
    """Prediction for a model by a fit without its own method."""

    method: str
    model: str
    divergence: float
    measured: float
    fitted: float
    predicted: float
    extrapolated: bool = Field(
        description="Whether its divergence is outside the range of the other methods."
    )


class Fit(Value):
    """Fit with one divergence as the predictor."""

    divergence: str
    coefficients: list[float] = Field(description="Coefficients of KL and, if used, KL squared.")
    n: int
    methods: int
    r_squared: float | None = Field(description="R² on the models of the fit; too optimistic.")
    error: float = Field(description="Root mean square error on the models of the fit.")
    error_left_out: float = Field(
        description="Root mean square error with each method left out in turn."
    )
    error_of_mean: float = Field(
        description="Root mean square error of predicting the mean of the others."
    )
    r_squared_left_out: float | None = Field(
        description="1 minus the squared ratio of the last two; negative if worse than the mean."
    )
    predictions: list[Prediction]


class BridgeResult(Value):
    """Fits of forgetting on each measured divergence; the best predictor first."""

    schema_version: int = 1
    fits: list[Fit]
    models: list[ModelRow]
    notices: list[OverlapNotice]


def fit_bridge(models: Sequence[ModelRow]) -> BridgeResult:
    """Fit forgetting on every divergence that all models have.

    Raises:
        TooFewPairedError: fewer than three methods, or no divergence common to all.
    """
    methods = {row.method for row in models}
    if len(methods) < FEWEST_METHODS:
        raise TooFewPairedError(
            f"{len(models)} models of {len(methods)} methods",
            hint=f"add models; leaving one method out needs at least {FEWEST_METHODS} methods.",
        )
    shared = [name for name in DIVERGENCES if all(name in row.divergences for row in models)]
    if not shared:
        raise TooFewPairedError(
            "no divergence is known for all models",
            hint=f"add one of {', '.join(DIVERGENCES)} for each model.",
        )
    fits = sorted((_fit(models, name) for name in shared), key=lambda fit: fit.error_left_out)
    return BridgeResult(fits=fits, models=list(models), notices=_notices(fits))


def row_of(
    method: str, model: str, overlap: OverlapResult, comparison: ComparisonResult
) -> ModelRow:
    """Build the row of a model from its overlap with the model before, and its comparison.

    Groups of prompts named `old` and `new` become separate divergences.
    """
    names = {"all": "", "old": "_old", "new": "_new"}
    divergences: dict[str, float] = {}
    for group in overlap.groups:
        if group.name in names:
            divergences |= _divergences(group, names[group.name])
    lost = comparison.total.forgetting
    if lost.value is None:
        raise FieldError(
            f"The forgetting of {model} is unknown.", field="forgetting",
            hint="compare runs with common scored items.",
        )  # fmt: skip
    return ModelRow(
        method=method, model=model, forgetting=lost.value, low=lost.low, high=lost.high,
        divergences=divergences,
    )  # fmt: skip


def _divergences(group: OverlapGroup, ending: str) -> dict[str, float]:
    values = {"kl": group.forward_kl.value, "reverse_kl": group.reverse_kl.value}
    return {f"{name}{ending}": value for name, value in values.items() if value is not None}


def _fit(models: Sequence[ModelRow], name: str) -> Fit:
    kl = np.array([row.divergences[name] for row in models])
    lost = np.array([row.forgetting for row in models])
    methods = np.array([row.method for row in models])
    coefficients = _coefficients(kl, lost)
    fitted = _at(kl, coefficients)
    predicted, plain = np.empty(len(kl)), np.empty(len(kl))
    beyond = np.zeros(len(kl), bool)
    # By method, not by model: models of one method resemble each other, and leaving out one of
    # them would test nothing.
    for method in np.unique(methods):
        out = methods == method
        predicted[out] = _at(kl[out], _coefficients(kl[~out], lost[~out]))
        plain[out] = lost[~out].mean()
        beyond[out] = (kl[out] > kl[~out].max()) | (kl[out] < kl[~out].min())
    spread = float(((lost - lost.mean()) ** 2).sum())
    error, of_mean = _rms(lost - predicted), _rms(lost - plain)
    return Fit(
        divergence=name,
        coefficients=coefficients.tolist(),
        n=len(models),
        methods=len(np.unique(methods)),
        r_squared=1 - float(((lost - fitted) ** 2).sum()) / spread if spread else None,
        error=_rms(lost - fitted),
        error_left_out=error,
        error_of_mean=of_mean,
        r_squared_left_out=1 - (error / of_mean) ** 2 if of_mean else None,
        predictions=[
            Prediction(
                method=row.method, model=row.model, divergence=kl[at], measured=row.forgetting,
                fitted=fitted[at], predicted=predicted[at], extrapolated=bool(beyond[at]),
            )
            for at, row in enumerate(models)
        ],
    )  # fmt: skip


def _coefficients(kl: Floats, lost: Floats) -> Floats:
    """Fit by least squares; a line if there are too few models for a curve."""
    curved = len(np.unique(kl)) >= FOR_A_CURVE
    terms = np.stack([kl, kl**2] if curved else [kl], axis=1)
    return np.asarray(np.linalg.lstsq(terms, lost, rcond=None)[0], float)


def _at(kl: Floats, coefficients: Floats) -> Floats:
    powers = np.stack([kl ** (power + 1) for power in range(len(coefficients))])
    forgetting: Floats = coefficients @ powers
    return forgetting


def curve(fit: Fit, points: int = 60) -> list[dict[str, float]]:
    """Return points of the fitted curve from no divergence to the largest measured one."""
    most = max(prediction.divergence for prediction in fit.predictions)
    kl = np.linspace(0, most, points)
    lost = _at(kl, np.array(fit.coefficients))
    return [{"divergence": float(x), "forgetting": float(y)} for x, y in zip(kl, lost, strict=True)]


def _rms(errors: Floats) -> float:
    return math.sqrt(float((errors**2).mean()))


def _notices(fits: Sequence[Fit]) -> list[OverlapNotice]:
    best = fits[0]
    notices = []
    if best.r_squared_left_out is None or best.r_squared_left_out <= 0:
        notices.append(
            OverlapNotice(
                kind="no better than the mean",
                text="No divergence predicts the forgetting of an unseen method better than the "
                "mean of the others; do not use it to choose a model.",
            )
        )
    beyond = [row.model for row in best.predictions if row.extrapolated]
    if beyond:
        notices.append(
            OverlapNotice(
                kind="extrapolated",
                text=f"{len(beyond)} of {best.n} predictions are outside the range of the "
                "divergences of the other methods "
                f"({', '.join(beyond[:5])}{', ...' if len(beyond) > 5 else ''}).",
            )
        )
    if not any(name.divergence.endswith("_old") for name in fits):
        notices.append(
            OverlapNotice(
                kind="new prompts only",
                text="Divergence was not measured separately on old prompts; measured on new "
                "prompts alone, it can miss changes of old behaviour.",
            )
        )
    return notices


# ---------------------------------------------------------------------------------------- reading


def read_models(path: Path) -> list[ModelRow]:
    """Read models from CSV or JSON: `method`, `model`, and numbers or files.

    Numbers are `forgetting` (with `low` and `high` if known) and divergences such as `kl`,
    `kl_old`, `kl_new`; files, relative to the table, are `comparison` (written by `forgetmap
    compare --out`) and `overlap` (written by `forgetmap overlap --out`).
    """
    models = [_row(row, line, path) for line, row in enumerate(_table(path), start=2)]
    names: set[tuple[str, str]] = set()
    for row in models:
        if (row.method, row.model) in names:
            raise FieldError(
                f"The model {row.model!r} of {row.method!r} occurs twice.", file=str(path),
                field="model", hint="use one row per model.",
            )  # fmt: skip
        names.add((row.method, row.model))
    return models


def _table(path: Path) -> list[dict[str, Any]]:
    if path.suffix.lower() not in {".csv", ".json"}:
        raise UnknownFormatError(
            f"{path} is neither CSV nor JSON.", hint="pass a .csv or .json file."
        )
    try:
        text = path.read_text(encoding="utf-8")
        rows = (
            json.loads(text)
            if path.suffix.lower() == ".json"
            else list(csv.DictReader(text.splitlines(keepends=True)))
        )
    except FileNotFoundError:
        raise MissingInputError(
            f"The file {path} does not exist.", hint="check the path."
        ) from None
    except (OSError, UnicodeDecodeError, ValueError, csv.Error) as error:
        raise UnreadableError(
            f"The file cannot be read: {error}.", file=str(path), hint="save it again as UTF-8."
        ) from None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise UnreadableError(
            "The file is not a list of models.", file=str(path), hint="write one object per model."
        )
    return [{k: v for k, v in row.items() if v not in (None, "")} for row in rows]


def _row(row: Mapping[str, Any], line: int, path: Path) -> ModelRow:
    try:
        missing = [name for name in ("method", "model") if name not in row]
        if missing:
            raise ColumnError(
                f"The field {missing[0]!r} is missing.", field=missing[0],
                hint="add method and model to each row.",
            )  # fmt: skip
        method, model = str(row["method"]), str(row["model"])
        if "overlap" in row and "comparison" in row:
            return row_of(
                method, model,
                _result(path.parent / str(row["overlap"]), "overlap.json", OverlapResult),
                _result(path.parent / str(row["comparison"]), "comparison.json", ComparisonResult),
            )  # fmt: skip
        numbers = {name: _number(name, row[name]) for name in row if name in _NUMBERS}
        if "forgetting" not in numbers or not numbers.keys() & set(DIVERGENCES):
            raise ColumnError(
                f"{model} has no forgetting or no divergence.", field="forgetting",
                hint=f"add forgetting and one of {', '.join(DIVERGENCES)}, or the files overlap "
                "and comparison.",
            )  # fmt: skip
        own = {name: numbers.pop(name) for name in DIVERGENCES if name in numbers}
        return ModelRow(method=method, model=model, divergences=own, **numbers)
    except InputError as error:
        error.file, error.line = error.file or str(path), error.line or line
        raise


_NUMBERS = {"forgetting", "low", "high", *DIVERGENCES}


def _number(name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number) or (name in DIVERGENCES and number < 0):
        raise FieldError(
            f"The {name} is {value!r}.", field=name,
            hint="use a number; a divergence is never negative.",
        )  # fmt: skip
    return number


def _result(path: Path, name: str, kind: type[Any]) -> Any:
    file = path / name if path.is_dir() else path
    try:
        return TypeAdapter(kind).validate_json(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise MissingInputError(
            f"{file} cannot be read: {error.strerror}.", hint="check the path in the table."
        ) from None
    except ValidationError:
        raise UnreadableError(
            f"{file} is not a result of `{name}`.",
            hint=f"pass the folder written by `--out` as {name}.",
        ) from None
