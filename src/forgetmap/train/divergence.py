"""Divergence from the start model: KL on the right answers of the probe's items.

At every token of a right answer, the distribution of the next token is compared with that of the
start model, which is stored on disk. If the vocabulary is large, only the most likely tokens of the
start model are stored, and all others are merged into one: the KL is then a lower bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from forgetmap._disk import whole_file
from forgetmap.evaluation import (
    PASS_TOKENS,
    Job,
    Network,
    ResolvedSettings,
    TransformersBackend,
    continuations_of,
    spread,
)
from forgetmap.train.alarm import TOTAL, Key, KlMeans

START_FILE = "start.npz"
KEPT_TOKENS = 512
"""Number of most likely tokens of the start model that are stored."""
KL_ITEMS = 100
"""Maximum number of items for the KL."""
MOST_LOGITS = 2**25
"""Maximum number of logits per pass."""
SHORTEST_HEAD = 16
"""Minimum length of a common prefix that is computed separately."""
MOST_PADDING = 1.5
"""Maximum ratio of the longest to the shortest row of a pass."""
Reals = np.ndarray
Tokens = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AnswerPath:
    """A prompt with its right answer, which starts at index `start`."""

    key: Key
    tokens: Tokens
    start: int


@dataclass(frozen=True, slots=True)
class AnswerDistributions:
    """Log-probabilities of the start model, one row per token of an answer.

    Attributes:
        paths: the answers, in order.
        ids: stored tokens.
        logs: their log-probabilities.
        is_exact: whether the whole vocabulary is stored.
    """

    paths: tuple[AnswerPath, ...]
    ids: Reals
    logs: Reals
    is_exact: bool


def answer_paths(
    backend: TransformersBackend, jobs: Sequence[Job], settings: ResolvedSettings
) -> list[AnswerPath]:
    """Return the right answers of items that have one and fit into the context."""
    parts = [(job, job.prompt.rstrip(), _answer(job, settings)) for job in jobs]
    parts = [one for one in parts if one[2] and one[1]]
    wholes = backend.encode([job.prompt + answer for job, _, answer in parts])
    starts = backend.count_tokens([prompt for _, prompt, _ in parts])
    return [
        AnswerPath((job.task.name, job.item.id), whole, start)
        for (job, _, _), whole, start in zip(parts, wholes, starts, strict=True)
        if 0 < start < len(whole) <= backend.context
    ]


def _answer(job: Job, settings: ResolvedSettings) -> str:
    item = job.item
    if job.is_weighed(settings) and item.gold in item.options:
        return continuations_of(item, job.task)[item.options.index(item.gold)]
    return f" {item.gold}" if item.gold else ""


def keep_start(network: Network, paths: Sequence[AnswerPath]) -> AnswerDistributions:
    """Return the distributions of the current model."""
    kept = min(KEPT_TOKENS, network.vocabulary)
    ids: dict[Key, Reals] = {}
    logs: dict[Key, Reals] = {}
    for path, rows in _log_probabilities(network, paths):
        top = rows.topk(kept, dim=-1)
        ids[path.key] = top.indices.to(torch.int32).cpu().numpy()
        logs[path.key] = top.values.cpu().numpy()
    return AnswerDistributions(
        tuple(paths),
        np.concatenate([np.zeros((0, kept), np.int32), *(ids[path.key] for path in paths)]),
        np.concatenate([np.zeros((0, kept), np.float32), *(logs[path.key] for path in paths)]),
        kept == network.vocabulary,
    )


def measure_kl(
    network: Network, start: AnswerDistributions, chosen: set[Key]
) -> dict[Key, tuple[float, float]]:
    """Return KL(now || start) and KL(start || now) per token of each item, if finite."""
    lengths = [len(path.tokens) - path.start for path in start.paths]
    ends = np.cumsum(lengths)
    places = {path.key: slice(end - n, end) for path, end, n in zip(
        start.paths, ends, lengths, strict=True)}  # fmt: skip
    divergences = {}
    paths = [path for path in start.paths if path.key in chosen]
    for path, rows in _log_probabilities(network, paths):
        place = places[path.key]
        ids = torch.from_numpy(start.ids[place].astype(np.int64)).to(rows.device)
        now = rows.gather(-1, ids).cpu().numpy().astype(float)
        before = start.logs[place].astype(float)
        if not start.is_exact:
            now, before = _with_rest(now), _with_rest(before)
        both = _kl(now, before), _kl(before, now)
        if np.isfinite(both).all():
            divergences[path.key] = both
    return divergences


def mean_kl(
    values: Mapping[Key, tuple[float, float]], categories: Mapping[str, str]
) -> dict[str, KlMeans]:
    """Return the means over the items of each group and of the total."""
    groups: dict[str, list[tuple[float, float]]] = {TOTAL: []}
    for (task, _), both in values.items():
        groups[TOTAL].append(both)
        groups.setdefault(categories[task], []).append(both)
    return {
        name: KlMeans(*(float(mean) for mean in np.mean(group, axis=0)))
        for name, group in groups.items()
        if group
    }


def write_start(start: AnswerDistributions, folder: Path) -> None:
    """Write distributions to the disk."""
    with whole_file(folder / START_FILE) as partial, partial.open("wb") as file:
        np.savez(
            file,
            ids=start.ids,
            logs=start.logs,
            is_exact=start.is_exact,
            tasks=[path.key[0] for path in start.paths],
            items=[path.key[1] for path in start.paths],
        )


def read_start(folder: Path, paths: Sequence[AnswerPath]) -> AnswerDistributions | None:
    """Read the distributions of these answers; None if they are incomplete."""
    if not (folder / START_FILE).is_file():
        return None
    with np.load(folder / START_FILE) as kept:
        keys = list(zip(kept["tasks"].tolist(), kept["items"].tolist(), strict=True))
        by_key = {path.key: path for path in paths}
        if not set(keys) <= set(by_key):
            return None
        own = tuple(by_key[key] for key in keys)
        if sum(len(path.tokens) - path.start for path in own) != len(kept["ids"]):
            return None
        return AnswerDistributions(own, kept["ids"], kept["logs"], bool(kept["is_exact"]))


def _kl(one: Reals, other: Reals) -> float:
    """Return the mean KL over rows; tokens with probability 0 add nothing. NaN if a row is NaN."""
    with np.errstate(invalid="ignore"):
        terms = np.where(np.exp(one) == 0, 0.0, np.exp(one) * (one - other))
    return float(np.maximum(terms.sum(-1).mean(), 0.0))


def _with_rest(logs: Reals) -> Reals:
    """Append a column with the probability of all tokens that are not stored."""
    rest = np.log(np.maximum(1 - np.exp(logs).sum(-1, keepdims=True), 1e-12))
    return np.concatenate([logs, rest], axis=-1)


@torch.inference_mode()
def _log_probabilities(
    network: Network, paths: Sequence[AnswerPath]
) -> Iterator[tuple[AnswerPath, torch.Tensor]]:
    """Yield log-probabilities over the vocabulary, one row per token of each answer; in any order.

    Common prefixes of prompts, such as worked examples, are computed once.
    """
    longest = max((len(path.tokens) for path in paths), default=0)
    families = _families(paths) if network.shares_heads(longest) else [((), list(paths))]
    for head, family in families:
        yield from _passes(network, family, head)


def _families(paths: Sequence[AnswerPath]) -> Iterator[tuple[Tokens, list[AnswerPath]]]:
    """Yield groups of paths with their common prefix, and at the end all other paths."""
    apart: list[AnswerPath] = []
    family: list[AnswerPath] = []
    head: Tokens = ()
    for path in sorted(paths, key=lambda path: path.tokens):
        stem = path.tokens[: path.start - 1]
        shared = _common_head(head, stem)
        if family and len(shared) >= max(SHORTEST_HEAD, len(stem) // 2):
            head = shared
            family.append(path)
            continue
        if len(family) > 1:
            yield head, family
        else:
            apart += family
        head, family = stem, [path]
    if len(family) > 1:
        yield head, family
    else:
        apart += family
    if apart:
        yield (), apart


def _common_head(one: Tokens, other: Tokens) -> Tokens:
    pairs = enumerate(zip(one, other, strict=False))
    end = next((place for place, (own, its) in pairs if own != its), min(len(one), len(other)))
    return one[:end]


def _passes(
    network: Network, paths: Sequence[AnswerPath], head: Tokens
) -> Iterator[tuple[AnswerPath, torch.Tensor]]:
    """Run all paths that start with the head, in passes of similar length."""
    cache = network.read_head(head) if head else None
    skipped = len(head)
    for batch in _batches(sorted(paths, key=lambda path: len(path.tokens)), network.vocabulary):
        width = max(len(path.tokens) for path in batch) - 1 - skipped
        first = min(path.start for path in batch) - 1 - skipped
        rows = [
            (*path.tokens[skipped:-1], *[0] * (width + 1 + skipped - len(path.tokens)))
            for path in batch
        ]
        sizes = torch.tensor([len(path.tokens) - 1 for path in batch], device=network.device)
        places = torch.arange(width + skipped, device=network.device)
        logits = network.run(
            torch.tensor(rows, device=network.device),
            mask=(places < sizes[:, None]).long(),
            positions=places[skipped:].expand(len(batch), -1),
            keep=width - first,
            cache=spread(cache, len(batch)) if cache is not None else None,
        )
        for row, path in enumerate(batch):
            begin = path.start - 1 - skipped - first
            own = logits[row, begin : begin + len(path.tokens) - path.start]
            yield path, own.float().log_softmax(-1)


def _batches(paths: Sequence[AnswerPath], vocabulary: int) -> Iterator[list[AnswerPath]]:
    """Group neighbours within the limits."""
    batch: list[AnswerPath] = []
    for path in paths:
        width = max(len(one.tokens) for one in [*batch, path])
        keep = width - min(one.start for one in [*batch, path]) + 1
        rows = len(batch) + 1
        is_full = rows * width > PASS_TOKENS or rows * keep * vocabulary > MOST_LOGITS
        if batch and (is_full or width > MOST_PADDING * len(batch[0].tokens)):
            yield batch
            batch = []
        batch.append(path)
    if batch:
        yield batch
