"""Log-likelihoods of continuations; common prefixes are computed once.

The same passes can also check whether greedy decoding would generate them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import torch
from transformers.cache_utils import Cache

from forgetmap.evaluation.backends.base import Failure
from forgetmap.evaluation.backends.transformers.network import (
    PASS_ERRORS,
    Network,
    ran_out_of_memory,
    spread,
)
from forgetmap.evaluation.backends.transformers.prefixes import (
    MAX_TREE_STEM,
    MIN_HEAD,
    TokenPath,
    Tokens,
    Tree,
    common_length,
    group_by_head,
    grow_tree,
)

LOGITS = 2**26
"""Maximum number of logits per pass: a quarter of a gibibyte."""

Scored = tuple[TokenPath, float | Failure]


@dataclass(frozen=True, slots=True)
class PassLimits:
    """Maximum number of tokens per pass, and of cache cells."""

    tokens: int
    cells: int


@dataclass(frozen=True, slots=True)
class Targets:
    """Positions of the logits of continuations, and the next token at each.

    The positions of a path are contiguous, in the order of the paths.
    """

    rows: list[int]
    columns: list[int]
    tokens: list[int]
    paths: list[TokenPath]

    @property
    def starts(self) -> list[int]:
        """First position of each path."""
        lengths = [len(path.tokens) - path.start for path in self.paths]
        return [0, *accumulate(lengths[:-1])]


PathReader = Callable[[torch.Tensor, Targets], list[float | Failure]]
"""Returns a value for each path from the logits of a pass."""


def log_likelihoods(logits: torch.Tensor, targets: Targets) -> list[float | Failure]:
    """Return the sum of log-probabilities of each continuation."""
    rows, columns = targets.rows, targets.columns
    totals = logits.float().logsumexp(-1)
    chosen = (logits[rows, columns, targets.tokens].float() - totals[rows, columns]).double().cpu()
    sums = np.add.reduceat(chosen.numpy(), targets.starts).tolist()
    return [one if np.isfinite(one) else _not_a_number() for one in sums]


def are_greedy(logits: torch.Tensor, targets: Targets) -> list[float | Failure]:
    """Whether each token of a continuation is the most likely one."""
    likeliest = logits.argmax(-1)[targets.rows, targets.columns].cpu().numpy()
    is_same = likeliest == np.asarray(targets.tokens)
    flags: list[float | Failure] = np.logical_and.reduceat(is_same, targets.starts).tolist()
    return flags


def score_paths(
    network: Network,
    questions: Sequence[Sequence[TokenPath]],
    limits: PassLimits,
    read: PathReader = log_likelihoods,
) -> Iterator[Scored]:
    """Score every path; the paths of a question are scored together if the model allows it.

    Args:
        network: the model.
        questions: paths of each question.
        limits: limits of one pass.
        read: returns the value of each path.
    """
    longest = max((len(path.tokens) for paths in questions for path in paths), default=0)
    if network.takes_trees(longest):
        return _score_trees(network, questions, limits, read)
    paths = [path for paths in questions for path in paths]
    return _score_rows(network, paths, limits, read)


def _score_trees(
    network: Network,
    questions: Sequence[Sequence[TokenPath]],
    limits: PassLimits,
    read: PathReader,
) -> Iterator[Scored]:
    stems = [_stem(paths) for paths in questions]
    for group in group_by_head(stems):
        head = stems[group.members[0]][: group.head]
        try:
            with torch.inference_mode():
                cache = network.read_head(head) if head else None
        except PASS_ERRORS as error:
            yield from _failed([p for member in group.members for p in questions[member]], error)
            continue
        trees = [
            grow_tree([path for member in family for path in questions[member]], len(head))
            for family in _families(stems, group.members, len(head))
        ]
        for batch in _batches(trees, len(head), network.vocabulary, limits):
            yield from _score_batch(network, batch, cache, read)


def _stem(paths: Sequence[TokenPath]) -> Tokens:
    """Return the common prefix of the continuations, up to the first token that needs logits."""
    stem = paths[0].tokens[: min(path.start for path in paths) - 1]
    for path in paths[1:]:
        stem = stem[: common_length(stem, path.tokens)]
    return stem


def _families(stems: Sequence[Tokens], members: Sequence[int], head: int) -> Iterator[list[int]]:
    """Yield groups of neighbours that share more than the head, up to a size; each forms a tree."""
    family: list[int] = []
    for member in members:
        if family:
            shared = common_length(stems[family[-1]], stems[member])
            small = sum(len(stems[one]) - head for one in [*family, member]) <= MAX_TREE_STEM
            if shared - head < MIN_HEAD or not small:
                yield family
                family = []
        family.append(member)
    if family:
        yield family


@dataclass(slots=True)
class TreeLayout:
    """Trees as rows of one pass: nodes whose logits are needed come last."""

    tokens: np.ndarray
    positions: np.ndarray
    sees: np.ndarray
    keep: int
    rows: list[int]
    columns: list[int]
    targets: list[int]
    paths: list[TokenPath]


def _needed(tree: Tree, head: int) -> np.ndarray:
    needed = np.zeros(len(tree.tokens), dtype=bool)
    for path, route in zip(tree.paths, tree.routes, strict=True):
        needed[route[path.start - 1 - head :]] = True
    return needed


def _batches(
    trees: list[Tree], head: int, vocabulary: int, limits: PassLimits
) -> Iterator[list[Tree]]:
    """Group trees of similar size within the limits."""
    batch: list[Tree] = []
    width = keep = 0
    for tree in sorted(trees, key=lambda tree: len(tree.tokens), reverse=True):
        width = max(width, len(tree.tokens))
        keep = max(keep, int(_needed(tree, head).sum()))
        rows = len(batch) + 1
        full = (
            rows * width > limits.tokens
            or rows * (width + head) > limits.cells
            or rows * keep * vocabulary > LOGITS
        )
        if batch and full:
            yield batch
            batch, width = [], len(tree.tokens)
            keep = int(_needed(tree, head).sum())
        batch.append(tree)
    if batch:
        yield batch


def _lay_out(trees: Sequence[Tree], head: int) -> TreeLayout:
    needed = [_needed(tree, head) for tree in trees]
    inner = max(int((~some).sum()) for some in needed)
    keep = max(int(some.sum()) for some in needed)
    shape = (len(trees), inner + keep)
    layout = TreeLayout(
        tokens=np.zeros(shape, dtype=np.int64),
        positions=np.zeros(shape, dtype=np.int64),
        sees=np.zeros((*shape, head + inner + keep), dtype=bool),
        keep=keep,
        rows=[],
        columns=[],
        targets=[],
        paths=[],
    )
    layout.sees[:, :, :head] = True
    # Padding attends to itself, as softmax over nothing is not a number.
    layout.sees[:, np.arange(inner + keep), head + np.arange(inner + keep)] = True
    for row, (tree, some) in enumerate(zip(trees, needed, strict=True)):
        _fill_row(layout, row, tree, some, inner)
    return layout


def _fill_row(layout: TreeLayout, row: int, tree: Tree, needed: np.ndarray, inner: int) -> None:
    head = layout.sees.shape[2] - layout.sees.shape[1]
    columns = np.empty(len(tree.tokens), dtype=np.int64)
    leading = int((~needed).sum())
    columns[~needed] = inner - leading + np.arange(leading)
    columns[needed] = inner + np.arange(len(needed) - leading)
    layout.tokens[row, columns] = tree.tokens
    layout.positions[row, columns] = head + np.asarray(tree.depths)
    for path, route, known in zip(tree.paths, tree.routes, tree.fresh, strict=True):
        at = columns[route]
        steps = np.arange(len(route))
        layout.sees[row, at[known:, None], head + at[None, :]] = steps[known:, None] >= steps
        logit_columns = at[path.start - 1 - head :] - inner
        layout.rows += [row] * len(logit_columns)
        layout.columns += logit_columns.tolist()
        layout.targets += path.tokens[path.start :]
        layout.paths.append(path)


def _score_batch(
    network: Network, trees: list[Tree], cache: Cache | None, read: PathReader
) -> Iterator[Scored]:
    """Score a batch; split it if memory runs out."""
    try:
        yield from _pass_trees(network, trees, cache, read)
    except PASS_ERRORS as error:
        if not ran_out_of_memory(error) or len(trees) == 1:
            yield from _failed([path for tree in trees for path in tree.paths], error)
            return
        middle = len(trees) // 2
        yield from _score_batch(network, trees[:middle], cache, read)
        yield from _score_batch(network, trees[middle:], cache, read)


@torch.inference_mode()
def _pass_trees(
    network: Network, trees: list[Tree], cache: Cache | None, read: PathReader
) -> list[Scored]:
    layout = _lay_out(trees, cache.get_seq_length() if cache else 0)
    device = network.device
    logits = network.run(
        torch.from_numpy(layout.tokens).to(device),
        keep=layout.keep,
        mask=network.tree_mask(torch.from_numpy(layout.sees).to(device)),
        positions=torch.from_numpy(layout.positions).to(device),
        cache=spread(cache, len(trees)) if cache else None,
    )
    targets = Targets(layout.rows, layout.columns, layout.targets, layout.paths)
    return list(zip(layout.paths, read(logits, targets), strict=True))


def _not_a_number() -> Failure:
    return Failure("The model's log-likelihood is not a finite number.")


def _failed(paths: Sequence[TokenPath], error: BaseException) -> list[Scored]:
    text = " ".join(str(error).split())[:200]
    return [(path, Failure(f"{type(error).__name__}: {text}")) for path in paths]


def _score_rows(
    network: Network, paths: Sequence[TokenPath], limits: PassLimits, read: PathReader
) -> Iterator[Scored]:
    """Score one path per row, padded on the right: slow, but correct for any causal model."""
    waiting = sorted(paths, key=lambda path: len(path.tokens))
    while waiting:
        width = len(waiting[-1].tokens)
        rows = max(1, min(limits.tokens // width, LOGITS // (network.vocabulary * width)))
        batch = [waiting.pop() for _ in range(min(rows, len(waiting)))]
        yield from _score_half(network, batch, read)


def _score_half(network: Network, paths: list[TokenPath], read: PathReader) -> Iterator[Scored]:
    try:
        yield from _pass_rows(network, paths, read)
    except PASS_ERRORS as error:
        if not ran_out_of_memory(error) or len(paths) == 1:
            yield from _failed(paths, error)
            return
        middle = len(paths) // 2
        yield from _score_half(network, paths[:middle], read)
        yield from _score_half(network, paths[middle:], read)


@torch.inference_mode()
def _pass_rows(network: Network, paths: list[TokenPath], read: PathReader) -> list[Scored]:
    width = max(len(path.tokens) for path in paths) - 1
    first = min(path.start for path in paths) - 1
    tokens = torch.tensor(
        [(*path.tokens[:-1], *[0] * (width + 1 - len(path.tokens))) for path in paths]
    )
    mask = torch.tensor(
        [[1] * (len(path.tokens) - 1) + [0] * (width + 1 - len(path.tokens)) for path in paths]
    )
    logits = network.run(
        tokens.to(network.device), mask=mask.to(network.device), keep=width - first
    )
    rows: list[int] = []
    columns: list[int] = []
    for row, path in enumerate(paths):
        logit_columns = range(path.start - 1 - first, len(path.tokens) - 1 - first)
        rows += [row] * len(logit_columns)
        columns += logit_columns
    tokens_after = [token for path in paths for token in path.tokens[path.start :]]
    targets = Targets(rows, columns, tokens_after, paths)
    return list(zip(paths, read(logits, targets), strict=True))
