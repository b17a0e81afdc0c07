"""A chain as a flow diagram: right results at each stage, and changes between stages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple
from xml.etree import ElementTree as ET

from forgetmap.comparison import PathResult
from forgetmap.report.figures import look, svg
from forgetmap.report.figures.figure import Figure
from forgetmap.report.payloads.schema import Payload
from forgetmap.text import counted, percent

TALL, GAP, TOP, BAR, STEP, LEFT = 240.0, 24.0, 46.0, 14.0, 190.0, 24.0
COLOURS = {
    "stays right": look.KEPT,
    "forgotten": look.FORGOTTEN,
    "regained": look.REGAINED,
    "gained": look.GAINED,
    "stays wrong": look.NEVER,
}
"""Colours of moves in the order in which they leave a stage, from above: right results first."""


MAX_NAME_LENGTH = 22
CHANGES = ("forgotten", "regained", "gained")


class Move(NamedTuple):
    """Results with the same change between two stages."""

    stage: int
    kind: str
    results: int


def flow(payload: Payload) -> Figure | None:
    """Draw a chain: right results above, wrong below, with ribbons between stages."""
    first = payload.comparisons[0]
    if payload.kind != "chain" or not first.paths or not first.stages:
        return None
    stages = [first.before.name, *(stage.name for stage in first.stages)]
    moves = moves_of(first.paths)
    summary = "; ".join(
        f"from {stages[index]} to {stages[index + 1]} "
        + ", ".join(f"{move.results:,} {move.kind}" for move in moves if move.stage == index)
        for index in range(len(stages) - 1)
    )
    total = sum(path.n for path in first.paths)
    return Figure(
        name="flow",
        title="Forgotten and regained from stage to stage",
        caption=f"{counted(total, 'result')} scored at every stage; right above, wrong below. "
        "Regained results were right at an earlier stage and forgotten in between.",
        alt=f"Flow of {counted(total, 'result')}: {summary}.",
        table={
            "from": [stages[move.stage] for move in moves],
            "to": [stages[move.stage + 1] for move in moves],
            "what": [move.kind for move in moves],
            "results": [move.results for move in moves],
        },
        svg=svg.as_text(_draw(stages, first.paths, moves)),
    )


def moves_of(paths: Sequence[PathResult]) -> list[Move]:
    """Return the changes between stages in drawing order."""
    counts: Counter[tuple[int, str]] = Counter()
    for path in paths:
        for index in range(len(path.path) - 1):
            counts[index, _kind(path.path, index)] += path.n
    order = list(COLOURS)
    moves = [Move(stage, kind, count) for (stage, kind), count in counts.items() if count]
    return sorted(moves, key=lambda move: (move.stage, order.index(move.kind)))


def _kind(path: str, index: int) -> str:
    now, later = path[index], path[index + 1]
    if now == later:
        return "stays right" if now == "1" else "stays wrong"
    if now == "1":
        return "forgotten"
    return "regained" if "1" in path[:index] else "gained"


def _draw(stages: list[str], paths: Sequence[PathResult], moves: list[Move]) -> ET.Element:
    total = sum(path.n for path in paths) or 1
    right = [
        sum(path.n for path in paths if path.path[index] == "1") for index in range(len(stages))
    ]
    root = svg.canvas(
        2 * LEFT + STEP * (len(stages) - 1) + 150, TOP + TALL + GAP + 70, "Forgotten, by stage"
    )
    for index in range(len(stages) - 1):
        own = [move for move in moves if move.stage == index]
        _ribbons(root, index, own, (right[index], right[index + 1]), total)
        _counts(root, index, own)
    for index, name in enumerate(stages):
        _stage(root, index, name, right[index], total)
    return root


def _ribbons(
    root: ET.Element, index: int, moves: list[Move], right: tuple[int, int], total: int
) -> None:
    """Draw the ribbons, ordered so that few of them cross."""
    x0, x1 = LEFT + index * STEP + BAR, LEFT + (index + 1) * STEP
    wrong_top = [TOP + TALL * right[side] / total + GAP for side in (0, 1)]
    leaves = {"1": TOP, "0": wrong_top[0]}
    arrives = {"1": TOP, "0": wrong_top[1]}
    start, end = {}, {}
    for move in moves:
        thick = TALL * move.results / total
        origin = "1" if move.kind in {"stays right", "forgotten"} else "0"
        start[move.kind] = leaves[origin]
        leaves[origin] += thick
    for kind in ("stays right", "regained", "gained", "forgotten", "stays wrong"):
        for move in (move for move in moves if move.kind == kind):
            target = "0" if kind in {"forgotten", "stays wrong"} else "1"
            end[kind] = arrives[target]
            arrives[target] += TALL * move.results / total
    for move in moves:
        thick = max(TALL * move.results / total, 1.0)
        middle = (x0 + x1) / 2
        path = svg.ribbon((x0, start[move.kind]), (x1, end[move.kind]), (middle, middle), thick)
        quiet = move.kind not in CHANGES
        ribbon = svg.add(
            root, "path", d=path, fill=COLOURS[move.kind], fill_opacity=0.3 if quiet else 0.8
        )
        svg.tell(ribbon, f"{move.kind}: {move.results:,} ({percent(move.results / total)})")


def _stage(root: ET.Element, index: int, name: str, right: int, total: int) -> None:
    x = LEFT + index * STEP
    split = TALL * right / total
    svg.write(root, svg.shortened(name, MAX_NAME_LENGTH), x, TOP - 22, font_weight="600")
    svg.write(root, f"{percent(right / total)} right", x, TOP - 7)
    svg.add(root, "rect", x=x, y=TOP, width=BAR, height=split, fill=look.KEPT)
    svg.add(root, "rect", x=x, y=TOP + split + GAP, width=BAR, height=TALL - split, fill=look.NEVER)


def _counts(root: ET.Element, index: int, moves: list[Move]) -> None:
    """Draw the numbers of changes below their ribbons."""
    x = LEFT + index * STEP + BAR + 34
    changes = [move for move in moves if move.kind in CHANGES]
    for row, move in enumerate(changes):
        y = TOP + TALL + GAP + 24 + 18 * row
        svg.add(root, "rect", x=x, y=y - 10, width=12, height=12, fill=COLOURS[move.kind])
        svg.write(root, f"{move.results:,} {move.kind}", x + 18, y)
