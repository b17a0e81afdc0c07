"""The HTML file of a report: complete, offline, and without scripts other than its own."""

from __future__ import annotations

import base64
import hashlib
from html.parser import HTMLParser
from pathlib import Path

import pytest

import forgetmap as fm
from forgetmap.errors import OutputError
from forgetmap.report.html import shell
from forgetmap.report.html.report import report_html, write_report
from forgetmap.report.html.shell import policy
from forgetmap.report.payloads.comparison import make_payload
from forgetmap.report.payloads.packing import packed
from forgetmap.report.payloads.schema import Payload
from report_files import payload_in, unpacked
from reports import two_runs, with_texts

COUNTS = {"a": {"n11": 20, "n10": 5, "n01": 5, "n00": 10}}


class Page(HTMLParser):
    """What a browser would see of a file: elements with their attributes, and what is in them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.inside: list[str] = []
        self._open = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.inside.append("")
        self._open = True

    def handle_endtag(self, tag: str) -> None:  # noqa: ARG002
        self._open = False

    def handle_data(self, data: str) -> None:
        if self._open:
            self.inside[-1] += data

    def all(self, tag: str) -> list[tuple[dict[str, str | None], str]]:
        return [
            (attrs, inside)
            for (name, attrs), inside in zip(self.elements, self.inside, strict=True)
            if name == tag
        ]

    def policy(self) -> dict[str, set[str]]:
        (content,) = (attrs["content"] for attrs, _ in self.all("meta") if "http-equiv" in attrs)
        assert content is not None
        parts = [part.split() for part in content.split(";")]
        return {name: set(values) for name, *values in parts}


def sha(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


@pytest.fixture
def payload(tmp_path: Path) -> Payload:
    return make_payload(fm.compare(*two_runs(tmp_path, COUNTS)))


def test_the_payload_comes_back_as_it_was(payload: Payload) -> None:
    html = report_html(payload)
    assert Payload.model_validate(payload_in(html)) == payload
    figures = unpacked(html, "figures")
    assert {"name", "title", "caption", "alt", "spec", "svg", "table", "page"} == set(figures[0])


def test_readers_need_not_wait_for_vega_lite(payload: Payload) -> None:
    figures = unpacked(report_html(payload), "figures")
    kinds = {figure["spec"]["$schema"].split("/")[-2] for figure in figures if figure["spec"]}
    assert kinds == {"vega"}


def test_the_policy_names_every_script_and_style_and_nothing_else(payload: Payload) -> None:
    page = Page(report_html(payload))
    found = page.policy()
    running = [inside for attrs, inside in page.all("script") if attrs["type"] == "module"]
    assert found["script-src"] == {sha(inside) for inside in running}
    assert len(running) == 2
    ((_, style),) = page.all("style")
    assert found["style-src"] == {sha(style)}
    assert found["default-src"] == found["connect-src"] == {"'none'"}
    assert found["base-uri"] == found["form-action"] == {"'none'"}
    assert found["img-src"] == {"data:", "blob:"}


def test_nothing_is_loaded_and_no_attribute_runs(payload: Payload) -> None:
    page = Page(report_html(payload))
    for _, attrs in page.elements:
        assert not [name for name in attrs if name.startswith("on") or name == "style"]
        for name in ("src", "href", "data", "action"):
            address = attrs.get(name)
            assert address is None or address.startswith(("data:,", "#"))


@pytest.mark.parametrize(
    "text",
    [
        "</script><script>alert(1)</script>",
        "<!--<script>",
        "</title><img src=x onerror=alert(1)>",
        '"><svg onload=alert(1)>',
        "{{script}}{{csp}}",
        "\u202e\u2028\x00 \U0001f600",
    ],
)
def test_hostile_content_changes_no_element(payload: Payload, tmp_path: Path, text: str) -> None:
    texts = dict.fromkeys(("question", "gold", "prompt", "response", "answer"), text)
    evil = make_payload(fm.compare(*with_texts(tmp_path, **texts)), title=text)
    html = report_html(evil)
    page, harmless = Page(html), Page(report_html(payload))
    assert [each for each, _ in page.elements] == [each for each, _ in harmless.elements]
    assert page.policy() == harmless.policy()
    assert Payload.model_validate(payload_in(html)) == evil
    assert evil.title == text


def test_scripts_are_put_together_once_for_all_processes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A copy that is not whole, or of another version, is not taken."""
    import vl_convert

    monkeypatch.setenv("FORGETMAP_CACHE", str(tmp_path))
    asked = []

    def assemble() -> str:
        asked.append(1)
        return "const a = 1;"

    monkeypatch.setattr(vl_convert, "javascript_bundle", assemble)
    assert shell.kept_bundle() is None
    for _ in range(2):
        assert shell.vega_bundle.__wrapped__() == shell.kept_bundle() == "const a = 1;"
    assert len(asked) == 1
    (copy,) = tmp_path.rglob("*.js")
    copy.write_bytes(copy.read_bytes()[:-1])
    assert shell.vega_bundle.__wrapped__() == "const a = 1;"
    monkeypatch.setattr(shell, "version", lambda _: "0")
    assert shell.vega_bundle.__wrapped__() == "const a = 1;"
    assert len(asked) == 3


def test_without_a_cache_scripts_are_put_together_all_the_same(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import vl_convert

    (tmp_path / "file").touch()
    monkeypatch.setenv("FORGETMAP_CACHE", str(tmp_path / "file"))
    monkeypatch.setattr(vl_convert, "javascript_bundle", lambda: "const a = 1;")
    assert shell.vega_bundle.__wrapped__() == "const a = 1;"


def test_a_script_cannot_end_its_element(
    monkeypatch: pytest.MonkeyPatch, payload: Payload, tmp_path: Path
) -> None:
    import vl_convert

    monkeypatch.setenv("FORGETMAP_CACHE", str(tmp_path / "cache"))
    bundle = 'const a = "</SCRIPT><b>", c = "<!--";'
    monkeypatch.setattr(vl_convert, "javascript_bundle", lambda: bundle)
    shell.vega_bundle.cache_clear()
    try:
        page = Page(report_html(payload))
    finally:
        shell.vega_bundle.cache_clear()
    assert page.all("b") == []
    assert page.all("script")[-1][1] == r'const a = "\x3c/SCRIPT><b>", c = "\x3c!--";'


def test_the_same_report_is_the_same_file(payload: Payload) -> None:
    assert report_html(payload) == report_html(payload)
    assert packed("x") == packed("x")


def test_without_vega_there_is_still_a_page(
    monkeypatch: pytest.MonkeyPatch, payload: Payload
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "vl_convert", None)
    shell.vega_bundle.cache_clear()
    try:
        page = Page(report_html(payload))
    finally:
        shell.vega_bundle.cache_clear()
    assert page.all("script")[-1][1] == ""
    assert len(page.policy()["script-src"]) == 1


def test_policy_leaves_out_empty_scripts() -> None:
    assert f"script-src {sha('a')};" in policy(["a", ""], "b")


def test_an_older_report_stays_until_the_new_one_is_whole(
    tmp_path: Path, payload: Payload, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "out" / "report.html"
    write_report(payload, path)
    whole = path.read_bytes()

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    # A full disk cannot be caused otherwise.
    monkeypatch.setattr(Path, "write_bytes", fail)
    with pytest.raises(OutputError, match="No space left"):
        write_report(payload, path)
    assert path.read_bytes() == whole
    assert [each.name for each in path.parent.iterdir()] == ["report.html"]


def test_a_place_that_cannot_be_written_to_is_a_typed_error(
    tmp_path: Path, payload: Payload
) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(OutputError):
        write_report(payload, tmp_path / "taken")
    assert sorted(each.name for each in tmp_path.iterdir() if each.name.startswith(".")) == []
