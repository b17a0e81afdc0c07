"""requirements.lock has the hashes of the versions in constraints.txt, and tools verify them."""

from __future__ import annotations

import json
import re
import tomllib
from itertools import chain
from pathlib import Path

import pytest

import audit
import lock_hashes
from lock_hashes import CONSTRAINTS, LOCK, faults_of_lock, faults_of_report, hashes_on_page, locked

ROOT = Path(__file__).parent.parent
MARK = "a" * 64
PAGE = f"""
<a href="https://host/some_thing-1.0-py3-none-any.whl#sha256={MARK}">wheel</a>
<a href="https://host/some_thing-1.0.tar.gz#sha256={"b" * 64}">source</a>
<a href="https://host/some_thing-1.0.1-py3-none-any.whl#sha256={"c" * 64}">later</a>
<a href="https://host/some_thing-1.0-cp38-cp38-linux_x86_64.whl#sha256={"d" * 64}">old Python</a>
<a href="https://host/some_thing_else-1.0.tar.gz#sha256={"e" * 64}">another</a>
"""


def test_every_pin_has_its_hashes() -> None:
    """`make lock` writes them again after a pin has changed."""
    assert faults_of_lock(CONSTRAINTS.read_text("utf-8"), LOCK.read_text("utf-8")) == []
    assert len(locked(LOCK.read_text("utf-8"))) > 200


def test_a_pin_without_hashes_and_a_hash_without_pin_are_found() -> None:
    lock = f"a==1.0 \\\n    --hash=sha256:{MARK}\nb==2.0\n"
    assert faults_of_lock("a==1.0\nb==2.0\nC_c==3\ntorch==2.13.0\n", lock) == [
        "b==2.0 has no hashes",
        "c-c==3 has no hashes",
    ]
    assert faults_of_lock("a==1.1\n", f"a==1.0 --hash=sha256:{MARK}") == [
        "a==1.1 has no hashes",
        "a==1.0 is not pinned",
    ]


def test_the_page_of_a_package_gives_the_files_of_one_version() -> None:
    assert hashes_on_page(PAGE, "some-thing", "1.0") == [MARK, "b" * 64]


def chosen(name: str, mark: str) -> dict[str, object]:
    archive = {"archive_info": {"hashes": {"sha256": mark}}}
    return {"metadata": {"name": name, "version": "1.0"}, "download_info": archive}


def test_what_pip_chose_must_be_what_was_locked() -> None:
    lock = f"a==1.0 --hash=sha256:{MARK}\n"
    report = {"install": [chosen("A", MARK), chosen("torch", "f" * 64)]}
    assert faults_of_report(report, lock) == []
    report = {"install": [chosen("a", "f" * 64), chosen("b", MARK)]}
    assert faults_of_report(report, lock) == [
        f"a 1.0 has the hash {'f' * 64}, which is not in requirements.lock",
        "b 1.0 is not in requirements.lock",
    ]


def test_hosts_do_not_stand_in_the_lock() -> None:
    assert "://" not in LOCK.read_text("utf-8")


def dependency(name: str, **more: object) -> dict[str, object]:
    return {"name": name, "version": "1.0", "vulns": [], **more}


@pytest.mark.parametrize(
    ("output", "code", "told"),
    [
        ("", 0, "Nothing was audited, as no database of vulnerabilities can be asked: no route."),
        ({"dependencies": [{"name": "a", "skip_reason": "unknown"}]}, 0, "Nothing was audited"),
        ({"dependencies": [dependency("a")]}, 0, "0 known vulnerabilities in 1 packages."),
        (
            {"dependencies": [dependency("a", vulns=[{"id": "X-1", "fix_versions": ["2"]}])]},
            1,
            "a 1.0: X-1 (fixed in 2)",
        ),
    ],
    ids=["unreachable", "unknown", "sound", "vulnerable"],
)
def test_an_audit_says_whether_anything_was_audited(
    output: object, code: int, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    written = output if isinstance(output, str) else json.dumps(output)
    assert audit.say(audit.read_audit(written), "Error:\nno route\n") == code
    assert told in capsys.readouterr().out


def test_upper_bounds_leave_room_for_what_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    stated = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    bounds = {m[1]: int(m[2]) for each in stated if (m := re.match(r"([\w-]+)>=.*<(\d+)$", each))}
    pinned = dict(lock_hashes.pins(CONSTRAINTS.read_text("utf-8")))
    majors = {name: int(pinned[lock_hashes.plain_name(name)].split(".")[0]) for name in bounds}
    assert len(bounds) >= 10
    assert all(majors[name] == bounds[name] - 1 or majors[name] == 0 for name in bounds), majors
