from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from forgetmap.errors import (
    ColumnError,
    FieldError,
    ForgetmapError,
    MissingInputError,
    TooFewPairedError,
    UnknownFormatError,
    UnreadableError,
)
from forgetmap.overlap.bridge import ModelRow, fit_bridge, read_models
from forgetmap.report.figures.overlap import bridge_figures
from forgetmap.report.folders import write_bridge


def rows(noise: float = 0.0) -> list[ModelRow]:
    """Four methods; forgetting follows the divergence on old prompts, not the one on new ones."""
    random = np.random.default_rng(1)
    found = []
    for method, place in [(m, p) for m in ("sft", "rl", "sdft", "replay") for p in range(4)]:
        old, new = random.uniform(0.05, 2), random.uniform(0.05, 2)
        lost = 0.1 * old + 0.02 * old**2 + noise * random.normal()
        found.append(
            ModelRow(
                method=method, model=f"{method}-{place}", forgetting=lost, low=lost - 0.01,
                high=lost + 0.01, divergences={"kl_old": old, "kl_new": new},
            )
        )  # fmt: skip
    return found


def test_the_curve_is_recovered_and_the_right_divergence_comes_first() -> None:
    result = fit_bridge(rows())
    assert [fit.divergence for fit in result.fits] == ["kl_old", "kl_new"]
    best, other = result.fits
    assert best.coefficients == pytest.approx([0.1, 0.02])
    assert best.error_left_out == pytest.approx(0, abs=1e-12)
    assert best.r_squared == pytest.approx(1)
    assert (best.n, best.methods) == (16, 4)
    assert other.error_left_out > 0.02


def test_each_method_is_predicted_without_itself() -> None:
    models = rows(noise=0.02)
    fit = fit_bridge(models).fits[0]
    errors, plain = [], []
    for model, found in zip(models, fit.predictions, strict=True):
        others = [each for each in models if each.method != model.method]
        kl = np.array([each.divergences[fit.divergence] for each in others])
        lost = np.array([each.forgetting for each in others])
        terms = np.stack([kl, kl**2], axis=1)
        one, two = np.linalg.inv(terms.T @ terms) @ terms.T @ lost
        own = model.divergences[fit.divergence]
        assert found.predicted == pytest.approx(one * own + two * own**2)
        assert found.extrapolated == (own > kl.max() or own < kl.min())
        errors.append(found.predicted - model.forgetting)
        plain.append(lost.mean() - model.forgetting)
    assert fit.error_left_out == pytest.approx(np.sqrt(np.mean(np.square(errors))))
    assert fit.r_squared_left_out == pytest.approx(
        1 - np.sum(np.square(errors)) / np.sum(np.square(plain))
    )
    assert fit.error_left_out > fit.error


def test_a_divergence_that_says_nothing_is_said_to() -> None:
    random = np.random.default_rng(3)
    models = [
        ModelRow(method=f"m{place % 3}", model=str(place), forgetting=0.2 + 0.01 * random.normal(),
                 divergences={"kl": random.uniform(0, 3)})
        for place in range(12)
    ]  # fmt: skip
    kinds = {notice.kind for notice in fit_bridge(models).notices}
    assert {"no better than the mean", "new prompts only"} <= kinds


def test_too_little_to_fit_is_refused() -> None:
    with pytest.raises(TooFewPairedError, match="8 models of 2 methods"):
        fit_bridge(rows()[:8])
    mixed = [*rows()[:-1], rows()[-1].model_copy(update={"divergences": {"kl": 1.0}})]
    with pytest.raises(TooFewPairedError, match="no divergence"):
        fit_bridge(mixed)


def test_figures_show_every_model_and_can_be_drawn(tmp_path: Path) -> None:
    models = [row.model_copy(update={"model": f"{row.model}\x07"}) for row in rows(0.02)]
    result = fit_bridge(models)
    write_bridge(result, tmp_path / "out")
    for figure in bridge_figures(result):
        assert "left out" in figure.caption
        assert len(figure.table["model"]) == len(models)
        stem = tmp_path / "out" / figure.name.replace("_", "-")
        assert "<svg" in stem.with_suffix(".svg").read_text()
        assert stem.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
        assert json.loads(stem.with_suffix(".vl.json").read_text())["layer"]


CSV = "method,model,forgetting,kl\nsft,a,0.1,1\nrl,b,0.05,0.4\nsdft,c,0.02,0.2\n"


def test_tables_are_read(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(CSV)
    table: list[dict[str, Any]] = [
        {"method": "sft", "model": "a", "forgetting": 0.1, "kl": 1, "low": 0.05, "high": 0.2}
    ]
    (tmp_path / "t.json").write_text(json.dumps(table))
    assert [row.model for row in read_models(tmp_path / "t.csv")] == ["a", "b", "c"]
    assert read_models(tmp_path / "t.csv")[1].divergences == {"kl": 0.4}
    assert read_models(tmp_path / "t.json")[0].low == 0.05


@pytest.mark.parametrize(
    ("name", "text", "error", "says"),
    [
        ("t.csv", "method,forgetting,kl\nsft,0.1,1\n", ColumnError, "model"),
        ("t.csv", "method,model,forgetting\nsft,a,0.1\n", ColumnError, "no divergence"),
        ("t.csv", CSV.replace("0.4", "-0.4"), FieldError, "'-0.4'"),
        ("t.csv", CSV.replace("0.05", "many"), FieldError, "'many'"),
        ("t.csv", CSV + "sft,a,0.3,1\n", FieldError, "occurs twice"),
        ("t.csv", CSV + "x,y,nan,1\n", FieldError, "nan"),
        ("t.json", "{", UnreadableError, "cannot be read"),
        ("t.json", "3", UnreadableError, "not a list"),
        ("t.xlsx", "", UnknownFormatError, "neither"),
        (
            "t.csv",
            "method,model,overlap,comparison\nsft,a,o,c\n",
            MissingInputError,
            "o cannot be read",
        ),
    ],
)
def test_faults_in_tables_are_named(
    tmp_path: Path, name: str, text: str, error: type[ForgetmapError], says: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(error, match=says):
        read_models(tmp_path / name)
