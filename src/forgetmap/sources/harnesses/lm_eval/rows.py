"""Reader for rows of lm-evaluation-harness 0.4 and 0.5: one row per document and filter."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from typing import Any

import msgspec
from msgspec import structs

from forgetmap.records import Outcome
from forgetmap.sources.adapter import Problems, Sample, Score
from forgetmap.sources.datasets import DatasetItem, as_item, option_index
from forgetmap.sources.decode import Malformed, decode, number, raw_rows
from forgetmap.sources.files import LogFile
from forgetmap.sources.harnesses.lm_eval.filters import INVALID, Filters

ROW_FIELDS = frozenset({"doc", "target", "arguments", "resps", "filtered_resps"})
OWN = ROW_FIELDS | {
    *("doc_id", "filter", "metrics", "doc_hash", "prompt_hash", "target_hash"),
    "scores_per_repeat",
}
"""Fields of a row that are not metrics."""
BY_LENGTH = frozenset({"acc_norm", "acc_bytes"})
"""Metrics that divide log-likelihoods by the lengths of options."""
UNSCORED = "bypass"
"""The metric of runs that only predict."""
MAX_ANSWER_LENGTH = 400
"""Maximum number of characters of an extracted answer; longer ones are ignored."""

Row = Mapping[str, Any]
"""Fields of a row; requests may still be JSON."""


def metric_names(row: Row) -> list[str]:
    """Return the names of a row's metrics in order."""
    names = row.get("metrics")
    if isinstance(names, list):
        return [name for name in names if isinstance(name, str) and name in row]
    return [name for name in row if name not in OWN]


def generation_settings(row: Row) -> Mapping[str, Any]:
    """Return the generation settings of the first request of a row; empty if not logged."""
    requests = _requests(row.get("arguments"))
    last = requests[0][1] if requests else None
    return last if isinstance(last, Mapping) else {}


def _requests(arguments: object) -> list[tuple[object, object]]:
    """Return prompt and continuation (or settings) of each request, in the form of any version."""
    if isinstance(arguments, Mapping):
        requests = [list(r.values()) if isinstance(r, Mapping) else r for r in arguments.values()]
    else:
        requests = list(arguments) if isinstance(arguments, list) else []
    return [(r[0], r[1] if len(r) > 1 else None) for r in requests if isinstance(r, list) and r]


_TRUTHS = frozenset({True, False, "True", "False"})
_NUMBERS, _IDS = (int, float), (int, str)
"""Tuples of types, which are not built at every call as unions are; bool is an int."""


def is_scalar(value: object) -> bool:
    """Return whether a value is a number, a bool or None, as scores are."""
    return value is None or isinstance(value, _NUMBERS)


_OPENED = b'{"gen_args_0": {"arg_0": '
_ARGUMENTS = b', "arguments": ' + _OPENED
_RESPONSES, _FILTERED = b'}, "resps": [', b'], "filtered_resps": ['
_CONTINUATION = b', "arg_1": '
_ENDS_IN_LABEL = re.compile(rb'"arg_1": "\s?\w"')


class _Requests(msgspec.Struct, gc=False):
    """Requests that are still JSON: the part of a line from the first prompt to their end."""

    line: bytes
    start: int
    end: int

    @property
    def prompt(self) -> object:
        """Prompt of the first request."""
        after = self.line.find(_CONTINUATION, self.start, self.end)
        return decode(self.line[self.start : after if after > 0 else self.end - 2])

    @property
    def all(self) -> list[tuple[object, object]]:
        """Prompt and continuation of each request."""
        return _requests(decode(self.line[self.start - len(_OPENED) : self.end]))

    @property
    def ask_for_labels(self) -> bool:
        """Whether the last continuation is a letter or digit."""
        return _ENDS_IN_LABEL.search(self.line, self.end - 24, self.end) is not None


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
    row["arguments"] = _Requests(line, start + len(_ARGUMENTS), end + 1)
    return row


def _object(text: bytes) -> dict[str, Any]:
    row = decode(text)
    if not isinstance(row, dict):
        raise Malformed("a row must be an object")
    return row


def parsed_rows(files: Sequence[LogFile]) -> Iterator[Row]:
    """Iterate over the rows of all files, without malformed ones."""
    for file in files:
        for _, raw in raw_rows(file, Problems()):
            try:
                yield _parsed(bytes(raw), texts=True)
            except Malformed:
                continue


class RowReader:
    """Reader of the rows of one task."""

    def __init__(
        self, task: str, filters: Filters | None, problems: Problems, *, texts: bool
    ) -> None:
        self._task, self._filters, self._problems, self._texts = task, filters, problems, texts
        self._lists: set[str] = set()
        self._has_docs = True

    def samples(self, file: LogFile) -> Iterator[Sample]:
        """Iterate over the samples of one file."""
        first = file.peek.first
        # Some logs have no documents at all; if only one row has none, it is damaged.
        self._has_docs = "doc" in first
        self._lists = {name for name in metric_names(first) if not is_scalar(first[name])}
        for line, raw in raw_rows(file, self._problems):
            try:
                yield from self._row(bytes(raw), file, line)
            except Malformed as error:
                self._problems.add(file.name, str(error), line=line)

    def _row(self, raw: bytes, file: LogFile, line: int) -> Sequence[Sample]:
        row = _parsed(raw, texts=self._texts)
        doc_id, doc = row.get("doc_id"), row.get("doc")
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
        key = row.get("prompt_hash")
        if isinstance(key, str):
            sample.prompt_key = key
        if self._texts or sample.prompt_key is None:
            sample.prompt = _prompt(row)
        logliks = _logliks(row.get("filtered_resps"))
        item = DatasetItem("") if doc is None else as_item(doc)
        _identify(sample, item, row.get("target"), len(logliks))
        if not logliks:
            return _generated(sample, row, texts=self._texts)
        if len(logliks) > 1:
            return _choices(sample, row, logliks)
        sample.logprob_gold = _finite(logliks[0])
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
            if value is None and not is_scalar(row[name]):
                if name in self._lists:
                    continue
                self._problems.add(file.name, "a score must be a number", line=line, field=name)
            scores.append(Score(name, None if name == UNSCORED else value, scorer))
        return scores or [Score(name, None, scorer) for name in names[:1]]


def _choices(sample: Sample, row: Row, logliks: Sequence[float]) -> list[Sample]:
    """Set the chosen option; return one sample per choice if metrics choose differently."""
    texts, count = sample.options, len(logliks)
    if texts is None or len(texts) != count:
        texts = _continuations(row, count)
    doc, best = row.get("doc"), logliks.index(max(logliks))
    choices = [best] * len(sample.scores)
    cleaned = doc.get("choices") if isinstance(doc, dict) else None
    is_cut = isinstance(cleaned, list) and len(cleaned) < count
    if is_cut or not BY_LENGTH.isdisjoint([score.metric for score in sample.scores]):
        measured = None if _asks_for_labels(row) else _length_texts(cleaned, texts)
        if measured is not None:
            choices = [
                _best(score.metric, logliks, measured)
                if is_cut or score.metric in BY_LENGTH
                else best
                for score in sample.scores
            ]
    if choices.count(choices[0]) == len(choices):
        _choose(sample, choices[0], logliks, texts)
        return [sample]
    samples = []
    for choice in dict.fromkeys(choices):
        own = copy(sample)
        own.scores = [s for s, p in zip(sample.scores, choices, strict=True) if p == choice]
        _choose(own, choice, logliks, texts)
        samples.append(own)
    return samples


def _asks_for_labels(row: Row) -> bool:
    """Return whether continuations are single characters, so that lengths do not matter."""
    arguments = row.get("arguments")
    if isinstance(arguments, _Requests):
        return arguments.ask_for_labels
    requests = _requests(arguments)
    last = requests[-1][1] if requests else None
    return isinstance(last, str) and len(last.strip()) == 1


def _logliks(responses: object) -> list[float]:
    """Return the log-likelihood of each request, logged with whether it is the greedy one."""
    if not isinstance(responses, list) or not responses or isinstance(responses[0], str):
        return []
    try:
        values, truths = zip(*responses, strict=True)
        return list(map(float, values)) if _TRUTHS.issuperset(truths) else []
    except (TypeError, ValueError):
        return []


def _identify(sample: Sample, item: DatasetItem, target: object, requests: int) -> None:
    """Set question, options and right answer from the document, else the answer by the target."""
    options = item.options
    if options and requests > 1 and requests not in (len(options), 2 * len(options)):
        options = None
    sample.question, sample.options, sample.category = item.question, options, item.category
    sample.gold, sample.gold_index = item.gold, item.gold_index
    if options is None and requests > 1:
        sample.k = requests
    if not item.has_gold or item.gold is not None or target is None:
        return
    if sample.gold_index is None and (options or requests > 1):
        sample.gold_index = _target_index(target, options, requests)
    if sample.gold_index is None and isinstance(target, str | int | float | list):
        sample.gold = str(target)


def _target_index(target: object, options: Sequence[str] | None, requests: int) -> int | None:
    """Return the index of the option that a target names by text, position or letter."""
    if options and isinstance(target, str) and target.strip() in options:
        return options.index(target.strip())
    return option_index(target, len(options) if options else requests)


def _prompt(row: Row) -> str | None:
    """Return the prompt of the first request."""
    arguments = row.get("arguments")
    if isinstance(arguments, _Requests):
        first = arguments.prompt
    else:
        requests = _requests(arguments)
        first = requests[0][0] if requests else None
    if isinstance(first, list) and len(first) == 1:
        first = first[0]
    return first if isinstance(first, str) else None


def _continuations(row: Row, count: int) -> list[str] | None:
    """Return the continuations of the requests; None if they are not one per response."""
    arguments = row.get("arguments")
    requests = arguments.all if isinstance(arguments, _Requests) else _requests(arguments)
    texts = [last.strip() for _, last in requests if isinstance(last, str)]
    return texts if len(texts) == count and len(set(texts)) == count else None


def _length_texts(cleaned: object, texts: Sequence[str] | None) -> Sequence[str] | None:
    """Return the options whose lengths lm-eval divides by: `choices` if present, else `texts`."""
    if isinstance(cleaned, list) and set(map(type, cleaned)) <= {str}:
        return cleaned
    return texts


def _best(metric: str, logliks: Sequence[float], texts: Sequence[str]) -> int:
    """Return the index of the option that a metric chooses: the first of the most likely."""
    if metric == "acc_bytes":
        logliks = [v / (len(t.encode()) or 1) for v, t in zip(logliks, texts, strict=False)]
    elif metric == "acc_norm":
        logliks = [v / (len(t) or 1) for v, t in zip(logliks, texts, strict=False)]
    else:
        logliks = logliks[: len(texts)]
    return logliks.index(max(logliks))


def _choose(
    sample: Sample, choice: int, logliks: Sequence[float], texts: Sequence[str] | None
) -> None:
    """Set the choice, unless a score contradicts it or a log-likelihood is NaN."""
    gold = sample.gold_index
    if gold is not None and gold < len(logliks):
        sample.logprob_gold = _finite(logliks[gold])
        for score in sample.scores:
            if score.metric[:3] == "acc" and score.value != (choice == gold):
                return
    if not math.isnan(sum(logliks)):
        sample.logprob_answer = _finite(logliks[choice])
        if texts is not None and choice < len(texts):
            sample.choice = texts[choice]


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _generated(sample: Sample, row: Row, *, texts: bool) -> Sequence[Sample]:
    """Return samples with answer and response; one per repeat if repeats are scored."""
    samples = _repeats(sample, row.get("scores_per_repeat"))
    answers = _of_first_request(row.get("filtered_resps"))
    for own, answer in zip(samples, answers, strict=False):
        _set_answer(own, answer)
    if texts:
        for own, response in zip(samples, _of_first_request(row.get("resps")), strict=False):
            own.response = response if isinstance(response, str) else None
    return samples


def _of_first_request(responses: object) -> Sequence[object]:
    """Return the responses to the first request, one per repeat."""
    first = responses[0] if isinstance(responses, list) and responses else None
    return first if isinstance(first, list) else (first,)


def _repeats(sample: Sample, scores: object) -> Sequence[Sample]:
    """Return a sample for each repeat; scores over all repeats are added to the first."""
    if not isinstance(scores, dict):
        return (sample,)
    single = {name: v for name, v in scores.items() if isinstance(v, list) and len(v) > 1}
    count = max((len(values) for values in single.values()), default=1)
    scorer = sample.scores[0].scorer
    samples = [structs.replace(sample, repeat=repeat) for repeat in range(count)]
    for own in samples:
        own.scores = [
            Score(name, number(values[own.repeat]), scorer)
            for name, values in single.items()
            if own.repeat is not None and own.repeat < len(values)
        ]
    samples[0].scores += [score for score in sample.scores if score.metric not in single]
    return samples


def _set_answer(sample: Sample, answer: object) -> None:
    """Set the extracted answer and, if there are options, the one that it names."""
    if not isinstance(answer, str) or len(answer) > MAX_ANSWER_LENGTH:
        return
    if answer.strip() == INVALID:
        for score in sample.scores:
            score.outcome = Outcome.NO_ANSWER
        return
    sample.answer = answer
    if sample.options:
        index = _target_index(answer, sample.options, 0) if not answer.strip().isdigit() else None
        sample.choice = None if index is None else sample.options[index]
