"""Agents: conversations with a simulated customer (tau-bench), and repairs of code (SWE-bench).

tau-bench   one array; a row per task and trial with `reward`, `info` and `traj`
tau2-bench  one object with `info`, `tasks` and `simulations`; or `results.json` with the settings
            and a folder of files with one simulation each
SWE-bench   the report of a run (`MODEL.RUN.json`) or those of its instances (`report.json`)
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import PurePosixPath

from forgetmap.records import Outcome
from forgetmap.sources.adapter import Log, Sample, Score
from forgetmap.sources.decode import document
from forgetmap.sources.fields import as_list, as_mapping, as_objects, replace_surrogates
from forgetmap.sources.files import LogFile, nearest_files
from forgetmap.sources.formats.engine import Companion, Format, Head, LogReading, LogRow
from forgetmap.sources.formats.values import numbers
from forgetmap.sources.messages import texts_of_role

REWARD = "reward"
OUTCOMES = {0.0: Outcome.INCORRECT, 1.0: Outcome.CORRECT}
_POLICY = re.compile(r"#\s*(?P<domain>\w+) agent policy", re.IGNORECASE)
_NAME = (
    r"(?:tool-calling|act|react|few-shot)-(?P<model>[^/]+?)-[\d.]+_range_[^/]*_(?P<time>\d{10})\b"
    r"[^/]*$"
)
"""File names of tau-bench, with month, day and time of day at the end."""


def _score(value: float | None) -> Score:
    outcome = None if value is None else OUTCOMES.get(value, Outcome.PARTIAL)
    return Score(REWARD, value, outcome=outcome)


def _domain(head: Head) -> str:
    """Return the task, named after the domain in the policy of the agent."""
    trajectories = (as_list(row.get("traj")) for row in head.file.peek.objects)
    starts = (as_mapping(trajectory[0]).get("content") for trajectory in trajectories if trajectory)
    matches = (_POLICY.search(str(start)[:200]) for start in starts)
    match = next(filter(None, matches), None)
    return f"tau_{match['domain'].lower() if match else 'bench'}"


def _item(row: LogRow) -> str | None:
    item = row.name("task_id")
    if not item:
        row.report_problem("no task_id")
    return item


TAU_BENCH = Format(
    name="tau-bench",
    title="tau-bench",
    form=" trials",
    fields=[("task_id", "reward", "info", "traj")],
    preferred=[REWARD],
    model=lambda head: head.named(_NAME).get("model"),
    stamp=lambda head: head.named(_NAME).get("time"),
    tasks=_domain,
    main=REWARD,
    item=_item,
    repeat=lambda row: row.count("trial") or 0,
    scores=lambda row: [_score(row.number(REWARD))],
    question="info.task.instruction",
    prompt=lambda row: texts_of_role(as_list(row["traj"])[:1], "system"),
    response=lambda row: texts_of_role(row["traj"], "assistant"),
    failure="info.error",
)


class _Simulations(Companion):
    """Files with one simulation each, which belong to the nearest settings."""

    def of(
        self, file: LogFile, others: Sequence[LogFile], known: Sequence[LogFile]
    ) -> list[LogFile]:
        """Return those simulations whose nearest settings are in a file."""
        return [
            one for one in others if nearest_files(one, known, alone=len(others) == 1) == [file]
        ]


def _simulations(reading: LogReading) -> Iterator[LogRow]:
    """Yield the simulations in the document, then those in separate files, with their scenario.

    Of two tasks with one id the first counts.
    """
    top = reading.row(as_mapping(document(reading.file)))
    scenarios: dict[str, str | None] = {}
    for task in top.parts("tasks"):
        item = task.name("id")
        if item in scenarios:
            task.report_problem(f"duplicate task {item!r}; the first one is used", "tasks.id")
        elif item is not None:
            scenarios[item] = task.json_text("user_scenario")
    inside = as_list(top["simulations"])
    for index, values in enumerate(inside):
        if not isinstance(values, dict):
            top.report_problem("a simulation is not an object", f"simulations.{index}")
    whole = map(reading.row, as_objects(inside))
    for row in chain(whole, *map(reading.lines, reading.companions("simulations"))):
        item = row.name("task_id")
        if item is None:
            row.report_problem("a simulation has no task_id", "task_id")
        else:
            yield row.adding(question=scenarios.get(item))


def _rewards(row: LogRow) -> list[Score]:
    """Return the reward, and the parts of its breakdown."""
    rewards = row.part("reward_info")
    parts = rewards.part("reward_breakdown")
    named = (Score(name.lower(), parts.number(name), "breakdown") for name in parts.values)
    return [_score(rewards.number(REWARD)), *named]


def _failure(row: LogRow) -> str | None:
    """Return how a simulation without a reward ended, if that is an error."""
    ended = row.text("termination_reason")
    failed = ended is not None and "error" in ended
    return ended if failed and row.part("reward_info").number(REWARD) is None else None


def _add_seed(row: LogRow, sample: Sample) -> None:
    sample.seed = row.count("seed")


TAU2_BENCH = Format(
    name="tau2-bench",
    title="tau2-bench",
    form=" simulations",
    # Simulations may begin beyond the first bytes, or be in files of their own.
    fields=[("timestamp", "info", "tasks", "simulations"), ("info",)],
    accepts=lambda file: (
        file.peek.shape == "object"
        and as_mapping(file.peek.first.get("info")).keys() >= {"agent_info", "environment_info"}
    ),
    beside={
        "simulations": _Simulations(
            fields=[("task_id", "trial", "reward_info", "termination_reason")],
            accepts=lambda file: file.peek.shape == "object",
        )
    },
    preferred=[REWARD],
    about="document",
    model=["info.agent_info.llm", "info.agent_info.implementation"],
    version="info.git_commit",
    decoding=lambda head: numbers(head.part("info.agent_info.llm_args").values),
    seed="info.seed",
    created="timestamp",
    tasks=lambda head: f"tau2_{head.part('info.environment_info').text('domain_name') or 'bench'}",
    main=REWARD,
    rows=_simulations,
    item="task_id",
    repeat=lambda row: row.count("trial") or 0,
    scores=_rewards,
    finish_reason="termination_reason",
    response=lambda row: texts_of_role(row["messages"], "assistant"),
    failure=_failure,
    finish=_add_seed,
)


REPORT = ("resolved_ids", "completed_ids", "total_instances")
INSTANCE = frozenset({"resolved", "patch_successfully_applied"})
LISTS = {
    "resolved_ids": Outcome.CORRECT,
    "unresolved_ids": Outcome.INCORRECT,
    "error_ids": Outcome.INCORRECT,
    "empty_patch_ids": Outcome.NO_ANSWER,
}
"""Lists of a report, in the order in which they count: all but the first are not resolved, as in
the harness. Instances that were not submitted are listed only as incomplete, and are omitted."""


class _SweBench(Format):
    """Reports of runs; if there are none, reports of instances, which are one log per model."""

    def sniff(self, files: Sequence[LogFile]) -> Sequence[Log]:
        """Return one log per report of a run, else per model with reports of instances."""
        logs = [*super().sniff(files)]
        folders: dict[PurePosixPath, list[LogFile]] = defaultdict(list)
        for file in [] if logs else files:
            first = as_mapping(next(iter(file.peek.first.values()), None))
            if file.peek.shape == "object" and first.keys() >= INSTANCE:
                folders[PurePosixPath(file.name).parent.parent].append(file)
        for first_file, *rest in folders.values():
            logs += self._logs(Head(self, first_file, {"reports": rest}))
        return logs


def _run(head: Head) -> tuple[str | None, str | None]:
    """Return model and run, of the name of a report, or of the folder; models have `__` for `/`."""
    name = head.path.name.removesuffix(".gz").removesuffix(".json")
    own = head.file.peek.has(*REPORT)
    model, dot, run = name.rpartition(".") if own else (head.folders[-2], "", "")
    return replace_surrogates(model).replace("__", "/") or None, run if dot else None


def _instances(reading: LogReading) -> Iterator[LogRow]:
    """Yield the submitted instances; their category is the repository."""
    for file in reading.log.files:
        content = reading.row(as_mapping(document(file)), None, file)
        verdicts = {} if file.peek.has(*REPORT) else _of_instances(content)
        for name, outcome in LISTS.items() if file.peek.has(*REPORT) else ():
            for item in as_list(content[name]):
                if isinstance(item, str):
                    verdicts.setdefault(item, outcome)
                else:
                    content.report_problem(f"expected an id, not {item!r:.60}", name)
        for item, outcome in verdicts.items():
            category = item.rpartition("-")[0].replace("__", "/") or None
            yield reading.row({"id": item, "outcome": outcome, "repo": category}, None, file)


def _of_instances(content: LogRow) -> dict[str, Outcome]:
    verdicts: dict[str, Outcome] = {}
    for item, report in content.values.items():
        values = as_mapping(report)
        if isinstance(values.get("resolved"), bool):
            wrong = Outcome.INCORRECT if values.get("patch_exists", True) else Outcome.NO_ANSWER
            verdicts[item] = Outcome.CORRECT if values["resolved"] else wrong
        else:
            content.report_problem("expected true or false", f"{item[:60]}.resolved")
    return verdicts


SWE_BENCH = _SweBench(
    name="swe-bench",
    title="SWE-bench report",
    fields=[REPORT],
    accepts=lambda file: file.peek.shape == "object",
    preferred=["resolved"],
    model=lambda head: _run(head)[0],
    run_id=lambda head: _run(head)[1],
    tasks="swe_bench",
    main="resolved",
    rows=_instances,
    item="id",
    repeat=0,
    scores=lambda row: [
        Score("resolved", float(row["outcome"] is Outcome.CORRECT), outcome=row["outcome"])
    ],
    category="repo",
    totals=lambda reading: reading.state(
        "resolved_instances", reading.document["resolved_instances"], kind="sum"
    ),
)
