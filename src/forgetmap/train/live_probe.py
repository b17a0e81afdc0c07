"""Evaluation of a probe on the model in training, without side effects, as a run folder."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from forgetmap.comparison import CORRECT_AT
from forgetmap.errors import UsageError
from forgetmap.evaluation import (
    Job,
    ModelIdentity,
    Network,
    RepeatingBackend,
    Settings,
    Suite,
    make_jobs,
    model_unchanged,
    resolve,
    run_model,
)
from forgetmap.records import (
    MANIFEST,
    SCORES,
    TrainingInfo,
    complete_folder,
    describe_folder,
    read_manifest,
)
from forgetmap.train.alarm import Key, KlMeans
from forgetmap.train.divergence import (
    KL_ITEMS,
    AnswerDistributions,
    AnswerPath,
    answer_paths,
    keep_start,
    mean_kl,
    measure_kl,
    read_start,
    write_start,
)
from forgetmap.train.probe_items import categories_of, draw_keys, suite_of_keys

RightOrWrong = dict[Key, bool | None]


class LiveProbe:
    """A probe on a live model, with a folder for its answers.

    Args:
        model: the live module, in any mode.
        tokenizer: tokenizer of the model.
        suite: tasks and items.
        settings: settings of the evaluation.
        folder: folder of the run folders.
        seed: random seed for choosing the items of the KL.

    Attributes:
        asked: fingerprint of the items, prompts and settings.
        tokens: fingerprint of the tokens of prompts and answers.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        suite: Suite,
        settings: Settings,
        folder: Path,
        *,
        seed: int = 0,
    ) -> None:
        _refuse_parts(model)
        self._model, self._settings, self._folder = model, settings, folder
        with model_unchanged(model):
            self._backend = RepeatingBackend(_answering_module(model), tokenizer)
            self._network = Network(_answering_module(model))
        self._resolved = resolve(settings, self._backend)
        self._start: AnswerDistributions | None = None
        jobs = make_jobs(suite, self._resolved, self._backend, "")
        paths = answer_paths(self._backend, jobs, self._resolved)
        drawn = draw_keys([path.key for path in paths], KL_ITEMS, seed)
        self._paths = [path for path in paths if path.key in drawn]
        self.asked, self.tokens = self._fingerprints(jobs, suite, paths)
        self.suite = suite

    @property
    def kl_is_exact(self) -> bool:
        """Whether complete distributions of the start model are stored."""
        return self._start is None or self._start.is_exact

    def answer(self, training: TrainingInfo, parent: str | None) -> str:
        """Evaluate all items and write a run folder, over an abandoned one; return its name."""
        name = run_name(training.step)
        identity = ModelIdentity(name, parent=parent, training=training)
        with model_unchanged(self._model):
            self._model.eval()
            run_model(
                self._backend, self.suite, self._folder / name, identity, self._settings,
                overwrite=True,
            )  # fmt: skip
        return name

    def warm_up(self) -> None:
        """Evaluate one item of each kind, so that the first look is not slower than the others."""
        kinds = {(task.kind, task.scorers): task for task in reversed(self.suite.tasks)}
        first = [task for task in self.suite.tasks if task in kinds.values() and not task.follows]
        few = {(task.name, item.id) for task in first for item in task.load()[:1]}
        part, aside = suite_of_keys(self.suite, few), self._folder / ".warm-up"
        with model_unchanged(self._model):
            self._model.eval()
            run_model(
                self._backend, part, aside, ModelIdentity("warm-up"), self._settings, overwrite=True
            )
        read_scores(aside)
        shutil.rmtree(aside)

    def keep_start(self) -> None:
        """Store the distributions of the current model as those of the start model."""
        with model_unchanged(self._model):
            self._model.eval()
            self._start = keep_start(self._network, self._paths)
        write_start(self._start, self._folder)

    def recall_start(self) -> bool:
        """Read the stored distributions; return False if they are missing."""
        self._start = read_start(self._folder, self._paths)
        return self._start is not None

    def kl(self) -> dict[str, KlMeans]:
        """Return the KL to and from the start model of every group."""
        if self._start is None:
            return {}
        chosen = {(task.name, item.id) for task in self.suite.tasks for item in task.load()}
        with model_unchanged(self._model):
            self._model.eval()
            values = measure_kl(self._network, self._start, chosen)
        return mean_kl(values, categories_of(self.suite))

    def forget_attempt(self, step: int) -> None:
        """Remove the files of a failed look."""
        (self._folder / f".{run_name(step)}.journal.jsonl").unlink(missing_ok=True)

    def _fingerprints(
        self, jobs: Sequence[Job], suite: Suite, paths: Sequence[AnswerPath]
    ) -> tuple[str, str]:
        versions = {task.name: task.version for task in suite.tasks}
        facts = [
            f"{job.task.name}\n{job.item.id}\n{job.prompt}\n{job.item.gold}\n{job.item.options}"
            for job in jobs
        ]
        text = sha256("\n\n".join(facts).encode("utf-8", "surrogatepass")).hexdigest()
        tokens = self._backend.encode([job.prompt for job in jobs])
        answers = [path.tokens for path in paths]
        return (
            self._resolved.fingerprint(tasks=versions, asked=text),
            sha256(repr((tokens, answers)).encode()).hexdigest()[:16],
        )


def run_name(step: int) -> str:
    """Return the name of the run folder of a step."""
    return f"step-{step:06d}"


def read_scores(folder: Path) -> RightOrWrong:
    """Whether each item of a run is right, by the main metric of its task."""
    tasks = read_manifest(folder / MANIFEST).tasks
    names = ["task", "item", "metric", "scorer", "score"]
    rows = pq.read_table(folder / SCORES, columns=names).to_pylist()
    return {
        (row["task"], row["item"]): None if row["score"] is None else row["score"] >= CORRECT_AT
        for row in rows
        if (row["metric"], row["scorer"])
        == (tasks[row["task"]].main_metric, tasks[row["task"]].main_scorer)
    }


def keep_items(folder: Path, suite: Suite) -> None:
    """Keep only the items of a suite in a run folder."""
    kept = {(task.name, item.id) for task in suite.tasks for item in task.load()}
    info = read_manifest(folder / MANIFEST)
    tables = {file.name: pq.read_table(file) for file in sorted(folder.glob("*.parquet"))}
    with complete_folder(folder, overwrite=True) as partial:
        for name, table in tables.items():
            pq.write_table(_rows_of(table, kept), partial / name)
        describe_folder(partial, info)


def move_away(folder: Path, name: str) -> None:
    """Move the run folder of an abandoned look aside."""
    if not (folder / name).exists():
        return
    aside = folder / "abandoned" / name
    shutil.rmtree(aside, ignore_errors=True)
    aside.parent.mkdir(exist_ok=True)
    (folder / name).rename(aside)


def _rows_of(table: pa.Table, kept: set[Key]) -> pa.Table:
    if not {"task", "item"} <= set(table.column_names):
        return table
    pairs = zip(table["task"].to_pylist(), table["item"].to_pylist(), strict=True)
    return table.filter(pa.array([pair in kept for pair in pairs], pa.bool_()))


def _answering_module(model: Any) -> Any:
    """Return the transformers module, with adapters in its layers if there are any.

    A PEFT wrapper hides the inputs of the model, which faster evaluation needs. The wrapper is kept
    only for prompt learning, where it prepends the learned prompt.
    """
    if not hasattr(model, "peft_config"):
        return model
    configs = model.peft_config.values()
    is_in_layers = not any(getattr(config, "is_prompt_learning", False) for config in configs)
    return model.get_base_model() if is_in_layers and hasattr(model, "get_base_model") else model


def _refuse_parts(model: Any) -> None:
    """Refuse a model with sharded weights, which only answers if all processes take part."""
    for parameter in model.parameters():
        if hasattr(parameter, "ds_id") or type(parameter).__name__ == "DTensor":
            raise UsageError(
                "the weights of the model are sharded over several processes (FSDP, DeepSpeed "
                "ZeRO-3 or tensor parallel), so no single process can answer",
                hint="evaluate saved checkpoints instead: forgetmap run CHECKPOINT --suite ...",
            )
