"""A file appears only when it is complete."""

from __future__ import annotations

from pathlib import Path

import pytest

from forgetmap.errors import OutputError
from forgetmap.export.files import complete_file


def write_half(path: Path) -> None:
    with complete_file(path, overwrite=True) as file:
        file.write("two\n")
        file.write(str(1 / 0))


def test_what_fails_half_way_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file.txt"
    with complete_file(path, overwrite=False) as file:
        file.write("one\n")
        assert not path.exists()
    with pytest.raises(ZeroDivisionError):
        write_half(path)
    assert path.read_text(encoding="utf-8") == "one\n"
    assert [one.name for one in path.parent.iterdir()] == ["file.txt"]


def test_what_is_there_stays_unless_it_may_be_replaced(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_text("mine", encoding="utf-8")
    with pytest.raises(OutputError, match="already exists"), complete_file(path, overwrite=False):
        pass
    with pytest.raises(OutputError, match="is a folder"), complete_file(tmp_path, overwrite=True):
        pass
    assert path.read_text(encoding="utf-8") == "mine"


def test_a_place_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    path = tmp_path / "file" / "inner.txt"
    with pytest.raises(OutputError, match="cannot write"), complete_file(path, overwrite=False):
        pass
