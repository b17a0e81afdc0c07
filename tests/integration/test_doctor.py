"""`forgetmap doctor` reports the installation as it is, with a hint for each fault."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from command_line import Done, call, process
from forgetmap import doctor
from forgetmap.doctor import Part, all_parts, examine
from forgetmap.errors import ForgetmapError
from forgetmap.scoring import SCORERS
from forgetmap.scoring.scorers.code import code
from plugin_packages import write_package
from scripted_server import scripted_server, usual

ROOT = Path(__file__).parents[2]
SECRET = "sk-never-to-be-seen"


def part(trial: Any, **more: Any) -> Part:
    return Part("group", "name", "something", trial, "get it.", **more)


def raising(error: Exception) -> Any:
    def trial() -> str:
        raise error

    return trial


@pytest.fixture(scope="module")
def whole() -> Done:
    """The command as a process of its own, with a key that must not show."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FORGETMAP_API_KEY", SECRET)
        patch.setenv("HF_HUB_OFFLINE", "1")
        return process("doctor", "--json")


def test_what_the_tests_need_works_here(whole: Done) -> None:
    assert whole.code == 0, whole.err
    found = {each["name"]: each for each in json.loads(whole.out)["parts"]}
    for name in ("Python", "DuckDB", "transformers", "LoRA adapters", "GGUF files", "pandas"):
        assert found[name]["state"] == "works", found[name]
        assert found[name]["todo"] == ""
    assert found["Ray"]["state"] == "installed"
    assert found["Spark"]["state"] == "installed"
    assert found["model hub"]["state"] == "broken"
    assert "HF_HUB_OFFLINE" in found["model hub"]["detail"]


def test_whatever_does_not_work_says_what_to_do(whole: Done) -> None:
    for each in json.loads(whole.out)["parts"]:
        assert bool(each["todo"]) == (each["state"] in {"missing", "broken"}), each


def test_the_key_is_never_shown(whole: Done) -> None:
    assert "FORGETMAP_API_KEY is set" in whole.out
    assert SECRET not in whole.out + whole.err


def test_every_extra_is_named_by_some_part() -> None:
    stated = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    told = " ".join(each.todo for each in all_parts())
    for extra in stated["optional-dependencies"]:
        assert f"forgetmap[{extra}]" in told


def test_each_kind_of_fault_is_a_finding() -> None:
    missing = examine(part(raising(ModuleNotFoundError(name="polars"))))
    assert (missing.state, missing.todo) == ("missing", "get it.")
    assert "polars" in missing.detail
    broken = examine(part(raising(OSError("libfoo.so: cannot open"))))
    assert broken.state == "broken"
    assert "libfoo.so" in broken.detail
    assert broken.todo.endswith("get it.")
    explained = examine(part(raising(ForgetmapError("it is full", hint="empty it."))))
    assert (explained.state, explained.detail, explained.todo) == (
        "broken", "it is full", "empty it.",
    )  # fmt: skip


def test_what_takes_long_is_tried_only_when_asked() -> None:
    slow = part(lambda: "1.0", thorough=lambda: "1.0, started")
    assert examine(slow).state == "installed"
    assert examine(slow, thorough=True).detail == "1.0, started"


def test_what_other_packages_add_is_listed_with_package_and_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = (
        "class Brevity:\n    name, version, fields = 'brevity', 1, {}\n    score = print\n"
        "brevity = code = Brevity()\n"
    )
    points = {"brevity": "brevity", "code": "code", "gone": "gone"}
    write_package(
        tmp_path, "short_scorers", source, {f"forgetmap.scorers/{k}": v for k, v in points.items()}
    )
    monkeypatch.syspath_prepend(tmp_path)
    scorers = replace(SCORERS)
    monkeypatch.setattr("forgetmap.scoring.SCORERS", scorers)
    parts = [each for each in all_parts() if each.group == "added by other packages"]
    found = {each.name: each for each in map(examine, parts) if "short_scorers" in each.serves}
    assert found["scorer brevity"].state == "works"
    assert found["scorer brevity"].detail == "short_scorers 1.0, short_scorers:brevity"
    assert found["scorer code"].state == "broken"
    assert "is ignored: the built-in scorer 'code' is used instead" in found["scorer code"].detail
    assert found["scorer code"].todo == "uninstall short_scorers."
    assert found["scorer gone"].state == "broken"
    assert "short_scorers:gone" in found["scorer gone"].detail
    assert scorers.get("code") is code


def test_an_old_java_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_392\"' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    found = examine(part(doctor.try_spark))
    assert found.state == "broken"
    assert "version 8" in found.detail
    assert "default-jre-headless" in found.todo


def test_no_browser(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert examine(part(doctor.try_browser)).state == "broken"


def test_a_library_that_takes_the_process_down_is_a_finding() -> None:
    with pytest.raises(ForgetmapError, match="does not start"):
        doctor._in_process("import os; os.kill(os.getpid(), 11)")
    assert doctor._in_process("print('noise'); print(42)") == "42"


def test_a_server_is_tried() -> None:
    with scripted_server(usual) as address:
        found = examine(part(doctor.try_server(f"{address}#yes"), needed=True))
    assert found.state == "works", found
    assert "completions" in found.detail


def test_a_server_that_is_not_there_ends_with_1(monkeypatch: pytest.MonkeyPatch) -> None:
    one = [each for each in all_parts(["http://127.0.0.1:9/v1#m"]) if each.serves == "a server"]
    monkeypatch.setattr("forgetmap.doctor.all_parts", lambda _: one)
    done = call("doctor", "http://127.0.0.1:9/v1#m")
    assert done.code == 1
    assert "fails" in done.out
    assert "127.0.0.1:9" in done.out


def test_the_hub_without_its_package_says_what_to_install() -> None:
    (hub,) = (each for each in all_parts() if each.name == "model hub")
    missing = ModuleNotFoundError("huggingface_hub", name="huggingface_hub")
    finding = examine(replace(hub, trial=raising(missing)))
    assert finding.todo == 'pip install "forgetmap[run]".'
