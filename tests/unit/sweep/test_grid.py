"""The merges of a sweep."""

from __future__ import annotations

import pytest

from forgetmap.errors import UsageError
from forgetmap.sweep.grid import PATHS, Merge, merges_of, parse_weights, recipe_of

pytestmark = pytest.mark.needs_torch


@pytest.mark.parametrize(
    ("text", "weights"),
    [
        ("0:1:0.1", (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)),
        ("0:1:0.25", (0.0, 0.25, 0.5, 0.75, 1.0)),
        ("0.2:0.7:0.2", (0.2, 0.4, 0.6)),
        ("0.8,0.2, 0.5,0.2", (0.2, 0.5, 0.8)),
        ("1", (1.0,)),
    ],
)
def test_weights_are_read_exactly(text: str, weights: tuple[float, ...]) -> None:
    assert parse_weights(text) == weights


@pytest.mark.parametrize(
    "text", ["", "a", "0:1", "0:1:0", "0:1:-0.1", "1:0:0.1", "0:1:0.0001", "0:2:0.5", "-1", "nan",
             "0:1:nan", "0:inf:1", "0:1:0.1:2"],
)  # fmt: skip
def test_no_weights_are_an_error(text: str) -> None:
    with pytest.raises(UsageError, match="weights"):
        parse_weights(text)


def test_every_path_has_its_ends_and_each_merge_once() -> None:
    made = merges_of(["linear", "ties"], "0.5,0.5")
    assert made == [
        Merge("linear", 0.0), Merge("linear", 0.5), Merge("linear", 1.0),
        Merge("ties", 0.0), Merge("ties", 0.5), Merge("ties", 1.0),
    ]  # fmt: skip
    assert [each.parent for each in made] == ["base", None, "tuned", "base", None, None]


def test_each_method_may_have_its_own_weights() -> None:
    made = merges_of(["linear", "slerp"], ["0:1:0.5", "0.1"])
    assert [each.weight for each in made if each.method == "slerp"] == [0.0, 0.1, 1.0]
    assert merges_of(["linear"], [0.3]) == merges_of(["linear"], "0.3")
    with pytest.raises(UsageError, match="3 grids of weights for 2 methods"):
        merges_of(["linear", "slerp"], ["0.1", "0.2", "0.3"])


def test_an_unknown_method_names_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"(?s)'slrep' has no path.*did you mean slerp"):
        merges_of(["slrep"], "0.5")
    with pytest.raises(UsageError, match="needs a method"):
        merges_of([], "0.5")


def test_linear_weights_are_shares_of_base_and_tuned() -> None:
    recipe = recipe_of(Merge("linear", 0.9), "base", "tuned", density=0.5, seed=3)
    assert [part.model for part in recipe.models] == ["base", "tuned"]
    values = [part.parameters["weight"][0].value for part in recipe.models]
    assert values == [0.1, 0.9]
    assert recipe.seed == 3


@pytest.mark.parametrize("method", [name for name in PATHS if name != "linear"])
def test_other_paths_go_from_base_to_the_one_model(method: str) -> None:
    recipe = recipe_of(Merge(method, 0.3), "base", "tuned", density=0.4, seed=0)
    assert recipe.base == "base"
    (part,) = recipe.models
    assert part.model == "tuned"
    (moved,) = recipe.parameters.values()
    assert moved[0].value == 0.3
    thinned = [rules[0].value for name, rules in part.parameters.items() if name == "density"]
    sparse = method.startswith(("ties", "dare", "breadcrumbs"))
    assert thinned == ([0.4] if sparse else [])
