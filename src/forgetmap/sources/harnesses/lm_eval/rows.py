"""Reader for rows of lm-evaluation-harness 0.4 and 0.5: one row per document and filter."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import structs

from forgetmap.records import Outcome
from forgetmap.sources.adapter import Problems, Sample, Score
from forgetmap.sources.datasets import DatasetItem, item_of, option_index
from forgetmap.sources.decode import Malformed, decode, number, raw_rows
from forgetmap.sources.files import LogFile
from forgetmap.sources.harnesses.lm_eval.filters import INVALID, Filters

ROW_FIELDS = frozenset({"doc", "target", "arguments", "resps", "filtered_resps"})
OWN = ROW_FIELDS | {
    *("doc_id", "filter", "metrics", "doc_hash", "prompt_hash", "target_hash"),
    "scores_per_repeat",
}
"""Fields of a row that are not metrics."""
HEAD_FIELDS = ("doc_id", "doc", "target")
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


TRUTHS = frozenset({True, False, "True", "False"})
_NUMBERS, _IDS = (int, float), (int, str)
"""Tuples of types, which are not built at every call as unions are; bool is an int."""


def is_scalar(value: object) -> bool:
    """Return whether a value is a number, a bool or None, as scores are."""
    return value is None or isinstance(value, _NUMBERS)


_OPENED = b'{"gen_args_0": {"arg_0": '
ARGUMENTS = b', "arguments": ' + _OPENED
RESPONSES, FILTERED = b'}, "resps": [', b'], "filtered_resps": ['
CONTINUATION = b', "arg_1": '


class _Requests(msgspec.Struct):
    """Requests that are still JSON: the part of a line from the first prompt to their end."""

    line: bytes
    start: int
    end: int
    head: bytes
    """The part of the line before the requests: id, document and target."""

    @property
    def prompt(self) -> object:
        """Prompt of the first request."""
        after = self.line.find(CONTINUATION, self.start, self.end)
        return decode(self.line[self.start : after if after > 0 else self.end - 2])

    @property
    def all(self) -> list[tuple[object, object]]:
        """Prompt and continuation of each request."""
        return _requests(decode(self.line[self.start - len(_OPENED) : self.end]))

    @property
    def ask_for_labels(self) -> bool:
        """Whether the last continuation is a letter or digit."""
        return ENDS_IN_LABEL.search(self.line, self.end - 24, self.end) is not None


Memory = dict[bytes, tuple[Row, DatasetItem]]
"""First fields and item by the JSON of these fields, which every filter logs again."""
MAX_ITEMS_CACHED = 1 << 15


def _parsed(raw: bytes | msgspec.Raw, known: Memory, *, texts: bool) -> Row:
    """Decode a row, except its requests; without `texts`, the responses are left out.

    Requests are most of a row, because each option repeats the prompt. Quotation marks in texts are
    escaped, so the names that are searched for can only be those of fields.

    Raises:
        Malformed: the row is not a JSON object.
    """
    line = raw if isinstance(raw, bytes) else bytes(raw)
    start, end = line.find(ARGUMENTS), line.rfind(RESPONSES)
    if not 0 < start < end:
        return _object(line)
    head, after = line[:start], end + 1
    if not texts:
        after = line.find(FILTERED, end) + 1 or after
    requests = _Requests(line, start + len(ARGUMENTS), end + 1, head)
    if head in known:
        before, _ = known[head]
        return {**before, **_object(b"{" + line[after + 1 :]), "arguments": requests}
    row = _object(head + line[after:])
    row["arguments"] = requests
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
                yield _parsed(raw, {}, texts=True)
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
        self._known: Memory = {}

    def samples(self, file: LogFile) -> Iterator[Sample]:
        """Iterate over the samples of one file."""
        self.look_at(file)
        for line, raw in raw_rows(file, self._problems):
            yield from self.row_samples(raw, file, line)

    def row_samples(self, raw: bytes | msgspec.Raw, file: LogFile, line: int) -> list[Sample]:
        """Return the samples of one row; call `look_at` with its file first."""
        try:
            return self._row(self._parsed(raw), file, line)
        except Malformed as error:
            self._problems.add(file.name, str(error), line=line)
            return []

    def _parsed(self, raw: bytes | msgspec.Raw) -> Row:
        try:
            return _parsed(raw, self._known, texts=self._texts)
        except Malformed:
            return _object(bytes(raw))  # its error has the position in the whole line

    def look_at(self, file: LogFile) -> None:
        """Set whether rows have documents and which metrics are lists, by one of the first rows."""
        first = file.peek.first
        self._has_docs = "doc" in first
        self._lists = {name for name in metric_names(first) if not is_scalar(first[name])}

    def _row(self, row: Row, file: LogFile, line: int) -> list[Sample]:
        doc_id, doc = row.get("doc_id"), row.get("doc")
        # Some logs have no documents at all; if only this row has none, it is damaged.
        lacks_doc = doc is None and self._has_docs
        if lacks_doc or isinstance(doc_id, bool) or not isinstance(doc_id, _IDS):
            name = "doc" if lacks_doc else "doc_id"
            self._problems.add(file.name, "the row has no question", line=line, field=name)
            return []
        scores = self._scores(row, file, line)
        if not scores:
            self._problems.add(file.name, "the row has no metric", line=line)
            return []
        key = row.get("prompt_hash")
        sample = Sample(self._task, str(doc_id), scores, file=file.name, line=line)
        sample.prompt_key = key if isinstance(key, str) else None
        if self._texts or sample.prompt_key is None:
            sample.prompt = _prompt(row)
        logliks = _logliks(row.get("filtered_resps"))
        _identify(sample, self._item(row, remember=not logliks), row.get("target"), len(logliks))
        if not logliks:
            return _generated(sample, row, texts=self._texts)
        return self._choices(sample, row, doc, logliks)

    def _item(self, row: Row, *, remember: bool) -> DatasetItem:
        """Return the item of a row; with `remember`, cache it for the rows of other filters."""
        doc, requests = row.get("doc"), row.get("arguments")
        head = requests.head if isinstance(requests, _Requests) else None
        if head in self._known:
            return self._known[head][1]
        item = DatasetItem("") if doc is None else item_of(doc)
        if remember and head is not None and len(self._known) < MAX_ITEMS_CACHED:
            self._known[head] = {name: row[name] for name in HEAD_FIELDS if name in row}, item
        return item

    def _scores(self, row: Row, file: LogFile, line: int) -> list[Score]:
        scorer = self._scorer(row)
        names = metric_names(row)
        scores = []
        for name in names:
            value = number(row[name])
            if value is None and not is_scalar(row[name]):
                if name in self._lists:
                    continue
                self._problems.add(file.name, "a score must be a number", line=line, field=name)
            scores.append(Score(name, None if name == UNSCORED else value, scorer))
        if not scores and names:
            return [Score(names[0], None, scorer)]
        return scores

    def _scorer(self, row: Row) -> str:
        filter_name = row.get("filter")
        if self._filters is not None and "filter" not in row:
            return self._filters.name(row)
        return filter_name if isinstance(filter_name, str) else "none"

    def _choices(
        self, sample: Sample, row: Row, doc: object, logliks: Sequence[float]
    ) -> list[Sample]:
        """Set the chosen option; return one sample per choice if metrics choose differently."""
        if len(logliks) == 1:
            sample.logprob_gold = _finite(logliks[0])
            return [sample]
        texts = sample.options
        if texts is None or len(texts) != len(logliks):
            texts = _continuations(row, len(logliks))
        measured = None if _asks_for_labels(row) else length_texts(doc, texts)
        choices = [_best(score.metric, logliks, measured) for score in sample.scores]
        if choices.count(choices[0]) == len(choices):
            _choose(sample, choices[0], logliks, texts)
            return [sample]
        samples = []
        for choice in dict.fromkeys(choices):
            own = [s for s, p in zip(sample.scores, choices, strict=True) if p == choice]
            samples.append(structs.replace(sample, scores=own))
            _choose(samples[-1], choice, logliks, texts)
        return samples


def _asks_for_labels(row: Row) -> bool:
    """Return whether continuations are single characters, so that lengths do not matter."""
    arguments = row.get("arguments")
    if isinstance(arguments, _Requests):
        return arguments.ask_for_labels
    last = next((last for _, last in reversed(_requests(arguments))), None)
    return isinstance(last, str) and len(last.strip()) == 1


ENDS_IN_LABEL = re.compile(rb'"arg_1": "\s?\w"')


def _logliks(responses: object) -> list[float]:
    """Return the log-likelihood of each request, logged with whether it is the greedy one."""
    if not isinstance(responses, list):
        return []
    try:
        logliks = [float(pair[0]) for pair in responses if len(pair) == 2 and pair[1] in TRUTHS]
    except (LookupError, TypeError, ValueError):
        return []
    return logliks if len(logliks) == len(responses) else []


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
        first = next((prompt for prompt, _ in _requests(arguments)), None)
    if isinstance(first, list) and len(first) == 1:
        first = first[0]
    return first if isinstance(first, str) else None


def _continuations(row: Row, count: int) -> list[str] | None:
    """Return the continuations of the requests; None if they are not one per response."""
    arguments = row.get("arguments")
    requests = arguments.all if isinstance(arguments, _Requests) else _requests(arguments)
    texts = [last.strip() for _, last in requests if isinstance(last, str)]
    return texts if len(texts) == count and len(set(texts)) == count else None


def length_texts(doc: object, texts: Sequence[str] | None) -> Sequence[str] | None:
    """Return the options whose lengths lm-eval divides by: `choices` if present, else `texts`."""
    cleaned = doc.get("choices") if isinstance(doc, dict) else None
    if isinstance(cleaned, list) and all(isinstance(choice, str) for choice in cleaned):
        return cleaned
    return texts


def _best(metric: str, logliks: Sequence[float], texts: Sequence[str] | None) -> int:
    """Return the index of the option that a metric chooses: the first of the most likely."""
    if texts is not None:
        logliks = logliks[: len(texts)]
        if metric == "acc_norm":
            logliks = [v / max(len(t), 1) for v, t in zip(logliks, texts, strict=False)]
        elif metric == "acc_bytes":
            logliks = [v / max(len(t.encode()), 1) for v, t in zip(logliks, texts, strict=False)]
    return logliks.index(max(logliks))


def _choose(
    sample: Sample, choice: int, logliks: Sequence[float], texts: Sequence[str] | None
) -> None:
    """Set the choice, unless a score contradicts it or a log-likelihood is NaN."""
    gold, total = sample.gold_index, sum(logliks)
    if gold is not None and gold < len(logliks):
        sample.logprob_gold = _finite(logliks[gold])
        for score in sample.scores:
            if score.metric.startswith("acc") and score.value != (choice == gold):
                return
    if not math.isnan(total):
        sample.logprob_answer = _finite(logliks[choice])
        if texts is not None and choice < len(texts):
            sample.choice = texts[choice]


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _generated(sample: Sample, row: Row, *, texts: bool) -> list[Sample]:
    """Return samples with answer and response; one per repeat if repeats are scored."""
    answers = of_first_request(row.get("filtered_resps"))
    responses = of_first_request(row.get("resps")) if texts else []
    samples = []
    for repeat, scores in enumerate(_repeats(sample, row)):
        repeated = sample if repeat == 0 else structs.replace(sample, scores=scores)
        repeated.repeat, repeated.scores = repeat, scores
        _answer(repeated, answers[repeat] if repeat < len(answers) else None)
        response = responses[repeat] if repeat < len(responses) else None
        repeated.response = response if isinstance(response, str) else None
        samples.append(repeated)
    return samples


def of_first_request(responses: object) -> list[object]:
    """Return the responses to the first request, one per repeat."""
    first = responses[0] if isinstance(responses, list) and responses else None
    return first if isinstance(first, list) else [first]


def _repeats(sample: Sample, row: Row) -> list[list[Score]]:
    """Return the scores of each repeat; scores over all repeats are added to the first."""
    scores = row.get("scores_per_repeat")
    if not isinstance(scores, dict):
        return [sample.scores]
    single = {name: v for name, v in scores.items() if isinstance(v, list) and len(v) > 1}
    count = max((len(values) for values in single.values()), default=1)
    scorer = sample.scores[0].scorer
    repeats = [
        [
            Score(name, number(values[k]), scorer)
            for name, values in single.items()
            if k < len(values)
        ]
        for k in range(count)
    ]
    repeats[0] += [score for score in sample.scores if score.metric not in single]
    return repeats


def extracted(answer: object) -> tuple[str | None, Outcome | None]:
    """Return the extracted answer, None if too long; and the outcome if nothing was extracted."""
    if not isinstance(answer, str) or len(answer) > MAX_ANSWER_LENGTH:
        return None, None
    return (None, Outcome.NO_ANSWER) if answer.strip() == INVALID else (answer, None)


def _answer(sample: Sample, answer: object) -> None:
    """Set the extracted answer and, if there are options, the one that it names."""
    sample.answer, outcome = extracted(answer)
    if outcome is not None:
        for score in sample.scores:
            score.outcome = outcome
    if sample.options and sample.answer is not None:
        answer = sample.answer
        index = _target_index(answer, sample.options, 0) if not answer.strip().isdigit() else None
        sample.choice = None if index is None else sample.options[index]
