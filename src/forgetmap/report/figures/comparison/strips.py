"""A chain item by item: one strip per item, right or wrong at each stage, grouped by path."""

from __future__ import annotations

from collections import Counter, defaultdict
from xml.etree import ElementTree as ET

from forgetmap.report.figures import look, svg
from forgetmap.report.figures.figure import Figure
from forgetmap.report.payloads.schema import Histories, Payload
from forgetmap.text import counted

MAX_STRIPS = 120
MAX_UNCHANGED = 12
"""Maximum number of strips, and of strips of one path without changes."""

MAX_PATHS = 16
TOP, LEFT, WIDE, STRIP, GAP = 34.0, 12.0, 320.0, 4.0, 9.0
LETTER, NARROWEST = 8.0, 72.0
MIN_HEIGHT = 13.0
"""Width of a letter and of a stage; minimum height of a path, so that its label fits."""

WORDS = {"1": "right", "0": "wrong"}


def strips(payload: Payload) -> Figure | None:
    """Draw a chain if its histories are known; at most some hundred items."""
    histories = payload.histories
    if payload.kind != "chain" or histories is None or not histories.path:
        return None
    counts = _counts(payload, histories)
    items_by_path = _choose_items(histories, counts)
    count = sum(map(len, items_by_path.values()))
    summary = ", ".join(f"{path} {counts[path]:,}" for path in list(items_by_path)[:6])
    more = len(counts) - len(items_by_path)
    return Figure(
        name="histories",
        title="The history of each item",
        caption=f"Each strip is one item over {len(histories.stages)} stages, right or wrong; "
        f"items with the same history are grouped. {count:,} of "
        f"{counted(histories.total, 'item')} are drawn; the counts include all."
        + f" {more:,} further histories are not drawn."
        * (more > 0),
        alt=f"{counted(histories.total, 'item')} by history, 1 is right: {summary}.",
        table={name: getattr(histories, name) for name in ("task", "item", "path", "kind")},
        svg=svg.as_text(_draw(histories, items_by_path, counts)),
    )


def _counts(payload: Payload, histories: Histories) -> dict[str, int]:
    """Return the counts over all items, also of those without a history in the payload."""
    paths = payload.comparisons[0].paths
    if paths:
        return {path.path: path.n for path in paths}
    return dict(Counter(histories.path).most_common())


def _choose_items(histories: Histories, counts: dict[str, int]) -> dict[str, list[int]]:
    """Choose the items of each path: a fair share of those that changed, a few of the others."""
    places: dict[str, list[int]] = defaultdict(list)
    for index, path in enumerate(histories.path):
        places[path].append(index)
    order = sorted(places, key=lambda path: (len(set(path)) == 1, -counts.get(path, 0), path))
    order = order[:MAX_PATHS]
    changed = sum(len(places[path]) for path in order if len(set(path)) > 1)
    share = min(1.0, MAX_STRIPS / max(changed, 1))
    return {
        path: places[path][
            : max(1, int(len(places[path]) * share)) if len(set(path)) > 1 else MAX_UNCHANGED
        ]
        for path in order
    }


def _draw(
    histories: Histories, items_by_path: dict[str, list[int]], counts: dict[str, int]
) -> ET.Element:
    tall = sum(max(len(items) * STRIP, MIN_HEIGHT) + GAP for items in items_by_path.values())
    cell = max(WIDE / len(histories.stages), NARROWEST)
    wide = LEFT + cell * len(histories.stages)
    root = svg.canvas(wide + 190, TOP + tall + 30, "The history of each item")
    for index, name in enumerate(histories.stages):
        short = svg.shortened(name, int(cell / LETTER))
        svg.write(root, short, LEFT + cell * index, TOP - 12, font_weight="600")
    y = TOP
    for path, items in items_by_path.items():
        for row, index in enumerate(items):
            _strip(root, histories, index, y + row * STRIP, cell)
        height = max(len(items) * STRIP, MIN_HEIGHT)
        words = f"{counts.get(path, len(items)):,} {histories.kind[items[0]]}"
        svg.write(root, words, wide + 8, y + min(height, len(items) * STRIP) / 2 + 4)
        y += height + GAP
    _legend(root, y + 12)
    return root


def _strip(root: ET.Element, histories: Histories, index: int, y: float, cell: float) -> None:
    strip = svg.add(root, "g")
    path = histories.path[index]
    states = ", ".join(WORDS[state] for state in path)
    svg.tell(strip, f"{histories.task[index]} {histories.item[index]}: {states}")
    for stage, state in enumerate(path):
        svg.add(
            strip, "rect", x=LEFT + cell * stage, y=y, width=cell - 3, height=STRIP - 1,
            fill=_colour(path, stage), fill_opacity=1.0 if state == "1" else 0.75,
        )  # fmt: skip


def _colour(path: str, stage: int) -> str:
    """Return the colour of an item at a stage; wrong after right is the colour of losses."""
    if path[stage] == "1":
        return look.KEPT if "0" not in path[:stage] else look.GAINED
    return look.FORGOTTEN if "1" in path[:stage] else look.NEVER


def _legend(root: ET.Element, y: float) -> None:
    x = LEFT
    for words, colour in (
        ("right", look.KEPT), ("forgotten", look.FORGOTTEN), ("gained or regained", look.GAINED),
        ("not right so far", look.NEVER),
    ):  # fmt: skip
        svg.add(root, "rect", x=x, y=y - 10, width=12, height=12, fill=colour)
        svg.write(root, words, x + 17, y)
        x += 36 + 7 * len(words)
