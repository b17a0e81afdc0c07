"""The decoding loop: a batch in which finished rows are replaced by the next prompts."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from transformers.cache_utils import Cache

from forgetmap.evaluation.backends.base import Decoding, Failure, FinishReason
from forgetmap.evaluation.backends.transformers.network import (
    PASS_ERRORS,
    Network,
    crop,
    join,
    pad_left,
    select,
    spread,
)
from forgetmap.evaluation.backends.transformers.prefixes import Tokens

CLEAR_SHARE = 8
"""Finished rows are removed when they make up one in this many."""
RESERVE = 128
"""Tokens reserved for a new row; it may use more if there is room."""
NO_TOKEN = -1
TOP_TOKENS = 1024
"""Number of most probable tokens examined first in nucleus sampling."""


@dataclass(slots=True)
class DecodeRow:
    """A response in progress.

    Attributes:
        index: index in the request.
        tokens: tokens of the prompt.
        head: number of tokens shared with the other rows of its group.
        group: number of the group.
        limit: maximum number of new tokens.
        seed: random seed.
    """

    index: int
    tokens: Tokens
    head: int
    group: int
    limit: int
    seed: int
    out: list[int] = field(default_factory=list)
    finished: FinishReason | None = None
    _random: np.random.Generator | None = None

    def restart(self) -> None:
        """Discard the response; decoding reproduces it."""
        self.out, self._random = [], None

    def draw(self) -> float:
        """Return the next random number; it depends only on the seed."""
        if self._random is None:
            self._random = np.random.default_rng(self.seed)
        return self._random.random()


@dataclass(frozen=True, slots=True)
class Size:
    """Maximum number of rows, tokens per pass, and cache cells."""

    rows: int
    tokens: int
    cells: int


class Decoder:
    """Decodes rows in batches."""

    def __init__(
        self,
        network: Network,
        decoding: Decoding,
        ended: Callable[[Sequence[int]], bool],
        size: Size,
        context: int,
    ) -> None:
        self._network = network
        self._decoding = decoding
        self._ended = ended
        self._rows, self._tokens, self._cells = size.rows, size.tokens, size.cells
        self._context = context
        self._waiting: deque[DecodeRow] = deque()
        self._live: list[DecodeRow] = []
        self._done: list[tuple[DecodeRow, Failure | None]] = []
        self._cache: Cache | None = None
        self._mask = torch.zeros(0, 0)
        self._head: tuple[int, Cache] | None = None

    def run(self, rows: Sequence[DecodeRow]) -> Iterator[tuple[DecodeRow, Failure | None]]:
        """Decode all rows and yield finished ones; groups stay together, the longest rows first."""
        self._waiting.extend(sorted(rows, key=lambda row: (row.group, -len(row.tokens))))
        while self._waiting or self._live:
            with torch.inference_mode():
                self._clear_out()
                self._fill_up()
                if self._live:
                    self._step()
            yield from self._done
            self._done.clear()

    def _clear_out(self) -> None:
        """Remove finished rows and unused columns."""
        alive = [index for index, row in enumerate(self._live) if not row.finished]
        if (len(self._live) - len(alive)) * CLEAR_SHARE < max(1, len(self._live)):
            return
        self._keep(alive)

    def _keep(self, indices: list[int]) -> None:
        self._live = [self._live[index] for index in indices]
        if not indices or self._cache is None:
            self._cache = None
            return
        rows = torch.tensor(indices, device=self._network.device)
        mask = self._mask[rows]
        columns = mask.any(0).nonzero()[:, 0]
        if not self._network.joins:
            columns = torch.arange(mask.shape[1], device=mask.device)
        select(self._cache, rows, columns)
        self._mask = mask[:, columns]

    def _fill_up(self) -> None:
        """Add waiting rows while there is room."""
        while self._waiting and (self._network.joins or not self._live):
            rows = self._next_rows()
            if not rows:
                return
            try:
                self._let_in(rows)
            except PASS_ERRORS as error:
                self._shrink(rows, error)

    def _next_rows(self) -> list[DecodeRow]:
        """Take waiting rows with the same head that fit into the cache."""
        first = self._waiting[0]
        used = self._mask.shape[1] if self._live else 0
        width = max(used, len(first.tokens)) + min(RESERVE, first.limit)
        free = min(self._rows, self._cells // width) - len(self._live)
        if not self._live:
            free = max(free, 1)
        elif free < min(self._rows // CLEAR_SHARE, len(self._waiting)):
            return []
        fits = min(free, max(1, self._tokens // (len(first.tokens) - first.head)))
        rows: list[DecodeRow] = []
        while self._waiting and len(rows) < fits and self._waiting[0].group == first.group:
            rows.append(self._waiting.popleft())
        return rows

    def _let_in(self, rows: list[DecodeRow]) -> None:
        """Compute the prompts, with the head once, and add the rows to the batch."""
        head = rows[0].head
        cache = self._network.new_cache()
        if head:
            cache = spread(self._read_head(rows[0]), len(rows))
        width = max(len(row.tokens) for row in rows) - head
        blanks = [width + head - len(row.tokens) for row in rows]
        tokens = [
            [0] * blank + [*row.tokens[head:]] for row, blank in zip(rows, blanks, strict=True)
        ]
        mask = torch.ones(len(rows), head + width, dtype=torch.long)
        for index, blank in enumerate(blanks):
            mask[index, head : head + blank] = 0
        mask = mask.to(self._network.device)
        logits = self._network.run(
            torch.tensor(tokens, device=self._network.device),
            keep=1,
            mask=mask,
            positions=(mask.cumsum(1) - 1).clamp(min=0)[:, head:],
            cache=cache,
        )
        chosen = choose(logits[:, -1], rows, self._decoding)
        self._join(rows, cache, mask)
        self._record(rows, chosen)

    def _read_head(self, row: DecodeRow) -> Cache:
        if self._head is None or self._head[0] != row.group:
            self._head = row.group, self._network.read_head(row.tokens[: row.head])
        return self._head[1]

    def _join(self, rows: list[DecodeRow], cache: Cache, mask: torch.Tensor) -> None:
        if self._cache is None:
            self._cache, self._mask, self._live = cache, mask, list(rows)
            return
        width = max(self._mask.shape[1], mask.shape[1])
        self._cache = join(self._cache, cache)
        self._mask = torch.cat([pad_left(self._mask, width, 1), pad_left(mask, width, 1)])
        self._live += rows

    def _step(self) -> None:
        """Decode one token of every row."""
        width = self._mask.shape[1]
        if (width + 1) * len(self._live) > self._cells and len(self._live) > 1:
            self._send_back(max(1, self._cells // (width + 1 + RESERVE)))
            width = self._mask.shape[1]
        try:
            mask = torch.nn.functional.pad(self._mask, (0, 1), value=1)
            last = [row.out[-1:] or [0] for row in self._live]
            logits = self._network.run(
                torch.tensor(last, device=self._network.device),
                keep=1,
                mask=mask,
                # A finished row that is still in the batch must not exceed the positions.
                positions=(mask.sum(1, keepdim=True) - 1).clamp(max=self._context - 1),
                cache=self._cache,
            )
            chosen = choose(logits[:, -1], self._live, self._decoding)
        except PASS_ERRORS as error:
            self._recover(width, error)
            return
        self._mask = mask
        self._record(self._live, chosen)

    def _record(self, rows: Sequence[DecodeRow], chosen: list[int]) -> None:
        for row, token in zip(rows, chosen, strict=True):
            if row.finished:
                continue
            if token == NO_TOKEN:
                row.finished = "stop"
                self._done.append((row, Failure("The model's logits are not finite.")))
                continue
            row.out.append(token)
            if self._ended(row.out):
                row.finished = "stop"
            elif len(row.out) >= row.limit:
                row.finished = "length"
            if row.finished:
                self._done.append((row, None))

    def _send_back(self, most: int) -> None:
        """Keep at most this many rows; the newest restart later."""
        alive = [index for index, row in enumerate(self._live) if not row.finished]
        for index in reversed(alive[most:]):
            self._live[index].restart()
            self._waiting.appendleft(self._live[index])
        self._keep(alive[:most])

    def _recover(self, width: int, error: Exception) -> None:
        """Continue with half the rows; a row that fails alone is a failure."""
        alive = [row for row in self._live if not row.finished]
        if len(alive) <= 1:
            self._fail(alive, error)
            self._keep([])
            return
        self._rows = len(alive) // 2
        if self._cache is not None:
            crop(self._cache, width)
        # A failed pass may have changed a cache of another kind; that cannot be undone.
        self._send_back(self._rows if self._network.joins else 0)

    def _shrink(self, rows: list[DecodeRow], error: Exception) -> None:
        """Retry the rows in smaller batches; a row that fails alone is a failure."""
        if len(rows) == 1 and not self._live:
            self._fail(rows, error)
            return
        self._waiting.extendleft(reversed(rows))
        if len(rows) > 1:
            self._tokens = max(1, self._tokens // 2)
            self._rows = min(self._rows, len(self._live) + len(rows) // 2)
        else:
            self._rows = len(self._live)

    def _fail(self, rows: Sequence[DecodeRow], error: Exception) -> None:
        text = " ".join(str(error).split())[:200]
        self._done += [(row, Failure(f"{type(error).__name__}: {text}")) for row in rows]


def choose(logits: torch.Tensor, rows: Sequence[DecodeRow], decoding: Decoding) -> list[int]:
    """Return the next token of each row: the best, or one sampled with its own random number."""
    highest, tokens = logits.max(-1)
    if decoding.temperature > 0:
        draws = torch.tensor([[row.draw()] for row in rows], device=logits.device)
        chances = (logits.float() / decoding.temperature).softmax(-1)
        tokens = _draw_tokens(chances, draws, decoding.top_p)
    chosen: list[int] = tokens.masked_fill(highest.isnan(), NO_TOKEN).tolist()
    return chosen


def _draw_tokens(chances: torch.Tensor, draws: torch.Tensor, top_p: float) -> torch.Tensor:
    if top_p >= 1:
        sums = chances.cumsum(-1)
        return _first_above(sums, draws * sums[:, -1:])[:, 0]
    likely, tokens = chances.topk(min(TOP_TOKENS, chances.shape[1]))
    if (likely.sum(-1) < top_p).any():
        likely, tokens = chances.sort(descending=True)
    sums = likely.cumsum(-1)
    kept = likely.masked_fill(sums - likely >= top_p, 0).cumsum(-1)
    return tokens.gather(1, _first_above(kept, draws * kept[:, -1:]))[:, 0]


def _first_above(sums: torch.Tensor, draws: torch.Tensor) -> torch.Tensor:
    """Return the first index at which the sums exceed the draw."""
    first = torch.searchsorted(sums, draws.to(sums.dtype), right=True)
    last = torch.searchsorted(sums, sums[:, -1:].contiguous())
    return torch.minimum(first, last).clamp(max=sums.shape[1] - 1)
