"""Models of the transformers library as a backend."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from transformers import __version__ as transformers_version

from forgetmap.evaluation.backends.base import (
    Decoding,
    Failure,
    Likelihoods,
    LoadOptions,
    ModelSource,
    Prompt,
    Question,
    Response,
)
from forgetmap.evaluation.backends.tokens import TokenizerBase, likelihoods
from forgetmap.evaluation.backends.transformers.decode import Decoder, DecodeRow, Size
from forgetmap.evaluation.backends.transformers.load import load_model
from forgetmap.evaluation.backends.transformers.network import Network
from forgetmap.evaluation.backends.transformers.prefixes import (
    PrefixGroup,
    TokenPath,
    Tokens,
    group_by_head,
)
from forgetmap.evaluation.backends.transformers.score import PassLimits, score_paths

ROWS = 64
"""Default maximum number of concurrent responses."""
PASS_TOKENS = 4096
"""Maximum number of tokens per forward pass."""
CELLS = (2**13, 2**17)
"""Bounds on the number of cache cells if it is derived from the free memory."""
MEMORY_SHARE = 0.3
UNSTATED_CONTEXT = 32_768
BEYOND_ANY_CONTEXT = 10**9
"""Tokenizers without a limit state a larger number."""


class TransformersBackend(TokenizerBase):
    """Answers prompts with a causal language model in this process, on a CPU or GPU.

    Args:
        model: a causal language model of the transformers library.
        tokenizer: its tokenizer.
        context: maximum number of tokens of prompt and response; by default that of the model.
        rows: maximum number of concurrent responses; 64 by default.
        pass_tokens: maximum number of tokens per forward pass.
        cells: maximum cache size (columns times rows); by default derived from the free memory.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        context: int | None = None,
        rows: int | None = None,
        pass_tokens: int = PASS_TOKENS,
        cells: int | None = None,
    ) -> None:
        super().__init__(tokenizer, context or _stated_context(model, tokenizer))
        self._model = model
        self._network = Network(model)
        self._size = Size(rows or ROWS, pass_tokens, cells or cells_that_fit(model))
        self._endings: dict[tuple[str, ...], _Ending] = {}

    @property
    def setup(self) -> str:
        """Engine, number format and device: what greedy answers depend on besides the batches."""
        device = self._model.device
        name = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
        versions = f"transformers {transformers_version}, torch {torch.__version__}"
        return f"{versions}, {self._model.dtype}, {name}"

    def generate(
        self, prompts: Sequence[Prompt], decoding: Decoding
    ) -> Iterator[tuple[int, Response | Failure]]:
        """Generate a response to each prompt."""
        tokens = self.encode([prompt.text for prompt in prompts])
        fitting: list[int] = []
        for index, one in enumerate(tokens):
            if 0 < len(one) < self._context:
                fitting.append(index)
            else:
                yield index, self.unfit(len(one))
        rows = self._rows(fitting, prompts, tokens, decoding)
        ending = self._ending(decoding.stop)
        for row, failure in self._decode(rows, decoding):
            yield row.index, failure or self._response(row, ending)

    def loglikelihood(
        self, questions: Sequence[Question]
    ) -> Iterator[tuple[int, Likelihoods | Failure]]:
        """Compute the log-likelihoods of the continuations of each question."""
        readable: list[list[TokenPath]] = []
        for index, paths in enumerate(self.paths(questions)):
            if isinstance(paths, Failure):
                yield index, paths
            else:
                readable.append(paths)
        partial: dict[int, dict[int, float | Failure]] = {}
        by_question = {paths[0].question: paths for paths in readable}
        for path, value in score_paths(self._network, readable, self._limits):
            values = partial.setdefault(path.question, {})
            values[path.option] = value
            if len(values) == len(by_question[path.question]):
                yield (
                    path.question,
                    _likelihoods(by_question[path.question], partial.pop(path.question)),
                )

    def _decode(
        self, rows: Sequence[DecodeRow], decoding: Decoding
    ) -> Iterator[tuple[DecodeRow, Failure | None]]:
        """Generate the response of each row."""
        reached = self._ending(decoding.stop).reached
        decoder = Decoder(self._network, decoding, reached, self._size, self._context)
        return decoder.run(rows)

    def _rows(
        self,
        fitting: Sequence[int],
        prompts: Sequence[Prompt],
        tokens: Sequence[Tokens],
        decoding: Decoding,
    ) -> list[DecodeRow]:
        longest = max((len(tokens[index]) for index in fitting), default=0)
        shared = self._network.shares_heads(min(self._context, longest + decoding.max_new_tokens))
        stems = [tokens[index][:-1] for index in fitting]
        groups = group_by_head(stems) if shared else [PrefixGroup(0, tuple(range(len(fitting))))]
        return [
            DecodeRow(
                index=fitting[member],
                tokens=tokens[fitting[member]],
                # A separate pass for the head does not pay for a single prompt.
                head=group.head if len(group.members) > 1 else 0,
                group=number,
                limit=min(decoding.max_new_tokens, self._context - len(tokens[fitting[member]])),
                seed=prompts[fitting[member]].seed,
            )
            for number, group in enumerate(groups)
            for member in group.members
        ]

    @property
    def _limits(self) -> PassLimits:
        return PassLimits(self._size.tokens, self._size.cells)

    def _ending(self, stop: tuple[str, ...]) -> _Ending:
        """Return the end conditions of stop texts; cached, as making them reads the vocabulary."""
        if stop not in self._endings:
            self._endings[stop] = _Ending(self._tokenizer, self._network.model, stop)
        return self._endings[stop]

    def _response(self, row: DecodeRow, ending: _Ending) -> Response:
        return Response(
            text=ending.text(row.out),
            tokens_in=len(row.tokens),
            tokens_out=len(row.out),
            finish_reason=row.finished or "length",
        )


def open_transformers(source: ModelSource, options: LoadOptions) -> TransformersBackend:
    """Load a model in this process."""
    loaded = load_model(
        source,
        dtype=options.dtype,
        device=options.device,
        trust_remote_code=options.trust_remote_code,
    )
    return TransformersBackend(loaded.model, loaded.tokenizer, rows=options.rows)


class _Ending:
    """Detects the end of a response, and extracts its text."""

    def __init__(self, tokenizer: Any, model: Any, stop: Sequence[str]) -> None:
        self._tokenizer = tokenizer
        special = set(tokenizer.all_special_tokens)
        self._ends = end_tokens(tokenizer, model)
        self._ends |= {tokenizer.convert_tokens_to_ids(text) for text in stop if text in special}
        self._stop = [text for text in stop if text and text not in special]
        self._suspicious = self._tokens_that_may_stop()
        self._reach = max((len(text.encode()) for text in self._stop), default=0) + 1

    def reached(self, out: Sequence[int]) -> bool:
        """Whether the last token ends the response."""
        if out[-1] in self._ends:
            return True
        if not self._stop or (self._suspicious is not None and out[-1] not in self._suspicious):
            return False
        tail = self._decode(out[-self._reach :])
        return any(text in tail for text in self._stop)

    def text(self, out: Sequence[int]) -> str:
        """Return the response without the stop text."""
        text = self._decode(out)
        stops = [index for index in map(text.find, self._stop) if index >= 0]
        return text[: min(stops)] if stops else text

    def _decode(self, tokens: Sequence[int]) -> str:
        return str(
            self._tokenizer.decode(
                tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False
            )
        )

    def _tokens_that_may_stop(self) -> frozenset[int] | None:
        """Return tokens that contain the last character of a stop text; None if any may.

        Searching for stop texts after every token would cost more than a small model.
        """
        last = {text[-1] for text in self._stop}
        if any(character.isspace() and character != "\n" for character in last):
            return None
        # A token that is part of a character decodes to the replacement character.
        last.add("�")
        texts = self._tokenizer.batch_decode(
            [[token] for token in range(len(self._tokenizer))] if self._stop else [],
            clean_up_tokenization_spaces=False,
        )
        return frozenset(token for token, text in enumerate(texts) if last & set(text))


def end_tokens(tokenizer: Any, model: Any) -> set[int]:
    """Return the tokens that end a response."""
    ends: set[int] = set()
    for holder in (tokenizer, getattr(model, "generation_config", None), model.config):
        stated = getattr(holder, "eos_token_id", None)
        if isinstance(stated, int):
            ends.add(stated)
        elif stated is not None:
            ends.update(stated)
    return ends


def _likelihoods(
    paths: Sequence[TokenPath], values: dict[int, float | Failure]
) -> Likelihoods | Failure:
    sums = []
    for path in paths:
        value = values[path.option]
        if isinstance(value, Failure):
            return value
        sums.append(value)
    return likelihoods(paths, sums)


def _stated_context(model: Any, tokenizer: Any) -> int:
    config = model.config.get_text_config()
    for name in ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length"):
        stated = getattr(config, name, None)
        if isinstance(stated, int) and stated > 0:
            return stated
    stated = tokenizer.model_max_length
    return int(stated) if stated < BEYOND_ANY_CONTEXT else UNSTATED_CONTEXT


def cells_that_fit(model: Any) -> int:
    """Return the number of cache cells that fit into a share of the free memory."""
    config = model.config.get_text_config()
    heads = getattr(config, "num_attention_heads", None) or 1
    width = getattr(config, "head_dim", None) or config.hidden_size // heads
    kept = getattr(config, "num_key_value_heads", None) or heads
    layers = getattr(config, "num_hidden_layers", None) or 1
    cell = 2 * layers * kept * width * model.dtype.itemsize
    least, most = CELLS
    return max(least, min(most, int(MEMORY_SHARE * _free_memory(model.device) / cell)))


def _free_memory(device: torch.device) -> int:
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return 2**31
