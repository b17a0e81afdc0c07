from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from run_folders import results, write

pytest_plugins = ["pytester"]
ROOT = Path(__file__).parents[2]


@pytest.fixture
def inner(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A folder with runs, in which pytest has no other plugin than ours."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    for name in ("main", "same"):
        write(pytester.path / name, results([1.0] * 900 + [0.0] * 100))
    write(pytester.path / "worse", results([1.0] * 700 + [0.0] * 300))
    for name in ("few", "fewer"):
        write(pytester.path / name, results([1.0] * 10))
    return pytester


def run(inner: pytest.Pytester, *options: str) -> pytest.RunResult:
    return inner.runpytest_inprocess("-p", "forgetmap.pytest_plugin", *options)


def test_every_gate_is_in_the_summary(inner: pytest.Pytester) -> None:
    inner.makepyfile(
        """
        from forgetmap.gate import assert_no_forgetting

        def test_same():
            assert_no_forgetting("main", "same")

        def test_worse():
            assert_no_forgetting("main", "worse")

        def test_open():
            assert_no_forgetting("few", "fewer", margin=0.001, inconclusive="skip")

        def test_else():
            pass
        """
    )
    done = run(inner, "-rs", "--junit-xml=own.xml")
    done.assert_outcomes(passed=2, failed=1, skipped=1)
    done.stdout.fnmatch_lines(["E *AssertionError: FAIL: loss: *", "E *loss: FAIL: *"])
    done.stdout.fnmatch_lines(["*= forgetmap gates =*"])
    for name, status in (("same", "PASS"), ("worse", "FAIL"), ("open", "INCONCLUSIVE")):
        done.stdout.fnmatch_lines([f"*::test_{name}: {status}: loss: *"])
    done.stdout.fnmatch_lines(["SKIPPED *INCONCLUSIVE: loss: *"])
    done.stdout.fnmatch_lines(["*::test_worse: FAIL: *. 200 forgotten, 0 gained of 1,000."])
    assert 'name="forgetmap_gate" value="PASS: ' in (inner.path / "own.xml").read_text("utf-8")


def test_nothing_is_said_where_no_gate_ran(inner: pytest.Pytester) -> None:
    inner.makepyfile("def test_else():\n    pass\n")
    done = run(inner)
    done.assert_outcomes(passed=1)
    done.stdout.no_fnmatch_line("*forgetmap*gates*")


def test_the_command_line_names_the_runs_of_the_fixture(inner: pytest.Pytester) -> None:
    inner.makepyfile("def test_model(forgetmap_gate):\n    forgetmap_gate()\n")
    runs = ("--forgetmap-before", "main", "--forgetmap-after")
    run(inner, *runs, "same").assert_outcomes(passed=1)
    run(inner, *runs, "worse").assert_outcomes(failed=1)
    (inner.path / "policy.toml").write_text("[[rule]]\nmargin = 0.5\n", encoding="utf-8")
    run(inner, *runs, "worse", "--forgetmap-policy", "policy.toml").assert_outcomes(passed=1)
    done = run(inner, *runs[:2])
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["no run given; use pytest --forgetmap-after PATH"])


def test_the_package_offers_the_plugin() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {"forgetmap": "forgetmap.pytest_plugin"}


def test_it_imports_nothing_that_takes_time() -> None:
    code = (
        "import sys, forgetmap.pytest_plugin; "
        "print(sorted(name for name in sys.modules if name.startswith('forgetmap')), "
        "{'numpy', 'duckdb', 'pyarrow', 'pydantic', 'narwhals', 'scipy'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    names = ["forgetmap", "forgetmap._lazy", "forgetmap.errors", "forgetmap.pytest_plugin"]
    assert done.stdout == f"{names} set()\n"
