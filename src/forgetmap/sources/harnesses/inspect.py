"""Inspect AI: `.eval` archives, complete or interrupted, and the single `.json` file.

header.json, _journal/start.json   about the run; the first is written when it ends
samples/ID_epoch_N.json            a sample
samples/ID_epoch_N/sample.json     the same in pieces: messages/K.json, attachments/K.json

Summaries repeat a part of the samples and are not read.

The `.json` file has the fields of the header, and `samples`.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from itertools import takewhile
from pathlib import Path
from string import ascii_uppercase
from typing import Any

import msgspec

from forgetmap.errors import TRUNCATED_HINT, UnreadableError
from forgetmap.records import HarnessInfo, ModelInfo, Outcome, RunInfo, TaskInfo
from forgetmap.sources.adapter import Log, Problems, Sample, Score, StatedTotal
from forgetmap.sources.decode import UNDECODABLE, Malformed, decode, document, number, with_lines
from forgetmap.sources.fields import Fields, as_list, as_mapping, as_objects, as_settings
from forgetmap.sources.files import Archive, LogFile
from forgetmap.sources.formats.engine import LogRow

DECODING = (
    "do_sample", "temperature", "top_p", "top_k", "max_tokens", "stop_seqs", "num_choices",
    "best_of", "frequency_penalty", "presence_penalty", "reasoning_effort", "reasoning_tokens",
)  # fmt: skip
RENAMED = {"max_tokens": "max_new_tokens", "stop_seqs": "stop"}
"""Setting of Inspect -> setting of the manifest."""
SHOTS = ("fewshot", "num_fewshot", "n_shot", "shots")
"""Names of the task argument with the number of examples in the prompt."""
MEANS = ("accuracy", "mean")
"""Metrics of Inspect that are the mean over all samples."""
VALUE = "value"
"""Name of the metric of a scorer that gives one value."""
GRADES: Mapping[str, tuple[float, Outcome]] = {
    "C": (1.0, Outcome.CORRECT),
    "I": (0.0, Outcome.INCORRECT),
    "P": (0.5, Outcome.PARTIAL),
    "N": (0.0, Outcome.NO_ANSWER),
}
WORDS = {"yes": 1.0, "no": 0.0}
REASONS = {
    "refusal": Outcome.REFUSED,
    "no_response": Outcome.NO_ANSWER,
    "invalid_response_format": Outcome.NO_ANSWER,
}
"""Reason of a score -> outcome."""
MAX_ERROR_LENGTH = 10_000
HEADER, START = "header.json", "_journal/start.json"
_SAMPLE = re.compile(r"samples/(.+)_epoch_([0-9]{1,9})(?:\.json|/sample\.json)", re.DOTALL)
_PIECE = re.compile(r"(samples/.+/(?:messages|attachments)/)([0-9]{1,9})\.json", re.DOTALL)
_ATTACHMENT = "attachment://"
_MARKS = frozenset({"created", "task", "task_id", "run_id", "eval_id", "dataset", "model"})

Key = tuple[str, int]
"""Id of the item, as text, and epoch."""
Measure = tuple[str, str]
"""Metric and scorer."""


def _decoder(names: str, kind: Any = Any) -> msgspec.json.Decoder[Any]:
    """Return a decoder of these fields alone, which skips all others quickly."""
    fields = [(name, kind, None) for name in names.split()]
    return msgspec.json.Decoder(msgspec.defstruct("Part", fields))


_DECODE_SAMPLE = _decoder(
    "id epoch input choices target scores score metadata model_usage error limit invalidation "
    "attachments message_refs messages output"
)
"""The fields read of a sample; its events, by far the largest part, are skipped."""
_DECODE_HEADER = _decoder("status eval plan results")
_DECODE_DOCUMENT = _decoder("samples", list[msgspec.Raw] | None)


class InspectAI:
    """Logs of Inspect AI."""

    name = "inspect"
    preferred: Sequence[str] = ()

    def sniff(self, files: Sequence[LogFile]) -> Sequence[Log]:
        """Return one log per archive with Inspect's members, or document with its header."""
        logs: list[Log] = []
        archives: set[Path] = set()
        for file in sorted(files, key=lambda file: _archive_of(file) is None):
            header = None if file.path in archives else _header_of(file)
            if header is not None:
                logs.append(_log(file, header))
                archives.update([file.path] if _archive_of(file) else [])
        return logs

    def settings(self, log: Log) -> Mapping[str, Any]:
        """Return the header of a log, which has the arguments of the command."""
        return _header_of(log.files[0]) or {}

    def read(self, log: Log, problems: Problems, *, texts: bool) -> Iterator[Sample]:
        """Yield one sample per item and epoch; those without scores last, with missing scores."""
        archive = _archive_of(log.files[0])
        members = archive and _Members(log.files[0], archive, problems)
        rows = members.rows() if members else _elements(log.files[0], problems)
        seen: dict[Measure, None] = {}
        unscored: list[Sample] = []
        for key, row in rows:
            sample = _sample(row, key, log)
            if texts:
                _add_texts(sample, row)
            if sample.scores:
                seen.update(((score.metric, score.scorer), None) for score in sample.scores)
                yield sample
            else:
                unscored.append(sample)
        for sample in unscored:
            outcome = Outcome.UNSCORED if sample.error is None else Outcome.ERROR
            measures = list(seen) or log.notes["measures"] or [(VALUE, "default")]
            sample.scores = [Score(metric, None, scorer, outcome) for metric, scorer in measures]
            yield sample
        problems.totals += log.notes["totals"]


def _archive_of(file: LogFile) -> Archive | None:
    return file.archive if file.member is None else None


def _header_of(file: LogFile) -> dict[str, Any] | None:
    """Return the header of an archive or a document; None if it is not a log of Inspect."""
    if archive := _archive_of(file):
        headers = [name for name in (HEADER, START) if name in archive.members]
        has_samples = any(name.startswith("samples/") for name in archive.members)
        if START not in headers and not (headers and has_samples):
            return None
        for member in headers:
            with suppress(Malformed, UnreadableError):
                header = _fields_in(archive.read(member), _DECODE_HEADER)
                if isinstance(header.get("eval"), dict):
                    return header
        message = "neither header.json nor _journal/start.json of this Inspect log can be read"
        raise UnreadableError(message, file=file.name, hint=TRUNCATED_HINT)
    first = file.peek.first
    sample = as_mapping(next(iter(as_list(first.get("samples"))), None))
    may_be = _is_spec(first.get("eval")) or {"id", "epoch", "input"} <= sample.keys()
    if file.peek.shape == "array" or not may_be:
        return None
    try:
        header = _fields_in(file.read(), _DECODE_HEADER)
    except Malformed as error:
        raise UnreadableError(str(error), file=file.name, hint=TRUNCATED_HINT) from None
    return header if _is_spec(header.get("eval")) else None


def _is_spec(spec: object) -> bool:
    return len(_MARKS & as_mapping(spec).keys()) > 1


def _log(file: LogFile, header: Mapping[str, Any]) -> Log:
    head = LogRow(header, file, None, Problems())
    task = (head.plain("eval.task") or "task").rsplit("/", 1)[-1]
    results = _results(head)
    measures = list(dict.fromkeys(measure for measure, _ in results))
    info = _info(head, task, measures)
    return Log(
        "inspect",
        (file,),
        info,
        (task,),
        stamp=info.created,
        finished=header.get("status") == "success",
        format="Inspect .eval" if _archive_of(file) else "Inspect .json",
        notes={
            "model": head.plain("eval.model"),
            "measures": measures,
            # The means over all samples, without those of other reducers than the mean.
            "totals": [
                StatedTotal(task, f"{entry['name']}.{kind}", mean, "mean", *measure)
                for measure, entry in results
                for kind in MEANS
                if (mean := number(entry[f"metrics.{kind}.value"])) is not None
                and entry["reducer"] in (None, "mean")
            ],
        },
    )


def _results(head: LogRow) -> list[tuple[Measure, LogRow]]:
    """Return the results in the header, else its scorers; the main metric and scorer first.

    A scorer with several values has an entry for each, whose name differs from that of the scorer.
    """
    headline = as_mapping(head["results.headline"]) or as_mapping(head["eval.headline_metric"])
    main = {"scorer": headline.get("scorer"), "name": headline.get("score")}
    entries = as_objects([*as_list(head["results.scores"]), head["results.scorer"]])
    entries = entries or as_objects(head["eval.scorers"])
    entries.sort(key=lambda one: any(name and one.get(key) != name for key, name in main.items()))
    results = []
    for entry in entries:
        name, scorer = entry.get("name"), entry.get("scorer") or entry.get("name")
        if name and isinstance(name, str) and isinstance(scorer, str):
            results.append(((VALUE if name == scorer else name, scorer), head.within(entry)))
    return results


def _info(head: LogRow, task: str, measures: Sequence[Measure]) -> RunInfo:
    paths = "eval.model_args", "eval.model_generate_config", "plan.config"
    given = [item for path in paths for item in as_mapping(head[path]).items()]
    config = head.within({name: value for name, value in given if value is not None})
    # The system message of the settings, else of the solver that adds one.
    steps = as_objects(head["plan.steps"])
    adding = [step for step in steps if str(step.get("solver")).endswith("system_message")]
    templates = [head.within(step).plain("params.template") for step in adding]
    system = next(filter(None, [config.plain("system_message"), *templates]), None)
    arguments, version = as_mapping(head["eval.task_args"]), head.plain("eval.task_version")
    shots = next((arguments[name] for name in SHOTS if name in arguments), None)
    metric, scorer = measures[0] if measures else (None, None)
    about = TaskInfo(
        version=None if version == "0" else version,  # which means no version
        n_shot=shots if type(shots) is int else None,
        main_metric=metric,
        main_scorer=scorer,
    )
    return RunInfo(
        model=ModelInfo(
            name=head.plain("eval.model_args.model_path", "eval.model"),
            revision=head.plain("eval.model_args.revision"),
        ),
        harness=HarnessInfo(name="inspect", version=head.plain("eval.packages.inspect_ai")),
        system_prompt_hash=sha256(system.encode()).hexdigest()[:16] if system else None,
        decoding=as_settings({RENAMED.get(name, name): config[name] for name in DECODING}),
        seeds=[config["seed"]] if type(config["seed"]) is int else [],
        created=_moment(head.plain("eval.created")),
        tasks={task: about},
    )


def _moment(created: str | None) -> str | None:
    """Convert a time to UTC, so that logs of different time zones sort; else return it as it is."""
    try:
        moment = datetime.fromisoformat(created or "")
        utc = moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
    except (ValueError, OverflowError):
        return created
    return utc if moment.tzinfo else created


class _Members:
    """The samples in an archive."""

    def __init__(self, file: LogFile, archive: Archive, problems: Problems) -> None:
        self._file, self._archive, self._problems = file, archive, problems
        self._pieces: dict[str, list[tuple[int, str]]] = defaultdict(list)
        for match in filter(None, map(_PIECE.fullmatch, archive.members)):
            self._pieces[match[1]].append((int(match[2]), match[0]))

    def rows(self) -> Iterator[tuple[Key, Fields]]:
        """Iterate over the samples."""
        for match in filter(None, map(_SAMPLE.fullmatch, self._archive.members)):
            values = self._decoded(match[0], _DECODE_SAMPLE)
            folder, _, name = match[0].rpartition("/")
            if values and name == "sample.json":
                self._put_together(values, folder)
            row = self._row(values or {}, match[0])
            key = _key_of(row) if values else None
            if key == (match[1], int(match[2])):
                yield key, row
            elif values:
                message = f"the name of this file belongs to another sample: {match[1]!r:.60}"
                row.report_problem(message, "id")

    def _put_together(self, values: dict[str, Any], folder: str) -> None:
        """Add the parts of a sample that are stored in other members."""
        if f"{folder}/metadata.json" in self._archive.members:
            values["metadata"] = self._decoded(f"{folder}/metadata.json")
        parts: dict[str, dict[int, Any]] = {"messages": {}, "attachments": {}}
        for name, elements in parts.items():  # pieces are named by the index of the first element
            for start, member in sorted(self._pieces.get(f"{folder}/{name}/", ())):
                elements.update(enumerate(as_list(self._decoded(member)), start=start))
        values["messages"] = []
        for reference in as_list(values.get("message_refs")):
            match reference:
                case [int(start), int(end)]:
                    kept = parts["messages"].items()
                    values["messages"] += [one for at, one in kept if start <= at < end]
        values["attachments"] = {str(at): text for at, text in parts["attachments"].items()}

    def _decoded(self, member: str, decoder: msgspec.json.Decoder[Any] | None = None) -> Any:
        """Return the value in a member; otherwise add a problem and return an empty list."""
        try:
            data = self._archive.read(member)
            return decode(data) if decoder is None else _fields_in(data, decoder)
        except (Malformed, UnreadableError) as error:
            self._row({}, member).report_problem(getattr(error, "message", str(error)))
            return []

    def _row(self, values: dict[str, Any], member: str) -> Fields:
        own = replace(self._file, name=f"{self._file.name}/{member}", member=member)
        return Fields(values, own, None, self._problems)


def _elements(file: LogFile, problems: Problems) -> Iterator[tuple[Key, Fields]]:
    """Iterate over the samples of a document, with the line each begins in."""
    data = file.read()
    samples: Iterator[tuple[int | None, object]]
    try:
        samples = with_lines(data, _DECODE_DOCUMENT.decode(data).samples or [])
    except UNDECODABLE:  # it contains bare NaN, or is damaged
        samples = ((None, one) for one in as_list(as_mapping(document(file)).get("samples")))
    for line, sample in samples:
        try:
            row = Fields(_fields_in(sample, _DECODE_SAMPLE), file, line, problems)
        except Malformed as error:
            problems.add(file.name, str(error), line=line)
            continue
        if key := _key_of(row):
            yield key, row


def _fields_in(part: object, decoder: msgspec.json.Decoder[Any]) -> dict[str, Any]:
    """Return the fields of a decoder's type; all fields if the text contains bare NaN."""
    if isinstance(part, bytes | msgspec.Raw):
        try:
            return msgspec.structs.asdict(decoder.decode(part))
        except UNDECODABLE:
            part = decode(part)
    if not isinstance(part, dict):
        raise Malformed("expected an object")
    return part


def _key_of(row: Fields) -> Key | None:
    """Return id and epoch of a sample; if either is missing, report it and return None."""
    item, epoch = row.name("id"), row.count("epoch")
    if item is not None and epoch:
        return item, epoch
    row.report_problem("the sample has no id or no epoch")
    return None


def _sample(row: Fields, key: Key, log: Log) -> Sample:
    """Convert a row; a row without scores gives a sample without scores."""
    options = row.texts("choices") or None
    scorer = next((scorer for _, scorer in log.notes["measures"]), "default")
    scores = row.values.get("scores")  # the first versions had only one score, without a name
    found = scores if isinstance(scores, dict) else {scorer: row.values.get("score")}
    scored = {name: score for name, score in found.items() if isinstance(score, dict)}
    # The answer of the main scorer, else of the first scorer that has one.
    answers = [score.get("answer") for score in (scored.get(scorer, {}), *scored.values())]
    answer = next((one for one in answers if one and isinstance(one, str)), None)
    chosen = _named_options(answer or "", options or ())
    gold, gold_index = _gold(row, options or ())
    metadata, error = as_mapping(row.values.get("metadata")), row.values.get("error")
    categories = (metadata.get(name) for name in ("category", "subject"))
    message = error.get("message") if isinstance(error, dict) else error  # as in a summary
    used = row.part("model_usage").part(log.notes["model"])
    sample = Sample(
        task=log.tasks[0],
        item=key[0],
        repeat=key[1] - 1,
        scores=list(_scores(row, scored)),
        question=_question(row),
        options=options,
        gold=gold,
        gold_index=gold_index,
        answer=answer,
        choice=chosen[0] if chosen else answer if answer in (options or ()) else None,
        tokens_in=used.count("input_tokens"),
        tokens_out=used.count("output_tokens"),
        category=next((one for one in categories if isinstance(one, str)), None),
        error=None if error is None else str(message)[:MAX_ERROR_LENGTH],
        file=row.file.name,
        line=row.line,
    )
    invalidation = row.values.get("invalidation")
    if invalidation is not None:
        reason = as_mapping(invalidation).get("reason")
        sample.error = f"invalidated: {reason or 'no reason given'!s}"
        sample.scores = [Score(s.metric, None, s.scorer, Outcome.UNSCORED) for s in sample.scores]
    return sample


def _scores(row: Fields, scored: Mapping[str, dict[str, Any]]) -> Iterator[Score]:
    """Yield every value that is a single number; lists are skipped, and words among several."""
    limit = row.values.get("limit")
    cut_short = (limit.get("type") if isinstance(limit, dict) else limit) in ("token", "context")
    for scorer, score in scored.items():
        value = score.get("value")
        for metric, part in (value if isinstance(value, dict) else {VALUE: value}).items():
            word = part.strip().lower() if isinstance(part, str) else None
            known = GRADES.get(part) if isinstance(part, str) else None
            grade, outcome = known or (WORDS.get(word or "", number(part)), None)
            is_label = word not in (None, "", "nan") and grade is None
            if isinstance(part, list | dict) or (is_label and isinstance(value, dict)):
                continue
            if is_label:
                row.report_problem(f"not a score: {part!r:.60}", f"scores.{scorer}")
            if not grade:
                outcome = REASONS.get(str(score.get("reason")), outcome)
                outcome = Outcome.TRUNCATED if cut_short and grade is not None else outcome
            yield Score(metric, grade, scorer, outcome)


def _question(row: Fields) -> str | None:
    """Return the input, or the last message of the user in it."""
    prompt = row.values.get("input")
    if isinstance(prompt, list):
        messages = as_objects(prompt)
        users = [message for message in messages if message.get("role") == "user"]
        prompt = (users or messages or [{}])[-1].get("content")
    text = _content(prompt, row)
    if text is None:
        row.report_problem(f"expected a text or messages, not {prompt!r:.60}", "input")
    elif text.startswith(_ATTACHMENT):
        row.report_problem("the question is incomplete in this log", "input")
        return None
    return text


def _content(content: object, row: Fields, names: Sequence[str] = ("text",)) -> str | None:
    """Return the text of a message, which may be in parts of these types or in an attachment."""
    if isinstance(content, str):
        kept, name = as_mapping(row.values.get("attachments")), content.removeprefix(_ATTACHMENT)
        text = content if name == content else kept.get(name)
        return text if isinstance(text, str) else content
    if not isinstance(content, list):
        return None
    parts = (part.get(part["type"]) for part in as_objects(content) if part.get("type") in names)
    return "\n".join(str(_content(part, row)) for part in parts if isinstance(part, str))


def _gold(row: Fields, options: Sequence[str]) -> tuple[str | None, int | None]:
    """Return the gold and its index: letters name options; of other targets the first counts."""
    target = row.values.get("target")
    targets = [target] if isinstance(target, str) else row.texts("target") or []
    gold = next((text for text in targets if text.strip()), None)
    return _named_options(",".join(targets), options) or (gold, None)


def _named_options(letters: str, options: Sequence[str]) -> tuple[str, int | None] | None:
    """Return the options named by letters, and the index if it is one.

    Several are sorted, so that shuffling changes nothing.
    """
    tokens = letters.replace(",", " ").split()
    are_letters = all(len(token) == 1 or token.isupper() for token in tokens)
    indexes = {ascii_uppercase.find(letter) for letter in "".join(tokens).upper()}
    is_text = len(letters) > 1 and letters in options
    if not indexes or is_text or not are_letters or not indexes <= set(range(len(options))):
        return None
    index = min(indexes) if len(indexes) == 1 else None
    return "; ".join(sorted(options[index] for index in indexes)), index


def _add_texts(sample: Sample, row: Fields) -> None:
    """Add the response, and the messages before the first one generated by the model."""
    output = row.part("output")
    choice = next(iter(as_objects(output.values.get("choices"))), {})
    answer = as_mapping(choice.get("message")).get("content")
    content = _content(answer, row, ("reasoning", "text"))
    sample.response = content or _content(output.text("completion"), row) or content
    reason = choice.get("stop_reason")
    sample.finish_reason = reason if isinstance(reason, str) else None
    messages = takewhile(
        lambda message: message.get("role") != "assistant" or message.get("source") == "input",
        as_objects(row.values.get("messages")),
    )
    prompt = [
        {"role": str(message.get("role")), "content": _content(message.get("content"), row)}
        for message in messages
    ]
    sample.prompt = json.dumps(prompt, ensure_ascii=False) if prompt else None
