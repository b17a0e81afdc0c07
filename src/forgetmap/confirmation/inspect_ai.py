"""Items for `inspect eval --sample-id`, and the command.

Ids are patterns in which `*`, `?` and `[` must be escaped; `task:id` for several tasks.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatch
from glob import escape
from pathlib import Path
from typing import Any

from forgetmap.comparison import Comparison
from forgetmap.confirmation.flips import FlipPlan
from forgetmap.confirmation.listing import SIDES, AgainRequest, Listing, fresh_seed, rerun_folder
from forgetmap.errors import FieldError
from forgetmap.records import Run, reading

MAX_ARGUMENT = 131_072
"""Maximum size in bytes of one command-line argument on Linux."""
LIMITS = ("message_limit", "token_limit", "time_limit", "working_limit", "epochs_reducer")
"""Limits of a sample that the log records."""
DECODING = ("temperature", "top_p", "top_k", "max_tokens", "stop_seqs", "system_message",
            "num_choices", "best_of", "frequency_penalty", "presence_penalty", "reasoning_effort",
            "reasoning_tokens")  # fmt: skip
"""Settings of generation that change answers; the options of the command have the same names."""
SPEC = ("model", "model_base_url", "model_args", "model_generate_config", "task_args_passed",
        "solver", "solver_args_passed")  # fmt: skip
"""Facts of a log that tasks of one command share."""


def for_inspect(
    comparison: Comparison, plan: FlipPlan, out: Path, parts: Sequence[str | None]
) -> Listing:
    """Return files of ids and commands for each model.

    Raises:
        FieldError: an id cannot be told apart from others.
    """
    files: dict[Path, str] = {}
    commands: list[str] = []
    notices: list[str] = []
    seed = fresh_seed(comparison)
    runs = (comparison.before, comparison.after)
    for side, run, part in zip(SIDES, runs, parts, strict=True):
        again = AgainRequest(
            run, plan.ids(side), out / f"ids-{side}.txt", rerun_folder(out, side), plan.repeats,
            part,
        )  # fmt: skip
        known = _ids(run, again.items)
        for number, (tasks, spec, header) in enumerate(_groups(again)):
            file = again.file
            if number:
                file = file.with_stem(f"{file.stem}-{number + 1}")
            files[file] = _patterns(tasks, again, known) + "\n"
            if len(files[file].encode()) >= MAX_ARGUMENT:
                notices.append(_too_long(file))
            commands.append(_command(tasks, spec, header, file, again, seed))
    return Listing(files, tuple(commands), tuple(notices))


Group = tuple[dict[str, str], Mapping[str, Any], Mapping[str, Any]]
"""Tasks of one command, by name -> how to name them there; their settings; the header."""


def _groups(again: AgainRequest) -> list[Group]:
    """Return tasks that share all settings together, as one command can ask them."""
    groups: dict[str, Group] = {}
    found: set[str] = set()
    for log, header in again.settings():
        spec = dict(header.get("eval") or {})
        tasks = {task: _task_name(spec, task) for task in log.tasks if task in again.items}
        if not tasks:
            continue
        found |= tasks.keys()
        key = json.dumps([spec.get(name) for name in SPEC], sort_keys=True, default=str)
        groups.setdefault(key, ({}, spec, header))[0].update(tasks)
    rest = {task: task for task in again.items if task not in found}
    return [*groups.values(), *([(rest, {}, {})] if rest else [])]


def _task_name(spec: Mapping[str, Any], task: str) -> str:
    """Return how to name a task: by its package, or by its file if that is where it is."""
    name = str(spec.get("task_registry_name") or spec.get("task") or task)
    file = str(spec.get("task_file") or "")
    return f"{file}@{name}" if file and "/" not in name and Path(file).is_file() else name


def _ids(run: Run, tasks: Iterable[str]) -> dict[str, list[str]]:
    """Return all ids of these tasks."""
    with reading(run):
        rows = run.scores.select("task", "item").unique().collect().iter_rows()
        known: dict[str, list[str]] = {task: [] for task in tasks}
        for task, item in rows:
            if task in known:
                known[task].append(str(item))
    return known


def _patterns(tasks: Iterable[str], again: AgainRequest, known: Mapping[str, Sequence[str]]) -> str:
    names = list(tasks)
    patterns = []
    for task in names:
        for item in again.items[task]:
            pattern = _pattern(item, task, known[task], again.run)
            # An id such as "mmlu:3" in the task mmlu would be read as its sample 3.
            is_scoped = len(names) > 1 or item.lower().startswith(f"{task.lower()}:")
            patterns.append(f"{task}:{pattern}" if is_scoped else pattern)
    return ",".join(patterns)


def _pattern(item: str, task: str, others: Sequence[str], run: Run) -> str:
    """Return a pattern that matches only this id; commas and outer spaces separate ids."""
    pattern = re.sub(r"^\s|,|\s$", "?", escape(item))
    if pattern != item and any(other != item and fnmatch(other, pattern) for other in others):
        raise FieldError(
            f"Inspect cannot select {item!r} of task {task!r} alone: other ids match {pattern}",
            file=run.origin,
            field="item",
            hint="use sample ids without commas, or write the items with --format jsonl.",
        )
    return pattern


def _too_long(file: Path) -> str:
    return (
        f"{file} is too long for a command; in Python, use eval(..., "
        f"sample_id=open({str(file)!r}).read().strip().split(','))."
    )


def _command(
    tasks: Mapping[str, str],
    spec: Mapping[str, Any],
    header: Mapping[str, Any],
    file: Path,
    again: AgainRequest,
    seed: int,
) -> str:
    """Return the command of the first run with some samples, another seed and no cache."""
    words = ["inspect", "eval", *tasks.values(), "--model", str(spec.get("model") or "MODEL")]
    if spec.get("model_base_url"):
        words += ["--model-base-url", str(spec["model_base_url"])]
    words += _pairs("-M", spec.get("model_args"))
    words += _pairs("-T", spec.get("task_args_passed"))
    if spec.get("solver"):
        words += ["--solver", str(spec["solver"]), *_pairs("-S", spec.get("solver_args_passed"))]
    plan = dict(header.get("plan") or {})
    given = spec.get("model_generate_config")
    words += _options(DECODING, (plan.get("config") if given is None else given) or {})
    words += _options(LIMITS, spec.get("config") or {})
    words += ["--epochs", str(again.repeats), "--seed", str(seed), "--log-dir", str(again.rerun)]
    return f'{shlex.join(words)} --sample-id "$(cat {shlex.quote(str(file))})"'


def _pairs(option: str, values: object) -> list[str]:
    """Return arguments of a model, task or solver, each as `NAME=VALUE`."""
    known = values.items() if isinstance(values, Mapping) else ()
    words = []
    for name, value in known:
        words += [option, f"{name}={value if isinstance(value, str) else json.dumps(value)}"]
    return words


def _options(names: Iterable[str], values: Mapping[str, Any]) -> list[str]:
    """Return the recorded ones of these settings as options."""
    words = []
    for name in names:
        value = values.get(name)
        if value is not None:
            text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
            words += [f"--{name.replace('_', '-')}", text]
    return words
