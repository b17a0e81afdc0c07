"""Common prefixes of prompts, and a layout that computes each token only once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

MIN_HEAD = 16
"""Minimum length of a common prefix that is computed separately."""
MIN_MEMBERS = 4
"""Minimum number of prompts with a common prefix: for fewer, a separate pass costs more."""
MAX_TREE_STEM = 1024
"""Longer stems get a separate pass, as the mask of a tree grows quadratically."""

Tokens = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PrefixGroup:
    """Sequences (by index) that all begin with the same `head` tokens."""

    head: int
    members: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TokenPath:
    """One continuation of a question: all tokens, and the index where the continuation starts."""

    question: int
    option: int
    tokens: Tokens
    start: int


@dataclass(slots=True)
class Tree:
    """Paths that branch where they differ. A token attends to itself and its ancestors.

    Attributes:
        tokens: token of each node.
        depths: distance of each node from the end of the head.
        routes: nodes of each path after the head; the last token of a path is not a node.
        fresh: number of leading nodes of each path that existed before.
        paths: the paths, in the order of `routes`.
    """

    tokens: list[int] = field(default_factory=list)
    depths: list[int] = field(default_factory=list)
    routes: list[list[int]] = field(default_factory=list)
    fresh: list[int] = field(default_factory=list)
    paths: list[TokenPath] = field(default_factory=list)


def common_length(one: Tokens, other: Tokens) -> int:
    """Return the length of the common prefix of two sequences."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def group_by_head(stems: Sequence[Tokens]) -> list[PrefixGroup]:
    """Group stems with a long common prefix; every stem is in exactly one group."""
    order = sorted(range(len(stems)), key=stems.__getitem__)
    shared = [common_length(stems[a], stems[b]) for a, b in pairwise(order)]
    return [
        _group(stems, [order[index] for index in indices])
        for indices in _families(shared, 0, len(order))
    ]


def _group(stems: Sequence[Tokens], members: list[int]) -> PrefixGroup:
    """Make a group of sorted members: the first and the last share the shortest prefix."""
    head = common_length(stems[members[0]], stems[members[-1]])
    alone = len(members) < MIN_MEMBERS
    return PrefixGroup(0 if head < (MAX_TREE_STEM if alone else MIN_HEAD) else head, tuple(members))


def _families(shared: list[int], first: int, end: int) -> Iterator[list[int]]:
    """Split sorted indices [first, end) into groups worth a separate head, and the rest."""
    if end <= first:
        return
    floor = min(shared[first : end - 1], default=0)
    rest: list[int] = []
    for start, stop in _runs(shared, first, end, floor + MIN_HEAD):
        if stop - start < MIN_MEMBERS:
            rest += range(start, stop)
        else:
            yield from _families(shared, start, stop)
    if rest:
        yield rest


def _runs(shared: list[int], first: int, end: int, least: int) -> Iterator[tuple[int, int]]:
    """Yield the longest ranges of [first, end) whose neighbours share at least `least` tokens."""
    start = first
    for index in range(first, end - 1):
        if shared[index] < least:
            yield start, index + 1
            start = index + 1
    yield start, end


def grow_tree(paths: Sequence[TokenPath], head: int) -> Tree:
    """Build the tree of paths after a head of that many tokens; each shared token occurs once."""
    tree = Tree()
    before: Tokens = ()
    route: list[int] = []
    for path in sorted(paths, key=lambda path: path.tokens):
        inner = path.tokens[head:-1]
        known = common_length(before, inner)
        size = len(tree.tokens)
        route = route[:known] + list(range(size, size + len(inner) - known))
        tree.tokens += inner[known:]
        tree.depths += range(known, len(inner))
        tree.routes.append(route)
        tree.fresh.append(known)
        tree.paths.append(path)
        before = inner
    return tree
