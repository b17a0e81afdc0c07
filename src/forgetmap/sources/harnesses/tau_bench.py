"""tau-bench and tau2-bench: conversations of an agent with a simulated customer, with a reward.

tau-bench   one array; a row per task and trial with `reward`, `info` and `traj`
tau2-bench  one object with `info`, `tasks` and `simulations`; or `results.json` with the settings
            and a folder of files with one simulation each

Trials are repeats.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from forgetmap.records import HarnessInfo, ModelInfo, Outcome, RunInfo, TaskInfo
from forgetmap.sources.adapter import Log, Problems, Sample, Score
from forgetmap.sources.decode import document, number, rows, small_document
from forgetmap.sources.fields import Fields, as_list, as_mapping, replace_surrogates
from forgetmap.sources.files import LogFile, nearest_file
from forgetmap.sources.messages import texts_of_role

REWARD = "reward"
ROW = ("task_id", "reward", "info", "traj")
SETTINGS = frozenset({"agent_info", "environment_info"})
SIMULATION = ("task_id", "trial", "reward_info", "termination_reason")
_POLICY = re.compile(r"#\s*(?P<domain>\w+) agent policy", re.IGNORECASE)
_NAME = re.compile(
    r"(?P<strategy>tool-calling|act|react|few-shot)-(?P<model>.+?)-[\d.]+_range_.*_(?P<time>\d{10})\b"
)
"""File names of tau-bench, with month, day and time of day at the end."""


class TauBench:
    """Trials of tau-bench."""

    name = "tau-bench"
    preferred: Sequence[str] = (REWARD,)

    def sniff(self, files: Sequence[LogFile]) -> Sequence[Log]:
        """Return one log per array of trials with their conversations."""
        return [_log(file) for file in files if file.peek.has(*ROW)]

    def read(self, log: Log, problems: Problems, *, texts: bool) -> Iterator[Sample]:
        """Yield one sample per trial; the score of one that ended in an error is missing."""
        for line, values in rows(log.files[0], problems):
            row = Fields(values, log.files[0], line, problems)
            item = row.name("task_id")
            if item is None:
                row.report_problem("no task_id")
                continue
            yield _trial(row, log.tasks[0], item, texts=texts)


def _log(file: LogFile) -> Log:
    path = PurePosixPath(file.inside)
    match = _NAME.search(path.name)
    policies = (_domain(row.get("traj")) for row in file.peek.objects)
    task = f"tau_{next(filter(None, policies), None) or 'bench'}"
    info = RunInfo(
        model=ModelInfo(name=replace_surrogates(match["model"]) if match else None),
        harness=HarnessInfo(name="tau-bench"),
        tasks={task: TaskInfo(main_metric=REWARD)},
    )
    stamp = match["time"] if match else None
    return Log("tau-bench", (file,), info, (task,), stamp, format="tau-bench trials")


def _domain(trajectory: object) -> str | None:
    """Return the domain in the policy of the agent."""
    for message in as_list(trajectory)[:1]:
        match = _POLICY.search(str(as_mapping(message).get("content"))[:200])
        return match["domain"].lower() if match else None
    return None


def _trial(row: Fields, task: str, item: str, *, texts: bool) -> Sample:
    about = row.part("info")
    error = about.json_text("error")
    value = None if error is not None else row.number(REWARD)
    return Sample(
        task=task,
        item=item,
        scores=[Score(REWARD, value, outcome=_outcome(value, failed=error is not None))],
        repeat=row.count("trial") or 0,
        question=about.part("task").text("instruction"),
        prompt=texts_of_role(as_list(row.values.get("traj"))[:1], "system") if texts else None,
        response=texts_of_role(row.values.get("traj"), "assistant") if texts else None,
        error=error,
        file=row.file.name,
        line=row.line,
    )


def _outcome(value: float | None, *, failed: bool) -> Outcome | None:
    if failed:
        return Outcome.ERROR
    return {0.0: Outcome.INCORRECT, 1.0: Outcome.CORRECT, None: None}.get(value, Outcome.PARTIAL)


class Tau2Bench:
    """Simulations of tau2-bench."""

    name = "tau2-bench"
    preferred: Sequence[str] = (REWARD,)

    def sniff(self, files: Sequence[LogFile]) -> Sequence[Log]:
        """Return one log per document with settings, with its files of single simulations."""
        about = [file for file in files if _has_settings(file)]
        single = [file for file in files if _is_simulation(file) and file not in about]
        parts: dict[str, list[LogFile]] = {file.name: [] for file in about}
        for file in single:
            owner = nearest_file(file, about, single)
            if owner is not None:
                parts[owner.name].append(file)
        return [_simulated_log(file, parts[file.name]) for file in about]

    def read(self, log: Log, problems: Problems, *, texts: bool) -> Iterator[Sample]:
        """Yield one sample per simulation; without a reward, its score is missing."""
        top = Fields(as_mapping(document(log.files[0])), log.files[0], None, problems)
        scenarios = _scenarios(top)
        for row in _simulations(top, log.files[1:], problems):
            item = row.name("task_id")
            if item is None:
                row.report_problem("a simulation has no task_id", "task_id")
                continue
            yield _simulation(row, log.tasks[0], item, scenarios.get(item), texts=texts)


def _has_settings(file: LogFile) -> bool:
    return (
        file.peek.shape == "object" and as_mapping(file.peek.first.get("info")).keys() >= SETTINGS
    )


def _is_simulation(file: LogFile) -> bool:
    return file.peek.shape == "object" and file.peek.has(*SIMULATION)


def _simulated_log(file: LogFile, parts: Sequence[LogFile]) -> Log:
    about = Fields(small_document(file), file, None, Problems())
    info = about.part("info")
    agent = info.part("agent_info")
    domain = info.part("environment_info").text("domain_name")
    task = f"tau2_{domain}" if domain else "tau2_bench"
    stamp, seed = about.text("timestamp"), info.count("seed")
    run = RunInfo(
        model=ModelInfo(name=agent.text("llm") or agent.text("implementation")),
        harness=HarnessInfo(name="tau2-bench", version=info.text("git_commit")),
        decoding=_settings(agent.part("llm_args").values),
        seeds=[] if seed is None else [seed],
        created=stamp,
        tasks={task: TaskInfo(main_metric=REWARD)},
    )
    return Log("tau2-bench", (file, *parts), run, (task,), stamp, format="tau2-bench simulations")


def _settings(values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        replace_surrogates(name): value
        for name, value in values.items()
        if isinstance(value, bool | int | float) and number(value) is not None
    }


def _scenarios(top: Fields) -> dict[str, str | None]:
    """Return the scenario of the customer by task; of two tasks with one id the first counts."""
    scenarios: dict[str, str | None] = {}
    for task in top.parts("tasks"):
        item = task.name("id")
        if item in scenarios:
            task.report_problem(f"duplicate task {item!r}; the first one is used", "tasks.id")
        elif item is not None:
            scenarios[item] = task.json_text("user_scenario")
    return scenarios


def _simulations(top: Fields, parts: Sequence[LogFile], problems: Problems) -> Iterator[Fields]:
    """Yield the simulations in the document, then those in separate files."""
    for index, content in enumerate(as_list(top.values.get("simulations"))):
        if isinstance(content, dict):
            yield top.within(content)
        else:
            top.report_problem("a simulation is not an object", f"simulations.{index}")
    for file in parts:
        for line, values in rows(file, problems):
            yield Fields(values, file, line, problems)


def _simulation(row: Fields, task: str, item: str, scenario: str | None, *, texts: bool) -> Sample:
    rewards = row.part("reward_info")
    value = rewards.number(REWARD)
    ended = row.text("termination_reason")
    failed = value is None and ended is not None and "error" in ended
    parts = rewards.part("reward_breakdown")
    return Sample(
        task=task,
        item=item,
        scores=[
            Score(REWARD, value, outcome=_outcome(value, failed=failed)),
            *(
                Score(replace_surrogates(name).lower(), parts.number(name), "breakdown")
                for name in parts.values
            ),
        ],
        repeat=row.count("trial") or 0,
        question=scenario,
        seed=row.count("seed"),
        finish_reason=ended,
        response=texts_of_role(row.values.get("messages"), "assistant") if texts else None,
        error=ended if failed else None,
        file=row.file.name,
        line=row.line,
    )
