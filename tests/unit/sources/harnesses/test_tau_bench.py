"""tau-bench and tau2-bench: trials as repeats, errors as missing, domains, broken rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import forgetmap as fm
from log_writers import opened


def trial(task: int, number: int, reward: object, **other: Any) -> dict[str, Any]:
    policy = {"role": "system", "content": "# Airline Agent Policy\n\n..."}
    return {
        "task_id": task,
        "reward": reward,
        "info": {"task": {"instruction": f"Ask for {task}."}},
        "traj": [policy, {"role": "assistant", "content": "Done."}],
        "trial": number,
    } | other


def simulation(task: str, number: int, reward: float | None) -> dict[str, Any]:
    return {
        "id": f"{task}/{number}",
        "task_id": task,
        "trial": number,
        "termination_reason": "user_stop",
        "reward_info": None if reward is None else {"reward": reward},
        "messages": [],
    }


def write(path: Path, content: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))
    return path


def write_tau2(path: Path, simulations: list[Any]) -> Path:
    info = {"agent_info": {"llm": "bee"}, "environment_info": {"domain_name": "telecom"}}
    tasks = [{"id": task, "user_scenario": f"scenario {task}"} for task in ("0", "1")]
    top = {"timestamp": "2026-01-01", "info": info, "tasks": tasks, "simulations": simulations}
    return write(path, top)


def test_trials_are_repeats_and_the_policy_names_the_domain(tmp_path: Path) -> None:
    path = write(tmp_path / "x.json", [trial(n, t, float(t)) for t in (0, 1) for n in (0, 1, 2)])
    run = opened(path)
    rows = run.scores.collect().select("task", "item", "repeat", "score").rows()
    assert sorted(rows) == [("tau_airline", str(n), t, float(t)) for n in (0, 1, 2) for t in (0, 1)]


def test_a_trial_that_broke_off_is_missing_not_wrong(tmp_path: Path) -> None:
    broken = trial(1, 0, 0.0, info={"error": "429"}, traj=[])
    run = opened(write(tmp_path / "x.json", [trial(0, 0, 1.0), broken]))
    rows = run.scores.collect().select("item", "score", "outcome").rows()
    assert rows == [("0", 1.0, "correct"), ("1", None, "error")]


def test_wrong_types_are_problems_with_line_and_field(tmp_path: Path) -> None:
    rows = [trial(0, 0, 1.0), trial(1, 0, "high"), {"task_id": [1], "reward": 1.0}]
    path = tmp_path / "x.json"
    path.write_text("[\n" + ",\n".join(map(json.dumps, rows)) + "\n]")
    problems = [(p.line, p.field) for p in opened(path).problems]
    assert problems == [(3, "reward"), (4, "task_id")]


def test_simulations_pair_by_task_and_trial(tmp_path: Path) -> None:
    first = [simulation("0", 0, 1.0), simulation("1", 0, 0.0), simulation("0", 1, 1.0)]
    then = [simulation("1", 0, 1.0), simulation("0", 1, 0.0), simulation("0", 0, 1.0)]
    before = write_tau2(tmp_path / "a.json", [*first, simulation("1", 1, None)])
    after = write_tau2(tmp_path / "b.json", [*then, simulation("1", 1, 1.0)])
    comparison = fm.compare(before, after, cached=False, min_paired=0.1)
    assert [task.name for task in comparison.result.tasks] == ["tau2_telecom"]
    run = opened(before)
    assert run.info.model.name == "bee"
    assert run.scores.collect()["score"].null_count() == 1


def test_what_is_no_simulation_is_a_problem(tmp_path: Path) -> None:
    path = write_tau2(tmp_path / "a.json", [simulation("0", 0, 1.0), "text", {"trial": 1}])
    assert [problem.field for problem in opened(path).problems] == ["simulations.1", "task_id"]


def test_of_two_tasks_with_one_id_the_first_counts(tmp_path: Path) -> None:
    path = write_tau2(tmp_path / "a.json", [simulation("0", 0, 1.0)])
    content = json.loads(path.read_text())
    content["tasks"][1]["id"] = "0"
    path.write_text(json.dumps(content))
    run = opened(path)
    assert run.texts is not None
    assert run.texts.collect()["question"].to_list() == ["scenario 0"]
