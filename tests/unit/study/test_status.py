"""Status of a study: done, stopped, failed, missing, and the next command."""

from __future__ import annotations

from pathlib import Path

from forgetmap.errors import FieldError
from forgetmap.study import parse_study, study_status, tell_status
from forgetmap.study.run_files import clear_failure, write_failure
from forgetmap.text import blocks_to_text
from run_folders import results, write

STUDY = 'name = "four"\nsuite = "basics"\n' + "".join(
    f'[[model]]\nid = "{name}"\nhub = "o/{name}"\n' for name in ("done", "failed", "open")
)
STUDY += '[[model]]\nid = "org/stopped"\nhub = "o/s"\nparent = "done"\n'


def test_every_model_has_a_state_a_reason_and_a_next_command(tmp_path: Path) -> None:
    study = parse_study(STUDY, "my study.toml")
    write(tmp_path / "done", results([1.0]))
    error = FieldError("it is gone", hint="bring it back.", file="my study.toml", line=3)
    write_failure(tmp_path, "failed", error)
    (tmp_path / ".org--stopped.journal.jsonl").write_text("head\none\ntwo\nhalf a li")
    status = study_status(study, tmp_path)
    assert [run.state for run in status.runs] == ["done", "failed", "missing", "stopped"]
    assert status.runs[3].answers == 2
    failed = status.runs[1]
    assert failed.reason == "my study.toml, line 3: it is gone"
    assert failed.next == f"forgetmap study run 'my study.toml' --out {tmp_path} --only failed"
    text = blocks_to_text(tell_status(status), 200)
    assert "FAILED  failed: my study.toml, line 3: it is gone" in text
    assert "org/stopped: stopped after 2 answers." in text
    assert f"Next: `forgetmap study run 'my study.toml' --out {tmp_path}`" in text
    clear_failure(tmp_path, "failed")
    assert study_status(study, tmp_path).runs[1].state == "missing"


def test_a_study_that_is_done_is_compared_next(tmp_path: Path) -> None:
    study = parse_study(STUDY, "study.toml")
    for name in ("done", "failed", "open", "org--stopped"):
        write(tmp_path / name, results([1.0]))
    status = study_status(study, tmp_path)
    assert status.next == f"forgetmap study compare study.toml --runs {tmp_path}"
