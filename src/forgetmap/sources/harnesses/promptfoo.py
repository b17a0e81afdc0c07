"""promptfoo: the output of an evaluation as one object, results of tests by provider and prompt.

version 1     `results` is a list; providers are not named, columns differ by prompt
from 2 on     `results.results` is a list with provider, prompt and test of each result
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from forgetmap.records import HarnessInfo, ModelInfo, Outcome, RunInfo
from forgetmap.sources.adapter import Log, Problems, Sample, Score, StatedTotal
from forgetmap.sources.decode import document, number
from forgetmap.sources.fields import (
    Fields,
    as_json_text,
    as_list,
    as_mapping,
    as_objects,
    as_text,
    replace_surrogates,
)
from forgetmap.sources.files import LogFile

PASS, SCORE = "pass", "score"
RESULT = frozenset({"success", "vars", "prompt"})
BROKEN = 2
"""The `failureReason` of a result that is an error, not a failed assertion."""
MAX_TASK_NAME = 60


class Promptfoo:
    """Outputs of promptfoo."""

    name = "promptfoo"
    preferred: Sequence[str] = (PASS,)

    def sniff(self, files: Sequence[LogFile]) -> Sequence[Log]:
        """Return one log per provider."""
        return [log for file in files if _is_output(file.peek.first) for log in _logs(file)]

    def read(self, log: Log, problems: Problems, *, texts: bool) -> Iterator[Sample]:
        """Yield one sample per result of the provider; each prompt is a task of its own."""
        file, provider = log.files[0], log.notes["provider"]
        top = as_mapping(document(file))
        results = as_list(_results(top))
        tests = _Tests(_prompts(top), _name(top))
        for index, content in enumerate(results):
            if not isinstance(content, dict):
                problems.add(file.name, "a result is not an object", field=f"results.{index}")
            elif _provider(content) == provider:
                row = Fields(content, file, None, problems)
                yield _sample(row, tests, texts=texts)
        count = number(as_mapping(_part(top, "stats")).get("successes"))
        if count is not None and not log.notes["shared"] and len(tests.prompts) <= 1:
            total = StatedTotal(tests.name, "stats.successes", count, metric=PASS)
            problems.totals.append(total)


def _is_output(top: Mapping[str, Any]) -> bool:
    results = as_list(_results(top))
    return any(as_mapping(result).keys() >= RESULT for result in results[:3]) and (
        "evalId" in top or "version" in top or "version" in as_mapping(top.get("results"))
    )


def _part(top: Mapping[str, Any], name: str) -> object:
    """Return a field of the evaluation, in the current format or that of version 1."""
    results = top.get("results")
    return results.get(name) if isinstance(results, dict) else top.get(name)


def _results(top: Mapping[str, Any]) -> object:
    return _part(top, "results")


def _logs(file: LogFile) -> Iterator[Log]:
    top = as_mapping(document(file))
    results = as_objects(_results(top))
    providers = list(dict.fromkeys(map(_provider, results)))
    stamp = as_text(_part(top, "timestamp"))
    for provider in providers:
        info = RunInfo(
            run_id=as_text(top.get("evalId")) if len(providers) == 1 else None,
            model=ModelInfo(name=provider),
            harness=HarnessInfo(name="promptfoo"),
            created=stamp,
        )
        notes = {"provider": provider, "shared": len(providers) > 1}
        yield Log("promptfoo", (file,), info, (), stamp, format="promptfoo output", notes=notes)


def _provider(result: Mapping[str, Any]) -> str | None:
    """Return the label of the provider, else its id."""
    provider = result.get("provider")
    if isinstance(provider, dict):
        provider = provider.get("label") or provider.get("id")
    return as_text(provider) or None


def _name(top: Mapping[str, Any]) -> str:
    """Return the description of the evaluation in its configuration."""
    return as_text(as_mapping(top.get("config")).get("description")) or "promptfoo"


def _prompts(top: Mapping[str, Any]) -> list[str]:
    """Return the templates of all prompts, which the evaluation lists once for each provider."""
    head = as_mapping(as_mapping(_part(top, "table")).get("head"))
    listed = as_list(_part(top, "prompts")) or as_list(head.get("prompts"))
    return list(dict.fromkeys(filter(None, map(_template, listed))))


def _template(prompt: object) -> str:
    """Return the name of a prompt: `label`, in version 1 `display`, or its text."""
    about = as_mapping(prompt)
    return as_text(about.get("label") or about.get("display") or about.get("raw") or prompt) or ""


@dataclass(slots=True)
class _Tests:
    """Names of tasks and items; promptfoo numbers the repetitions of a test separately."""

    prompts: Sequence[str]
    name: str
    first: dict[str, str] = field(default_factory=dict)

    def task(self, result: Mapping[str, Any]) -> str:
        """Return the name of the evaluation, with the prompt if there are several."""
        if len(self.prompts) <= 1:
            return self.name
        template = _template(result.get("prompt"))
        words = " ".join(template.split())
        if 0 < len(words) <= MAX_TASK_NAME:
            return f"{self.name}: {words}"
        label = self.prompts.index(template) + 1 if template in self.prompts else _digest(template)
        return f"{self.name}: prompt {label}"

    def item(self, result: Mapping[str, Any]) -> str:
        """Return the number of the first test with the same content, else a hash of the content."""
        test = as_mapping(result.get("testCase"))
        content = [result.get("vars"), test.get("assert"), test.get("description")]
        key = json.dumps(content, sort_keys=True, default=str)
        number_of = as_text(result.get("testIdx"))
        return self.first.setdefault(key, number_of or _digest(key))


def _digest(text: str) -> str:
    return blake2b(text.encode("utf-8", "replace"), digest_size=4).hexdigest()


def _sample(row: Fields, tests: _Tests, *, texts: bool) -> Sample:
    response = row.part("response")
    error = _error(row)
    tokens = response.part("tokenUsage")
    variables = row.values.get("vars")
    prompt = row.values.get("prompt")
    text = prompt if isinstance(prompt, str) else as_mapping(prompt).get("raw")
    return Sample(
        task=tests.task(row.values),
        item=tests.item(row.values),
        scores=_scores(row, failed=error is not None),
        repeat=None,
        question=as_json_text(variables) if variables else as_text(text),
        tokens_in=tokens.count("prompt"),
        tokens_out=tokens.count("completion"),
        prompt=as_text(text) if texts else None,
        response=as_json_text(response.values.get("output")) if texts else None,
        error=error,
        file=row.file.name,
    )


def _error(row: Fields) -> str | None:
    """Return the error of a result that was not graded, not that of a failed assertion."""
    error, reason = row.json_text("error"), row.values.get("failureReason")
    is_broken = reason == BROKEN if reason is not None else row.values.get("gradingResult") is None
    return error if error and is_broken and row.values.get("success") is not True else None


def _scores(row: Fields, *, failed: bool) -> list[Score]:
    """Return pass or fail, the score, and named scores."""
    values = {PASS: row.number("success")}
    if row.values.get(SCORE) is not None:
        values[SCORE] = row.number(SCORE)
    named = row.part("namedScores")
    values |= {replace_surrogates(name): named.number(name) for name in named.values}
    outcome = Outcome.ERROR if failed else None
    return [Score(name, None if failed else v, outcome=outcome) for name, v in values.items()]
