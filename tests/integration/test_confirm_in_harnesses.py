"""Real runs of lm-eval and Inspect: logs, the printed commands as they are, and the verdict."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest

import forgetmap as fm
from command_line import call, write
from harness_tasks import lm_eval_without_tasks
from letter_models import save_letter_model

pytestmark = pytest.mark.needs_torch

CHANCES = {"base": {"A": 0.8, "B": 0.1, "C": 0.1}, "tuned": {"A": 0.1, "B": 0.1, "C": 0.8}}
ITEMS = 50
"""Number of items for each of the letters A, B and C."""
BIN = Path(sys.executable).parent
CHAT = "{% for m in messages %}{{ m.content }}\nAnswer:{% endfor %}"
ODD_IDS = ("a*", "b[1]", "c,d", "letters:7", "7", "007x", "?", "one two")
"""Ids of Inspect that a list of patterns could get wrong."""

INSPECT_TASK = """
from inspect_ai import Task, task
from inspect_ai.dataset import Sample, json_dataset
from inspect_ai.scorer import match
from inspect_ai.solver import generate


def as_sample(row):
    return Sample(input=row["question"], target=row["gold"], id=row["id"])


@task
def letters(file: str):
    return Task(dataset=json_dataset(file, as_sample), solver=generate(), scorer=match())
"""


def lm_eval_task(data: Path) -> dict[str, Any]:
    return {
        "task": "letters",
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": str(data)}},
        "test_split": "test",
        "doc_to_text": "{{question}}\nAnswer:",
        "doc_to_target": "{{gold}}",
        "output_type": "generate_until",
        "generation_kwargs": {"until": ["\n"], "max_gen_toks": 4, "do_sample": True},
        "filter_list": [
            {"name": "bare",
             "filter": [{"function": "remove_whitespace"}, {"function": "take_first"}]}
        ],
        "metric_list": [{"metric": "exact_match"}],
    }  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Models, and the same items for both harnesses."""
    folder = tmp_path_factory.mktemp("harnesses")
    for name, chances in CHANCES.items():
        save_letter_model(folder / name, chances)
        settings = folder / name / "tokenizer_config.json"
        own = json.loads(settings.read_text(encoding="utf-8")) | {"chat_template": CHAT}
        settings.write_text(json.dumps(own), encoding="utf-8")
    golds = [letter for letter in "ABC" for _ in range(ITEMS)]
    rows = [
        {"question": f"Which one is {place}?", "gold": gold, "id": f"item {place}"}
        for place, gold in enumerate(golds)
    ]
    for row, odd in zip(rows, ODD_IDS, strict=False):
        row["id"] = odd
    data = write(folder / "items.jsonl", rows)
    (folder / "tasks").mkdir()
    (folder / "tasks" / "letters.yaml").write_text(json.dumps(lm_eval_task(data)), "utf-8")
    (folder / "letters.py").write_text(INSPECT_TASK, "utf-8")
    return folder


@pytest.fixture(autouse=True, scope="module")
def offline(folder: Path) -> Iterator[None]:
    """No hub, and the harnesses of this environment on the path."""
    with pytest.MonkeyPatch.context() as patch, chdir(folder):
        patch.setenv("HF_HUB_OFFLINE", "1")
        patch.setenv("HF_DATASETS_CACHE", str(folder / "cache"))
        patch.setenv("OMP_NUM_THREADS", "1")
        patch.setenv("INSPECT_DISPLAY", "none")
        patch.setenv("PATH", str(BIN), prepend=os.pathsep)
        own = lm_eval_without_tasks(folder / "own")
        patch.setenv("PYTHONPATH", str(own), prepend=os.pathsep)
        yield


def shell(line: str) -> None:
    """Run a line as it would be typed."""
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


def confirmed(base: str, tuned: str, out: str) -> dict[str, Any]:
    """Paste every printed command; return the total of the comparison with the fresh answers."""
    first = fm.compare(base, tuned).result.total
    assert first.verdict in ("no_net_loss", "cannot_tell")
    done = call("confirm", base, tuned, "--out", out)
    assert done.code == 0, done.err
    assert f"{2 * first.forgotten} answers" in done.out
    lines = [line.strip() for line in done.out.splitlines() if line.startswith("  ")]
    *ask, compare = lines
    assert len(ask) == 2
    for line in ask:
        shell(line)
    shown = call(*shlex.split(compare)[1:], "--json")
    assert shown.code == 0, shown.err
    total: dict[str, Any] = json.loads(shown.out)["total"]
    assert total["confirmed"]["flips"] == total["confirmed"]["asked"] == first.forgotten
    return total


def test_lm_eval_asks_the_flips_again(folder: Path) -> None:
    for name in CHANCES:
        shell(
            f"lm_eval --model hf --model_args pretrained={name},dtype=float32 --device cpu "
            f"--tasks letters --include_path tasks --log_samples --output_path logs/{name} "
            "--gen_kwargs temperature=1.0 --batch_size 16"
        )
    total = confirmed("logs/base", "logs/tuned", "lm")
    assert (total["verdict"], total["loss"]["carried_by"]) == ("lost", "confirmed")
    asked = json.loads((folder / "lm" / "samples-before.json").read_text())["letters"]
    log = fm.open_run(folder / "lm" / "rerun-before")
    assert sorted(int(row) for row in log.scores.collect()["item"].to_list()) == asked
    # The same seed in the same batches gives the same answers: a copy, which does not count.
    again = call("compare", "logs/base", "logs/tuned", "--confirm", "copy", "lm/rerun-after")
    assert again.code == 2
    shell("cp -r logs/base copy")
    copied = fm.compare("logs/base", "logs/tuned", confirm=("copy", "lm/rerun-after")).result
    assert copied.total.loss.carried_by != "confirmed"
    assert copied.pairing.warnings[0].code == "copies"


def test_inspect_asks_the_flips_again(folder: Path) -> None:
    for name in CHANCES:
        shell(
            f"inspect eval letters.py --model hf/local -M model_path={name} -M device=cpu "
            f"-T file=items.jsonl --max-tokens 4 --temperature 1 --log-dir eval/{name}"
        )
    total = confirmed("eval/base", "eval/tuned", "ins")
    assert (total["verdict"], total["loss"]["carried_by"]) == ("lost", "confirmed")
    plan = json.loads((folder / "ins" / "confirm.json").read_text())
    log = fm.open_run(folder / "ins" / "rerun-after")
    items = set(log.scores.collect()["item"].to_list())
    assert items == {item for _, _, item, _ in plan["items"]}
    assert items & set(ODD_IDS)
