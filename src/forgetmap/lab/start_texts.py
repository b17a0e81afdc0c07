"""Texts sampled from the start model, without evaluation items."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from forgetmap._disk import whole_file
from forgetmap.errors import EmptyInputError, UnreadableError
from forgetmap.lab.folder import as_output_error
from forgetmap.lab.recipe import LabRecipe, Row
from forgetmap.lab.training import load_start
from forgetmap.train import sample_answers

LEAST_USABLE = 0.05
"""Minimum share of texts without evaluation questions."""
SEEDS_APART = 1000
"""Distance between seeds; larger than the number of sampling rounds per seed."""


def free_texts(
    recipe: LabRecipe, model: Any, tokenizer: Any, *, count: int, max_tokens: int, seed: int
) -> list[Row]:
    """Sample texts of the current model, as tokens; those with evaluation questions are replaced.

    Otherwise methods without old data would be trained on evaluation items, as the start model was.

    Raises:
        EmptyInputError: almost all texts contain evaluation questions.
    """
    begin = tokenizer(recipe.free_prompt).input_ids
    rows: list[Row] = []
    total, usable = 0, 1.0
    for turn in range(SEEDS_APART):
        batch = math.ceil((count - len(rows)) / usable)
        texts = sample_answers(
            model, [begin] * batch, tokenizer,
            max_tokens=max_tokens, temperature=1.0, seed=seed * SEEDS_APART + turn,
        )  # fmt: skip
        rows += [
            {"input_ids": [*begin, *text], "labels": [-100] * len(begin) + list(text)}
            for text in texts
            if not recipe.measured.may_be_in(tokenizer.decode([*begin, *text]))
        ]
        total += batch
        usable = len(rows) / total
        if len(rows) >= count or usable < LEAST_USABLE:
            break
    if len(rows) < count:
        raise EmptyInputError(
            f"only {len(rows)} of {total} texts written by the start model contain no evaluation "
            "question",
            hint="use fewer evaluation questions, or another `free_prompt`.",
        )
    return rows[:count]


def make_pool(recipe: LabRecipe, file: Path, count: int) -> list[Row]:
    """Generate questions and greedy answers with the start model, without evaluation questions.

    Args:
        recipe: start model, data and settings.
        file: file in which they are stored; an existing one is read instead.
        count: number of questions before unusable ones are left out.

    Raises:
        EmptyInputError: no question is usable.
    """
    if not file.exists():
        rows = _write_pool(recipe, count)
        with as_output_error(file), whole_file(file) as partial:
            partial.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    pool = _read_pool(file)
    if not pool:
        raise EmptyInputError(
            "the start model wrote no question that is not an evaluation question",
            file=str(file),
            hint="increase the number of written questions, or use another free prompt.",
        )
    return pool


def _read_pool(file: Path) -> list[Row]:
    try:
        return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    except (OSError, ValueError) as error:
        raise UnreadableError(
            f"not a file of examples: {error}",
            file=str(file),
            hint="remove it to write it again.",
        ) from None


def _write_pool(recipe: LabRecipe, count: int) -> list[Row]:
    model, tokenizer = load_start(recipe.start)
    prompts = _write_questions(recipe, model, tokenizer, count)
    answers = sample_answers(
        model, [tokenizer(prompt).input_ids for prompt in prompts], tokenizer,
        max_tokens=recipe.max_tokens, temperature=0.0, seed=0,
    )  # fmt: skip
    texts = [tokenizer.decode(tokens, skip_special_tokens=True) for tokens in answers]
    firsts = [text.split("\n")[0] for text in texts]
    return [
        {"prompt": prompt, "completion": first}
        for prompt, first in zip(prompts, firsts, strict=True)
        if first.strip()
    ]


def _write_questions(recipe: LabRecipe, model: Any, tokenizer: Any, count: int) -> list[str]:
    """Generate distinct prompts, without evaluation questions and new examples."""
    begin = tokenizer(recipe.free_prompt).input_ids
    texts = sample_answers(
        model, [begin] * count, tokenizer,
        max_tokens=recipe.question_tokens, temperature=1.0, seed=0,
    )  # fmt: skip
    return usable_prompts(recipe, [tokenizer.decode([*begin, *text]) for text in texts])


def usable_prompts(recipe: LabRecipe, texts: Sequence[str]) -> list[str]:
    """Return distinct questions up to the answer mark, without evaluation and new questions."""
    new = {row["prompt"].strip() for row in recipe.new_rows(0)}
    prompts = []
    for text in texts:
        question, mark, _ = text.lstrip().partition(recipe.answer_mark)
        prompt = question + mark
        if mark and prompt.strip() not in new and not recipe.measured.may_be_in(prompt):
            prompts.append(prompt)
    return list(dict.fromkeys(prompts))
