"""Adapter for lm-evaluation-harness 0.3: `*_write_out_info.json` with the prompts of documents.

The document itself is not logged, so the question is taken from the prompts: their last blocks,
behind the examples. Blank lines separate examples, but in some tasks also the parts of a question,
so it has as many blocks as are needed to tell the documents of a task apart.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from os.path import commonprefix  # of any texts
from typing import Any

from forgetmap.records import HarnessInfo, ModelInfo, RunInfo
from forgetmap.sources.adapter import Log, Problems, Sample, Score
from forgetmap.sources.datasets import option_index
from forgetmap.sources.decode import number, rows
from forgetmap.sources.files import LogFile
from forgetmap.sources.harnesses.lm_eval.results import Results, find_results, is_above

MAX_BLOCKS = 8
"""Blocks of a question; if more are needed, it is the whole prompt."""
MIN_DISTINCT, MAX_SAME = 0.95, 5
"""Distinct questions per distinct prompt, and prompts with one question: data sets repeat a few."""
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
            folder, _, name = file.inside.rpartition("/")
            has_task = _SUFFIX.search(name)
            task = _SUFFIX.sub("", name) if has_task else tuple(sorted(file.peek.keys))
            groups[folder, task].append(file)
        return [_log(group, results) for group in groups.values()]

    def read(self, log: Log, problems: Problems, *, texts: bool) -> Iterator[Sample]:
        """Yield one sample per document."""
        files = list(filter(_is_samples, log.files))
        blocks = _blocks_of_question(files)
        for file in files:
            for line, row in rows(file, problems):
                sample = _sample(log.tasks[0], row, blocks, file, line, problems)
                if sample is not None:
                    response = row.get("logit_0")
                    if texts and isinstance(response, str):
                        sample.response = response
                    yield sample
        problems.totals += log.notes["totals"]


def _is_samples(file: LogFile) -> bool:
    return file.peek.has("doc_id", "prompt_0") and "doc" not in file.peek.keys


def _log(files: Sequence[LogFile], results: Sequence[Results]) -> Log:
    folder, _, name = files[0].inside.rpartition("/")
    task = _SUFFIX.sub("", name.partition(".json")[0]) or "lm-eval"
    alias = folder.rpartition("/")[2] or None
    fitting = [r for r in results if is_above(r.file.inside, folder) and task in r.tasks]
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
    """Return how many blocks at the end of a prompt are the question; 0 for the whole prompt."""
    for blocks in range(1, MAX_BLOCKS + 1):
        question_of: dict[int, str] = {}
        for file in files:
            for _, row in rows(file, Problems()):
                prompts = _prompts(row)
                if prompts:
                    key = hash(tuple(prompts))
                    question_of[key] = question_and_options(prompts, blocks)[0]
        often = Counter(question_of.values())
        is_distinct = len(often) >= MIN_DISTINCT * len(question_of)
        if is_distinct and max(often.values(), default=0) <= MAX_SAME:
            return blocks
    return 0


def _sample(
    task: str, row: Mapping[str, Any], blocks: int, file: LogFile, line: int, problems: Problems
) -> Sample | None:
    doc_id, prompts, scores = row.get("doc_id"), _prompts(row), _scores(row)
    if isinstance(doc_id, bool) or not isinstance(doc_id, int | str):
        problems.add(file.name, "the row has no usable id", line=line, field="doc_id")
    elif not prompts:
        problems.add(file.name, "the row has no question", line=line, field="prompt_0")
    elif not scores:
        problems.add(file.name, "the row has no score that is a number", line=line)
    else:
        sample = Sample(task, str(doc_id), scores, file=file.name, line=line, prompt=prompts[0])
        sample.question, options = question_and_options(prompts, blocks)
        _answer(sample, row, options)
        return sample
    return None


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


def _scores(row: Mapping[str, Any]) -> list[Score]:
    """Return the metrics, which are logged as texts, except those that are not numbers."""
    scores = []
    for name, value in row.items():
        if name not in ("doc_id", "truth") and not _NUMBERED.fullmatch(name):
            score = number(value)
            is_nan = isinstance(value, str) and _NO_NUMBER.match(value.strip())
            if score is not None or is_nan or value is None:
                scores.append(Score(name, score))
    return scores


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


def _answer(sample: Sample, row: Mapping[str, Any], options: list[str] | None) -> None:
    """Set the right answer, and the chosen option if every option has a log-likelihood."""
    truth = row.get("truth")
    logits = [
        number(value[0] if isinstance(value, list) and value else value)
        for value in _numbered(row, "logit")
        if not isinstance(value, str)
    ]
    if options is None or len(options) != len(logits) or len(set(options)) < 2:
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
