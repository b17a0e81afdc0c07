"""Plugin for pytest: options for two runs, a fixture for gates, and a summary at the end.

Every pytest loads it if forgetmap is installed, so it imports nothing of forgetmap before a test
uses it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from forgetmap.gate import GateResult

PROPERTY = "forgetmap_gate"
"""Name of the property of results in test reports, also in the JUnit file of pytest."""
_OPTIONS = {
    "before": "Run of the model before training, for the fixture forgetmap_gate.",
    "after": "Run of the model after training, for the fixture forgetmap_gate.",
    "policy": "Policy of the gate, for the fixture forgetmap_gate.",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--forgetmap-before`, `--forgetmap-after` and `--forgetmap-policy`."""
    group = parser.getgroup("forgetmap", "forgetting of models")
    for name, text in _OPTIONS.items():
        group.addoption(f"--forgetmap-{name}", metavar="PATH", help=text)


@pytest.fixture
def forgetmap_gate(request: pytest.FixtureRequest) -> Callable[..., GateResult]:
    """Return `assert_no_forgetting` for the runs given on the command line."""
    paths = {name: request.config.getoption(f"--forgetmap-{name}") for name in _OPTIONS}

    def check(**options: Any) -> GateResult:
        __tracebackhide__ = True
        from forgetmap.gate import assert_no_forgetting

        for name in ("before", "after"):
            if paths[name] is None:
                pytest.fail(f"no run given; use pytest --forgetmap-{name} PATH", pytrace=False)
        if paths["policy"] is not None:
            options = {"policy": paths["policy"], **options}
        return assert_no_forgetting(paths["before"], paths["after"], **options)

    return check


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Store the results of a test as properties of its report, which worker processes send on."""
    try:
        return (yield)
    finally:
        if "forgetmap.gate" in sys.modules:
            from forgetmap.gate import take_results

            item.user_properties += [
                (PROPERTY, f"{result.headline} {result.counts}".rstrip())
                for result in take_results()
            ]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print a line for each gate, also for tests that passed."""
    lines = [
        f"{report.nodeid}: {value}"
        for reports in terminalreporter.stats.values()
        for report in reports
        if isinstance(report, pytest.TestReport) and report.when == "call"
        for name, value in report.user_properties
        if name == PROPERTY
    ]
    if lines:
        terminalreporter.section("forgetmap gates")
        for line in lines:
            terminalreporter.line(line)
