"""Reader for rows of lm-evaluation-harness 0.4 and 0.5: one row per document and filter."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import structs

from forgetmap.records import Outcome
from forgetmap.sources.adapter import Problems, Sample, Score
from forgetmap.sources.datasets import DatasetItem, as_item, option_index
from forgetmap.sources.decode import Malformed, decode, number, raw_rows
from forgetmap.sources.files import LogFile
from forgetmap.sources.harnesses.lm_eval.filters import INVALID, Filters

ROW_FIELDS = frozenset({"doc", "target", "arguments", "resps", "filtered_resps"})
HASHES = ("doc_hash", "prompt_hash", "target_hash")
OWN = ROW_FIELDS | {"doc_id", "filter", "metrics", "scores_per_repeat", *HASHES}
"""Fields of a row that are not metrics."""
BY_LENGTH = frozenset({"acc_norm", "acc_bytes"})
"""Metrics that divide log-likelihoods by the lengths of options."""
UNSCORED = "bypass"
"""The metric of runs that only predict."""
MAX_ANSWER_LENGTH = 400
"""Maximum number of characters of an extracted answer; longer ones are ignored."""
_TRUTHS = frozenset({True, False, "True", "False"})
_SCALARS, _IDS = (int, float, type(None)), (int, str)
"""Types of scores and ids; tuples are not built at every call as unions are; bool is an int."""

Row = Mapping[str, Any]
"""Fields of a row; requests that are still JSON are a tuple: line, start of the prompt, end."""


def metric_names(row: Row) -> list[str]:
    """Return the names of a row's metrics in order."""
    names = row.get("metrics")
    if isinstance(names, list):
        return [name for name in names if isinstance(name, str) and name in row]
    return [name for name in row if name not in OWN]


_OPENED = b'{"gen_args_0": {"arg_0": '
_ARGUMENTS = b', "arguments": ' + _OPENED
_RESPONSES, _FILTERED = b'}, "resps": [', b'], "filtered_resps": ['
_CONTINUATION = b', "arg_1": '
_ENDS_IN_LABEL = re.compile(rb'"arg_1": "\s?\w"')


def requests_of(arguments: object) -> list[tuple[object, object]]:
    """Return prompt and continuation (or settings) of each request, in the form of any version."""
    if isinstance(arguments, tuple):
        line, start, end = arguments
        arguments = decode(line[start - len(_OPENED) : end])
    if isinstance(arguments, Mapping):
        requests = [list(r.values()) if isinstance(r, Mapping) else r for r in arguments.values()]
    else:
        requests = list(arguments) if isinstance(arguments, list) else []
    return [(r[0], r[1] if len(r) > 1 else None) for r in requests if isinstance(r, list) and r]


def _prompt(arguments: object) -> str | None:
    """Return the prompt of the first request."""
    if isinstance(arguments, tuple):
        line, start, end = arguments
        after = line.find(_CONTINUATION, start, end)
        first = decode(line[start : after if after > 0 else end - 2])
    else:
        requests = requests_of(arguments)
        first = requests[0][0] if requests else None
    if isinstance(first, list) and len(first) == 1:
        first = first[0]
    return first if isinstance(first, str) else None


def _asks_for_label(arguments: object) -> bool:
    if isinstance(arguments, tuple):
        line, _, end = arguments
        return _ENDS_IN_LABEL.search(line, end - 24, end) is not None
    last = [text for _, text in requests_of(arguments) if isinstance(text, str)][-1:]
    return len("".join(last).strip()) == 1


def _object(text: bytes) -> dict[str, Any]:
    row = decode(text)
    if not isinstance(row, dict):
        raise Malformed("a row must be an object")
    return row


def _parsed(line: bytes, *, texts: bool) -> dict[str, Any]:
    """Decode a row, except its requests; without `texts`, the responses are left out.

    Requests are most of a row, because each option repeats the prompt. Quotation marks in texts are
    escaped, so the names that are searched for can only be those of fields.

    Raises:
        Malformed: the row is not a JSON object.
    """
    start, end = line.find(_ARGUMENTS), line.rfind(_RESPONSES)
    if not 0 < start < end:
        return _object(line)
    after = end if texts else max(line.find(_FILTERED, end), end)
    try:
        row = _object(line[:start] + line[after + 1 :])
    except Malformed:
        return _object(line)  # its error has the position in the whole line
    row["arguments"] = line, start + len(_ARGUMENTS), end + 1
    return row


def parsed_rows(files: Sequence[LogFile]) -> Iterator[Row]:
    """Iterate over the rows of all files, without requests and without malformed rows."""
    for file in files:
        for _, raw in raw_rows(file, Problems()):
            try:
                yield _parsed(raw, texts=True)
            except Malformed:
                continue


class RowReader:
    """Reader of the rows of one task."""

    def __init__(
        self, task: str, filters: Filters | None, problems: Problems, *, texts: bool
    ) -> None:
        self._task, self._filters, self._problems, self._texts = task, filters, problems, texts
        self._prompted: set[int] = set()

    def samples(self, file: LogFile) -> Iterator[Sample]:
        """Iterate over the samples of one file."""
        first = file.peek.first
        # Some logs have no documents at all; if only one row has none, it is damaged.
        self._has_docs = "doc" in first
        self._lists = {
            name for name in metric_names(first) if not isinstance(first[name], _SCALARS)
        }
        for line, raw in raw_rows(file, self._problems):
            try:
                yield from self._row(raw, file, line)
            except Malformed as error:
                self._problems.add(file.name, str(error), line=line)

    def _row(self, raw: bytes, file: LogFile, line: int) -> Sequence[Sample]:
        row = _parsed(raw, texts=self._texts)
        doc_id, doc, key = row.get("doc_id"), row.get("doc"), row.get("prompt_hash")
        lacks_doc = doc is None and self._has_docs
        if lacks_doc or doc_id.__class__ not in _IDS:
            name = "doc" if lacks_doc else "doc_id"
            self._problems.add(file.name, "the row has no question", line=line, field=name)
            return ()
        scores = self._scores(row, file, line)
        if not scores:
            self._problems.add(file.name, "the row has no metric", line=line)
            return ()
        sample = Sample(self._task, str(doc_id), scores, file=file.name, line=line)
        if isinstance(key, str):
            sample.prompt_key = key
        if self._texts or sample.prompt_key is None:
            # Other filters score the same answer, and its texts are written only once.
            answer = hash(f"{doc_id} {[row.get(name) for name in HASHES]}")
            if sample.prompt_key is None or answer not in self._prompted:
                sample.prompt = _prompt(row.get("arguments"))
                self._prompted.add(answer)
        logliks = _logliks(row.get("filtered_resps"))
        _identify(sample, row, len(logliks))
        if not logliks:
            return _generated(sample, row, texts=self._texts)
        if len(logliks) > 1:
            return _choices(sample, row, logliks)
        sample.logprob_gold = number(logliks[0])
        return (sample,)

    def _scores(self, row: Row, file: LogFile, line: int) -> list[Score]:
        scorer = row.get("filter")
        if self._filters is not None and "filter" not in row:
            scorer = self._filters.name(row)
        elif not isinstance(scorer, str):
            scorer = "none"
        names, scores = metric_names(row), []
        for name in names:
            value = row[name]
            if value.__class__ is not float or not math.isfinite(value):
                value = number(value)
            if value is None and not isinstance(row[name], _SCALARS):
                if name in self._lists:
                    continue
                self._problems.add(file.name, "a score must be a number", line=line, field=name)
            scores.append(Score(name, None if name == UNSCORED else value, scorer))
        return scores or [Score(name, None, scorer) for name in names[:1]]


def _logliks(responses: object) -> list[float]:
    """Return the log-likelihood of each request, logged with whether it is the greedy one."""
    if not isinstance(responses, list) or not responses or isinstance(responses[0], str):
        return []
    try:
        values = [float(value) for value, is_greedy in responses if is_greedy in _TRUTHS]
    except (TypeError, ValueError):
        return []
    return values if len(values) == len(responses) else []


def _identify(sample: Sample, row: Row, requests: int) -> None:
    """Set question, options and right answer from the document, else the answer by the target."""
    doc, target = row.get("doc"), row.get("target")
    item = DatasetItem("") if doc is None else as_item(doc)
    options = item.options
    if options and requests > 1 and requests not in (len(options), 2 * len(options)):
        options = None
    sample.question, sample.options, sample.category = item.question, options, item.category
    sample.gold, sample.gold_index = item.gold, item.gold_index
    if options is None and requests > 1:
        sample.k = requests
    if item.has_gold and item.gold is None and target is not None:
        if sample.gold_index is None and (options or requests > 1):
            sample.gold_index = _target_index(target, options, requests)
        if sample.gold_index is None and isinstance(target, str | int | float | list):
            sample.gold = str(target)


def _target_index(target: object, options: Sequence[str] | None, requests: int) -> int | None:
    """Return the index of the option that a target names by text, position or letter."""
    if options and isinstance(target, str) and target.strip() in options:
        return options.index(target.strip())
    return option_index(target, len(options) if options else requests)


def _choices(sample: Sample, row: Row, logliks: Sequence[float]) -> list[Sample]:
    """Set the chosen option; return one sample per choice if metrics choose differently."""
    texts, count, arguments = sample.options, len(logliks), row.get("arguments")
    if texts is None or len(texts) != count:
        asked = [last.strip() for _, last in requests_of(arguments) if isinstance(last, str)]
        texts = asked if len(asked) == len(set(asked)) == count else None
    doc, best = row.get("doc"), logliks.index(max(logliks))
    cleaned = doc.get("choices") if isinstance(doc, dict) else None
    is_cut = isinstance(cleaned, list) and len(cleaned) < count
    measured: Sequence[str] | None = None
    if is_cut or not BY_LENGTH.isdisjoint([score.metric for score in sample.scores]):
        # lm-eval divides by the lengths of `choices` if present, else of the options as they are.
        # If single characters are asked for, lengths do not matter.
        are_texts = isinstance(cleaned, list) and set(map(type, cleaned)) == {str}
        if not _asks_for_label(arguments):
            measured = cleaned if are_texts else texts
    scores_of: dict[int, list[Score]] = {}
    for score in sample.scores:
        choice = best
        if measured and (is_cut or score.metric in BY_LENGTH):
            choice = _best(score.metric, logliks, measured)
        scores_of.setdefault(choice, []).append(score)
    samples = [sample]
    if len(scores_of) > 1:
        samples = [structs.replace(sample, scores=scores) for scores in scores_of.values()]
    for own, choice in zip(samples, scores_of, strict=True):
        gold, accuracies = own.gold_index, {s.value for s in own.scores if s.metric[:3] == "acc"}
        if gold is not None and gold < count:
            own.logprob_gold = number(logliks[gold])
            if accuracies - {choice == gold}:
                continue  # a score contradicts the choice
        if not math.isnan(sum(logliks)):
            own.logprob_answer = number(logliks[choice])
            own.choice = texts[choice] if texts is not None and choice < len(texts) else None
    return samples


def _best(metric: str, logliks: Sequence[float], texts: Sequence[str]) -> int:
    """Return the index of the option that a metric chooses: the first of the most likely."""
    lengths = [1] * len(texts)
    if metric in BY_LENGTH:
        lengths = [len(t.encode() if metric == "acc_bytes" else t) or 1 for t in texts]
    values = [value / length for value, length in zip(logliks, lengths, strict=False)]
    return values.index(max(values))


def _generated(sample: Sample, row: Row, *, texts: bool) -> Sequence[Sample]:
    """Return samples with answer and response; one per repeat if repeats are scored."""
    scores = row.get("scores_per_repeat")
    samples = _repeats(sample, scores) if isinstance(scores, dict) else (sample,)
    answers = _of_first_request(row.get("filtered_resps"))
    responses = _of_first_request(row.get("resps")) if texts else ()
    for own, answer in zip(samples, answers, strict=False):
        if isinstance(answer, str) and len(answer) <= MAX_ANSWER_LENGTH:
            _set_answer(own, answer)
    for own, response in zip(samples, responses, strict=False):
        own.response = response if isinstance(response, str) else None
    return samples


def _of_first_request(responses: object) -> Sequence[object]:
    """Return the responses to the first request, one per repeat."""
    first = responses[0] if isinstance(responses, list) and responses else None
    return first if isinstance(first, list) else (first,)


def _repeats(sample: Sample, scores: Mapping[str, Any]) -> Sequence[Sample]:
    """Return a sample for each repeat; scores over all repeats are added to the first."""
    single = {name: v for name, v in scores.items() if isinstance(v, list) and len(v) > 1}
    scorer = sample.scores[0].scorer
    samples = []
    for repeat in range(max(map(len, single.values()), default=1)):
        own = [
            Score(name, number(values[repeat]), scorer)
            for name, values in single.items()
            if repeat < len(values)
        ]
        samples.append(structs.replace(sample, repeat=repeat, scores=own))
    samples[0].scores += [score for score in sample.scores if score.metric not in single]
    return samples


def _set_answer(sample: Sample, answer: str) -> None:
    """Set the extracted answer and, if there are options, the one that it names."""
    if answer.strip() == INVALID:
        for score in sample.scores:
            score.outcome = Outcome.NO_ANSWER
        return
    sample.answer = answer
    if sample.options:
        index = None if answer.strip().isdigit() else _target_index(answer, sample.options, 0)
        sample.choice = None if index is None else sample.options[index]
