"""Models in vLLM, in this process; vLLM does its own batching, caching and sampling."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, TypeVar

from forgetmap._lazy import require
from forgetmap.errors import ModelError, UsageError
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
from forgetmap.evaluation.backends.transformers.prefixes import TokenPath, Tokens

FEATURE = "A model behind vllm:"
WINDOW = 256
"""Number of prompts per call of vLLM; answers are saved after each call."""
CHECK = (
    "check that vLLM supports this architecture, that it fits into memory (--tensor-parallel "
    "splits it across GPUs), that this number divides its attention heads, and that there are "
    "as many GPUs."
)
ON_A_CPU = (
    " On a CPU, each part needs a NUMA node, or its own cores: VLLM_CPU_OMP_THREADS_BIND='0-3|4-7'."
)
T = TypeVar("T")


class VllmBackend(TokenizerBase):
    """Answers prompts with vLLM.

    Args:
        engine: an instance of `vllm.LLM`.
        tokenizer: tokenizer of the model, loaded by transformers.
    """

    def __init__(self, engine: Any, tokenizer: Any) -> None:
        super().__init__(tokenizer, int(engine.llm_engine.model_config.max_model_len))
        self._engine = engine

    def generate(
        self, prompts: Sequence[Prompt], decoding: Decoding
    ) -> Iterator[tuple[int, Response | Failure]]:
        """Generate a response to each prompt."""
        tokens = self.encode([prompt.text for prompt in prompts])
        fitting = [index for index, one in enumerate(tokens) if 0 < len(one) < self._context]
        for index in sorted(set(range(len(prompts))) - set(fitting)):
            yield index, self.unfit(len(tokens[index]))
        for lot in _lots(fitting):
            parameters = [
                self._parameters(decoding, len(tokens[one]), prompts[one].seed) for one in lot
            ]
            outputs = self._run([tokens[index] for index in lot], parameters)
            yield from zip(lot, map(_response, outputs), strict=True)

    def loglikelihood(
        self, questions: Sequence[Question]
    ) -> Iterator[tuple[int, Likelihoods | Failure]]:
        """Compute the log-likelihoods of the continuations of each question."""
        readable: list[list[TokenPath]] = []
        for index, paths in enumerate(self.paths(questions)):
            longest = 0 if isinstance(paths, Failure) else max(len(path.tokens) for path in paths)
            if isinstance(paths, Failure):
                yield index, paths
            elif longest >= self._context:
                # vLLM always generates a token, which must fit too.
                yield index, self.unfit(longest)
            else:
                readable.append(paths)
        for lot in _lots(readable):
            flat = [path for paths in lot for path in paths]
            weighing = _sampling(temperature=0.0, max_tokens=1, prompt_logprobs=0)
            outputs = self._run([path.tokens for path in flat], [weighing] * len(flat))
            sums = iter([_sum(path, one) for path, one in zip(flat, outputs, strict=True)])
            for paths in lot:
                yield paths[0].question, likelihoods(paths, [next(sums) for _ in paths])

    def _run(self, tokens: Sequence[Tokens], parameters: Sequence[Any]) -> list[Any]:
        prompts = [{"prompt_token_ids": list(one)} for one in tokens]
        with _vllm_errors("vLLM failed", "use a smaller --batch. All answers so far are kept."):
            return list(self._engine.generate(prompts, list(parameters), use_tqdm=False))

    def _parameters(self, decoding: Decoding, length: int, seed: int) -> Any:
        """Return sampling parameters; stop texts that are special tokens stop as tokens."""
        special = set(self._tokenizer.all_special_tokens)
        ends = [text for text in decoding.stop if text in special]
        return _sampling(
            temperature=decoding.temperature,
            top_p=decoding.top_p,
            max_tokens=min(decoding.max_new_tokens, self._context - length),
            stop=[text for text in decoding.stop if text not in special],
            stop_token_ids=[self._tokenizer.convert_tokens_to_ids(text) for text in ends],
            seed=seed if decoding.temperature else None,
        )


def open_vllm(source: ModelSource, options: LoadOptions) -> VllmBackend:
    """Load a model into vLLM.

    Args:
        source: a folder or a hub id.
        options: load options. dtype `auto` is float32 on a CPU and the default of vLLM elsewhere;
            the device must be `auto`, as vLLM runs on the device it was built for.

    Raises:
        UsageError: vLLM does not support an option.
        MissingPackageError: vLLM is not installed.
        ModelError: vLLM cannot load the model.
    """
    if options.device != "auto":
        raise UsageError(
            f"vLLM does not support --device {options.device}",
            hint="remove --device; vLLM uses the device it was built for.",
        )
    if source.adapter is not None or source.gguf is not None:
        raise UsageError(
            f"{source} is an adapter or a GGUF file, which is not supported with vLLM",
            hint="remove vllm:, or save the merged weights as a folder.",
        )
    vllm = _load_vllm()
    transformers = require("transformers", FEATURE, extra="vllm")
    loading: dict[str, Any] = {
        "trust_remote_code": options.trust_remote_code,
        "revision": source.revision,
    }
    limits = {"max_num_seqs": options.rows, "tensor_parallel_size": options.tensor_parallel}
    sizes = {name: value for name, value in limits.items() if value is not None}
    on_cpu = bool(import_module("vllm.platforms").current_platform.is_cpu())
    check = CHECK + ON_A_CPU * (on_cpu and (options.tensor_parallel or 1) > 1)
    with _vllm_errors(f"vLLM cannot load {source.base}", check):
        tokenizer = transformers.AutoTokenizer.from_pretrained(source.base, **loading)
        engine = vllm.LLM(
            model=source.base,
            dtype="float32" if on_cpu and options.dtype == "auto" else options.dtype,
            # Compiling for a CPU takes minutes and is hardly faster.
            enforce_eager=on_cpu,
            **loading,
            **sizes,
        )
    return VllmBackend(engine, tokenizer)


def _load_vllm() -> Any:
    for name, value in {"VLLM_LOGGING_LEVEL": "ERROR", "VLLM_NO_USAGE_STATS": "1"}.items():
        os.environ.setdefault(name, value)
    return require("vllm", FEATURE)


def _sampling(**options: Any) -> Any:
    return _load_vllm().SamplingParams(**options)


def _lots(requests: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(requests), WINDOW):
        yield requests[start : start + WINDOW]


def _response(output: Any) -> Response | Failure:
    (completion,) = output.outputs
    if completion.finish_reason not in {"stop", "length"}:
        return Failure(
            f"vLLM ended the response for an unknown reason: {completion.finish_reason}."
        )
    return Response(
        text=completion.text,
        tokens_in=len(output.prompt_token_ids),
        tokens_out=len(completion.token_ids),
        finish_reason=completion.finish_reason,
    )


def _sum(path: TokenPath, output: Any) -> float:
    """Return the log-probability of the continuation."""
    indices = range(path.start, len(path.tokens))
    return float(
        sum(output.prompt_logprobs[index][path.tokens[index]].logprob for index in indices)
    )


@contextmanager
def _vllm_errors(what: str, hint: str) -> Iterator[None]:
    """Convert errors of vLLM and its libraries into ModelError."""
    try:
        yield
    except Exception as error:
        text = " ".join(str(error).split())[:300]
        raise ModelError(f"{what}: {type(error).__name__}: {text}", hint=hint) from error
