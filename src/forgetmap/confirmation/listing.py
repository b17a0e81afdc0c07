"""Files of items for another program, and the commands that ask them."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forgetmap.comparison import Comparison
from forgetmap.confirmation.choices import ItemFormat
from forgetmap.confirmation.flips import FlipPlan
from forgetmap.errors import ForgetmapError
from forgetmap.evaluation import PROBE_COLUMN
from forgetmap.records import AskedInfo, HarnessInfo, Run, is_run_folder, parse_options, reading
from forgetmap.sources import Log, recorded_settings

SIDES = ("before", "after")
ITEMS = "items.jsonl"


@dataclass(frozen=True, slots=True)
class Listing:
    """What to write and what to run.

    Attributes:
        files: content of each file, by its path.
        commands: commands that ask both models; empty if no program can be named.
        notices: what to know about them.
    """

    files: Mapping[Path, str]
    commands: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AgainRequest:
    """What a harness is to do again for one side.

    Attributes:
        run: the first answers.
        items: ids of each task.
        file: path of the file of items.
        rerun: folder for the new logs.
        repeats: fresh answers to each item.
        part: chooses one of several runs in the logs.
    """

    run: Run
    items: Mapping[str, Sequence[str]]
    file: Path
    rerun: Path
    repeats: int
    part: str | None = None

    def settings(self) -> list[tuple[Log, Mapping[str, Any]]]:
        """Return the logs, each with what the harness recorded about its start."""
        path = Path(self.run.origin)
        if is_run_folder(path):  # of a harness that forgetmap started
            path = path / "logs"
        if not path.exists():
            return []
        try:
            return recorded_settings(path, self.part)
        except ForgetmapError:  # a table with the ids of a harness is not its log
            return []


def rerun_folder(out: Path, side: str) -> Path:
    """Return the folder for the fresh answers of a side."""
    return out / f"rerun-{side}"


def natural_format(comparison: Comparison) -> ItemFormat:
    """Return the format of the harness that wrote both logs; JSONL if it cannot choose items."""
    harnesses = [run.info.harness for run in (comparison.before, comparison.after)]
    names = {harness.name for harness in harnesses}
    if any(map(_is_old_lm_eval, harnesses)):
        return "jsonl"
    if names == {"lm-eval"}:
        return "lm-eval"
    return "inspect" if names == {"inspect"} else "jsonl"


def _is_old_lm_eval(harness: HarnessInfo) -> bool:
    """Return whether this is lm-eval 0.3, which has no `--samples`."""
    return harness.name == "lm-eval" and (harness.version or "").startswith("0.3")


def flip_rows(comparison: Comparison, plan: FlipPlan) -> dict[tuple[str, str], dict[str, Any]]:
    """Return what is recorded about each item that is asked, by its task and id before."""
    wanted = {(item.task, item.before) for item in plan.items}
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    with reading(comparison.before, comparison.after):
        for kind in ("forgotten", "gained"):
            frame = comparison.flip_frame(kind, texts=True).collect()
            for row in frame.rows(named=True):
                key = (str(row["task"]), str(row["item"]))
                if not row["repeat"] and key in wanted:
                    rows[key] = row
    return rows


def as_jsonl(comparison: Comparison, plan: FlipPlan, out: Path) -> Listing:
    """Return a file of items: task, ids, and question, options and right answer if recorded."""
    known = flip_rows(comparison, plan)
    asked = [run.info.asked for run in (comparison.before, comparison.after)]
    suites = [info and info.suite for info in asked]
    lines = []
    for item in plan.items:
        row = known[item.task, item.before]
        line = {
            "task": item.task,
            "id": item.before,
            "id_after": item.after if item.after != item.before else None,
            "flip": "forgotten" if item.is_lost else "gained",
            "category": row.get("category"),
            "question": row.get("question"),
            "options": _options(row.get("options")),
            "gold": row.get("gold"),
        }
        if suites[0] is not None:
            line[PROBE_COLUMN] = {"suite": suites[0]}
        kept = {name: value for name, value in line.items() if _is_known(value)}
        lines.append(json.dumps(kept, ensure_ascii=False))
    path = out / ITEMS
    files = {path: "\n".join(lines) + "\n"}
    if None in suites:
        return Listing(files, notices=_by_hand(comparison, out))
    commands = tuple(
        run_command(info, path, rerun_folder(out, side), plan, fresh_seed(comparison))
        for info, side in zip(asked, SIDES, strict=True)
        if info is not None
    )
    return Listing(files, commands)


def _options(value: Any) -> list[str] | None:
    """Return options as a list: tables hold them as JSON; None if they cannot be read."""
    if not _is_known(value):
        return None
    try:
        return parse_options(value if isinstance(value, str) else list(value)) or None
    except ValueError:
        return None


def _is_known(value: object) -> bool:
    """Whether a cell has a value; pandas writes null as NaN."""
    return value is not None and value == value  # noqa: PLR0124


def _by_hand(comparison: Comparison, out: Path) -> tuple[str, ...]:
    harnesses = [run.info.harness for run in (comparison.before, comparison.after)]
    cannot = ""
    if "lighteval" in [harness.name for harness in harnesses]:
        cannot = "lighteval cannot choose items: it takes the first --max-samples. "
    if any(map(_is_old_lm_eval, harnesses)):
        cannot = (
            "lm-eval 0.3 cannot choose items (--format lm-eval writes them for 0.4.9 or later, "
            "which may ask in another way). "
        )
    folders = " and ".join(f"{rerun_folder(out, side)}.jsonl" for side in SIDES)
    words = (
        f"{cannot}Ask both models the items of {out / ITEMS} in the way of the first answers, with "
        f"another seed, and write task, item and score of each answer to {folders}."
    )
    return (words,)


def fresh_seed(comparison: Comparison) -> int:
    """Return a seed that neither run used."""
    runs = (comparison.before, comparison.after)
    return max((seed for run in runs for seed in run.info.seeds), default=0) + 1


def run_command(asked: AskedInfo, items: Path, out: Path, plan: FlipPlan, seed: int) -> str:
    """Return the command that asks a model of forgetmap again."""
    words = ["forgetmap", "run", asked.model, "--suite", str(items)]
    if asked.columns:
        words += ["--columns", ",".join(f"{name}={own}" for name, own in asked.columns.items())]
    for name, value in asked.settings.items():
        option = f"--{name.replace('_', '-')}"
        if name in ("seed", "repeats"):
            continue
        words += [option if value else f"--no-{name}"] if name == "chat" else [option, str(value)]
    words += ["--seed", str(seed), "--repeats", str(plan.repeats), "--out", str(out)]
    return shlex.join(words)
