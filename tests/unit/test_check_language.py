"""Check of `make lint`: phrases that docs/language.md replaces are refused in texts for users."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

FILE = Path(__file__).parents[2] / "tools" / "check_language.py"
VOCABULARY = """
| term | meaning | do not use |
|---|---|---|
| resume | continue | `goes on where` |

| do not write | write |
|---|---|
| `nobody` knows | unknown |
"""


@pytest.fixture(scope="module")
def check() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_language", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        (
            "page.md",
            "A run\ngoes on\nwhere it was. Nobody\n",
            [(2, "goes on where"), (3, "Nobody")],
        ),
        ("page.md", "A run resumes.", []),
        ("a.py", 'x = f"{y} nobody {z}"\n', [(1, "nobody")]),
        ("a.py", '"""It goes on where it was; nobody waits."""\n', [(1, "goes on where")]),
        ("a.py", "x = 1  # nobody\n", []),
        ("a.js", '// nobody\nsay("nobody");\n', [(2, "nobody")]),
    ],
)
def test_phrases_are_found_where_users_read_them(
    check: ModuleType, name: str, text: str, found: list[tuple[int, str]], tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    phrases = check.read_phrases(VOCABULARY)
    assert sorted(check.find_phrases(tmp_path / name, phrases)) == found


def test_docs_and_texts_use_the_vocabulary(
    check: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check.main() == 0, capsys.readouterr().out
