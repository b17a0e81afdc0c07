"""Items for `lm_eval --samples FILE`, and the command.

The file is a JSON object of task -> positions in its data set, in increasing order: answers are
numbered by the list, but evaluated in the order of the data set.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from forgetmap.comparison import Comparison
from forgetmap.confirmation.flips import FlipPlan
from forgetmap.confirmation.listing import SIDES, AgainRequest, Listing, rerun_folder
from forgetmap.errors import FieldError, UsageError
from forgetmap.records import Run

SEEDS = ("random_seed", "numpy_seed", "torch_seed", "fewshot_seed")
"""Seeds in the order of `--seed`. Only that of sampling changes: the others choose examples."""
DEFAULT_SEEDS = (0, 1234, 1234, 1234)
OWN_SEED = ("vllm", "vllm-vlm", "local-completions", "local-chat-completions",
            "openai-completions", "openai-chat-completions")  # fmt: skip
"""Kinds of models whose sampling has its seed among the arguments of the model."""


def for_lm_eval(
    comparison: Comparison, plan: FlipPlan, out: Path, parts: Sequence[str | None]
) -> Listing:
    """Return a file of positions and a command for each model.

    Raises:
        UsageError: several answers to an item are wanted, which only a task can set.
        FieldError: an id is not a position in a data set.
    """
    if plan.repeats > 1:
        raise UsageError(
            "lm-eval has no option to ask an item several times",
            hint="confirm with one answer: remove --repeats.",
        )
    files, commands = {}, []
    runs = (comparison.before, comparison.after)
    for side, run, part in zip(SIDES, runs, parts, strict=True):
        again = AgainRequest(
            run, plan.ids(side), out / f"samples-{side}.json", rerun_folder(out, side), 1, part
        )
        samples = {
            task: sorted({_position(item, task, run) for item in items})
            for task, items in again.items.items()
        }
        files[again.file] = json.dumps(samples, indent=1) + "\n"
        documents = [document for _, document in again.settings() if document]
        commands.append(_command(again, documents[0] if documents else {}))
    return Listing(files, tuple(commands))


def _position(item: str, task: str, run: Run) -> int:
    if item.isdecimal() and item.isascii():
        return int(item)
    raise FieldError(
        f"item {item!r} of task {task!r} is not a position in a data set, which lm-eval needs",
        file=run.origin,
        field="item",
        hint="compare logs of lm-eval (--log_samples), or write the items with --format jsonl.",
    )


def _command(again: AgainRequest, document: Mapping[str, Any]) -> str:
    """Return the command of the first run with some items, another seed and no cache."""
    config = dict(document.get("config") or {})
    seeds = [config.get(name, own) for name, own in zip(SEEDS, DEFAULT_SEEDS, strict=True)]
    fresh = (seeds[2] if isinstance(seeds[2], int) else 0) + 1
    kind = str(config.get("model") or "MODEL")
    words = ["lm_eval", "--model", kind, "--model_args", _arguments(config, kind, fresh)]
    # Tasks that are not in the file would be evaluated as a whole.
    words += ["--tasks", ",".join(again.items), "--samples", str(again.file)]
    words += _options(again, document, config)
    words += ["--seed", ",".join(map(str, (*seeds[:2], fresh, seeds[3])))]
    words += ["--log_samples", "--output_path", str(again.rerun)]
    return shlex.join(words)


def _arguments(config: Mapping[str, Any], kind: str, seed: int) -> str:
    given = config.get("model_args")
    own = {"seed": seed} if kind in OWN_SEED else {}
    if isinstance(given, Mapping):
        return json.dumps({**given, **own})
    parts = [part for part in str(given or "ARGS").split(",") if not (own and part[:5] == "seed=")]
    return ",".join([*parts, *(f"{name}={value}" for name, value in own.items())])


def _options(
    again: AgainRequest, document: Mapping[str, Any], config: Mapping[str, Any]
) -> list[str]:
    """Return the options that decide how items are asked."""
    words = []
    shots = {dict(document.get("n-shot") or {}).get(task) for task in again.items}
    if len(shots) == 1 and None not in shots:
        words += ["--num_fewshot", str(shots.pop())]
    if config.get("gen_kwargs"):
        given = config["gen_kwargs"]
        words += ["--gen_kwargs", given if isinstance(given, str) else json.dumps(given)]
    if document.get("chat_template"):
        words.append("--apply_chat_template")
        if document.get("fewshot_as_multiturn") is False:
            words += ["--fewshot_as_multiturn", "false"]
    if document.get("system_instruction"):
        words += ["--system_instruction", str(document["system_instruction"])]
    if config.get("device"):
        words += ["--device", str(config["device"])]
    words += ["--batch_size", _other_batch(config)]
    configs = [dict(document.get("configs") or {}).get(task) or {} for task in again.items]
    for folder in dict.fromkeys(filter(None, map(_own_folder, configs))):
        words += ["--include_path", folder]
    if any(one.get("unsafe_code") for one in configs):
        words.append("--confirm_run_unsafe_code")
    return words


def _other_batch(config: Mapping[str, Any]) -> str:
    """Return another size of a batch: in the same one, greedy answers would be copies.

    Where lm-eval chose the size, it logs what it found; by default it takes 1.
    """
    size = str(config.get("batch_size") or 1)
    if not size.isdecimal():
        found = config.get("batch_sizes")
        size = str(max(found)) if isinstance(found, list) and found else "1"
    return str(int(size) - 1 if int(size) > 1 else 2)


def _own_folder(config: Mapping[str, Any]) -> str | None:
    """Return the folder of a task that lm-eval did not bring along."""
    source = str(dict(config.get("metadata") or {}).get("config_source") or "")
    path = Path(source)
    if not source or not path.is_file() or "lm_eval/tasks/" in path.as_posix():
        return None
    return str(path.parent)
