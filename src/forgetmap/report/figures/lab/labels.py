"""Positions of labels beside their points, without overlaps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

LETTER, LINE, AWAY = 6.2, 14.0, 9.0
"""Width of a letter, height of a line, distance of a name from its point, in pixels."""
_SIDES = (
    ("left", AWAY, 0.0), ("right", -AWAY, 0.0), ("left", AWAY, -12.0), ("left", AWAY, 12.0),
    ("center", 0.0, -15.0), ("center", 0.0, 15.0), ("right", -AWAY, -12.0),
    ("right", -AWAY, 12.0), ("left", AWAY, -24.0), ("left", AWAY, 24.0),
    ("right", -AWAY, -24.0), ("right", -AWAY, 24.0),
)  # fmt: skip
"""Alignment and offsets in order of preference."""


class NamePlace(NamedTuple):
    """Position of a name relative to its point."""

    align: str
    dx: float
    dy: float


class _Box(NamedTuple):
    left: float
    top: float
    right: float
    bottom: float


def place_names(
    points: Sequence[tuple[float, float]], names: Sequence[str], width: float, height: float
) -> list[NamePlace]:
    """Place names greedily, each where it overlaps least with earlier ones.

    Args:
        points: points in pixels, from the upper left.
        names: name of each point.
        width: width of the picture.
        height: height of the picture.
    """
    boxes = [_Box(x - 6, y - 6, x + 6, y + 6) for x, y in points]
    places = []
    for (x, y), name in zip(points, names, strict=True):
        tried = [
            (_hidden(_box(x, y, name, side), boxes, width, height) + rank, side)
            for rank, side in enumerate(_SIDES)
        ]
        best = min(tried)[1]
        boxes.append(_box(x, y, name, best))
        places.append(NamePlace(*best))
    return places


def _box(x: float, y: float, name: str, side: tuple[str, float, float]) -> _Box:
    align, dx, dy = side
    wide = LETTER * len(name)
    left = x + dx - {"left": 0.0, "center": wide / 2, "right": wide}[align]
    return _Box(left, y + dy - LINE / 2, left + wide, y + dy + LINE / 2)


def _hidden(box: _Box, taken: Sequence[_Box], width: float, height: float) -> float:
    """Return the overlapping area, including the area outside the picture."""
    inside = _common(box, _Box(0, 0, width, height))
    whole = (box.right - box.left) * (box.bottom - box.top)
    return 3 * (whole - inside) + sum(_common(box, other) for other in taken)


def _common(one: _Box, other: _Box) -> float:
    wide = min(one.right, other.right) - max(one.left, other.left)
    high = min(one.bottom, other.bottom) - max(one.top, other.top)
    return max(0.0, wide) * max(0.0, high)
