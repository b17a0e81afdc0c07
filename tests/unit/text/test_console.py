"""Results in a notebook: shown once, and by nothing but their representations."""

from __future__ import annotations

import builtins
from collections.abc import Callable

import pyarrow as pa
import pytest

import forgetmap as fm
from drifting_runs import drifted
from forgetmap.text import Line, Sheet, blocks_to_text


class ZMQInteractiveShell:
    """What rich takes for a notebook."""


@pytest.fixture(autouse=True)
def notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a kernel; whatever is displayed beside a representation fails."""

    def display(*_: object, **__: object) -> None:
        pytest.fail("displayed beside the representation")

    monkeypatch.setattr(builtins, "get_ipython", ZMQInteractiveShell, raising=False)
    monkeypatch.setattr("rich.jupyter.display", display)


def runs() -> list[pa.Table]:
    scores = ([1, 1, 1, 0], [1, 0, 0, 1], [0, 1, 0, 1])
    return [pa.table({"task": ["t"] * 4, "item": [*"abcd"], "score": each}) for each in scores]


def test_blocks_go_to_the_text_and_nowhere_else() -> None:
    text = blocks_to_text([Line("first"), Sheet(("name", "n"), [("a", "1")])])
    assert text.split() == ["first", "name", "n", "a", "1"]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: fm.compare(*runs()[:2]), "lost 50.0% of all items"),
        (lambda: fm.compare(*runs()), "2 models against"),
        (lambda: fm.chain(*runs()), "scored at every stage"),
        (lambda: drifted(1).result, "either way"),
    ],
    ids=["pair", "many", "chain", "drift"],
)
def test_a_result_is_shown_once(
    make: Callable[[], object], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    result = make()
    assert words in " ".join(repr(result).split())
    html = getattr(result, "_repr_html_", None)
    if html is not None:
        assert "<table" in html()
    assert capsys.readouterr().out == ""
