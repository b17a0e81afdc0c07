"""lighteval: `details_TASK_TIME.parquet`, one per task, and `results_TIME.json` with the settings.

Details have flat columns up to 0.10 (from 0.2 to 0.7 each written as Python text), since 0.11 the
three structs `doc`, `metric` and `model_response`, in some versions between double underscores.
Settings belong to the details with the same time in their names, else to all. Several seeds of
one model and task with the same settings are repeats of one evaluation.
"""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import blake2b, sha256
from pathlib import PurePosixPath
from string import ascii_uppercase
from typing import Any

from forgetmap.errors import UnreadableError
from forgetmap.records import (
    HarnessInfo,
    MetricInfo,
    ModelInfo,
    Outcome,
    RunInfo,
    TaskInfo,
    normalise,
)
from forgetmap.sources.adapter import Log, Problems, Sample, Score, StatedTotal
from forgetmap.sources.decode import encodable, number, small_document
from forgetmap.sources.fields import (
    Fields,
    as_count,
    as_json_text,
    as_list,
    as_mapping,
    as_objects,
    as_settings,
    as_text,
)
from forgetmap.sources.files import LogFile, open_parquet

# Part of a row -> column.
FLAT = {
    "query": "example", "instruction": "instruction", "choices": "choices",
    "gold_index": "gold_index", "gold": "gold", "metrics": "metrics", "specific": "specifics",
    "output": "predictions", "prompt": "full_prompt",
}  # fmt: skip
STRUCTS = {
    "id": "doc.id", "query": "doc.query", "instruction": "doc.instruction",
    "choices": "doc.choices", "gold_index": "doc.gold_index", "metrics": "metric",
    "specific": "doc.specific", "logprobs": "model_response.logprobs",
    "output": "model_response.text", "prompt": "model_response.input",
}  # fmt: skip
FLAT_TITLE = "lighteval details with flat columns (up to 0.10)"
STRUCTS_TITLE = "lighteval details with doc, metric and model_response (0.11 on)"
ROWS_PER_BATCH = 256
"""Rows read at a time; few, since responses are long."""
MAX_LITERAL_LENGTH = 4 << 20
INFO = RunInfo(harness=HarnessInfo(name="lighteval"))
_TEXTS = ("id", "query", "instruction", "prompt", "logprobs")
"""Parts that are never written as Python text."""
_STAMP = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}[-:]\d{2}[-:]\d{2}(?:\.\d+)?")
_SHOTS = re.compile(r"^(?P<name>.+?)\|(?P<shots>\d{1,6})(?:\|\d+)?$")
_CUE = re.compile(
    r"(?:^|\n)\s*(?:answer|reasoning|solution|a)\s*:\s*(?:let's think step by step\.?)?\s*\Z",
    re.IGNORECASE,
)
_MARKER = re.compile(r"^[ \t]*(?:Question|Q):[ \t]*", re.MULTILINE)
_ANSWERED = re.compile(r"^[ \t]*(?:Answer|Reasoning|A):[ \t]*\S", re.MULTILINE)
_ORDER = "$LETTER"
"""Placeholder in instructions for the letter at the end of a response."""
_TOPIC = re.compile(r"\AThe following are multiple choice questions \(with answers\)[^\n]*\n+")
_QUOTE = re.compile(r"\"(?=\s*(?:\n[ \t]*A\) |\Z))")
_FIRST_OPTION = re.compile(r"^[ \t]*\(?A[).:][ \t]+\S", re.MULTILINE)
_OPTION = re.compile(r"[ \t]*\(?(?P<letter>[A-Z])[).:][ \t]+(?P<text>\S.*)")
_LISTING = re.compile(r"\n[ \t]*(?:answer )?(?:options|choices)[ \t]*:[ \t]*\Z", re.IGNORECASE)


class Lighteval:
    """Details of lighteval, all versions."""

    name = "lighteval"
    preferred: Sequence[str] = (
        "extractive_match", "acc", "acc_norm", "loglikelihood_acc", "loglikelihood_acc_norm", "em",
        "qem", "exact_match", "prompt_level_strict_acc", "truthfulqa_mc1",
    )  # fmt: skip

    def sniff(self, files: Sequence[LogFile]) -> Sequence[Log]:
        """Return logs of Parquet files with lighteval's columns, with their settings."""
        parts: list[_Details] = []
        broken: list[Log] = []
        for file in files:
            try:
                parts += _details(file) if file.kind == "parquet" else ()
            except UnreadableError as error:
                broken.append(Log(self.name, (file,), INFO, notes={"broken": error.message}))
        if not parts:
            return []
        named = [file for file in files if file.peek.has("config_general")]
        known = [_settings(file, content) for file in named if (content := small_document(file))]
        for part in parts:
            _join(part, known)
        # Without suite and number of examples, unless two would become equal.
        often = Counter(map(_bare, {part.full_name for part in parts}))
        for part in parts:
            bare = _bare(part.full_name)
            part.task = bare if often[bare] == 1 else part.full_name
        return [*_logs(parts), *broken]

    def read(self, log: Log, problems: Problems, *, texts: bool) -> Iterator[Sample]:
        """Yield one sample per row and seed."""
        if "broken" in log.notes:
            problems.add(log.files[0].name, log.notes["broken"])
        parts: Sequence[_Details] = log.notes.get("parts", ())
        # Arrow gives every row the metrics of all rows; those without any value are left out.
        metrics = dict.fromkeys(name for part in parts for row in _scores(part) for name in row)
        seen: Counter[tuple[int, str]] = Counter()
        for part in parts:
            unused = () if texts else ("prompt", "output" if "logprobs" in part.columns else "")
            columns = {name: path for name, path in part.columns.items() if name not in unused}
            try:
                for line, cells in _cells(part.file, columns):
                    row = Fields(cells, part.file, line, problems)
                    sample = _sample(part.task, row, metrics, texts=texts)
                    if sample is not None:
                        sample.repeat, sample.seed = part.repeat, part.seed
                        sample.item = sample.item or _hashed(sample, part.repeat, seen)
                        yield sample
            except UnreadableError as error:
                problems.add(part.file.name, error.message)
            stated = as_mapping(part.settings.part("results").get(part.full_name))
            for name in self.preferred:  # these metrics are means over all items
                mean, where = number(stated.get(name)), f"results.{name}"
                if mean is not None:
                    total = StatedTotal(part.task, where, mean, "mean", name, repeat=part.repeat)
                    problems.totals.append(total)


@dataclass(frozen=True, slots=True)
class _Settings:
    """A file of results: settings and scores of an evaluation; empty if there is none."""

    file: LogFile | None = None
    stamp: str = ""
    info: RunInfo = INFO
    content: Mapping[str, Any] = field(default_factory=dict)

    def part(self, name: str) -> dict[str, Any]:
        return as_mapping(self.content.get(name))


@dataclass(slots=True)
class _Details:
    """A file of details; `task` is `full_name` without suite and number of examples."""

    file: LogFile
    columns: Mapping[str, str]
    full_name: str
    stamp: str
    model: str | None
    settings: _Settings = field(default_factory=_Settings)
    task: str = ""
    seed: int | None = None
    repeat: int = 0


def _details(file: LogFile) -> Iterator[_Details]:
    with open_parquet(file) as opened:
        names = opened.schema_arrow.names
    is_flat = {"example", "full_prompt", "metrics"}.issubset(names)
    if not is_flat and not {"doc", "metric", "model_response"} <= {n.strip("_") for n in names}:
        return
    name = PurePosixPath(file.inside).name.removesuffix(".gz").removesuffix(".parquet")
    label = _STAMP.split(name)[0].rstrip("_").removeprefix("details_") or name
    if not is_flat:
        # The task of most rows, since single rows may be damaged.
        tasks = [row["task"] for _, row in _cells(file, {"task": "doc.task_name"})]
        counts = Counter(task for task in tasks if isinstance(task, str) and task)
        label = max(counts, key=counts.__getitem__, default=label)
    folders, model = PurePosixPath(file.inside).parts[:-1], None
    if "details" in folders:  # between it and the time is the name of the model
        after = folders[len(folders) - folders[::-1].index("details") :]
        model = "/".join(part for part in after if not _STAMP.fullmatch(part)) or None
    yield _Details(file, FLAT if is_flat else STRUCTS, label, _stamp(file), model)


def _stamp(file: LogFile) -> str:
    return next(reversed(_STAMP.findall(file.inside)), "").replace(":", "-")


def _settings(file: LogFile, content: Mapping[str, Any]) -> _Settings:
    general = as_mapping(content.get("config_general"))
    config = as_mapping(general.get("model_config"))
    generation = as_mapping(
        general.get("generation_parameters") or config.get("generation_parameters")
    )
    version, prompt = _filled(general.get("lighteval_sha")), _filled(config.get("system_prompt"))
    seeds = [as_count(part.get("seed")) for part in (generation, config)]
    info = RunInfo(
        model=ModelInfo(
            name=_filled(general.get("model_name") or config.get("model_name")),
            revision=_filled(general.get("model_sha") or config.get("revision")),
        ),
        harness=HarnessInfo(name="lighteval", version=None if version == "?" else version),
        decoding=as_settings({k: v for k, v in generation.items() if k != "seed"}),
        seeds=[seed for seed in seeds if seed is not None][:1],
        system_prompt_hash=prompt and sha256(prompt.encode("utf-8", "replace")).hexdigest()[:16],
    )
    return _Settings(file, _stamp(file), info, content)


def _join(details: _Details, known: Sequence[_Settings]) -> None:
    """Join details with the settings of the same time, else with the only ones."""
    task, undated = _squashed(details.full_name), [one for one in known if not one.stamp]
    same = [one for one in known if one.stamp and one.stamp == details.stamp]
    same.sort(key=lambda one: task not in map(_squashed, one.part("results")))
    others = known if not details.stamp else undated
    fitting = same or (others if len(known) == 1 else [])
    details.settings = settings = next(iter(fitting), details.settings)
    tasks = [name for name in settings.part("results") if name != "all"]
    tasks = [name for name in tasks if task in _squashed(name) or not same]
    if len(tasks) == 1 and details.columns is FLAT:
        details.full_name = tasks[0]
    details.stamp = details.stamp or settings.stamp
    details.seed = next(iter(settings.info.seeds), None)
    # Without a folder, the model is the only one.
    models = {_squashed(name): name for other in known if (name := other.info.model.name)}
    folder = _squashed(details.model) or (next(iter(models)) if len(models) == 1 else "")
    details.model = settings.info.model.name or models.get(folder, details.model)


def _bare(full_name: str) -> str:
    """Return `arc:easy` for `community|arc:easy|0` and `arc:easy|0`."""
    match = _SHOTS.match(full_name)
    return (match["name"] if match else full_name).rpartition("|")[2] or full_name


def _logs(parts: Sequence[_Details]) -> Iterator[Log]:
    """Yield a log of the newest details of all seeds, and a log for each older time."""
    groups: dict[tuple[str, ...], list[_Details]] = defaultdict(list)
    for part in parts:
        decoding = repr(sorted(part.settings.info.decoding.items()))
        groups[part.model or "", part.full_name, decoding].append(part)
    for group in groups.values():
        stamps = sorted((part.stamp, part.seed) for part in group if part.seed is not None)
        newest: dict[int | None, str] = {seed: stamp for stamp, seed in stamps}
        runs: dict[str | None, list[_Details]] = defaultdict(list)
        for part in group:
            is_newest = len(newest) > 1 and newest.get(part.seed) == part.stamp
            runs[None if is_newest else part.stamp].append(part)
        for stamp, run in runs.items():
            others = [part for part in parts if part.model == run[0].model]
            seeds = {part.seed for part in (others if stamp is None else run[:1])}
            yield _log(run, sorted(seed for seed in seeds if seed is not None))


def _log(run: Sequence[_Details], seeds: list[int]) -> Log:
    for part in run:
        part.repeat = seeds.index(part.seed) if part.seed in seeds else 0
    first = max(run, key=lambda part: part.stamp)
    known = first.settings
    versions = {_squashed(name): as_text(v) for name, v in known.part("versions").items()}
    shots = _SHOTS.match(first.full_name)
    version, n_shot = versions.get(_squashed(first.full_name)), shots and int(shots["shots"])
    date, separator, time = first.stamp.partition("T")
    about = {
        "model": known.info.model.model_copy(update={"name": first.model}),
        "seeds": seeds,
        "created": f"{date}T{time.replace('-', ':')}" if separator else None,
        "tasks": {first.task: TaskInfo(version=version, n_shot=n_shot)},
        "metrics": _directions(first),
    }
    files = filter(None, [*(part.file for part in run), *(part.settings.file for part in run)])
    info = known.info.model_copy(update=about)
    title = FLAT_TITLE if first.columns is FLAT else STRUCTS_TITLE
    log = Log("lighteval", tuple(dict.fromkeys(files)), info, (first.task,), format=title)
    return replace(log, stamp=first.stamp or None, notes={"parts": run})


def _directions(part: _Details) -> dict[str, MetricInfo]:
    """Return the metrics of which less is better; a group of metrics has several names."""
    task, directions = _squashed(_bare(part.full_name)), {}
    configs = part.settings.part("config_tasks").items()
    for config in [as_mapping(config) for name, config in configs if task in _squashed(name)]:
        for metric in as_objects(config.get("metrics") or config.get("metric")):
            higher = metric.get("higher_is_better")
            for name in map(str, _listed(metric.get("metric_name"))):
                if (higher.get(name) if isinstance(higher, dict) else higher) is False:
                    directions[name] = MetricInfo(low=None, high=None, higher_is_better=False)
    return directions


def _squashed(name: str | None) -> str:
    return re.sub(r"[^a-z0-9]+", "", (name or "").casefold())


def _filled(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _cells(file: LogFile, columns: Mapping[str, str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Iterate over the rows of a file with their number, reading only these columns."""
    with open_parquet(file) as opened:
        names = opened.schema_arrow.names
        spelt = {name.strip("_"): name for name in reversed(names)} | {name: name for name in names}
        paths = {name: column.split(".") for name, column in columns.items()}
        for path in paths.values():
            path[0] = spelt.get(path[0], path[0])
        wanted = sorted({".".join(path) for path in paths.values()})
        batches = opened.iter_batches(ROWS_PER_BATCH, columns=wanted)
        rows = (row for batch in batches for row in batch.to_pylist())
        for line, row in enumerate(rows, 1):
            yield line, {name: _inside(row, path) for name, path in paths.items()}


def _inside(row: object, path: Sequence[str]) -> Any:
    for part in path:
        row = row.get(part) if isinstance(row, dict) else None
    return row


def _scores(part: _Details) -> Iterator[dict[str, float]]:
    """Yield the scores of each row that have a value; stop where the file is damaged."""
    with suppress(UnreadableError):
        for _, row in _cells(part.file, {"metrics": part.columns["metrics"]}):
            values = as_mapping(as_value(row["metrics"]))
            yield {name: value for name, value in values.items() if isinstance(value, int | float)}


def _sample(task: str, row: Fields, metrics: Iterable[str], *, texts: bool) -> Sample | None:
    """Convert a row; one without a query is a problem."""
    cells = {name: v if name in _TEXTS else as_value(v) for name, v in row.values.items()}
    query, scores = cells.get("query"), cells.get("metrics")
    if not isinstance(query, str):
        row.report_problem("there is no query", "query")
        return None
    if not isinstance(scores, dict):
        row.report_problem("there are no metrics", "metrics")
    sample = Sample(
        task=task,
        item=row.name("id") or "",
        scores=[Score(name, number(as_mapping(scores).get(name))) for name in metrics],
        file=row.file.name,
        line=row.line,
    )
    choices = _strings(cells.get("choices"))
    places = map(as_count, _listed(cells.get("gold_index")))
    golds = [place for place in places if place is not None and place < len(choices)]
    is_choice = len(choices) > 1 and len(set(golds)) < len(choices)
    question, options = bare_question(query, as_text(cells.get("instruction")))
    if is_choice:
        if not options or any(len(choice.strip(" ().:")) != 1 for choice in choices):
            options = [choice.strip() for choice in choices]
    elif len(choices) > 1:  # several right answers
        options = []
    sample.question, sample.options = question or None, options or None
    right = [*_strings(cells.get("gold")), *(choices[gold] for gold in golds)]
    sample.gold = right[0].strip() if right else None
    if is_choice and golds and golds[0] < len(options):
        sample.gold_index = golds[0]
    if not (is_choice and _add_likeliest(sample, cells, choices, golds)):
        _add_extracted(sample, cells.get("specific"))
    if texts:
        sample.prompt = as_json_text(cells.get("prompt")) or None
        outputs = [text for text in _listed(cells.get("output")) if isinstance(text, str)]
        sample.response = outputs[0] if len(outputs) == 1 else as_json_text(outputs or None)
    return sample


def _hashed(sample: Sample, repeat: int, seen: Counter[tuple[int, str]]) -> str:
    """Return an item for details without ids: a hash of the content, numbered if it recurs."""
    parts = (sample.question or "", *sorted(sample.options or ()), sample.gold or "")
    text = "\x1f".join(map(normalise, parts)).encode("utf-8", "replace")
    digest = blake2b(text, digest_size=8).hexdigest()
    seen[repeat, digest] += 1
    count = seen[repeat, digest]
    return f"{digest}-{count}" if count > 1 else digest


def _add_likeliest(
    sample: Sample, cells: Mapping[str, Any], choices: Sequence[str], golds: Sequence[int]
) -> bool:
    """Set the most likely option; return False if not each of them has a log-probability."""
    # Old details write them among the predictions.
    outputs = _firsts(cells.get("logprobs") or cells.get("output"))
    known = (number(one) for one in outputs if isinstance(one, int | float))
    logprobs = [one for one in known if one is not None]
    if not len(logprobs) == len(outputs) == len(choices) or not sample.scores:
        return False
    ranked = []  # some metrics divide by the length of an option
    for lengths in ([1 for _ in choices], map(len, choices), [len(c.lstrip()) for c in choices]):
        values = [value / (n or 1) for value, n in zip(logprobs, lengths, strict=True)]
        ranked.append(values.index(max(values)))
    is_right = bool(sample.scores[0].value)
    chosen = next((place for place in ranked if (place in golds) == is_right), ranked[0])
    sample.logprob_answer = logprobs[chosen]
    sample.logprob_gold = logprobs[golds[0]] if golds else None
    options = sample.options or []
    sample.choice = options[chosen] if chosen < len(options) else None
    return True


def _add_extracted(sample: Sample, specific: object) -> None:
    extracted = as_mapping(specific).get("extracted_predictions")
    sample.answer = next((one for one in as_list(extracted) if isinstance(one, str)), None)
    sample.choice = sample.answer if sample.options else None
    for score in sample.scores:
        if extracted == [] and score.value == 0:
            score.outcome = Outcome.NO_ANSWER


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _firsts(value: object) -> list[Any]:
    """Return the elements of a list; of those that are lists, the first element."""
    return [one[0] if isinstance(one, list) and one else one for one in _listed(value)]


def _strings(value: object) -> list[str]:
    return [str(one) for one in _firsts(value) if not isinstance(one, dict | list | None)]


def as_value(value: object) -> Any:
    """Parse a Python literal such as `{'acc': 1.0}`; return anything else as it is."""
    if not isinstance(value, str) or value[:1] not in "[{(" or len(value) > MAX_LITERAL_LENGTH:
        return value
    try:
        return encodable(_literal(ast.parse(value, mode="eval").body))
    except (ValueError, SyntaxError, RecursionError, MemoryError, OverflowError):
        return value


def _literal(node: ast.expr) -> Any:
    """Return the value of a literal, also `nan`, `inf` and numbers of other libraries."""
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        return {str(_literal(key)): _literal(value) for key, value in pairs if key}
    if isinstance(node, ast.List | ast.Tuple):
        return [_literal(element) for element in node.elts]
    if isinstance(node, ast.Name) and node.id in ("nan", "inf"):
        return float(node.id)
    if isinstance(node, ast.Call) and node.args:
        return _literal(node.args[0])
    return ast.literal_eval(node)


def bare_question(query: str, instruction: str | None) -> tuple[str, list[str]]:
    """Return the bare question of a query, and the options listed in it, if any.

    Harnesses wrap a question in different words; the bare question is the same text for all of
    them. Each query is parsed on its own, independent of other items.
    """
    text, lead = query.strip(), (instruction or "").strip()
    text = _without_head(_CUE.sub("", text if text == lead else text.removeprefix(lead)))
    starts = [match.start() for match in _FIRST_OPTION.finditer(text)]
    options: list[str] = []  # of the last list that begins with A
    for line in text[starts[-1] :].split("\n") if starts else ():
        option = _OPTION.match(line)
        if option and option["letter"] == ascii_uppercase[len(options) :][:1]:
            options.append(option["text"])
        elif line.strip():
            if len(options) < 2:
                break
            options[-1] += f"\n{line}"
    if len(options) < 2:  # no choice
        return _LISTING.sub("", text.rstrip()).strip(), []
    stem = text[: starts[-1]].rstrip()
    return _LISTING.sub("", stem).strip(), [option.strip() for option in options]


def _without_head(text: str) -> str:
    """Remove instruction and worked examples; a passage belongs to the question and stays."""
    text = _TOPIC.sub("", text.lstrip())
    markers = list(_MARKER.finditer(text))
    head = text[: markers[-1].start()] if markers else ""
    if markers and (not head.strip() or _ANSWERED.search(head)):
        return text[markers[-1].end() :]
    if _ORDER not in text:
        return text
    if _ORDER in head:
        body = text[markers[-1].end() :]
        return _QUOTE.sub("", body[1:], count=1) if body.startswith('"') else body
    return text[text.index(_ORDER) :].partition("\n\n")[2] or text
