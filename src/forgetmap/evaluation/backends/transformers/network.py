"""One forward pass of a causal language model, with its key-value cache."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, cast

import torch
from transformers.cache_utils import (
    Cache,
    DynamicCache,
    DynamicLayer,
    DynamicSlidingWindowLayer,
)

ROOM = 64
"""Columns added when a cache is full, so that not every step copies it."""
PASS_ERRORS = (RuntimeError, MemoryError, ValueError, IndexError, ArithmeticError, AssertionError)
"""Errors of models with inputs that are too large; other errors are bugs."""
TREE_ATTENTION = {"sdpa", "eager"}
"""Attention implementations that accept any mask."""


class GrowingLayer(DynamicLayer):  # type: ignore[misc]
    """Keys and values of one layer, with reserved space."""

    keys: torch.Tensor
    values: torch.Tensor
    _rooms: tuple[torch.Tensor, torch.Tensor] | None = None

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Append columns; copy only when the reserved space is full."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
            self.put(key_states, value_states)
            return key_states, value_states
        used = self.keys.shape[2]
        end = used + key_states.shape[2]
        if self._rooms is None or self._rooms[0].shape[2] < end:
            size = end + end // 4 + ROOM if key_states.shape[2] == 1 else end
            self._rooms = (_widened(self.keys, size), _widened(self.values, size))
        for room, new in zip(self._rooms, (key_states, value_states), strict=True):
            room[:, :, used:end] = new
        self.keys, self.values = (room[:, :, :end] for room in self._rooms)
        return self.keys, self.values

    def put(self, keys: torch.Tensor, values: torch.Tensor) -> None:
        """Replace keys and values."""
        self.dtype, self.device, self.is_initialized = keys.dtype, keys.device, True
        self.keys, self.values, self._rooms = keys, values, None


def _widened(old: torch.Tensor, size: int) -> torch.Tensor:
    rows, heads, used, width = old.shape
    room = old.new_empty(rows, heads, size, width)
    room[:, :, :used] = old
    return room


class Network:
    """A causal language model as a function from tokens to logits.

    Attributes:
        joins: whether rows can be added and removed: the cache has only keys and values.
        window: smallest sliding window of a layer; None if every layer sees all tokens.
    """

    def __init__(self, model: Any) -> None:
        self.model = model.eval()
        self.device = model.get_input_embeddings().weight.device
        self.vocabulary = int(model.get_output_embeddings().weight.shape[0])
        accepted = inspect.signature(model.forward).parameters
        self._keeps_some = "logits_to_keep" in accepted
        self._takes_positions = "position_ids" in accepted
        layers = DynamicCache(config=model.config).layers
        self.joins = all(type(one) in {DynamicLayer, DynamicSlidingWindowLayer} for one in layers)
        windows = [layer.sliding_window for layer in layers if hasattr(layer, "sliding_window")]
        self.window = min(windows, default=None)
        self._attention = getattr(model.config, "_attn_implementation", None)
        self._has_alibi = bool(getattr(model.config, "alibi", False))

    def shares_heads(self, longest: int) -> bool:
        """Whether rows of up to `longest` tokens may have gaps in the cache."""
        fits_window = self.window is None or longest <= self.window
        return self.joins and fits_window and self._takes_positions and not self._has_alibi

    def takes_trees(self, longest: int) -> bool:
        """Whether one row may hold several continuations of up to `longest` tokens."""
        return self.shares_heads(longest) and self._attention in TREE_ATTENTION

    def new_cache(self) -> Cache:
        """Return an empty cache."""
        if self.joins:
            return Cache(layer_class_to_replicate=GrowingLayer)
        return DynamicCache(config=self.model.config)

    def run(
        self,
        tokens: torch.Tensor,
        *,
        keep: int,
        mask: torch.Tensor | None = None,
        positions: torch.Tensor | None = None,
        cache: Cache | None = None,
    ) -> torch.Tensor:
        """Return the logits of the last `keep` columns."""
        options: dict[str, Any] = {"attention_mask": mask, "use_cache": cache is not None}
        if cache is not None:
            options["past_key_values"] = cache
        if positions is not None and self._takes_positions:
            options["position_ids"] = positions
        if self._keeps_some:
            options["logits_to_keep"] = keep
        return cast(torch.Tensor, self.model(input_ids=tokens, **options).logits[:, -keep:])

    def read_head(self, tokens: Sequence[int]) -> Cache:
        """Return the cache of one row of tokens."""
        cache = self.new_cache()
        self.run(torch.tensor([tokens], device=self.device), keep=1, cache=cache)
        return cache

    def tree_mask(self, sees: torch.Tensor) -> torch.Tensor:
        """Return a mask (row, from, to) in the format of the attention implementation."""
        if self._attention == "sdpa":
            return sees[:, None]
        dtype = self.model.dtype
        return torch.zeros_like(sees, dtype=dtype).masked_fill(~sees, torch.finfo(dtype).min)[
            :, None
        ]


def spread(cache: Cache, rows: int) -> Cache:
    """Return a copy of a cache with its single row repeated."""
    copy = Cache(layers=[GrowingLayer() for _ in cache.layers])
    for new, old in zip(copy.layers, cache.layers, strict=True):
        shape = (rows, -1, -1, -1)
        new.put(old.keys.expand(shape), old.values.expand(shape))
    return copy


def select(cache: Cache, rows: torch.Tensor, columns: torch.Tensor) -> None:
    """Keep only the given rows and columns."""
    for layer in cache.layers:
        if isinstance(layer, GrowingLayer):
            layer.put(
                layer.keys[rows].index_select(2, columns),
                layer.values[rows].index_select(2, columns),
            )
        else:
            layer.reorder_cache(rows)


def crop(cache: Cache, columns: int) -> None:
    """Remove the columns that a failed pass added."""
    for layer in cache.layers:
        if isinstance(layer, GrowingLayer) and layer.is_initialized:
            layer.put(layer.keys[:, :, :columns], layer.values[:, :, :columns])


def join(one: Cache, other: Cache) -> Cache:
    """Return a cache with the rows of both, the narrower one padded on the left."""
    width = max(one.get_seq_length(), other.get_seq_length())
    both = Cache(layers=[GrowingLayer() for _ in one.layers])
    for new, first, second in zip(both.layers, one.layers, other.layers, strict=True):
        new.put(
            torch.cat([pad_left(first.keys, width, 2), pad_left(second.keys, width, 2)]),
            torch.cat([pad_left(first.values, width, 2), pad_left(second.values, width, 2)]),
        )
    return both


def pad_left(tensor: torch.Tensor, size: int, axis: int) -> torch.Tensor:
    """Pad with zeros on the left."""
    missing = size - tensor.shape[axis]
    if not missing:
        return tensor
    shape = list(tensor.shape)
    shape[axis] = missing
    return torch.cat([tensor.new_zeros(shape), tensor], dim=axis)


def ran_out_of_memory(error: BaseException) -> bool:
    """Whether a smaller batch may succeed."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and "not enough memory" in str(error)
