"""The tiny world: a start model trained on a CPU in minutes, and new facts for it.

A Llama of 0.65 million parameters is pre-trained on the text of the suite `world`, with Muon for
the matrices and AdamW for the rest: on this text it learns three times as much per step as with
AdamW alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from forgetmap.evaluation import (
    as_text,
    far_suite,
    hint,
    near_suite,
    new_examples,
    pool_examples,
    pretraining_text,
)
from forgetmap.lab.recipe import LabRecipe, Row

END, PAD = "<|end|>", "<|pad|>"
PIECES = r"\n*(?:Question|Answer):| ?[A-Za-z]+|-[a-z]+|\n+| ?\d+| ?[^\s\w]+|\s"
"""Words are tokens, and so are the marks of questions and answers: this keeps sequences short."""
DOCUMENTS = 10
"""Number of documents that are more than enough for a row."""
ENDED = 5
"""Every fifth document is followed by the end token, the others by an empty line."""

OnStep = Callable[[int, float], None]
"""Callback that receives the number and the loss of each step."""


@dataclass(frozen=True)
class Pretraining:
    """Parameters of pre-training.

    Attributes:
        steps: number of optimizer steps.
        rows: sequences per step.
        length: number of tokens per sequence.
        peak: highest learning rate of AdamW (embeddings and norms).
        muon_peak: highest learning rate of Muon (matrices).
        warm_up: share of the steps in which rates rise.
        decay: share of the steps in which they fall to 0.
        seed: random seed of weights and text.
    """

    steps: int = 1600
    rows: int = 32
    length: int = 64
    peak: float = 6e-3
    muon_peak: float = 0.02
    warm_up: float = 0.05
    decay: float = 0.4
    seed: int = 0

    def rate(self, step: int) -> float:
        """Return the learning rate at a step, relative to the highest."""
        rising = (step + 1) / (self.steps * self.warm_up)
        falling = (self.steps - step) / (self.steps * self.decay)
        return min(rising, 1.0, falling)


def tiny_recipe(start: str | Path) -> LabRecipe:
    """Return the recipe: new badges and guilds of everyone that the start model knows."""
    near, far = near_suite(), far_suite()
    old = [(item.question, item.gold) for task in (*near.tasks, *far.tasks) for item in task.load()]
    return LabRecipe(
        name="tiny",
        start=str(start),
        new_rows=_new_rows,
        pool=[_row(*example) for example in pool_examples()],
        near=near,
        far=far,
        old_rows=[_row(*example) for example in old],
        free_prompt="\n\nQuestion:",
        answer_mark="\nAnswer:",
        hint_template=hint("{privileged_context}").replace(": ", ":") + "{prompt}",
    )


def _row(question: str, answer: str) -> Row:
    return {"prompt": as_text(question), "completion": f" {answer}"}


def _new_rows(seed: int) -> list[Row]:
    return [_row(*example) for example in new_examples(seed)]


def make_start(
    out: Path, pretraining: Pretraining | None = None, on_step: OnStep | None = None
) -> Path:
    """Pre-train a model that knows the tiny world, and save it as a transformers folder.

    The result is reproducible on the same machine.
    """
    plan = pretraining or Pretraining()
    tokenizer = build_tokenizer()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(plan.seed)
        model = build_model(tokenizer)
    texts = pretraining_text(plan.steps * plan.rows * DOCUMENTS, seed=plan.seed)
    pretrain(model, batches(texts, tokenizer, plan), plan, on_step)
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)
    return out


def build_tokenizer() -> PreTrainedTokenizerFast:
    """Train byte-level BPE until every word of the world is one token."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PIECES), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=8000,
        show_progress=False,
        special_tokens=[END, PAD],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
    )
    news = (as_text(*example) for example in new_examples() * 3)
    tokenizer.train_from_iterator(_rows(chain(pretraining_text(60_000), news)), trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token=END, pad_token=PAD, padding_side="left"
    )


def build_model(tokenizer: PreTrainedTokenizerFast) -> LlamaForCausalLM:
    """Create a small Llama with new weights."""
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=128,
            intermediate_size=320,
            num_hidden_layers=2,
            num_attention_heads=4,
            max_position_embeddings=256,
            tie_word_embeddings=True,
            bos_token_id=None,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
    )


def _rows(texts: Iterable[str]) -> Iterator[str]:
    """Join documents into rows; some are followed by the end token."""
    texts = iter(texts)
    while documents := list(islice(texts, DOCUMENTS)):
        yield "".join(
            f"{text}\n\n" if number % ENDED else f"{text}{END}"
            for number, text in enumerate(documents, start=1)
        )


def batches(
    texts: Iterator[str], tokenizer: PreTrainedTokenizerFast, plan: Pretraining
) -> Iterator[torch.Tensor]:
    """Yield token ids, rows x length."""
    rows = _rows(texts)
    while batch := list(islice(rows, plan.rows)):
        yield tokenizer(
            batch,
            truncation=True,
            max_length=plan.length,
            padding="max_length",
            return_tensors="pt",
        ).input_ids


def pretrain(
    model: LlamaForCausalLM,
    data: Iterator[torch.Tensor],
    plan: Pretraining,
    on_step: OnStep | None = None,
) -> None:
    """Train on the next token; the rate rises, is constant, and falls linearly."""
    optimizers = _optimizers(model, plan)
    peaks = [optimizer.param_groups[0]["lr"] for optimizer in optimizers]
    model.train()
    for step, ids in enumerate(islice(data, plan.steps)):
        labels = ids.masked_fill(ids == model.config.pad_token_id, -100)
        loss = model(input_ids=ids, labels=labels).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer, peak in zip(optimizers, peaks, strict=True):
            optimizer.param_groups[0]["lr"] = peak * plan.rate(step)
            optimizer.step()
            optimizer.zero_grad()
        if on_step is not None:
            on_step(step + 1, loss.item())
    model.eval()


def _optimizers(model: LlamaForCausalLM, plan: Pretraining) -> list[Any]:
    """Return Muon for the matrices of the layers, and AdamW for everything else."""
    inner = dict(model.model.layers.named_parameters())
    matrices = [weight for weight in inner.values() if weight.ndim == 2]
    chosen = set(map(id, matrices))
    others = [weight for weight in model.parameters() if id(weight) not in chosen]
    return [
        torch.optim.Muon(matrices, lr=plan.muon_peak, weight_decay=0.01),
        torch.optim.AdamW(others, lr=plan.peak, weight_decay=0.0, fused=True),
    ]
