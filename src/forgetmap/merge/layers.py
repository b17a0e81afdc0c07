"""Layer numbers from tensor names, for any architecture that numbers its layers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

_NUMBERED = re.compile(r"(?:(?P<stack>.*?)\.)?(?P<index>\d+)\.(?P<rest>.+)")
LAYER_COUNTS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers")
_AT_THE_START = re.compile(r"embed(?!_out)|wte|wpe")
_OF_TOKENS = re.compile(
    r"(^|\.)(embed_tokens|wte|word_embeddings|tok_embeddings|embed_in|embed_out|lm_head|shared)\."
)
_HEAD = re.compile(r"(^|\.)(lm_head|embed_out)\.weight$")


@dataclass(frozen=True, slots=True)
class Layer:
    """Position of a tensor in a layer: `model.layers`, 3, `mlp.up_proj.weight`."""

    stack: str
    index: int
    rest: str

    @property
    def name(self) -> str:
        """Name of the tensor."""
        return self.name_in(self.index)

    def name_in(self, index: int) -> str:
        """Return its name in another layer."""
        return ".".join([*filter(None, [self.stack]), str(index), self.rest])


def layer_of(name: str) -> Layer | None:
    """Parse a name by its first number; later ones are experts. None outside of all layers."""
    match = _NUMBERED.fullmatch(name)
    return Layer(match["stack"] or "", int(match["index"]), match["rest"]) if match else None


def stacks(names: Iterable[str]) -> dict[str, int]:
    """Count the layers of each stack; an encoder and a decoder are two stacks."""
    sizes: dict[str, int] = {}
    for layer in filter(None, map(layer_of, names)):
        sizes[layer.stack] = max(sizes.get(layer.stack, 0), layer.index + 1)
    return sizes


def configured_layers(config: Mapping[str, Any]) -> int | None:
    """Return the number of layers in the configuration."""
    inner = config.get("text_config")
    for section in (config, inner if isinstance(inner, Mapping) else {}):
        for key in LAYER_COUNTS:
            if isinstance(section.get(key), int):
                return int(section[key])
    return None


def at_the_start(name: str) -> bool:
    """Return whether a tensor outside of all layers comes before them."""
    return _AT_THE_START.search(name) is not None


def has_a_row_per_token(name: str) -> bool:
    """Return whether its first dimension is the number of tokens."""
    return _OF_TOKENS.search(name) is not None


def may_be_tied(name: str) -> bool:
    """Return whether a model may use its input embeddings in place of this tensor."""
    return _HEAD.search(name) is not None
