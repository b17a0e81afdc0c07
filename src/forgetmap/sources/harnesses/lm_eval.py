"""lm-evaluation-harness: the samples of each task, and a document of results.

0.3 writes `TASK_write_out_info.json` with the prompts of documents, without the documents. 0.4.0 to
0.4.2 write one JSON array per task; 0.4.3 to 0.4.6 JSON lines without the name of the filter; from
0.4.7 on, rows name their filter and metrics; 0.5 adds the scores of each repeat.

The document of results is recognised by its content. It belongs to the samples with the same time
stamp, else to those of its tasks. Names are used only for what the document does not state.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from os.path import commonprefix  # of any texts
from typing import Any

from forgetmap.errors import ForgetmapError
from forgetmap.records import HarnessInfo, MetricInfo, ModelInfo, RunInfo, TaskInfo
from forgetmap.sources.adapter import Log, Problems, Sample, Score, StatedTotal
from forgetmap.sources.datasets import option_index
from forgetmap.sources.decode import document, number, rows
from forgetmap.sources.fields import Fields, as_mapping, as_objects, as_settings
from forgetmap.sources.files import LogFile
from forgetmap.sources.harnesses.lm_eval_rows import (
    ROW_FIELDS,
    Filters,
    metric_names,
    requests_of,
    samples_of,
)

MIN_ROW_FIELDS = 3
MARKS = frozenset({"configs", "versions", "n-shot", "group_subtasks", "higher_is_better"})
MODEL_ARGS = ("peft", "delta", "pretrained", "model", "path", "engine")
"""Arguments that name the model, in lm-eval's order."""
MEANS = re.compile(r"(acc|acc_norm|acc_bytes|exact_match|em|mc1|mc2|prompt_level_\w+|\w+_acc)")
"""Metrics whose total is the mean over all items if the configuration names no aggregation."""
_STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(?:\.\d+)?")
_SAMPLES = re.compile(rf"samples_(?P<task>.+?)_{_STAMP.pattern}")
_SUFFIX = re.compile(r"\.(?:jsonl?|gz|ndjson|parquet)\b")

MAX_BLOCKS = 8
"""Blocks of a question of 0.3; if more are needed, it is the whole prompt."""
MIN_DISTINCT, MAX_SAME = 0.95, 5
"""Distinct questions per distinct prompt, and prompts with one question: data sets repeat a few."""
_WRITE_OUT = re.compile(r"_write_out_info\b.*")
_NUMBERED = re.compile(r"(?:prompt|logit)_\d+")
_NO_NUMBER = re.compile(r"\s*(?:nan|-?inf(?:inity)?)\s*", re.IGNORECASE)
_BEFORE_QUESTION = re.compile(r"^(?:Question|Q|Problem):\s*")
_BEFORE_ANSWER = re.compile(r"\s*\n(?:Answer|A):")


class LmEval:
    """Logs of lm-evaluation-harness 0.4 and 0.5."""

    name = "lm-eval"
    preferred: Sequence[str] = (
        *("acc", "exact_match/strict-match", "exact_match", "prompt_level_strict_acc"),
        *("bleu_acc", "rouge1_acc", "pass@1", "pass@10"),
    )

    def sniff(self, files: Sequence[LogFile]) -> Sequence[Log]:
        """Return one log per task, from files whose rows hold a document with its responses."""
        samples = [file for file in files if _is_samples(file)]
        results = _find_results(files) if samples else []
        groups: dict[object, tuple[About, list[LogFile]]] = {}
        for file in samples:
            about, first = _about(file, results), file.peek.first
            # Fields of the document and metrics identify a task if names do not.
            kind = tuple(sorted(as_mapping(first.get("doc")))), tuple(sorted(metric_names(first)))
            key = file.inside.rpartition("/")[0], about[1], about[0] or kind
            groups.setdefault(key, (about, []))[1].append(file)
        return [_log(group, *about) for about, group in groups.values()]

    def settings(self, log: Log) -> Mapping[str, Any]:
        """Return the document of results, which has the arguments of the command."""
        found = _find_results([file for file in log.files if not _is_samples(file)])
        return found[0].content if found else {}

    def read(self, log: Log, problems: Problems, *, texts: bool) -> Iterator[Sample]:
        """Yield a sample per row; more if metrics choose differently or repeats are scored."""
        files, filters = [file for file in log.files if _is_samples(file)], None
        if not all("filter" in file.peek.keys for file in files):
            filters = Filters(files, log.notes["filters"])
            if filters.are_mixed:
                message = "rows of several filters are not in order, so their scores are unknown"
                problems.add(files[0].name, message, field="filter")
        for file in files:
            yield from samples_of(file, log.tasks[0], filters, problems, texts=texts)
        problems.totals += log.notes["totals"]


class LmEvalLegacy:
    """Logs of lm-evaluation-harness 0.3."""

    name = "lm-eval-0.3"
    preferred: Sequence[str] = ("acc", "em", "exact_match", "bleu_acc", "bleurt_acc")

    def sniff(self, files: Sequence[LogFile]) -> Sequence[Log]:
        """Return one log per task, from files whose rows hold the prompts of a document."""
        samples = [file for file in files if _is_write_out(file)]
        results = _find_results(files) if samples else []
        groups: dict[object, list[LogFile]] = defaultdict(list)
        for file in samples:
            folder, _, name = file.inside.rpartition("/")
            task = _WRITE_OUT.sub("", name) if "_write_out_info" in name else file.peek.keys
            groups[folder, task].append(file)
        return [_legacy_log(group, results) for group in groups.values()]

    def read(self, log: Log, problems: Problems, *, texts: bool) -> Iterator[Sample]:
        """Yield one sample per document."""
        files = list(filter(_is_write_out, log.files))
        blocks = _blocks_of_question(files)
        for file in files:
            for line, values in rows(file, problems):
                row = Fields(values, file, line, problems)
                sample = _legacy_sample(log.tasks[0], row, blocks)
                if sample is not None:
                    response = values.get("logit_0")
                    sample.response = response if texts and isinstance(response, str) else None
                    yield sample
        problems.totals += log.notes["totals"]


def _is_samples(file: LogFile) -> bool:
    return file.peek.has("doc_id") and len(ROW_FIELDS & file.peek.keys) >= MIN_ROW_FIELDS


def _log(files: list[LogFile], task: str | None, stamp: str | None, results: Results | None) -> Log:
    first = files[0]
    is_of_this_run = results is not None and _stamp(results.file) in (None, stamp)
    totals = results.totals(task) if results and task and is_of_this_run else []
    task = task or first.inside.rpartition("/")[2].partition(".")[0] or "lm-eval"
    requests, alias = requests_of(first.peek.first.get("arguments")), _model_by_name(first)
    generation = as_mapping(requests[0][1]) if requests else {}
    if results is None:
        model, harness = ModelInfo(name=alias), HarnessInfo(name=LmEval.name)
        info = RunInfo(model=model, harness=harness, decoding=_decoding(generation))
    else:
        info = results.info(task, alias, generation)
        files = [*files, results.file]
    notes = {"filters": results.filters(task) if results else (), "totals": totals}
    version = "0.4.7 or later" if "filter" in first.peek.keys else "0.4.3 to 0.4.6"
    if first.peek.shape == "array":
        version = "0.4.0 to 0.4.2"
    elif "scores_per_repeat" in first.peek.keys:
        version = "0.5"
    title = f"lm-eval {version}"
    return Log(LmEval.name, tuple(files), info, (task,), stamp, format=title, notes=notes)


@dataclass(frozen=True, slots=True)
class Results:
    """One document of results."""

    file: LogFile
    content: Mapping[str, Any]

    def part(self, name: str) -> dict[str, Any]:
        """Return an object in the document; empty if there is none."""
        return as_mapping(self.content.get(name))

    @property
    def tasks(self) -> set[str]:
        """Names of the tasks in the document."""
        return {*self.part("configs"), *self.part("results")}

    @property
    def stamp(self) -> str | None:
        """Time of the run, from the file name, else from the document."""
        return _stamp(self.file) or self.date("%Y-%m-%dT%H-%M-%S")

    def date(self, form: str) -> str | None:
        """Return the date in the document in a form."""
        seconds = number(self.content.get("date"))
        if seconds is None or not 0 < seconds < 1e11:  # beyond any calendar
            return None
        return datetime.fromtimestamp(seconds, UTC).strftime(form)

    def filters(self, task: str) -> Sequence[str]:
        """Return the names of a task's filters in order; empty if they are not stated."""
        entries = as_objects(as_mapping(self.part("configs").get(task)).get("filter_list"))
        return [entry["name"] for entry in entries if isinstance(entry.get("name"), str)]

    def totals(self, task: str) -> list[StatedTotal]:
        """Return the means of a task over all items; keys are `METRIC,FILTER`, `METRIC` in 0.3."""
        rules = _by_metric(as_mapping(self.part("configs").get(task)), "aggregation")
        totals = []
        for name, value in as_mapping(self.part("results").get(task)).items():
            metric, comma, scorer = name.partition(",")
            rule = rules.get(metric, "mean" if MEANS.fullmatch(metric) else None)
            mean = number(value) if isinstance(value, int | float) else None
            if rule == "mean" and mean is not None:
                only = scorer if comma else None
                totals.append(StatedTotal(task, name, mean, "mean", metric, only))
        return totals

    def info(self, task: str, alias: str | None, settings: Mapping[str, Any]) -> RunInfo:
        """Return the metadata of a run: `alias` is the model by files, `settings` are of a row."""
        content, run = self.content, self.part("config")
        config = as_mapping(self.part("configs").get(task))
        arguments = _arguments(run.get("model_args"))
        by_arguments = next((arguments[name] for name in MODEL_ARGS if arguments.get(name)), None)
        directions = _by_metric(config, "higher_is_better")
        directions |= as_mapping(self.part("higher_is_better").get(task))
        better = {name: way for name, way in directions.items() if isinstance(way, bool)}
        generates = config.get("output_type") in (None, "generate_until")
        kwargs = as_mapping(config.get("generation_kwargs")) | _arguments(run.get("gen_kwargs"))
        seed = _whole(run.get("torch_seed", run.get("random_seed")))
        names = [entry.get("metric") for entry in as_objects(config.get("metric_list"))]
        known = [name for name in names if isinstance(name, str) and better.get(name)]
        shots = self.part("n-shot").get(task, config.get("num_fewshot", run.get("num_fewshot")))
        chat, system = (  # "none" if the document states null, None if it lacks the field
            "none" if content.get(name, "") is None else _text(content.get(name))
            for name in ("chat_template_sha", "system_instruction_sha")
        )
        name = content.get("model_name") or by_arguments or alias or run.get("model")
        version = content.get("lm_eval_version") or content.get("git_hash")
        about = TaskInfo(
            version=_text(self.part("versions").get(task)),
            n_shot=_whole(shots),
            main_metric="acc" if "acc" in names else next(iter(known), None),
            main_scorer=next(iter(self.filters(task)), "none"),
        )
        return RunInfo(
            model=ModelInfo(
                name=_text(name),
                revision=_text(run.get("model_sha") or arguments.get("revision")),
                adapter=_text(arguments.get("peft")),
            ),
            harness=HarnessInfo(name="lm-eval", version=_text(version)),
            template_hash=chat,
            system_prompt_hash=system,
            decoding=_decoding({**kwargs, **settings}) if generates else {},
            seeds=[] if seed is None else [seed],
            created=self.date("%Y-%m-%dT%H:%M:%SZ"),
            tasks={task: about},
            metrics={name: MetricInfo(higher_is_better=way) for name, way in better.items()},
        )


def _find_results(files: Iterable[LogFile]) -> list[Results]:
    """Return the documents of results among these files, without damaged ones."""
    found = []
    for file in files:
        first = file.peek.first.get("results")
        if file.peek.shape != "object" or not isinstance(first, Mapping):
            continue
        of_one = as_mapping(next(iter(first.values()), None))
        if any("," in name for name in of_one) or not MARKS.isdisjoint(file.peek.keys):
            try:
                content = document(file)
            except ForgetmapError:
                continue
            found.append(Results(file, content))
    return found


About = tuple[str | None, str | None, Results | None]
"""Task and time of a file with samples, and its document of results."""


def _about(file: LogFile, results: Sequence[Results]) -> About:
    folder, _, name = file.inside.rpartition("/")
    candidates = [result for result in results if _is_above(result.file.inside, folder)]
    stem, own, match = _SUFFIX.sub("", name), _stamp(file), _SAMPLES.search(name)
    task = match["task"] if match else None
    fitting = (
        [r for r in candidates if own and _stamp(r.file) == own]
        or [r for r in candidates if _task_in(task or stem, r.tasks) or r.tasks == {task}]
        or [r for r in candidates if task is None and len(r.part("configs")) == 1]
    )
    chosen = max(fitting, key=lambda r: (len(r.file.inside), r.stamp or ""), default=None)
    if task is None and chosen is not None:
        configs = chosen.part("configs")
        task = _task_in(stem, chosen.tasks) or (next(iter(configs)) if len(configs) == 1 else None)
    return task or _task_of_array(stem), own or (chosen.stamp if chosen else None), chosen


def _is_above(inside: str, folder: str) -> bool:
    parent = inside.rpartition("/")[0]
    return parent in ("", folder) or folder.startswith(parent + "/")


def _task_in(stem: str, tasks: Iterable[str]) -> str | None:
    """Return the longest task name that a file name ends with."""
    fitting = [task for task in tasks if stem == task or stem.endswith("_" + task)]
    return max(fitting, key=len, default=None)


def _task_of_array(stem: str) -> str | None:
    """Return the task in a file name of 0.4.0 to 0.4.2: the model's arguments, then the task."""
    _, marks, last = stem.rpartition("__")
    return last.partition("_")[2] or None if marks else None


def _model_by_name(file: LogFile) -> str | None:
    """Return the model's name, which lm-eval writes as `org__name` in folders and files."""
    folder, _, name = file.inside.rpartition("/")
    parent, stem = folder.rpartition("/")[2] or file.path.parent.name, _SUFFIX.sub("", name)
    if "__" in parent and not file.member:
        return parent.replace("__", "/")
    if stem.startswith(("pretrained__", "model__", "path__")):
        head = stem.partition(",")[0].removesuffix(f"_{_task_of_array(stem)}")
        return head.partition("__")[2].replace("__", "/") or None
    return parent or None if folder and _SAMPLES.search(file.inside) else None


def _stamp(file: LogFile) -> str | None:
    return next(reversed(_STAMP.findall(file.inside.rpartition("/")[2])), None)


def _by_metric(config: Mapping[str, Any], field: str) -> dict[str, Any]:
    entries = as_objects(config.get("metric_list"))
    return {str(entry.get("metric")): entry.get(field) for entry in entries}


def _text(value: object) -> str | None:
    return None if value in (None, "") else str(value)


def _whole(value: object) -> int | None:
    return value if type(value) is int else None


def _arguments(value: object) -> dict[str, Any]:
    """Parse arguments, written as `a=1,b=2` or as a mapping."""
    if not isinstance(value, str):
        return dict(as_mapping(value))
    truths = {"true": True, "false": False}
    arguments: dict[str, Any] = {}
    for name, _, text in (part.partition("=") for part in value.split(",") if "=" in part):
        plain = truths.get(text.strip().lower(), number(text))
        arguments[name.strip()] = text.strip() if plain is None else plain
    return arguments


def _decoding(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that a manifest can hold; without sampling the temperature is 0."""
    kept = as_settings(kwargs)
    return kept | {"temperature": 0.0} if kept.get("do_sample") is False else kept


# --- 0.3: the question is taken from the prompts, behind the examples -----------------------------


def _is_write_out(file: LogFile) -> bool:
    return file.peek.has("doc_id", "prompt_0") and "doc" not in file.peek.keys


def _legacy_log(files: Sequence[LogFile], results: Sequence[Results]) -> Log:
    folder, _, name = files[0].inside.rpartition("/")
    task = _WRITE_OUT.sub("", name.partition(".json")[0]) or "lm-eval"
    alias = folder.rpartition("/")[2] or None
    fitting = [r for r in results if _is_above(r.file.inside, folder) and task in r.tasks]
    about = max(fitting, key=lambda r: len(r.file.inside), default=None)
    info = about.info(task, alias, {}) if about else RunInfo(model=ModelInfo(name=alias))
    return Log(
        LmEvalLegacy.name,
        (*files, about.file) if about else tuple(files),
        info.model_copy(update={"harness": HarnessInfo(name="lm-eval", version="0.3")}),
        (task,),
        format="lm-eval 0.3",
        notes={"totals": about.totals(task) if about else []},
    )


def _blocks_of_question(files: Sequence[LogFile]) -> int:
    """Return how many blocks at the end of a prompt are the question; 0 for the whole prompt.

    Blank lines separate examples, but in some tasks also the parts of a question, so it has as many
    blocks as are needed to tell the documents of a task apart.
    """
    logged = [_prompts(row) for file in files for _, row in rows(file, Problems())]
    distinct = {tuple(prompts) for prompts in logged if prompts}
    for blocks in range(1, MAX_BLOCKS + 1):
        often = Counter(question_and_options(prompts, blocks)[0] for prompts in distinct)
        is_distinct = len(often) >= MIN_DISTINCT * len(distinct)
        if is_distinct and max(often.values(), default=0) <= MAX_SAME:
            return blocks
    return 0


def _legacy_sample(task: str, row: Fields, blocks: int) -> Sample | None:
    item, prompts, scores = row.values.get("doc_id"), _prompts(row.values), []
    for name, value in row.values.items():  # metrics are logged as texts
        if name not in ("doc_id", "truth") and not _NUMBERED.fullmatch(name):
            score = number(value)
            if score is not None or value is None or _NO_NUMBER.fullmatch(str(value)):
                scores.append(Score(name, score))
    is_id = type(item) in (int, str)
    if not is_id or not prompts or not scores:
        field = "doc_id" if not is_id else None if prompts else "prompt_0"
        row.report_problem("the row has no usable id, question or score", field)
        return None
    sample = Sample(task, str(item), scores, file=row.file.name, line=row.line, prompt=prompts[0])
    sample.question, options = question_and_options(prompts, blocks)
    _answer(sample, row.values, options or [])
    return sample


def _numbered(row: Mapping[str, Any], kind: str) -> list[Any]:
    """Return the values of `prompt_0`, `prompt_1`, ... (or `logit_0`, ...) in order."""
    values: list[Any] = []
    while f"{kind}_{len(values)}" in row:
        values.append(row[f"{kind}_{len(values)}"])
    return values


def _prompts(row: Mapping[str, Any]) -> list[str]:
    """Return the prompts of all requests; empty if one of them is no text."""
    prompts = _numbered(row, "prompt")
    return prompts if all(isinstance(text, str) and text.strip() for text in prompts) else []


def question_and_options(prompts: Sequence[str], blocks: int) -> tuple[str, list[str] | None]:
    """Return question and options from the last blocks of the prompts of all requests."""
    last = ["\n\n".join(prompt.rstrip().split("\n\n")[-blocks:]) for prompt in prompts]
    if len(set(last)) == 1:
        return _bare(last[0]), None
    start = commonprefix(last)  # noqa: RUF071
    cut = list(_BEFORE_ANSWER.finditer(start))
    if cut:
        return _bare(start[: cut[-1].end()]), [text[cut[-1].end() :].strip() for text in last]
    start = start[: start.rfind(" ") + 1]
    end = commonprefix([text[len(start) :][::-1] for text in last])[::-1]  # noqa: RUF071
    end = end[end.find(" ") :] if " " in end else ""
    options = [text[len(start) : len(text) - len(end)].strip() for text in last]
    return _bare(f"{start}_{end}" if end else start) or last[0], options


def _bare(text: str) -> str:
    """Return a question without "Question:" before it and "Answer:" after it."""
    bare = _BEFORE_QUESTION.sub("", text)
    matches = list(_BEFORE_ANSWER.finditer(bare))
    if matches and matches[-1].end() == len(bare.rstrip()):
        bare = bare[: matches[-1].start()]
    return bare.strip() or text.strip()


def _answer(sample: Sample, row: Mapping[str, Any], options: list[str]) -> None:
    """Set the right answer, and the chosen option if every option has a log-likelihood."""
    truth = row.get("truth")
    logits = [
        number(value[0] if isinstance(value, list) and value else value)
        for value in _numbered(row, "logit")
        if not isinstance(value, str)
    ]
    if len(options) != len(logits) or len(set(options)) < 2:
        options = []
    if options:
        sample.options = None if all(len(text.strip("()")) == 1 for text in options) else options
        sample.k = len(options)
    if isinstance(truth, int):
        sample.gold_index = option_index(truth, len(options))
    if sample.gold_index is None and isinstance(truth, str | int | float):
        sample.gold = str(truth).strip()
    known = [value for value in logits if value is not None]
    if options and len(known) == len(options):
        choice, gold = known.index(max(known)), sample.gold_index
        sample.logprob_gold = None if gold is None else known[gold]
        scored = {score.value for score in sample.scores if score.metric == "acc"}
        if gold is None or not scored or scored == {float(choice == gold)}:
            sample.choice, sample.logprob_answer = options[choice], known[choice]
