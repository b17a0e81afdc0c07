"""Code answers that must pass tests, as in HumanEval and MBPP.

The tests run in a separate process with the real builtins, whatever the code does to its own. The
code does not see the tests, and is not run as `__main__`, so that its examples do not run.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from forgetmap.errors import FieldError
from forgetmap.records import Outcome
from forgetmap.scoring.extract.failures import is_loop, why_nothing
from forgetmap.scoring.extract.golds import unwrap
from forgetmap.scoring.extract.python_code import CodeBlock, defined_names, find_python, parse
from forgetmap.scoring.extract.thinking import visible_text, without_thinking
from forgetmap.scoring.grade import Grade, grade_answer, grade_failure, grade_missing
from forgetmap.scoring.scorer import (
    FORMS,
    Fields,
    Program,
    ProgramResult,
    Scale,
    ScorerInput,
    both_forms,
)

_BUILTINS = frozenset(vars(builtins))


@dataclass(frozen=True, slots=True)
class CodeTests:
    """Tests of code: their source, and the names they need."""

    source: str
    names: frozenset[str]


class CodeTestScorer:
    """Scorer of code by tests: all must pass."""

    name = "code"
    version = 2
    fields: Mapping[str, Scale] = FORMS

    def program(self, sample: ScorerInput) -> Program | None:
        """Return the code of the response and its tests; None if the response has no code."""
        tests = _tests(sample)
        block = _code_block(sample, tests)
        if block is None:
            return None
        return Program(block.source, tests.source, tests.names & _BUILTINS)

    def settle(self, sample: ScorerInput, result: ProgramResult | None) -> Fields:
        """Grade the code: right if it passed, missing if the sandbox could not run it.

        `error` is the reason of a failure.
        """
        block = _code_block(sample, _tests(sample))
        return both_forms(_no_code(sample) if block is None else _verdict(sample, block, result))


def _code_block(sample: ScorerInput, tests: CodeTests) -> CodeBlock | None:
    text, _ = without_thinking(sample.response)
    return find_python(text, tests.names, sample.question[-1] if sample.question else "")


def _no_code(sample: ScorerInput) -> Grade:
    text, cut = visible_text(sample.response, sample.finish_reason)
    return grade_failure(
        Outcome.DEGENERATE if is_loop(sample.response) else why_nothing(text, cut=cut)
    )


def _verdict(sample: ScorerInput, block: CodeBlock, result: ProgramResult | None) -> Grade:
    if result is None:
        return grade_missing("the code was not run", block.source, strict=block.alone)
    if result.failed_to_start:
        return grade_missing(result.reason, block.source, strict=block.alone)
    if not result.passed and sample.finish_reason == "length":
        return replace(grade_failure(Outcome.TRUNCATED), answer=block.source, error=result.reason)
    grade = grade_answer(block.source, right=result.passed, strict=block.alone)
    return grade if result.passed else replace(grade, error=result.reason)


def _tests(sample: ScorerInput) -> CodeTests:
    """Return the tests in `material` (tests, entry_point, test_setup), or in the right answer.

    Raises:
        FieldError: there are no tests, or they are not Python.
    """
    gold = unwrap(sample.gold)
    fields: Mapping[str, Any] = {**(gold if isinstance(gold, Mapping) else {}), **sample.material}
    tests = unwrap(fields.get("tests", fields.get("test", fields.get("test_list"))))
    lines = tests if isinstance(tests, list | tuple) else [tests] if isinstance(tests, str) else []
    entry = str(fields.get("entry_point") or "").strip()
    setup = [str(fields.get(name) or "") for name in ("test_setup", "test_setup_code")]
    source = "\n".join([*filter(str.strip, setup), *map(str, lines)])
    tree = parse(source)
    if tree is None or not tree.body:
        raise FieldError(
            "there are no usable tests" if tree else "the tests are not valid Python",
            field="tests",
            hint="add tests as Python in `tests`, with `entry_point` if they define `check`.",
        )
    if entry and "check" in defined_names(source) and not _calls_check(tree):
        source += f"\ncheck({entry})"
    return CodeTests(source, frozenset({entry}) if entry else _called_names(tree))


def _calls_check(tree: ast.Module) -> bool:
    return any(
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and getattr(node.value.func, "id", "") == "check"
        for node in tree.body
    )


def _called_names(tree: ast.Module) -> frozenset[str]:
    """Return names that the tests call and do not define; builtins only if there are no others."""
    calls = {
        node.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    own = {
        name.id
        for name in ast.walk(tree)
        if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
    } | {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    imported = {
        (alias.asname or alias.name).partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    needed = calls - own - imported
    return frozenset(needed - _BUILTINS or needed)


code = CodeTestScorer()
