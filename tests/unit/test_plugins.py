"""The registry for plugins of installed packages."""

from __future__ import annotations

import sys
from dataclasses import replace
from importlib import invalidate_caches
from pathlib import Path

import pytest

from forgetmap._plugins import Addition, Registry, did_you_mean
from forgetmap.errors import MissingPackageError, UsageError
from forgetmap.evaluation.suites.catalogue import SUITES
from plugin_packages import write_package

GROUP = "forgetmap.tests.numbers"


def check_number(value: object) -> float:
    if not isinstance(value, float):
        raise TypeError("it is no number")
    return value


NUMBERS = Registry(GROUP, "number", {"tau": "math:tau", "e": "math:e"}, check_number)


@pytest.fixture
def numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry[float]:
    """As seen where a package adds two good numbers, one of them known, and two bad ones."""
    source = "phi = 1.618\ne = 2.0\nword = 'one'\n"
    points = {"phi": "phi", "e": "e", "bad": "word", "absent": "nothing"}
    write_package(
        tmp_path, "more_numbers", source, {f"{GROUP}/{name}": at for name, at in points.items()}
    )
    write_package(tmp_path, "broken_numbers", "1 / 0\n", {f"{GROUP}/zero": "zero"})
    monkeypatch.syspath_prepend(tmp_path)
    invalidate_caches()
    for name in ("more_numbers", "broken_numbers"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return replace(NUMBERS)


def test_ours_are_listed_in_their_order_and_loaded_on_use() -> None:
    assert NUMBERS.names() == ["tau", "e"]
    assert NUMBERS.get("tau") == pytest.approx(6.283185)
    assert NUMBERS.all() == [NUMBERS.get("tau"), NUMBERS.get("e")]


def test_names_of_other_packages_follow(numbers: Registry[float]) -> None:
    assert numbers.names() == ["tau", "e", "absent", "bad", "phi", "zero"]
    assert "more_numbers" not in sys.modules


def test_an_entry_of_another_package_does_not_replace_ours(numbers: Registry[float]) -> None:
    assert numbers.get("phi") == 1.618
    assert numbers.get("e") == pytest.approx(2.718282)


def test_additions_say_package_version_and_why_they_are_left_out(
    numbers: Registry[float],
) -> None:
    added = {each.name: each for each in numbers.additions()}
    assert list(added) == ["absent", "bad", "e", "phi", "zero"]
    phi = Addition("number", "phi", "more_numbers:phi", "more_numbers", "1.0")
    assert added["phi"] == phi
    assert added["e"].left_out == "the built-in number 'e' is used instead"
    assert "more_numbers" not in sys.modules


def test_a_name_that_two_packages_use_is_refused(numbers: Registry[float], tmp_path: Path) -> None:
    write_package(tmp_path, "other_numbers", "phi = 0.618\n", {f"{GROUP}/phi": "phi"})
    invalidate_caches()
    both = "more_numbers and other_numbers both add a number 'phi', so neither is used"
    with pytest.raises(UsageError, match=both) as caught:
        numbers.get("phi")
    assert caught.value.hint == "uninstall all of these packages except one."
    assert [each.left_out for each in numbers.additions() if each.name == "phi"] == [both] * 2


def test_what_our_own_package_adds_is_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The suites `capabilities` and `captrack` are entry points of forgetmap itself."""
    write_package(tmp_path, "false_suite", "a = 1\n", {"forgetmap.suites/captrack": "a"})
    monkeypatch.syspath_prepend(tmp_path)
    invalidate_caches()
    suites = replace(SUITES)
    assert suites.get("captrack") is SUITES.get("captrack")
    (added,) = [each for each in suites.additions() if each.name == "captrack"]
    assert (added.package, bool(added.left_out)) == ("false_suite", True)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("bad", "the number 'bad' (more_numbers:word) cannot be loaded: it is no number"),
        ("absent", "the number 'absent' (more_numbers:nothing) cannot be loaded: module"),
        ("zero", "the number 'zero' (broken_numbers:zero) cannot be loaded: division by zero"),
    ],
)
def test_a_broken_package_is_named(numbers: Registry[float], name: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        numbers.get(name)
    assert caught.value.message.startswith(message)
    assert caught.value.hint == "fix or uninstall the package that adds it."


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="there is no number 'taw'") as caught:
        NUMBERS.get("taw")
    assert caught.value.hint == "did you mean 'tau'? choose from tau, e."
    assert not did_you_mean("something else", ["tau", "e"])


def test_a_missing_package_of_ours_names_the_extra_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "emoji", None)
    with pytest.raises(
        MissingPackageError, match="The number 'pi' needs the package emoji"
    ) as caught:
        Registry(GROUP, "number", {"pi": "emoji:pi"}, check_number).get("pi")
    assert caught.value.hint == 'install it: pip install "forgetmap[drift]".'
    with pytest.raises(ModuleNotFoundError):
        Registry(GROUP, "number", {"pi": "forgetmap_no_such_module:pi"}, check_number).get("pi")


def test_metadata_is_asked_only_where_files_do_not_say_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Importing `importlib.metadata` takes a quarter of the time of a `--help`."""
    questions: list[str] = []

    def ask(group: str) -> tuple[()]:
        questions.append(group)
        return ()

    monkeypatch.setattr("importlib.metadata.entry_points", ask)
    assert replace(NUMBERS).names() == ["tau", "e"]
    assert questions == []
    archive = tmp_path / "packages.zip"
    archive.touch()
    monkeypatch.setattr(sys, "path", [*sys.path, str(archive)])
    assert replace(NUMBERS).names() == ["tau", "e"]
    assert questions == [GROUP]
