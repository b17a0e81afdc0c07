"""The registry of merge methods, and their descriptions from signatures."""

from __future__ import annotations

import pytest
import torch

from forgetmap.errors import UsageError
from forgetmap.merge.method import (
    Draws,
    One,
    Parameter,
    PerModel,
    Share,
    SharePerModel,
    Tensors,
    merge_method,
)
from forgetmap.merge.registry import BUILT_IN, find_method, method_names

pytestmark = pytest.mark.needs_torch


def test_a_signature_says_what_a_method_takes() -> None:
    @merge_method("everything", summary="takes all kinds", paper="none", min_models=2, ordered=True)
    def everything(
        tensors: Tensors,
        base: torch.Tensor | None,
        *,
        number: float,
        share: Share = 0.5,
        flag: bool = True,
        each: PerModel,
        part: SharePerModel = (0.25,),
        lambda_: float = 1.0,
        chance: Draws,
    ) -> torch.Tensor:
        return tensors[0]

    assert everything.parameters == (
        Parameter("number", "number", False, False, None, None),
        Parameter("share", "share", False, False, 0.5, (0.0, 1.0)),
        Parameter("flag", "flag", True, False, True, None),
        Parameter("each", "each", False, True, None, None),
        Parameter("part", "part", False, True, 0.25, (0.0, 1.0)),
        Parameter("lambda", "lambda_", False, False, 1.0, None),
    )
    assert (everything.base, everything.draws) == ("possible", "chance")
    assert (everything.min_models, everything.max_models, everything.ordered) == (2, None, True)


def test_the_base_is_needed_possible_or_ignored() -> None:
    @merge_method("needs", summary="")
    def needs(tensors: One, base: torch.Tensor) -> torch.Tensor:
        return base - tensors[0]

    @merge_method("ignores", summary="")
    def ignores(tensors: One) -> torch.Tensor:
        return tensors[0]

    assert (needs.base, needs.max_models, needs.needs_base) == ("needed", 1, True)
    assert (ignores.base, ignores.needs_base) == ("ignored", False)
    one, two = torch.ones(1), torch.full((1,), 2.0)
    assert needs([one], two).item() == 1
    assert ignores([one], two).item() == 1


@pytest.mark.parametrize("name", list(BUILT_IN))
def test_every_method_has_its_name_and_says_what_it_does(name: str) -> None:
    found = find_method(name)
    assert found.name == name
    assert found.summary
    assert found.paper or name == "passthrough"
    assert found.function.__doc__


def test_an_unknown_method_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(UsageError) as caught:
        find_method("sleerp")
    assert "did you mean 'slerp'?" in caught.value.hint
    assert all(name in caught.value.hint for name in method_names())
