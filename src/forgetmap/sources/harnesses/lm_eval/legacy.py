"""Adapter for lm-evaluation-harness 0.3: `*_write_out_info.json` with the prompts of documents.

The document itself is not logged, so the question is taken from the prompts: the text after the
last blank line, where the examples end.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from forgetmap.sources.adapter import Log, Problems, Sample, Score
from forgetmap.sources.datasets import option_index
from forgetmap.sources.decode import number, rows
from forgetmap.sources.files import LogFile
from forgetmap.sources.harnesses.lm_eval.results import Results, find_results, legacy_run_info

_NUMBERED = re.compile(r"(?:prompt|logit)_\d+")
_SUFFIX = re.compile(r"_write_out_info\b.*")
_NO_NUMBER = re.compile(r"^(?:nan|-?inf(?:inity)?)$", re.IGNORECASE)
_BEFORE_QUESTION = re.compile(r"^(?:Question|Q|Problem):\s*")
_BEFORE_ANSWER = re.compile(r"\s*\n(?:Answer|A):")


class LmEvalLegacy:
    """Logs of lm-evaluation-harness 0.3."""

    name = "lm-eval-0.3"
    preferred: Sequence[str] = ("acc", "em", "exact_match", "bleu_acc", "bleurt_acc")

    def sniff(self, files: Sequence[LogFile]) -> Sequence[Log]:
        """Return one log per task, from files whose rows hold the prompts of a document."""
        samples = [file for file in files if _is_samples(file)]
        results = find_results(files) if samples else []
        groups: dict[tuple[object, ...], list[LogFile]] = defaultdict(list)
        for file in samples:
            groups[_group(file)].append(file)
        return [_log(group, results) for group in groups.values()]

    def read(self, log: Log, problems: Problems, *, texts: bool) -> Iterator[Sample]:
        """Yield one sample per document."""
        for file in filter(_is_samples, log.files):
            for line, row in rows(file, problems):
                sample = _sample(log.tasks[0], row, file, line, problems)
                if sample is not None:
                    response = row.get("logit_0") if texts else None
                    sample.prompt = row["prompt_0"]
                    sample.response = response if isinstance(response, str) else None
                    yield sample
        problems.totals += log.notes["totals"]


def _is_samples(file: LogFile) -> bool:
    return file.peek.has("doc_id", "prompt_0") and "doc" not in file.peek.keys


def _group(file: LogFile) -> tuple[object, ...]:
    """Return folder and task; the fields instead of the task if the file name has none."""
    folder, _, name = file.inside.rpartition("/")
    if _SUFFIX.search(name):
        return folder, _SUFFIX.sub("", name)
    return folder, tuple(sorted(file.peek.keys))


def _log(files: Sequence[LogFile], results: Sequence[Results]) -> Log:
    folder, _, name = files[0].inside.rpartition("/")
    task = _SUFFIX.sub("", name.partition(".json")[0]) or "lm-eval"
    info, about = legacy_run_info(task, folder, results)
    return Log(
        LmEvalLegacy.name,
        (*files, *(() if about is None else (about.file,))),
        info,
        (task,),
        format="lm-eval 0.3",
        notes={"totals": [] if about is None else about.totals(task)},
    )


def _sample(
    task: str, row: Mapping[str, Any], file: LogFile, line: int, problems: Problems
) -> Sample | None:
    doc_id, prompts = row.get("doc_id"), _numbered(row, "prompt")
    if isinstance(doc_id, bool) or not isinstance(doc_id, int | str):
        problems.add(file.name, "the row has no usable id", line=line, field="doc_id")
        return None
    if not prompts or not all(isinstance(prompt, str) and prompt.strip() for prompt in prompts):
        problems.add(file.name, "the row has no question", line=line, field="prompt_0")
        return None
    scores = _scores(row)
    if not scores:
        problems.add(file.name, "the row has no score that is a number", line=line)
        return None
    sample = Sample(task, str(doc_id), scores, file=file.name, line=line)
    sample.question, options = question_and_options(prompts)
    _answer(sample, row, options)
    return sample


def _numbered(row: Mapping[str, Any], kind: str) -> list[Any]:
    """Return the values of `prompt_0`, `prompt_1`, ... (or `logit_0`, ...) in order."""
    values: list[Any] = []
    while f"{kind}_{len(values)}" in row:
        values.append(row[f"{kind}_{len(values)}"])
    return values


def _scores(row: Mapping[str, Any]) -> list[Score]:
    """Return the metrics, which are logged as texts, except those that are not numbers."""
    names = [n for n in row if n not in ("doc_id", "truth") and not _NUMBERED.fullmatch(n)]
    return [
        Score(name, number(row[name]))
        for name in names
        if number(row[name]) is not None
        or (isinstance(row[name], str) and _NO_NUMBER.match(row[name].strip()))
        or row[name] is None
    ]


def question_and_options(prompts: Sequence[str]) -> tuple[str, list[str] | None]:
    """Return question and options from the prompts of all requests of a document."""
    last = [prompt.rstrip().rpartition("\n\n")[2] for prompt in prompts]
    if len(set(last)) == 1:
        return _bare(last[0]), None
    start = _shared(last)
    cut = list(_BEFORE_ANSWER.finditer(start))
    if cut:
        return _bare(start[: cut[-1].end()]), [text[cut[-1].end() :].strip() for text in last]
    start = start[: start.rfind(" ") + 1]
    end = _shared([text[len(start) :][::-1] for text in last])[::-1]
    end = end[end.find(" ") :] if " " in end else ""
    options = [text[len(start) : len(text) - len(end)].strip() for text in last]
    return _bare(f"{start}_{end}" if end else start) or last[0], options


def _shared(texts: Sequence[str]) -> str:
    """Return the common prefix of all texts."""
    low, high = min(texts), max(texts)
    return next(
        (low[:n] for n, pair in enumerate(zip(low, high, strict=False)) if len({*pair}) > 1), low
    )


def _bare(text: str) -> str:
    """Return a question without "Question:" before it and "Answer:" after it."""
    bare = _BEFORE_QUESTION.sub("", text)
    matches = list(_BEFORE_ANSWER.finditer(bare))
    if matches and matches[-1].end() == len(bare.rstrip()):
        bare = bare[: matches[-1].start()]
    return bare.strip() or text.strip()


def _answer(sample: Sample, row: Mapping[str, Any], options: list[str] | None) -> None:
    """Set the right answer, and the chosen option if every option has a log-likelihood."""
    truth = row.get("truth")
    logits = [
        number(value[0] if isinstance(value, list) and value else value)
        for value in _numbered(row, "logit")
        if not isinstance(value, str)
    ]
    several = options is not None and len(options) == len(logits) and len(set(options)) > 1
    if several and options is not None:
        labels = all(len(option.strip("()")) == 1 for option in options)
        sample.options = None if labels else options
        sample.k = len(options)
    index = option_index(truth, len(options or ())) if several and isinstance(truth, int) else None
    if index is not None:
        sample.gold_index = index
    elif isinstance(truth, str | int | float):
        sample.gold = str(truth).strip()
    if several and options is not None:
        _choose(sample, [value for value in logits if value is not None], options)


def _choose(sample: Sample, logits: Sequence[float], options: Sequence[str]) -> None:
    """Set the most likely option as the choice, unless `acc` contradicts it."""
    if len(logits) != len(options):
        return
    index = logits.index(max(logits))
    gold = sample.gold_index
    if gold is not None and 0 <= gold < len(options):
        sample.logprob_gold = logits[gold]
        scored = {score.value for score in sample.scores if score.metric == "acc"}
        if scored and scored != {float(index == gold)}:
            return
    sample.choice, sample.logprob_answer = options[index], logits[index]
