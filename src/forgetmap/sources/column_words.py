"""Words in the names of columns, and what their values are: verdicts, shares, labels, texts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from forgetmap.sources.cells import EVERY
from forgetmap.sources.decode import number

MAX_LABELS = 8
MIN_NUMBERS = 0.9
"""Share of values from which on a column is one of numbers."""
Kind = Literal["verdict", "share", "graded", "label", "text", "list", "nothing"]
VERDICTS: Mapping[str, float] = {
    "true": 1.0, "yes": 1.0, "pass": 1.0, "passed": 1.0, "correct": 1.0, "right": 1.0,
    "success": 1.0, "resolved": 1.0, "solved": 1.0,
    "false": 0.0, "no": 0.0, "fail": 0.0, "failed": 0.0, "incorrect": 0.0, "wrong": 0.0,
    "failure": 0.0, "unresolved": 0.0, "unsolved": 0.0,
}  # fmt: skip
"""Words for right and wrong."""
CERTAIN = frozenset({
    "correct", "passed", "pass", "resolved", "solved", "success", "successful", "acc", "accuracy",
    "match", "em", "right", "correctness", "iscorrect", "truefalse", "ok",
})  # fmt: skip
"""Words in names of scores that say whether an answer is right."""
LIKELY = frozenset({
    "score", "scores", "reward", "rewards", "grade", "graded", "rating", "f1", "verdict",
    "result", "outcome", "judge", "judgment", "judgement", "accs", "points", "preference",
    "normalized",
})  # fmt: skip
"""Words in names of other scores."""
LOWER = frozenset({
    "wer", "cer", "ter", "loss", "error", "errors", "perplexity", "ppl", "brier", "distance",
    "toxicity", "toxic", "harm", "harmful", "hallucination", "hallucinated", "refusal", "refused",
})  # fmt: skip
"""Words in names of measures that are better if they are lower."""
WHOSE_LABEL = frozenset({"judge", "human", "eval", "grade", "annotator", "rater"})
NEVER = frozenset({
    "id", "ids", "idx", "index", "n", "seed", "difficulty", "level", "temperature", "tokens",
    "token",
    "count", "num", "number", "length", "len", "time", "latency", "duration", "cost", "price",
    "year", "confidence", "prob", "probability", "logprob", "logprobs", "step", "steps", "turn",
    "turns", "epoch", "size", "rank", "position", "width", "height", "timestamp", "total", "ms",
    "repeat", "trial", "attempt", "depth", "version", "date", "reason", "justification",
    "explanation", "feedback", "error", "errors",
})  # fmt: skip
"""Words in names of settings and measurements."""
ITEM = (
    "item", "id", "itemid", "questionid", "sampleid", "docid", "promptid", "exampleid",
    "instanceid", "problemid", "taskid", "testid", "uniqueid", "uid", "uuid", "qid", "pid", "key",
    "idx", "index", "example",
)  # fmt: skip
QUESTION = ("question", "problem", "instruction", "query", "prompt", "input", "task")
CONTENT = ("content", "text")
"""Names of the text of a message, or of a part of it."""
TASK = ("task", "benchmark", "dataset", "taskname", "subject", "eval", "suite", "testname")
CATEGORY = ("category", "difficulty", "domain", "topic", "subject", "hardness")
REPEAT = (
    "repeat", "trial", "trialid", "epoch", "attempt", "iteration", "sampleindex", "sample",
    "completionid", "runid", "run", "seed",
)  # fmt: skip
RESPONSE = ("response", "modelresponse", "output", "modeloutput", "completion", "generation")
GOLD = frozenset({
    "gold", "golden", "golds", "target", "targets", "truth", "groundtruth", "gt", "expected",
    "reference", "references", "correct", "label", "labels", "goldanswer", "correctanswer",
    "trueanswer", "rightanswer", "answerkey", "true",
})  # fmt: skip
ANSWER = frozenset({
    "pred", "preds", "predicted", "prediction", "predictions", "extracted", "parsed", "picked",
    "chosen", "predict", "output", "response", "completion", "generation", "modelanswer",
})  # fmt: skip
STATED_RIGHT = frozenset({
    "correct", "numcorrect", "ncorrect", "correctcount", "totalcorrect", "numsolved", "solved",
    "passed", "resolvedinstances",
})  # fmt: skip
STATED_MEAN = frozenset({"acc", "accuracy", "score", "passrate", "pass@1", "successrate"})
STATED_ROWS = frozenset({
    "total", "count", "totalquestions", "numquestions", "nquestions", "numexamples", "nexamples",
    "numsamples", "nsamples", "totalsamples", "totalexamples",
})  # fmt: skip
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


def words_of(path: str) -> list[str]:
    """Return the words in the last name of a path, in lower case."""
    names = [name for name in path.split(".") if name != EVERY] or [path]
    return [word.lower() for word in _PARTS.findall(names[-1])]


def all_words_of(path: str) -> set[str]:
    """Return the words in all names of a path, alone and together: `ground_truth.answer`."""
    names = [name for name in path.split(".") if name != EVERY]
    return {word for name in names for word in (*words_of(name), word_of(name))}


def names_rows(path: str) -> bool:
    """Whether a name ends like one of an id: `pair_id`, `position_idx`, `key`."""
    return word_of(path) in ITEM or words_of(path)[-1:] in (["id"], ["idx"], ["index"], ["uuid"],
                                                           ["uid"], ["key"], ["no"])  # fmt: skip


def word_of(path: str) -> str:
    """Return the last name of a path in lower case, without separators."""
    return "".join(words_of(path))


def rank_of(path: str) -> int | None:
    """Return the rank of the name of a column; `scores.overall` is a score by its object."""
    rank, parent = name_rank(words_of(path)), path.rpartition(".")[0]
    is_inside = bool(parent) and word_of(parent) in {"scores", "score", "grades", "ratings"}
    return 1 if rank is None and is_inside else rank


def name_rank(words: Sequence[str]) -> int | None:
    """Return 0 for the name of a verdict, 1 for that of another score, None for any other name."""
    if CERTAIN.intersection(words) or {"true", "false"} <= {*words}:
        return 0
    if "label" in words:  # alone it is the right answer
        return 1 if WHOSE_LABEL.intersection(words) else None
    return 1 if LIKELY.intersection(words) else None


def kind_of(values: Sequence[Any]) -> Kind:
    """Return what the values of a column are."""
    known = [value for value in values if value not in (None, "")]
    if not known:
        return "nothing"
    if any(isinstance(value, list | dict) for value in known):
        return "list"
    texts = {str(value).strip().lower() for value in known}
    if texts <= VERDICTS.keys():
        return "verdict"
    numbers = [number for value in known if (number := as_number(value)) is not None]
    if len(numbers) >= MIN_NUMBERS * len(known):  # a label among numbers is an answer without score
        if {*numbers} <= {0.0, 1.0}:
            return "verdict"
        return "share" if all(0 <= value <= 1 for value in numbers) else "graded"
    return "label" if len(texts) <= MAX_LABELS and len(texts) < len(known) else "text"


def as_number(value: Any) -> float | None:
    """Return a number, truth value or numeric text as a number; else None."""
    return None if isinstance(value, list | dict) else number(value)


def right_word(values: Sequence[Any]) -> str | None:
    """Return the word for a right answer; None if the values are truth values or numbers."""
    texts = {str(value).strip() for value in values if value not in (None, "")}
    if any(as_number(text) is not None for text in texts):
        return None
    return next((text for text in sorted(texts) if VERDICTS.get(text.lower())), None)


def as_share(value: Any) -> float | None:
    """Return a number, or a word for right and wrong as 1 and 0; else None."""
    if isinstance(value, str) and value.strip().lower() in VERDICTS:
        return VERDICTS[value.strip().lower()]
    return None if isinstance(value, tuple) else as_number(value)


def has_lists(values: Sequence[Any]) -> bool:
    """Whether some values are lists or objects."""
    return any(isinstance(value, list | dict) for value in values)
