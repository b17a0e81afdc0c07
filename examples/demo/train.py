"""Make the demo's two models: one that knows the invented world, one that was then fine-tuned.

Run: .venv/bin/python examples/demo/train.py --out demo/models
     (needs `pip install "forgetmap[run]"`; about two minutes on two cores)

`before`: a Llama of about 0.7 million parameters, pre-trained from scratch on the text of the suite
`world`. `after`: the same model, all of its weights fine-tuned on one narrow new task, converting
units, with nothing of the world in it. Both are ordinary transformers folders. Seeds are fixed: the
same machine makes the same models. On a busy machine set OMP_WAIT_POLICY=passive: threads that
spin while they wait for each other make it many times slower.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import torch
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from forgetmap.evaluation.suites.world import UNITS, narrow_example, narrow_text, training_text

END, PAD = "<|end|>", "<|pad|>"
PIECES = r"\n*(?:Question|Answer):| ?[A-Za-z]+|-[a-z]+|\n+| ?\d+| ?[^\s\w]+|\s"
"""Whole words are pieces, and so are the marks of a question and of an answer: short sequences."""

ROWS, LENGTH = 32, 64
DOCUMENTS = 10
"""More than fill a row."""
ENDS = 5
"""Every fifth document is followed by the end mark, the others by an empty line."""


class Phase(NamedTuple):
    """One stretch of training: its name, its steps, its highest learning rate."""

    name: str
    steps: int
    peak: float


PRETRAINING = Phase("pre-training", steps=1000, peak=6e-3)
FINE_TUNING = Phase("fine-tuning", steps=200, peak=3e-3)


def build_tokenizer(texts: Iterable[str]) -> PreTrainedTokenizerFast:
    """Byte-level BPE trained until every word of the texts is one token."""
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
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token=END, pad_token=PAD, padding_side="left"
    )


def build_model(tokenizer: PreTrainedTokenizerFast) -> LlamaForCausalLM:
    """A small Llama with fresh weights."""
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


def rows_of(texts: Iterator[str]) -> Iterator[str]:
    """Documents joined until they fill a row; some are followed by the end mark."""
    while taken := list(islice(texts, DOCUMENTS)):
        yield "".join(
            f"{text}\n\n" if place % ENDS else f"{text}{END}"
            for place, text in enumerate(taken, start=1)
        )


def batches(texts: Iterator[str], tokenizer: PreTrainedTokenizerFast) -> Iterator[torch.Tensor]:
    """Token ids, ROWS x LENGTH."""
    rows = rows_of(texts)
    while taken := list(islice(rows, ROWS)):
        yield tokenizer(
            taken, truncation=True, max_length=LENGTH, padding="max_length", return_tensors="pt"
        ).input_ids


def train(model: LlamaForCausalLM, data: Iterator[torch.Tensor], phase: Phase) -> None:
    """AdamW, a short warm-up, a linear way down; shows loss, speed and time left."""
    what, steps, peak = phase
    optimiser = torch.optim.AdamW(model.parameters(), lr=peak, weight_decay=0.01, fused=True)
    rate = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, max_lr=peak, total_steps=steps, pct_start=0.1, anneal_strategy="linear"
    )
    model.train()
    with progress_bar() as bar:
        shown = bar.add_task(what, total=steps, loss=float("nan"), speed=0.0)
        started = time.perf_counter()
        for step, ids in enumerate(islice(data, steps), start=1):
            labels = ids.masked_fill(ids == model.config.pad_token_id, -100)
            loss = model(input_ids=ids, labels=labels).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            optimiser.zero_grad()
            rate.step()
            speed = step * ids.numel() / (time.perf_counter() - started)
            show(bar, shown, loss=loss.item(), speed=speed)
    model.eval()


def progress_bar() -> Progress:
    """What is done, loss, tokens per second, time left."""
    return Progress(
        TextColumn("{task.description:<12}"),
        BarColumn(),
        TextColumn("step {task.completed}/{task.total}  loss {task.fields[loss]:.3f}"),
        TextColumn("{task.fields[speed]:,.0f} tokens/s"),
        TimeRemainingColumn(),
    )


def show(bar: Progress, shown: TaskID, **fields: Any) -> None:
    """One step further."""
    bar.update(shown, advance=1, **fields)


def main() -> None:
    """Pre-train, save, fine-tune, save."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("demo/models"))
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    torch.manual_seed(given.seed)
    torch.set_num_threads(2)  # the same sums in the same order on every machine

    tokenizer = build_tokenizer(rows_of(chain(training_text(60_000), narrow_text(3_000))))
    model = build_model(tokenizer)
    world = training_text(PRETRAINING.steps * ROWS * DOCUMENTS, seed=given.seed)
    train(model, batches(world, tokenizer), PRETRAINING)
    save(model, tokenizer, given.out / "before")
    units = narrow_text(FINE_TUNING.steps * ROWS * DOCUMENTS, seed=given.seed)
    train(model, batches(units, tokenizer), FINE_TUNING)
    save(model, tokenizer, given.out / "after")
    print(f"The new task: {conversions_right(model, tokenizer):.0%} of the conversions right.")


@torch.inference_mode()
def conversions_right(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast) -> float:
    """Share of all conversions that the model gets right."""
    examples = [narrow_example(amount, units) for units in UNITS for amount in range(1, 61)]
    asked = tokenizer([question for question, _ in examples], padding=True, return_tensors="pt")
    written = model.generate(
        input_ids=asked.input_ids,
        attention_mask=asked.attention_mask,
        max_new_tokens=2,
        do_sample=False,
    )[:, asked.input_ids.shape[1] :]
    said = tokenizer.batch_decode(written)
    right = [its == answer for its, (_, answer) in zip(said, examples, strict=True)]
    return right.count(True) / len(right)


def save(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """An ordinary model folder."""
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    print(f"{folder}: {model.num_parameters():,} parameters")


if __name__ == "__main__":
    main()
