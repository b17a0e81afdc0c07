"""Inspect AI: `.eval` archives, complete or interrupted, and the single `.json` file.

The header of a run is `header.json` (while it runs, `_journal/start.json`) or the top of the
`.json` file. `rows` reads the samples, `sample` converts one of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from forgetmap.records import HarnessInfo, ModelInfo, Outcome, RunInfo, TaskInfo
from forgetmap.sources.adapter import Log, Problems, Sample, Score, StatedTotal
from forgetmap.sources.decode import number
from forgetmap.sources.fields import as_mapping, as_objects
from forgetmap.sources.files import LogFile
from forgetmap.sources.harnesses.inspect.rows import archive_header, document_header, samples_of
from forgetmap.sources.harnesses.inspect.sample import VALUE, Measure, as_sample

DECODING = {
    "do_sample": "do_sample",
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "max_tokens": "max_new_tokens",
    "stop_seqs": "stop",
    "num_choices": "num_choices",
    "best_of": "best_of",
    "frequency_penalty": "frequency_penalty",
    "presence_penalty": "presence_penalty",
    "reasoning_effort": "reasoning_effort",
    "reasoning_tokens": "reasoning_tokens",
}
"""Setting of Inspect -> setting of the manifest."""
SHOTS = ("fewshot", "num_fewshot", "n_shot", "shots")
"""Names of the task argument with the number of examples in the prompt."""
MEANS = ("accuracy", "mean")
"""Metrics of Inspect that are the mean over all samples."""


class InspectAI:
    """Logs of Inspect AI."""

    name = "inspect"
    preferred: Sequence[str] = ()

    def sniff(self, files: Sequence[LogFile]) -> Sequence[Log]:
        """Return one log per archive with Inspect's members, or document with its header."""
        archives = [file for file in files if _is_archive(file)]
        logs = [
            _log(file, header, "Inspect .eval") for file in archives if (header := header_of(file))
        ]
        known = {log.files[0].path for log in logs}
        logs += [
            _log(file, header, "Inspect .json")
            for file in files
            if file.path not in known and not _is_archive(file) and (header := header_of(file))
        ]
        return logs

    def settings(self, log: Log) -> Mapping[str, Any]:
        """Return the header of a log, which has the arguments of the command."""
        return header_of(log.files[0]) or {}

    def read(self, log: Log, problems: Problems, *, texts: bool) -> Iterator[Sample]:
        """Yield one sample per item and epoch; those without scores last, with missing scores."""
        seen: dict[Measure, None] = {}
        unscored: list[Sample] = []
        for key, row in samples_of(log, problems, texts=texts):
            sample = as_sample(row, key, log, texts=texts)
            if sample.scores:
                seen.update(((score.metric, score.scorer), None) for score in sample.scores)
                yield sample
            else:
                unscored.append(sample)
        for sample in unscored:
            sample.scores = _missing(sample, list(seen) or log.notes["measures"])
            yield sample
        problems.totals += log.notes["totals"]


def _is_archive(file: LogFile) -> bool:
    return file.archive is not None and file.member is None


def header_of(file: LogFile) -> dict[str, Any] | None:
    """Return the header of an archive or a document; None if it is not a log of Inspect."""
    if file.archive is not None and file.member is None:
        return archive_header(file, file.archive)
    return document_header(file)


def _missing(sample: Sample, measures: Sequence[Measure]) -> list[Score]:
    """Return missing scores for these metrics and scorers."""
    outcome = Outcome.UNSCORED if sample.error is None else Outcome.ERROR
    return [
        Score(metric, None, scorer, outcome) for metric, scorer in measures or [(VALUE, "default")]
    ]


def _log(file: LogFile, header: Mapping[str, Any], form: str) -> Log:
    spec, results = as_mapping(header.get("eval")), as_mapping(header.get("results"))
    measures = _measures(spec, results)
    task = (_text(spec, "task") or "task").rsplit("/", 1)[-1]
    return Log(
        "inspect",
        (file,),
        _info(header, spec, {task: _task(spec, measures)}),
        (task,),
        stamp=_moment(_text(spec, "created")),
        finished=header.get("status") == "success",
        format=form,
        notes={
            "model": _text(spec, "model"),
            "measures": measures,
            "totals": list(_totals(task, results)),
            "invalidated": header.get("invalidated") is True,
        },
    )


def _info(
    header: Mapping[str, Any], spec: Mapping[str, Any], tasks: dict[str, TaskInfo]
) -> RunInfo:
    arguments = as_mapping(spec.get("model_args"))
    plan = as_mapping(header.get("plan"))
    parts = arguments, as_mapping(spec.get("model_generate_config")), as_mapping(plan.get("config"))
    config = {name: value for part in parts for name, value in part.items() if value is not None}
    seed, system = config.get("seed"), _system_message(plan, config)
    return RunInfo(
        model=ModelInfo(
            name=_text(arguments, "model_path") or _text(spec, "model"),
            revision=_text(arguments, "revision"),
        ),
        harness=HarnessInfo(
            name="inspect", version=_text(as_mapping(spec.get("packages")), "inspect_ai")
        ),
        system_prompt_hash=sha256(system.encode()).hexdigest()[:16] if system else None,
        decoding={
            field: value
            for name, field in DECODING.items()
            if (value := _plain(config.get(name))) is not None
        },
        seeds=[seed] if isinstance(seed, int) and not isinstance(seed, bool) else [],
        created=_moment(_text(spec, "created")),
        tasks=tasks,
    )


def _task(spec: Mapping[str, Any], measures: Sequence[Measure]) -> TaskInfo:
    """Return the settings of the task; version 0 of Inspect means no version."""
    version, arguments = spec.get("task_version"), as_mapping(spec.get("task_args"))
    shots = next((arguments[name] for name in SHOTS if name in arguments), None)
    metric, scorer = measures[0] if measures else (None, None)
    return TaskInfo(
        version=str(version) if isinstance(version, str | int) and version else None,
        n_shot=shots if isinstance(shots, int) and not isinstance(shots, bool) else None,
        main_metric=metric,
        main_scorer=scorer,
    )


def _measures(spec: Mapping[str, Any], results: Mapping[str, Any]) -> list[Measure]:
    """Return the metrics and scorers in the header, the main one first.

    A scorer with several values has an entry for each, whose name differs from that of the scorer.
    """
    entries = [
        *as_objects(results.get("scores")),
        *filter(None, [as_mapping(results.get("scorer"))]),
    ]
    headline = as_mapping(results.get("headline")) or as_mapping(spec.get("headline_metric"))
    entries.sort(key=lambda entry: not _is_headline(entry, headline))
    measures = dict.fromkeys(
        (VALUE if name == (scorer := _text(entry, "scorer") or name) else name, scorer)
        for entry in entries
        if (name := _text(entry, "name"))
    )
    scorers = (_text(entry, "name") for entry in as_objects(spec.get("scorers")))
    return list(measures) or [(VALUE, name) for name in scorers if name]


def _totals(task: str, results: Mapping[str, Any]) -> Iterator[StatedTotal]:
    """Yield the means over all samples, without those of other reducers than the mean."""
    for entry in as_objects(results.get("scores")):
        name = _text(entry, "name")
        scorer = _text(entry, "scorer") or name
        for kind, metric in as_mapping(entry.get("metrics")).items():
            mean = number(as_mapping(metric).get("value")) if kind in MEANS else None
            if mean is not None and entry.get("reducer") in (None, "mean"):
                own = VALUE if name == scorer else name
                yield StatedTotal(task, f"{name}.{kind}", mean, "mean", own, scorer)


def _is_headline(entry: Mapping[str, Any], headline: Mapping[str, Any]) -> bool:
    fields = {"scorer": _text(headline, "scorer"), "name": _text(headline, "score")}
    return all(entry.get(field) == name for field, name in fields.items() if name)


def _system_message(plan: Mapping[str, Any], config: Mapping[str, Any]) -> str | None:
    """Return the system message of the settings, else of the solver that adds one."""
    templates = (
        _text(as_mapping(step.get("params")), "template")
        for step in as_objects(plan.get("steps"))
        if str(step.get("solver")).endswith("system_message")
    )
    return _text(config, "system_message") or next(filter(None, templates), None)


def _moment(created: str | None) -> str | None:
    """Convert a time to UTC, so that logs of different time zones sort; else return it as it is."""
    try:
        moment = datetime.fromisoformat(created or "")
    except ValueError:
        return created
    if moment.tzinfo is not None:
        try:
            moment = moment.astimezone(UTC)
        except OverflowError:
            return created
    return moment.replace(tzinfo=None).isoformat() + ("Z" if moment.tzinfo else "")


def _plain(value: object) -> str | int | float | list[str] | None:
    """Return a setting that a manifest can store; None for anything else."""
    if isinstance(value, list):
        return [element for element in value if isinstance(element, str)]
    if isinstance(value, str):
        return value
    return value if isinstance(value, int | float) else None


def _text(values: Mapping[str, Any], name: str) -> str | None:
    value = values.get(name)
    return value if isinstance(value, str) and value else None
