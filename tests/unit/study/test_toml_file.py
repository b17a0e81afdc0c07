"""Every value of a TOML file has its line number, in every notation."""

from __future__ import annotations

from pathlib import Path

import pytest

from forgetmap.errors import MissingInputError, UnreadableError
from forgetmap.study.toml_file import parse_toml, read_toml_file

TEXT = '''# a comment
name = "x"

[protocol]
"temperature" = 0.5
text = """
[[model]]
id = "not a table"
"""

[[model]]
id = "a"
logs = [
  "one",  # [[model]]
  "two",
]
[[model]]
id = "b"
own.style = "chat"
own . shots = 3
[model.deep]
x = {y = 1, z = [2]}
[[model.parts]]
p = 1
[[model.parts]]
p = 2
'''


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("name",), 2),
        (("protocol",), 4),
        (("protocol", "temperature"), 5),
        (("protocol", "text"), 6),
        (("model", 0), 11),
        (("model", 0, "id"), 12),
        (("model", 0, "logs", 1), 13),
        (("model", 1), 17),
        (("model", 1, "own", "style"), 19),
        (("model", 1, "own", "shots"), 20),
        (("model", 1, "deep"), 21),
        (("model", 1, "deep", "x", "z", 0), 22),
        (("model", 1, "parts", 0, "p"), 24),
        (("model", 1, "parts", 1, "p"), 26),
    ],
)
def test_every_value_has_its_line(path: tuple[str | int, ...], line: int) -> None:
    file = parse_toml(TEXT, "study.toml")
    assert file.lines[path] == line


def test_what_is_missing_has_the_line_of_what_is_around_it() -> None:
    file = parse_toml(TEXT, "study.toml")
    assert file.line(("model", 1, "parent")) == 17
    assert file.line(("suite",)) == 1


def test_windows_line_ends_count_once() -> None:
    assert parse_toml("a = 1\r\n\r\n[b]\r\nc = 2\r\n", "x").lines["b", "c"] == 4


def test_no_toml_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text("name = \n", encoding="utf-8")
    with pytest.raises(UnreadableError, match="line 1"):
        read_toml_file(tmp_path / "study.toml")
    (tmp_path / "study.toml").write_bytes(b"name = '\xff'\n")
    with pytest.raises(UnreadableError, match="not a valid TOML file"):
        read_toml_file(tmp_path / "study.toml")
    with pytest.raises(MissingInputError, match="study init"):
        read_toml_file(tmp_path / "none.toml")
