"""Reader for rows of lm-evaluation-harness 0.4 and 0.5: one row per document and filter."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from msgspec import structs

from forgetmap.records import Outcome
from forgetmap.sources.adapter import Problems, Sample, Score
from forgetmap.sources.datasets import DatasetItem, as_item, option_index
from forgetmap.sources.decode import Malformed, as_rows, decode, is_lines, number, raw_rows, rows
from forgetmap.sources.fields import Fields
from forgetmap.sources.files import LogFile

ROW_FIELDS = frozenset({"doc", "target", "arguments", "resps", "filtered_resps"})
OWN = ROW_FIELDS.union(
    ["doc_id", "filter", "metrics", "scores_per_repeat", "doc_hash", "prompt_hash", "target_hash"]
)
"""Fields of a row that are not metrics."""
BY_LENGTH = frozenset({"acc_norm", "acc_bytes"})
"""Metrics that divide log-likelihoods by the lengths of options."""
UNSCORED = "bypass"
"""The metric of runs that only predict."""
INVALID = "[invalid]"
"""Result of lm-eval's extraction if there is no match."""
MAX_RESTARTS = 64
"""Times that ids restart in the order of the harness: filters x processes."""
MAX_ANSWER_LENGTH = 400
"""Maximum number of characters of an extracted answer; longer ones are ignored."""
_TRUTHS = frozenset({True, False, "True", "False"})
_SCALARS, _IDS = (int, float, type(None)), (int, str)
"""Types of scores and ids; tuples are not built at every call as unions are; bool is an int."""

Row = Mapping[str, Any]


def metric_names(row: Row) -> list[str]:
    """Return the names of a row's metrics in order."""
    names = row.get("metrics")
    if isinstance(names, list):
        return [name for name in names if isinstance(name, str) and name in row]
    return [name for name in row if name not in OWN]


_ARGUMENTS, _RESPONSES = b', "arguments": {"gen_args_0": {', b', "resps": ['
_CONTINUATION = b', "arg_1": '


def _rows(file: LogFile, problems: Problems) -> Iterator[tuple[int, dict[str, Any]]]:
    """Iterate over the rows of a file; their requests stay bytes where they can be cut out.

    Requests are most of a row, because each option repeats the prompt. Quotation marks in texts are
    escaped, so the names that are searched for can only be those of fields.
    """
    if not is_lines(file):
        yield from rows(file, problems)
        return
    for line, raw in raw_rows(file, problems):
        start, end = raw.find(_ARGUMENTS), raw.rfind(_RESPONSES)
        row = None
        if 0 < start < end:
            try:
                row = decode(raw[:start] + raw[end:])
            except Malformed:
                row = None  # the error of the whole row has its place
        if isinstance(row, dict):
            row["arguments"] = raw[start + len(_ARGUMENTS) - len(_OBJECT) : end]
            yield line, row
        else:
            yield from as_rows(raw, file, line, problems)


_OBJECT = b'{"gen_args_0": {'


def _prompt(arguments: object) -> str | None:
    """Return the prompt of the first request."""
    if isinstance(arguments, bytes) and arguments.startswith(_OBJECT + b'"arg_0": '):
        start, end = len(_OBJECT) + len(b'"arg_0": '), arguments.find(_CONTINUATION)
        first = decode(arguments[start : end if end > 0 else -2])
    else:
        first = next((prompt for prompt, _ in requests_of(arguments)), None)
    first = first[0] if isinstance(first, list) and len(first) == 1 else first
    return first if isinstance(first, str) else None


def requests_of(arguments: object) -> list[tuple[object, object]]:
    """Return prompt and continuation (or settings) of each request, in the form of any version."""
    if isinstance(arguments, bytes):
        arguments = decode(arguments)
    if isinstance(arguments, Mapping):
        requests = [list(r.values()) if isinstance(r, Mapping) else r for r in arguments.values()]
    else:
        requests = list(arguments) if isinstance(arguments, list) else []
    return [(r[0], r[1] if len(r) > 1 else None) for r in requests if isinstance(r, list) and r]


class Filters:
    """Names of filters (`names` in order, if known) for rows of 0.4.0 to 0.4.6, which lack them.

    Rows are written filter by filter, so the k-th row of a document belongs to the k-th filter.
    """

    def __init__(self, files: Sequence[LogFile], names: Sequence[str]) -> None:
        known = [row for file in files for _, row in rows(file, Problems())]
        numbers = [row["doc_id"] for row in known if isinstance(row.get("doc_id"), int)]
        restarts = sum(later < earlier for earlier, later in pairwise(numbers))
        # The most common number of rows per document, so that single duplicates are ignored; of
        # equally common ones the larger only if ids restart, as they do per filter.
        often = Counter(Counter(map(self._document, known)).values())
        sign = 1 if restarts else -1
        count = max(often, key=lambda count: (often[count], sign * count), default=1)
        numbered = ["none"] if count == 1 else [f"filter-{k}" for k in range(1, count + 1)]
        self._names = names[:count] if len(names) >= count else numbered
        self._seen: Counter[str] = Counter()
        self.are_mixed = count > 1 and restarts > MAX_RESTARTS

    @staticmethod
    def _document(row: Row) -> str:
        return repr((row.get("doc_id"), row.get("doc")))

    def name(self, row: Row) -> str:
        """Return the filter of the next row of this document."""
        key = self._document(row)
        self._seen[key] += 1
        # More rows than filters: gets the last name, so that it is reported as a duplicate.
        return self._names[min(self._seen[key], len(self._names)) - 1]


def samples_of(
    file: LogFile, task: str, filters: Filters | None, problems: Problems, *, texts: bool
) -> Iterator[Sample]:
    """Iterate over the samples of one file."""
    first = file.peek.first
    lists = {name for name in metric_names(first) if not isinstance(first[name], _SCALARS)}
    for line, row in _rows(file, problems):
        doc_id, key = row.get("doc_id"), row.get("prompt_hash")
        # Some logs have no documents at all; if only one row has none, it is damaged.
        lacks_doc = "doc" in first and row.get("doc") is None
        if lacks_doc or doc_id.__class__ not in _IDS:
            name = "doc" if lacks_doc else "doc_id"
            problems.add(file.name, "the row has no question", line=line, field=name)
            continue
        scores = _scores(Fields(row, file, line, problems), filters, lists)
        sample = Sample(task, str(doc_id), scores, file=file.name, line=line)
        sample.prompt_key = key if isinstance(key, str) else None
        if not scores:
            problems.add(file.name, "the row has no metric", line=line)
        try:
            yield from _answers(sample, row, texts=texts)
        except Malformed as error:  # the requests are decoded where they are needed
            problems.add(file.name, str(error), line=line, field="arguments")


def _answers(sample: Sample, row: Row, *, texts: bool) -> Sequence[Sample]:
    """Return a sample completed by its document, requests and responses; several for repeats.

    Raises:
        Malformed: the requests are not JSON.
    """
    if texts or sample.prompt_key is None:
        sample.prompt = _prompt(row.get("arguments"))
    logliks = _logliks(row.get("filtered_resps"))
    _identify(sample, row, len(logliks))
    if not sample.scores:
        return ()
    if len(logliks) > 1:
        return _choices(sample, row, logliks)
    if logliks:
        sample.logprob_gold = number(logliks[0])
        return (sample,)
    return _generated(sample, row, texts=texts)


def _scores(row: Fields, filters: Filters | None, lists: Container[str]) -> list[Score]:
    scorer, is_mixed = row.values.get("filter"), False
    if filters is not None and "filter" not in row.values:
        scorer, is_mixed = filters.name(row.values), filters.are_mixed
    elif not isinstance(scorer, str):
        scorer = "none"
    names, scores = metric_names(row.values), []
    for name in names:
        given = row.values[name]
        value = given if given.__class__ is float and math.isfinite(given) else number(given)
        if value is None and not isinstance(given, _SCALARS):
            if name in lists:
                continue
            row.report_problem("a score must be a number", name)
        scores.append(Score(name, None if is_mixed or name == UNSCORED else value, scorer))
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
    texts, count, samples = sample.options, len(logliks), []
    doc, best = row.get("doc"), logliks.index(max(logliks))
    cleaned = doc.get("choices") if isinstance(doc, dict) else None
    is_cut = isinstance(cleaned, list) and len(cleaned) < count
    is_known = texts is not None and len(texts) == count
    asked: list[str] = []
    if not is_known or is_cut or any(score.metric in BY_LENGTH for score in sample.scores):
        requests = requests_of(row.get("arguments"))
        asked = [last.strip() for _, last in requests if isinstance(last, str)]
    if not is_known:
        texts = asked if len(asked) == len(set(asked)) == count else None
    scores_of: dict[int, list[Score]] = {}
    for score in sample.scores:
        choice, by_length = best, score.metric in BY_LENGTH
        # If single characters are asked for, lengths do not matter.
        if (is_cut or by_length) and [len(one) for one in asked[-1:]] != [1]:
            # lm-eval divides by the lengths of `choices` if there are any, else of the options.
            are_texts = isinstance(cleaned, list) and set(map(type, cleaned)) == {str}
            in_bytes = score.metric == "acc_bytes"
            lengths = [
                len(text.encode() if in_bytes else text) if by_length else 1
                for text in (cleaned if are_texts else texts) or ()
            ]
            values = [one / (n or 1) for one, n in zip(logliks, lengths, strict=False)]
            choice = values.index(max(values)) if values else best
        scores_of.setdefault(choice, []).append(score)
    for choice, scores in scores_of.items():
        own = sample if len(scores_of) == 1 else structs.replace(sample, scores=scores)
        samples.append(own)
        gold, accuracies = own.gold_index, {s.value for s in own.scores if s.metric[:3] == "acc"}
        if gold is not None and gold < count:
            own.logprob_gold = number(logliks[gold])
            if accuracies - {choice == gold}:
                continue  # a score contradicts the choice
        if not math.isnan(sum(logliks)):
            own.logprob_answer = number(logliks[choice])
            own.choice = texts[choice] if texts is not None and choice < len(texts) else None
    return samples


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
