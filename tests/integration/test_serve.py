"""`forgetmap serve` as a real process, with HTTP requests like those of a browser."""

from __future__ import annotations

import atexit
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

import forgetmap as fm
from command_line import SCRIPT, call, process, results, write
from forgetmap.comparison import TONES, interval, verdict_words
from forgetmap.text import percent

CACHE = Path(tempfile.mkdtemp(prefix="forgetmap-test-"))
atexit.register(shutil.rmtree, CACHE, ignore_errors=True)


@contextmanager
def serving(
    *args: object, temporary: Path | None = None
) -> Iterator[tuple[httpx.Client, subprocess.Popen[str], str]]:
    """The server, a client that knows its token, and the address it printed.

    Ctrl-C must end it cleanly.

    Args:
        args: of the command.
        temporary: folder for temporary files, of which none may be left.
    """
    server = subprocess.Popen(
        [SCRIPT, "serve", *map(str, args)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={
            **os.environ,
            "PYTHONUNBUFFERED": "1",
            "FORGETMAP_CACHE": str(CACHE),
            "TMPDIR": str(temporary or tempfile.gettempdir()),
        },
    )
    assert server.stdout is not None
    address = server.stdout.readline().split()[-1]
    home, _, token = address.partition("?token=")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        with httpx.Client(base_url=home, headers=headers, timeout=60) as client:
            yield client, server, address
    finally:
        server.send_signal(signal.SIGINT)
        out, err = server.communicate(timeout=120)
    assert server.returncode == 0, err
    assert "Traceback" not in out + err
    assert temporary is None or not list(temporary.iterdir())


@pytest.fixture(scope="module")
def served(demo: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """One server for most tests, which leaves nothing behind when Ctrl-C ends it."""
    with serving(demo, temporary=tmp_path_factory.mktemp("served")) as (client, _, _):
        yield client


@pytest.fixture(scope="module")
def pair(served: httpx.Client) -> dict[str, str]:
    ids = {each["name"]: each["id"] for each in served.get("api/runs").json()}
    return {"before": ids["simulated-base"], "after": ids["simulated-tuned"]}


@pytest.fixture(scope="module")
def compared(demo: Path) -> fm.Comparison:
    """What the library says."""
    return fm.compare(demo / "before", demo / "after")


def ask(client: httpx.Client, path: str, pair: dict[str, str], **given: Any) -> Any:
    got = client.get(f"api/{path}", params={**pair, **given})
    assert got.status_code == 200, got.text
    return got.json()


def test_runs_come_with_their_lineage(served: httpx.Client, demo: Path) -> None:
    runs = {each["name"]: each for each in served.get("api/runs").json()}
    assert runs["simulated-tuned"]["parent"] == runs["simulated-base"]["id"]
    assert runs["simulated-base"]["parent"] is None
    assert str(demo) not in json.dumps(runs)


def test_a_run_has_items_and_accuracy(
    served: httpx.Client, pair: dict[str, str], compared: fm.Comparison
) -> None:
    total = compared.result.total
    numbers = served.get("api/run", params={"run": pair["before"]}).json()
    assert numbers == {
        "items": total.items,
        "accuracy": pytest.approx(total.acc_before),
        "tasks": [task.name for task in compared.result.tasks],
    }
    assert served.get("api/run", params={"run": "nobody"}).status_code == 404


def test_a_cell_of_the_matrix_is_the_verdict(
    served: httpx.Client, pair: dict[str, str], compared: fm.Comparison
) -> None:
    total = compared.result.total
    cell = ask(served, "cell", pair)
    assert cell == {
        "forgotten": percent(total.forgetting.value),
        "words": f"{verdict_words(total)}, {interval(total)}",
        "tone": TONES[total.verdict],
    }
    assert served.get("api/cell", params={**pair, "offset": "1"}).status_code == 400


def test_the_comparison_is_that_of_the_library(
    served: httpx.Client, pair: dict[str, str], demo: Path, compared: fm.Comparison
) -> None:
    expected = compared.result.to_dict()
    payload = ask(served, "comparison", pair)["payload"]
    found = payload["comparisons"][0]
    assert found["total"] == expected["total"]
    assert found["tasks"] == expected["tasks"]
    assert found["headline"] == expected["headline"]
    assert payload["items"][0]["total"]["forgotten"] == expected["total"]["n10"]
    assert str(demo) not in json.dumps(payload)


def test_items_are_those_of_the_library(
    served: httpx.Client, pair: dict[str, str], compared: fm.Comparison
) -> None:
    lost = compared.flips("forgotten").to_pylist()
    found = ask(served, "items", pair, transition="forgotten", limit=500)
    assert found["total"] == len(lost)
    assert [(row["task"], row["item"]) for row in found["rows"]] == [
        (row["task"], row["item"]) for row in lost
    ]
    assert [row["answer_after"] for row in found["rows"]] == [row["answer_after"] for row in lost]


def test_an_item_is_found_by_its_link(
    served: httpx.Client, pair: dict[str, str], compared: fm.Comparison
) -> None:
    texts = compared.flips("gained", texts=True).to_pylist()
    row = texts[3]
    key = f"{row['task']}/{row['item'].replace('/', '%2F')}/{row['repeat']}"
    found = ask(served, "item", pair, key=key, transition="gained")
    assert found["place"] == 3
    for name in ("question", "options", "response_before", "response_after", "gold"):
        assert found["item"][name] == row[name]


def test_search_and_facets(served: httpx.Client, pair: dict[str, str]) -> None:
    facets = ask(served, "facets", pair)
    assert sum(count for _, count in facets["transition"]) == ask(served, "items", pair)["total"]
    found = ask(served, "items", pair, q="QUESTION 7 OF")
    assert found["total"] == len(facets["task"])
    assert {row["question"].split()[2] for row in found["rows"]} == {"7"}


@pytest.mark.parametrize(
    ("path", "given", "status"),
    [
        ("items", {"limit": "501"}, 400),
        ("items", {"limit": "-1"}, 400),
        ("items", {"limit": "٣"}, 400),
        ("items", {"offset": "9" * 30}, 400),
        ("items", {"sort": "rowid; DROP TABLE x"}, 400),
        ("items", {"q": "x" * 201}, 400),
        ("items", {"task": "x" * 2001}, 400),
        ("items", {"taks": "typo"}, 400),
        ("items", {"before": "../../etc/passwd"}, 404),
        ("comparison", {"after": ""}, 404),
        ("item", {"key": "only-one"}, 400),
        ("item", {"key": "a/b/x"}, 400),
        ("nothing", {}, 404),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(
    served: httpx.Client, pair: dict[str, str], path: str, given: dict[str, str], status: int
) -> None:
    got = served.get(f"api/{path}", params={**pair, **given})
    assert got.status_code == status
    assert set(got.json()) == {"error", "hint"}
    assert "Traceback" not in got.text


def test_a_run_against_itself_is_refused(served: httpx.Client, pair: dict[str, str]) -> None:
    same = {"before": pair["before"], "after": pair["before"]}
    assert served.get("api/comparison", params=same).status_code == 400


@pytest.mark.parametrize("path", ["../pyproject.toml", "%2e%2e/%2e%2e/etc/passwd", "page/serve.js"])
def test_no_path_of_a_client_is_opened(served: httpx.Client, path: str) -> None:
    assert served.get(f"/{path}").status_code == 404


def test_a_foreign_host_is_refused(served: httpx.Client) -> None:
    assert served.get("api/runs", headers={"Host": "evil.example"}).status_code == 421
    assert served.post("api/runs").status_code == 405


def test_many_ask_at_once(served: httpx.Client, pair: dict[str, str]) -> None:
    def one(number: int) -> int:
        task = f"knowledge-{1 + number % 3}"
        return int(ask(served, "items", pair, task=task, q=f"question {number % 7}")["total"])

    with ThreadPoolExecutor(20) as crowd:
        totals = list(crowd.map(one, range(60)))
    assert totals[:21] == totals[21:42]


def test_the_page_runs_only_its_own_scripts(served: httpx.Client) -> None:
    got = served.get("/")
    policy = got.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "connect-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert len(re.findall("</script", got.text, re.IGNORECASE)) == got.text.count("<script")


def test_the_page_is_one_text_with_one_policy(served: httpx.Client) -> None:
    got = served.get("")
    assert "{{" not in got.text.partition('<script type="module">')[0]
    assert got.headers["Content-Security-Policy"].count("sha256-") >= 2


def test_runs_that_must_not_be_compared_say_why(tmp_path: Path) -> None:
    one = write(tmp_path / "one.jsonl", results([1, 0, 1], task="left"))
    two = write(tmp_path / "two.jsonl", results([1, 0, 1], task="right"))
    with serving(one, two, "--no-token") as (client, _, address):
        assert "token" not in address
        ids = [each["id"] for each in client.get("api/runs").json()]
        got = client.get("api/comparison", params={"before": ids[0], "after": ids[1]})
        assert got.status_code == 422
        assert got.json()["hint"]
        assert str(tmp_path) not in got.text


def check_token(home: httpx.URL, token: str) -> None:
    """Nothing is answered without it; an address with it is turned into a cookie."""
    assert len(token) >= 32
    assert httpx.get(f"{home}api/runs").status_code == 401
    assert httpx.get(home).status_code == 401
    signed = {"Authorization": f"Bearer {token}"}
    assert len(httpx.get(f"{home}api/runs", headers=signed).json()) == 4
    with httpx.Client(base_url=home, follow_redirects=True) as browser:
        opened = browser.get(f"/?token={token}")
        assert opened.status_code == 200
        assert "token" not in str(opened.url)
        assert len(browser.get("api/runs").json()) == 4
        assert str(home.port) in "".join(browser.cookies)


def test_on_this_machine_only_with_the_token(served: httpx.Client) -> None:
    """Other users of it can reach the port, too."""
    check_token(served.base_url, served.headers.get("Authorization", "").removeprefix("Bearer "))


def test_elsewhere_only_with_the_token(
    demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is it shown to others as part of a command: all users see what is called how."""
    browser, called = tmp_path / "browser", tmp_path / "called"
    browser.write_text(f'#!/bin/sh\necho "$@" > {called}\n')
    browser.chmod(0o755)
    monkeypatch.setenv("BROWSER", f"{browser} %s")
    with serving(demo, "--host", "0.0.0.0", "--open") as (client, _, address):
        token = address.partition("?token=")[2]
        check_token(client.base_url.copy_with(host="127.0.0.1"), token)
        given = called.read_text().strip()
        assert token not in given
        file = Path(given.removeprefix("file://"))
        assert f"url={address}" in file.read_text()
        assert file.parent.stat().st_mode & 0o077 == 0
    assert not file.exists()


def test_other_machines_always_need_the_token(demo: Path) -> None:
    done = call("serve", demo, "--no-token", "--host", "0.0.0.0")
    assert done.code == 2
    assert "--no-token cannot be combined with --host 0.0.0.0" in done.err


def test_nothing_is_left_behind_when_it_is_terminated(demo: Path, tmp_path: Path) -> None:
    with serving(demo, temporary=tmp_path) as (client, server, _):
        ids = [each["id"] for each in client.get("api/runs").json()]
        client.get("api/comparison", params={"before": ids[0], "after": ids[1]})
        assert list(tmp_path.rglob("*.duckdb"))
        server.terminate()
        server.wait(timeout=120)


def test_a_port_in_use_is_an_error_in_words(demo: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = process("serve", demo, "--port", taken.getsockname()[1])
    assert done.code == 2
    assert "cannot listen" in done.err
    assert "Traceback" not in done.err


def test_without_the_extra_it_says_what_to_install(
    demo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    done = call("serve", demo)
    assert done.code == 2
    assert "forgetmap[serve]" in done.err


def answered(place: int, score: int, metric: str) -> dict[str, Any]:
    return {"task": "t", "item": f"i{place:03d}", "score": score, "metric": metric}


def test_the_rule_of_the_command_is_that_of_the_comparison(tmp_path: Path) -> None:
    """Two metrics that disagree, and a repeat of the first run for the noise."""
    paths = {}
    for name, shift in (("base", 0), ("tuned", 1), ("again", 2)):
        rows = [answered(place, (place + shift) % 3 == 0, "acc") for place in range(60)]
        rows += [answered(place, (place + shift) % 5 == 0, "norm") for place in range(60)]
        paths[name] = write(tmp_path / f"{name}.jsonl", rows)
    expected = fm.compare(
        paths["base"], paths["tuned"], metric="norm", noise=paths["again"], correct_at=0.7
    ).result.to_dict()
    given = ("--metric", "norm", "--noise", paths["again"], "--correct-at", "0.7")
    with serving(paths["base"], paths["tuned"], *given) as (client, _, _):
        ids = {each["name"]: each["id"] for each in client.get("api/runs").json()}
        assert set(ids) == {"base", "tuned"}
        said = client.get("api/rule").json()
        assert (said["noise"], said["repeated"]) == ("again", "base")
        assert (said["rule"]["metric"], said["rule"]["correct_at"]) == ("norm", 0.7)
        pair = {"before": ids["base"], "after": ids["tuned"]}
        found = ask(client, "comparison", pair)["payload"]["comparisons"][0]
        assert found["total"] == expected["total"]
        assert found["rule"] == expected["rule"]
        back = {"before": ids["tuned"], "after": ids["base"]}
        without = ask(client, "comparison", back)["payload"]["comparisons"][0]
        plain = fm.compare(paths["tuned"], paths["base"], metric="norm", correct_at=0.7)
        assert without["total"] == plain.result.to_dict()["total"]


@pytest.mark.slow
def test_a_second_server_finds_what_the_first_prepared(tmp_path: Path) -> None:
    """And a run that changed in between is read again."""
    paths = [
        write(tmp_path / f"{n}.jsonl", results(r)) for n, r in (("b", [1] * 40), ("a", [0] * 40))
    ]
    answers: list[tuple[int, int]] = []
    for right in ([0] * 40, [0] * 40, [0, 1] * 20):
        if answers and right != [0] * 40:
            write(paths[1], results(right))
        with serving(*paths) as (client, _, _):
            ids = [each["id"] for each in client.get("api/runs").json()]
            pair = {"before": ids[0], "after": ids[1]}
            items = ask(client, "items", pair, transition="forgotten")
            answers.append((len(prepared()), items["total"]))
    assert [total for _, total in answers] == [40, 40, 20]
    assert answers[0][0] == answers[1][0] < answers[2][0]


def prepared() -> list[Path]:
    return sorted((CACHE / "explorer").rglob("*.duckdb"))


def test_progress_is_told_only_while_there_is_some(
    served: httpx.Client, pair: dict[str, str]
) -> None:
    ask(served, "comparison", pair)
    assert ask(served, "progress", pair) == {}
    assert served.get("api/progress", params={"before": "x", "after": "y"}).status_code == 404
