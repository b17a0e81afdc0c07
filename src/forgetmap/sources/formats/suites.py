"""Suites: EvalScope, OpenCompass, and OLMES with its successor olmo-eval."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import chain, takewhile
from pathlib import PurePosixPath
from string import ascii_uppercase
from typing import Any

from forgetmap.records import MetricInfo, Outcome
from forgetmap.sources.adapter import Problems, Sample, Score
from forgetmap.sources.datasets import as_item
from forgetmap.sources.decode import number, rows, small_document
from forgetmap.sources.fields import as_count, as_json_text, as_list, as_mapping, as_text
from forgetmap.sources.files import LogFile
from forgetmap.sources.formats.engine import Companion, Format, Head, LogReading, LogRow
from forgetmap.sources.formats.values import (
    as_time,
    is_beside,
    last_question,
    last_stamp,
    numbers,
    plain,
    stem,
    text_of,
)

_USABLE = (None, "success", "fallback", "degraded")
"""Statuses of usable scores; others mean that there is no score, not that it is 0."""
_SAME_METRIC = {"AverageAccuracy": "acc", "WeightedAverageAccuracy": "acc", "Pass@1": "acc"}
"""Metrics of EvalScope 0.x with their names in 1.x."""
# Template texts around a question, which begins after the last match of this pattern ...
_BEGINNINGS = (
    r"Answer the following multiple choice question[^\n]*\n\n(?:Question:\n)?",
    "回答下面的[^\n]*\n\n问题\uff1a",
    r"ANSWER:[^\n]*\n+",
    "答案\uff1a[^\n]*\n+",
    r"Solve the following (?:math )?problem step by step\.[^\n]*\n\n",
    r"Read the following function signature and docstring,[^\n]*\n",
)
_BEGINNING = re.compile(f"^(?:{'|'.join(_BEGINNINGS)})", re.MULTILINE)
# ... and ends before one of these.
_ENDINGS = ("\nPlease reason step by step", "\nRemember to put your answer", "\n选项\uff1a")


def split_question(query: str, target: str | None) -> tuple[str, list[str]]:
    """Return question and options; no options if the target is not one of their letters."""
    start = query.rfind("\nA) ")
    options = [one.strip() for one in re.split(r"\n[B-Z]\) ", query[start + 4 :])] * (start >= 0)
    letters = {*ascii_uppercase[: len(options)], ",", " "}
    is_listed = bool(options and target and letters.issuperset(target))
    text = query[:start] + "\n" if is_listed else query
    bare = text.strip()
    if "\n" in bare:  # templates add at least one line
        begin = max((match.end() for match in _BEGINNING.finditer(text)), default=0)
        ends = [end for end in map(text.rfind, _ENDINGS) if end > begin]
        bare = text[begin : min(ends, default=len(text))].strip() or bare
    return bare, options if is_listed else []


def _named_main(head: Head) -> str | None:
    first = next(iter(as_mapping(head["sample_score.score.value"])), None)
    return head.plain("sample_score.score.main_score_name") or first


def _state_reported(reading: LogReading) -> None:
    for report in map(reading.whole, reading.beside["reports"]):
        for metric in report.parts("metrics"):
            name = metric.plain("name") or ""
            own = _SAME_METRIC.get(name) or name.removeprefix("mean_")
            every = (category.parts("subsets") for category in metric.parts("categories"))
            for subset in chain.from_iterable(every) if own != name else ():
                if reading.log.tasks == (f"{report['dataset_name']}_{subset['name']}",):
                    reading.state(f"report.{name}", subset["score"], own)


def _reviews(reading: LogReading) -> Iterator[LogRow]:
    """Yield the reviews; those of one item are repeats in the order of their indexes, not lines."""
    # EvalScope scores the empty answers of failed requests.
    predictions = reading.every("predictions")
    failed = {row.count("index"): row.plain("model_output.error") for row in predictions}
    failed[None] = None
    for row in sorted(reading.lines(), key=lambda row: as_count(row["index"]) or 0):
        item = row.plain("sample_score.group_id", "sample_score.sample_id", "index")
        score, gold = row.part("sample_score.score"), row.name("target")
        messages = row.parts("messages")
        answers = [*takewhile(lambda message: message["role"] == "assistant", messages[::-1])]
        asked = next((turn["content"] for turn in messages if turn["role"] == "user"), None)
        rendered = (as_text(row["input"]) or "").rpartition("**User**: \n")[2]  # before 1.5
        query = text_of(asked) or rendered or None
        if item is None or not score.values:
            row.report_problem("the row has no index or no sample_score", "sample_score")
            continue
        if query is None:
            row.report_problem("the row has no question", "messages")
        question, options = split_question(query or "", gold)
        before = messages[: len(messages) - len(answers)]
        last = answers[0] if answers else row.within({})
        answer = as_text(score["extracted_prediction"])
        yield row.adding(
            item=item,
            repeat=as_count(row["sample_score.generation_index"]),
            question=question or None,
            options=options or None,
            gold=gold or None,
            # Without the ids of messages, which differ in every run.
            prompt=[{name: m[name] for name in ("role", "content")} for m in before] or query,
            answer=answer,
            choice=answer if options else None,
            tokens_in=as_count(last["perf_metrics.input_tokens"]),
            tokens_out=as_count(last["perf_metrics.output_tokens"]),
            response=text_of(score["prediction"]) or text_of(last["content"]),
            failure=failed.get(row.count("index")),
        )


def _review_scores(row: LogRow) -> list[Score]:
    score = row.part("sample_score.score")
    main = score.plain("main_score_name") or _named_main(row.reading.head) or "acc"
    values = score.part("value")
    names = [name for name, value in values.values.items() if not isinstance(value, list | dict)]
    failed = None if score.plain("status") in _USABLE else Outcome.ERROR
    known = values.within({}) if failed else values
    return [Score(name, known.number(name), outcome=failed) for name in names or [main]]


def _evalscope(*predicted: str, **values: Any) -> Format:
    return Format(
        beside={
            "predictions": Companion(
                fields=[predicted],
                belongs=lambda file, other: is_beside(file, other) and stem(file) == stem(other),
            ),
            "reports": Companion(
                fields=[("dataset_name", "model_name", "metrics")],
                belongs=lambda file, other: (
                    is_beside(file, other)
                    and stem(file).startswith(str(other.peek.first.get("dataset_name")))
                ),
            ),
        },
        preferred=["acc", "prompt_level_strict", "prompt_level_strict_acc", "pass@1", "mean_acc"],
        harness="evalscope",
        model=lambda head: (
            head.plain("model")
            or next(filter(None, (turn.plain("model") for turn in head.parts("messages"))), None)
            or next((as_text(p.peek.first.get("model")) for p in head.beside["predictions"]), None)
            or head.folder_in("reviews")
        ),
        stamp=lambda head: last_stamp(head) or as_time(head["created"]),
        tasks=lambda head: stem(head.file),
        main=_named_main,
        totals=_state_reported,
        **values,
    )


EVALSCOPE = _evalscope(
    *("index", "model_output"),
    name="evalscope",
    title="EvalScope 1.x reviews",
    fields=[("index", "sample_score")],
    rows=_reviews,
    # Collections mix data sets.
    task=lambda row: "_".join(
        row.plain(f"sample_score.sample_metadata.collection_info.{name}") or ""
        for name in ("dataset_name", "subset_name")
    ).strip("_"),
    scores=_review_scores,
    error=plain("sample_score.score.judge_summary.error"),
)
"""`{"index", "target", "messages" or "input", "sample_score": {"score": {"value": {...}}}}`; the
index is the position after shuffling and limiting, so items are identified by their question."""


def _choices(reading: LogReading) -> Iterator[LogRow]:
    for row in reading.lines():
        raw, choices = as_mapping(row["raw_input"]), as_list(row["choices"])
        if not raw or not choices:
            row.report_problem("the row has no raw_input or no choices", "choices")
            continue
        item = as_item(raw)
        lettered = [raw[letter] for letter in ascii_uppercase if isinstance(raw.get(letter), str)]
        if item.options is None and lettered:  # some data sets store them by letter
            item.options = lettered
            item.question = row.plain("raw_input.question", "raw_input.input") or item.question
        for repeat, choice in enumerate(map(as_mapping, choices)):
            one = row.within(choice)
            answer = one.plain("review.pred")
            yield row.adding(
                item=row.plain("index"),
                repeat=repeat,
                result=one["review.result"],
                question=item.question,
                options=item.options,
                gold=(one.plain("review.gold") or item.gold) if item.has_gold else None,
                answer=answer,
                choice=answer if item.options else None,
                finish_reason=one.plain("finish_reason"),
                prompt=row.plain("origin_prompt.data.0", "origin_prompt.data"),
                response=text_of(one["message.content"]) or None,
            )


def _results(row: LogRow) -> list[Score]:
    result = row["@result"]
    if not isinstance(result, dict):
        metric = row.plain("reviewer_spec.metric.0", "reviewer_spec.metric") or "acc"
        result = {_SAME_METRIC.get(metric, metric): result}
    return [Score(name, number(v)) for name, v in result.items() if not isinstance(v, list | dict)]


EVALSCOPE_0X = _evalscope(
    *("choices", "raw_input", "answer_id"),
    name="evalscope-0.x",
    title="EvalScope 0.x reviews",
    fields=[("choices", "raw_input", "review_id")],
    rows=_choices,
    scores=_results,
)
"""The raw answer of the model with `{"raw_input", "choices": [{"review": ...}]}`."""

# In the order in which OpenCompass looks them up.
_FLAGS = ("correct", "is_correct", "cascade_correct")
_ANSWERS = ("predictions", "pred", "prediction")
_GOLDS = ("references", "answer", "answers", "refr", "ref", "gold")
_PROMPTS = ("prompt", "origin_prompt", "question")
_EXAMPLE = {*_FLAGS, *_ANSWERS, *_GOLDS, "origin_prediction"}
_RUNS = re.compile(r"\((\d{1,6}) runs average\)")


def _number_of(name: str) -> int | None:
    digits = name.rpartition("_")[2]
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 10 else None


def _names_in(content: object) -> set[str]:
    parts = [one for name, one in as_mapping(content).items() if name.isdigit()]
    return {name for example in [*parts, *as_list(content)] for name in as_mapping(example)}


def _has_details(file: LogFile) -> bool:
    details = file.peek.first.get("details") if file.peek.shape == "object" else None
    known = {"example_abbr"} if isinstance(details, list) else _EXAMPLE
    return not known.isdisjoint(_names_in(details))


def _is_predicted(file: LogFile) -> bool:
    names = _names_in(file.peek.first)
    return "prediction" in names or any(name.startswith("label: ") for name in names)


def _predicts(file: LogFile, other: LogFile) -> bool:
    # A part of the predictions is named `NAME_2`.
    is_named = re.fullmatch(re.escape(stem(file)) + r"(_\d+)?", stem(other)) is not None
    return is_named and is_beside(file, other)


def _predictions(reading: LogReading) -> list[dict[str, Any]]:
    """Return predictions by number, continued over the parts, each of which starts at 0."""
    parts = reading.beside["predictions"]
    whole = [file for file in parts if stem(file) == stem(reading.file)]
    predictions: list[dict[str, Any]] = []
    for file in whole or sorted(parts, key=lambda file: _number_of(stem(file)) or 0):
        content = reading.whole(file).values
        predictions += [as_mapping(content.get(str(index))) for index in range(len(content))]
        if not content or {} in predictions:
            reading.problems.add(file.name, "predictions are missing: their numbers have gaps")
            return []
    return predictions


def _answered(reading: LogReading) -> Iterator[LogRow]:
    predictions, details = _predictions(reading), reading.document["details"]
    is_numbered = isinstance(details, dict)
    for row in _numbered(reading) if is_numbered else _listed(reading, len(predictions)):
        place, origin = row["@place"], row["origin_prediction"]
        predicted = predictions[place] if place is not None and place < len(predictions) else {}
        # Labels are compared by likelihood if the answer was chosen, not generated.
        parts = (as_mapping(origin), predicted)
        chosen = ([one for one in part.values() if "PPL" in as_mapping(one)] for part in parts)
        labels = next(filter(None, chosen), [])
        asked = (
            row.any(*_PROMPTS),
            predicted.get("origin_prompt"),
            as_mapping(origin).get("origin_prompt"),
            *(label.get("prompt") for label in labels),
        )
        answer, gold = (_plain(row.any(*names)) for names in (_ANSWERS, _GOLDS))
        response = origin if isinstance(origin, str) else predicted.get("prediction")
        prompt = next(filter(None, asked), None)
        yield row.adding(
            question=last_question(prompt) or as_json_text(prompt),
            prompt=prompt,
            gold=_plain(predicted.get("gold")) if gold is None else gold,
            answer=answer,
            choice=answer if labels else None,
            k=len(labels) or None,
            tokens_out=as_count(predicted.get("res_length")),
            response=None if labels else as_text(response),
        )


def _numbered(reading: LogReading) -> Iterator[LogRow]:
    """Yield the examples of numbered details, in which one replica follows the other."""
    details = reading.document["details"]
    runs = [int(match[1]) for match in map(_RUNS.search, reading.document.values) if match]
    indexes = {name: _number_of(name) for name in details if name != "type"}
    last = max((index for index in indexes.values() if index is not None), default=0)
    size = -(-(last + 1) // max([1, *runs]))
    for name, index in indexes.items():
        if index is None or not isinstance(details[name], dict):
            reading.problems.add(reading.file.name, f"{name[:60]!r} is no example", field="details")
        else:
            row = reading.row(details[name])
            yield row.adding(item=str(index % size), repeat=index // size, place=index)


def _listed(reading: LogReading, predicted: int) -> Iterator[LogRow]:
    """Yield the examples of listed details, which have the replicas side by side.

    Predictions always begin at the first example, and parts of a data set number theirs from 0.
    """
    details = [*reading.inside("details")]
    names = [row.plain("example_abbr") or "" for row in details]
    indexes = [*map(_number_of, names)]
    parts = {name.rpartition("_")[0] for name in names if _number_of(name) is not None}
    is_whole = len(parts) == 1 and {*indexes} == {*range(len(details))}
    for row, name, index in zip(details, names, indexes, strict=True):
        if index is None:
            row.report_problem("an example has no usable name", "example_abbr")
            continue
        flags, lists = row.any(*_FLAGS), [v for v in row.values.values() if isinstance(v, list)]
        count = len(flags) if isinstance(flags, list) else max(map(len, lists), default=1)
        is_placed = is_whole and predicted == count * len(details)
        for repeat in range(count):
            content = {
                name: next(iter(value[repeat:]), None) if isinstance(value, list) else value
                for name, value in row.values.items()
            }
            place = repeat * len(details) + index if is_placed else None
            item = str(index) if len(parts) == 1 else name
            yield row.within(content).adding(item=item, repeat=repeat, place=place)


def _plain(value: object) -> str | None:
    """Return a text; of several right answers the first."""
    if isinstance(value, list):
        return _plain(value[0]) if value else None
    return str(value) if isinstance(value, bool) else as_text(value)


def _state_accuracy(reading: LogReading) -> None:
    """Note the share of right answers, which most evaluators write in percent, others do not."""
    for name, stated in reading.document.values.items():
        if _RUNS.sub("", name).strip() == "accuracy":
            is_small = (number(stated) or 0) <= 1
            reading.state(name, stated, "accuracy", scale=100.0, may_be_percent=is_small)


OPENCOMPASS = Format(
    name="opencompass",
    title="OpenCompass details",
    fields=[("details",)],
    accepts=_has_details,
    beside={"predictions": Companion(fields=[()], accepts=_is_predicted, belongs=_predicts)},
    rows=_answered,
    model=lambda head: head.folder_in("results"),
    stamp=last_stamp,
    tasks=lambda head: stem(head.file),
    scores=lambda row: [
        Score("accuracy", number(row.any(*_FLAGS))),
        *([] if number(row["score"]) is None else [Score("score", number(row["score"]))]),
    ],
    totals=_state_accuracy,
)
"""A document per data set with the details of each example, and one of predictions:

    until 0.4    {"type": "GEN", "0": {"prompt", "predictions", "references", "correct"}}
    since 0.4.1  [{"example_abbr": "NAME_0", "pred": [...], "correct": [...]}], one element of each
                 list per replica

Only the totals are in percent. Examples of evaluators that do not tell whether an answer is right
have no score."""

_TOTALS, _TOTALS_OF_RUN = ("task_name", "task_config", "metrics"), ("tasks", "summary", "timestamp")
_OLMES_METRICS = (
    "acc_per_char", "acc_raw", "exact_match", "exact_match_flex", "exact_match_simple", "accuracy",
    "pass_at_1", "mc1", "f1", "recall",
)  # fmt: skip
_NO_SCORE = re.compile(
    r"predicted_index|correct_choice$|no_answer$|num_|price$|sum_logits|logits_per_|bits_per_byte"
    r"|.*(?:_tokens|_time)$"
)
"""Entries among the metrics that do not measure an answer."""
_LOWER_IS_BETTER = ("ppl_token", "ppl_char", "ppl_word", "ppl_byte", "perplexity", "bpb")
_OPTION = re.compile(r"^ ?(?P<letter>[A-Z])\. (?P<text>.*)$", re.MULTILINE)


def _common_name(file: LogFile) -> str:
    name = PurePosixPath(file.name).name.split(".json")[0]
    return re.sub(r"(?<=.)[-_.](?:predictions|requests|metrics).*$", "", name)


def _task_name(file: LogFile) -> str:
    return re.sub(r"^task-\d+-", "", _common_name(file))


def _metrics_of(row: Mapping[str, Any]) -> dict[str, Any]:
    return as_mapping(row.get("metrics", row.get("instance_metrics")))


def _totals_in(file: LogFile) -> Iterator[dict[str, Any]]:
    """Yield the metrics of one task, of several line by line, or of a whole run (as `run`)."""
    if file.peek.has(*_TOTALS):
        yield from (row for _, row in rows(file, Problems()))
    else:
        run = small_document(file)
        yield from ({**as_mapping(task), "run": run} for task in as_list(run.get("tasks")))


def _are_of(file: LogFile, total: Mapping[str, Any]) -> bool:
    """Whether metrics belong to a file: by the hashes in its rows, else by folder and name."""
    task_hash, model = as_text(total.get("task_hash")) or "", as_text(total.get("model"))
    hashed = [row for row in file.peek.objects if as_text(row.get("task_hash"))]
    if hashed:
        models = (None, total.get("model_hash"))
        return any(r["task_hash"] == task_hash and r.get("model_hash") in models for r in hashed)
    is_other = model and re.sub(r"[^\w.-]", "_", model) != PurePosixPath(file.name).parent.name
    return bool(task_hash) and not is_other and _task_name(file).endswith(task_hash[-6:])


def _hold_metrics_of(file: LogFile, other: LogFile) -> bool:
    # The beginning of a file with one task is enough; there may be many.
    is_single = other.peek.shape == "object" and other.peek.has(*_TOTALS)
    return not is_single or any(_are_of(file, total) for total in other.peek.objects)


def _about(head: Head) -> dict[str, Any]:
    """Return the metrics that belong to a file, with the task's settings as `config`."""
    every = (total for file in head.beside["metrics"] for total in _totals_in(file))
    total = next((total for total in every if _are_of(head.file, total)), None)
    if total is None:
        return {}
    setup = total.get("model_config") or as_mapping(total.get("run")).get("config")
    return {**total, "config": total.get("task_config", total.get("config")), "setup": setup}


def _key(row: LogRow) -> tuple[int | None, str | None]:
    return as_count(row["doc_id"]), as_text(row["native_id"])


def _measured_rows(reading: LogReading) -> Iterator[LogRow]:
    """Yield the rows with names and requests, of which an item may have several.

    Items are named by the id of the data set, else by number; the first item of a repeated id keeps
    the bare id, others get `#NUMBER` appended.
    """
    requests = {_key(row): row for row in reading.every("requests")}
    predictions = list(reading.lines())
    info = reading.log.info.tasks.get(reading.log.tasks[0])
    indexes: dict[str | None, set[int]] = defaultdict(set)
    for index, native in map(_key, predictions):
        if index is not None:
            indexes[native].add(index)
    nameless = set(map(str, indexes[None]))
    for row in predictions:
        index, native = _key(row)
        if index is None or not _metrics_of(row.values):
            row.report_problem("the row has no usable doc_id or no metrics", "doc_id")
            continue
        is_first = native not in nameless and index == min(indexes[native])
        item = str(index) if native is None else native if is_first else f"{native}#{index}"
        request, metrics = requests.get((index, native), row.within({})), _metrics_of(row.values)
        outputs = [as_mapping(output) for output in as_list(row["model_output"])]
        first = outputs[0] if outputs else {}
        yield row.adding(
            item=item,
            main=info.main_metric if info else None,
            doc=request.part("doc"),
            prompt=as_json_text(request["request.context"]),
            outputs=outputs,
            answer=as_text(metrics.get("extracted_answer", first.get("extracted_answer"))),
            tokens_out=as_count(first.get("num_tokens")),
            response=as_text(first.get("continuation", first.get("text"))),
        )


def _measured(row: LogRow) -> list[Score]:
    metrics, is_nested = _metrics_of(row.values), "metrics" not in row.values
    failed = Outcome.NO_ANSWER if number(metrics.get("no_answer")) == 1 else None
    scores = []
    for name, value in metrics.items():
        scored = value if isinstance(value, dict) else {name if is_nested else "default": value}
        for scorer, score in scored.items():
            is_score = not _NO_SCORE.match(name) and not isinstance(score, list | dict | str)
            if is_score and (score is not None or name == row["@main"]):
                scores.append(Score(name, number(score), scorer, failed))
    return scores


def _finish(row: LogRow, sample: Sample) -> None:
    """Set the item, the chosen option and the errors of scorers; a choice has no response."""
    metrics, outputs, doc = _metrics_of(row.values), row["@outputs"], row["@doc"]
    query, label = as_text(doc["query"]), row["label"]
    if query is not None:
        sample.question, sample.options = _bare(query)
        choices = [choice.strip() for choice in doc.texts("choices") or ()]
        if sample.options is None and len(choices) > 1:
            sample.options = choices
    elif doc.values:
        item = as_item(doc.values)
        sample.question, sample.options, sample.gold = item.question, item.options, item.gold
    label = (label or [None])[0] if isinstance(label, list) else label
    if isinstance(label, int) and not isinstance(label, bool) and len(outputs) > 1:
        sample.gold_index, sample.gold = as_count(label), None
    elif label is not None:
        sample.gold = as_text(label)
    # The option that is most likely under the main metric.
    kind = (row["@main"] or "acc_raw").removeprefix("acc_")
    raw = metrics.get("predicted_index_raw")
    chosen = as_count(metrics.get(f"predicted_index_{kind}", raw))
    if chosen is not None and chosen < len(outputs):
        sample.k = len(outputs) if len(outputs) > 1 else None
        sample.choice = dict(enumerate(sample.options or ())).get(chosen)
        sample.logprob_answer = number(outputs[chosen].get("sum_logits"))
        sample.logprob_gold = number(metrics.get("sum_logits_corr"))
    errors = as_mapping(outputs[0].get("scoring_errors")) if outputs else {}
    for score in sample.scores:
        if score.scorer in errors:
            score.value, score.outcome = None, Outcome.ERROR
            sample.error = as_json_text(errors[score.scorer])
    if sample.choice is not None or "predicted_index_raw" in metrics:
        sample.tokens_out = sample.response = None


def _bare(query: str) -> tuple[str, list[str] | None]:
    """Return the question without the template, and the options listed in it, if any."""
    text = re.sub(r"\s*(?:Answer|A):$", "", query.strip())
    text = re.sub(r"^(?:(?:Question|Q|Goal):\s*)+", "", text)
    lines = list(_OPTION.finditer(text))
    letters = "".join(option["letter"] for option in lines)
    if len(lines) < 2 or not ascii_uppercase.startswith(letters):
        return text, None
    return text[: lines[0].start()].rstrip(), [option["text"].strip() for option in lines]


def _state_means(reading: LogReading) -> None:
    for name, value in as_mapping(reading.head["metrics"]).items():
        if name in _OLMES_METRICS:
            reading.state(f"metrics.{name}", value, name)


OLMES = Format(
    name="olmes",
    title="OLMES predictions",
    fields=[("doc_id", "model_output")],
    accepts=lambda file: any(map(_metrics_of, file.peek.objects)),
    beside={
        "requests": Companion(
            fields=[("doc_id", "request", "doc")],
            belongs=lambda file, other: (
                _common_name(file) == _common_name(other) and is_beside(file, other)
            ),
        ),
        "metrics": Companion(fields=[_TOTALS, _TOTALS_OF_RUN], belongs=_hold_metrics_of),
    },
    rows=_measured_rows,
    preferred=_OLMES_METRICS,
    harness=lambda head: "olmo-eval" if head["run"] else "olmes",
    about=_about,
    model=lambda head: head.plain("model", "setup.model") or head.folder_in("predictions"),
    revision=plain("setup.revision"),
    created=lambda head: (
        (head.plain("current_date", "run.timestamp") or "")[:19].replace(" ", "T") or None
    ),
    decoding=lambda head: numbers(as_mapping(head["config.generation_kwargs"])),
    # Variants of a task share its name, but not their alias.
    tasks=lambda head: (
        head.plain("config.metadata.alias", "task_name", "task")
        or re.sub("_[0-9a-f]{6}$", "", _task_name(head.file))
        or "olmes"
    ),
    task_version=plain("config.version"),
    shots=["config.num_shots", "config.num_fewshot"],
    main=plain("primary_metric", "config.primary_metric"),
    metrics=lambda _: dict.fromkeys(_LOWER_IS_BETTER, MetricInfo(higher_is_better=False)),
    repeat=0,
    scores=_measured,
    finish=_finish,
    totals=_state_means,
)
"""A line per item with its metrics; requests and totals are in files beside it.

    OLMES      task-000-NAME-{predictions,requests}.jsonl, -metrics.json; {"metrics": {NAME: value}}
    olmo-eval  predictions/ and requests/ per model, metrics.json;
               {"instance_metrics": {METRIC: {SCORER: value}}}, or flat in the first versions"""
