"""A whole study on tiny models: made on the spot, run, killed twice, resumed, compared, reported.

Run: .venv/bin/python examples/study/tiny_study.py [FOLDER]
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
)
from transformers.utils.logging import disable_progress_bar

from forgetmap.study import read_study, study_status

WORDS = [
    "the", "a", "cat", "dog", "bird", "sat", "ran", "flew", "on", "under", "mat", "tree", "house",
    "river", "mountain", "quick", "brown",
]  # fmt: skip
ITEMS, OPTIONS, TASKS = 250, 4, 6
CATEGORIES = ("animals", "motion", "places")
SIZES = {"small": 32, "large": 64}
TRAININGS = (
    ("it", "instruction tuning", None, 0.10),
    ("low", "reasoning from instruct", "low", 0.05),
    ("high", "reasoning from instruct", "high", 0.20),
)
"""Of each base: name, stage, scale of the data, and how far weights move."""
HEAD = """name = "tiny"
title = "Two families, two sizes, three stages, two scales of data, two merges"
suite = "items.jsonl"
"""
COMMAND = [sys.executable, "-m", "forgetmap", "study"]
DEADLINE_S = 600.0
HALF_WAY_BYTES = 10_000


def make_tokenizer() -> Any:
    """Words of the questions, each with a token of its own or nearly so."""
    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<s>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    raw.train_from_iterator([" ".join(WORDS)] * 20, trainer)
    ends = {"bos_token": "<s>", "eos_token": "</s>"}
    return PreTrainedTokenizerFast(tokenizer_object=raw, **ends)


def make_base(family: str, width: int) -> Any:
    """A model with random weights: of the shape of Llama (ant) or of GPT-2 (bee)."""
    torch.manual_seed(width)
    same = {"vocab_size": 400, "initializer_range": 0.3, "bos_token_id": 0, "eos_token_id": 1}
    if family == "bee":
        shape = {"n_embd": width, "n_layer": 2, "n_head": 4, "n_positions": 512}
        return GPT2LMHeadModel(GPT2Config(**same, **shape))
    return LlamaForCausalLM(
        LlamaConfig(
            **same,
            hidden_size=width,
            intermediate_size=2 * width,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=512,
        )
    )


def move_weights(state: dict[str, Any], strength: float, seed: int) -> dict[str, Any]:
    """What a training might do: every weight moves a little."""
    noise = torch.Generator().manual_seed(seed)
    return {
        name: tensor + strength * torch.randn(tensor.shape, generator=noise)
        for name, tensor in state.items()
    }


def make_models(folder: Path) -> list[str]:
    """Write all models; the tables of the study that describe them."""
    tokenizer, tables = make_tokenizer(), []
    for family in ("ant", "bee"):
        for size, width in SIZES.items():
            model = make_base(family, width)
            base = f"{family}-{size}"
            states = {base: dict(model.state_dict())}
            million = sum(tensor.numel() for tensor in model.parameters()) / 1e6
            facts = f'family = "{family}"\nsize = "{million:.3f}M"'
            tables.append(f'[[model]]\nid = "{base}"\npath = "models/{base}"\n{facts}')
            for name, stage, data, strength in TRAININGS if size == "large" else TRAININGS[:1]:
                parent = base if name == "it" else f"{base}-it"
                own = f"{base}-{name}"
                states[own] = move_weights(states[parent], strength, seed=len(tables))
                tables.append(
                    f'[[model]]\nid = "{own}"\npath = "models/{own}"\n{facts}\nstage = "{stage}"\n'
                    f'series = "{family}-{name}"\nparent = "{parent}"'
                    + (f'\ndata = "{data}"' if data else "")
                )
            for name, state in states.items():
                model.save_pretrained(folder / "models" / name, state_dict=state)
                tokenizer.save_pretrained(folder / "models" / name)
    for family in ("ant", "bee"):
        base = f"{family}-small"
        tables.append(
            f'[[merge]]\nid = "{base}-half"\nmethod = "linear"\nmodels = ["{base}", "{base}-it"]\n'
            "weight = 0.5"
        )
    return tables


def make_study(folder: Path) -> Path:
    """Models, questions and the file that declares them."""
    draw = random.Random(0)  # noqa: S311  # nothing is kept secret
    with (folder / "items.jsonl").open("w", encoding="utf-8") as file:
        for number in range(ITEMS):
            options = draw.sample(WORDS, OPTIONS)
            question = " ".join(draw.choices(WORDS, k=8))
            row: dict[str, object] = {"id": str(number), "task": f"t{number % TASKS}"}
            row["category"] = CATEGORIES[number % TASKS % len(CATEGORIES)]
            row |= {"question": question, "options": options, "gold": draw.choice(options)}
            file.write(f"{json.dumps(row)}\n")
    path = folder / "study.toml"
    path.write_text("\n".join([HEAD, *make_models(folder), ""]), encoding="utf-8")
    return path


def finished(runs: Path) -> dict[str, int]:
    """Runs that are complete, with the time they were written."""
    return {path.parent.name: path.stat().st_mtime_ns for path in runs.glob("[!.]*/manifest.json")}


def is_half_way(runs: Path) -> bool:
    """Whether a model has given some of its answers."""
    return any(path.stat().st_size > HALF_WAY_BYTES for path in runs.glob(".*.journal.jsonl"))


def require_unchanged(before: dict[str, int], now: dict[str, int]) -> None:
    """End with an error where a run that was complete was written again."""
    if not before.items() <= now.items():
        raise SystemExit("a model was evaluated twice")


def run_until(study: Path, runs: Path, count: int) -> None:
    """Run the study, and kill it with SIGKILL once so many are done and one is half-way."""
    command = [*COMMAND, "run", str(study), "--out", str(runs), "--parallel", "2"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:  # noqa: S603  # ours
        end = time.monotonic() + DEADLINE_S
        while process.poll() is None and time.monotonic() < end:
            if len(finished(runs)) >= count and is_half_way(runs):
                break
            time.sleep(0.002)
        process.kill()


def call(*args: object) -> None:
    """A command of `forgetmap study`, shown."""
    print("$ forgetmap study", *args, flush=True)
    subprocess.run([*COMMAND, *map(str, args)], check=True)  # noqa: S603  # ours


def main() -> None:
    """Make, run, kill, go on, compare, report; end with an error if a model was evaluated twice."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="tiny-study-"))
    folder.mkdir(parents=True, exist_ok=True)
    runs, began = folder / "runs", time.monotonic()
    disable_progress_bar()
    study = make_study(folder)
    call("check", study)
    seen: dict[str, int] = {}
    for count in (3, 8):
        run_until(study, runs, count)
        now = finished(runs)
        require_unchanged(seen, now)
        seen = now
        stopped = [run for run in study_status(read_study(study), runs).runs if run.answers]
        print(f"killed with {len(now)} models done, {len(stopped)} half-way")
    call("run", study, "--out", runs, "--parallel", 2)
    require_unchanged(seen, finished(runs))
    call("compare", study, "--runs", runs)
    call("report", study, "--runs", runs, "--out", folder / "report")
    total = len(finished(runs))
    print(f"{total} models, each evaluated once, in {time.monotonic() - began:.0f} s: {folder}")


if __name__ == "__main__":
    main()
