"""Numbers of a study in sentences."""

from __future__ import annotations

from forgetmap.study.words import points, signed_points


def test_points_below_zero_have_a_minus_sign() -> None:
    assert points(0.258) == "25.8 points"
    assert points(-0.028) == "\N{MINUS SIGN}2.8 points"
    assert signed_points(-0.028) == "\N{MINUS SIGN}2.8 points"
