"""The web application: runs, comparisons, items, and the page that shows them."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar
from urllib.parse import unquote

import duckdb
import narwhals as nw
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from forgetmap._workers import call_apart
from forgetmap.comparison import (
    KINDS,
    TONES,
    Comparison,
    ComparisonResult,
    Extra,
    Rule,
    compare_sides,
    interval,
    verdict_words,
)
from forgetmap.errors import ForgetmapError
from forgetmap.pairing import Pairs, Side, align, prepare
from forgetmap.records import reading
from forgetmap.report import (
    Items,
    assemble,
    count_flips,
    figures_json,
    kept_bundle,
    served_html,
    vega_bundle,
)
from forgetmap.serve.async_cache import AsyncLRU, BatchedSearch
from forgetmap.serve.runs import ServedRun, describe, require_undamaged
from forgetmap.serve.security import Guard, refused
from forgetmap.serve.store import FACETS, READER_THREADS, SORTS, PairTable, Selection, Store
from forgetmap.text import percent

MAX_PAIRS, MAX_SEARCHES, MAX_BATCH = 8, 64, 16
"""Maximum numbers of cached comparisons and searches, and of searches per pass."""
MAX_CELLS = 1_000
"""Maximum number of cached cells of matrices."""
MAX_ROWS, MAX_QUERY_LENGTH, MAX_VALUE_LENGTH = 500, 200, 2_000
MAX_OFFSET = 1_000_000_000
STEPS = 5
T = TypeVar("T")
Ids = tuple[str, str]


@dataclass(slots=True)
class Progress:
    """Progress of a comparison; `step` is 0 while it waits for another one."""

    words: str = "waiting for another comparison"
    step: int = 0
    started: float = field(default_factory=time.monotonic)

    def next(self, words: str) -> None:
        """Begin another step."""
        self.words = words
        self.step += 1


@dataclass(frozen=True, slots=True)
class ComparisonSetup:
    """Settings of all comparisons.

    Attributes:
        rule: rule of `compare`.
        noise: a repeat of the run with id `repeated`.
        repeated: the run before of comparisons that use `noise`.
    """

    rule: Rule = field(default_factory=Rule)
    noise: ServedRun | None = None
    repeated: str | None = None


class Explorer:
    """Answers requests about runs and pairs of runs.

    Args:
        runs: runs that are served.
        store: storage of pairs.
        setup: settings of all comparisons.
    """

    def __init__(
        self, runs: Sequence[ServedRun], store: Store, setup: ComparisonSetup | None = None
    ) -> None:
        self._runs = {run.id: run for run in runs}
        self._store = store
        self._setup = setup or ComparisonSetup()
        self._sides: dict[str, Side] = {}
        self._progress: dict[Ids, Progress] = {}
        # Comparing uses the single connection for reading files: one at a time.
        self._builder = ThreadPoolExecutor(1, "comparing")
        self._readers = ThreadPoolExecutor(READER_THREADS - 1, "reading")
        # A search uses all processors for a while: filters must not wait for several.
        self._searcher = ThreadPoolExecutor(1, "searching")
        self._pairs: AsyncLRU[PairTable] = AsyncLRU(
            MAX_PAIRS, partial(self._in, self._builder, store.drop)
        )
        self._searches: AsyncLRU[str] = AsyncLRU(
            MAX_SEARCHES, partial(self._in, self._readers, store.drop_hits)
        )
        self._cells: AsyncLRU[str] = AsyncLRU(MAX_CELLS, _let_go)
        self._batched_search = BatchedSearch(store.search, MAX_BATCH, self._searcher)

    async def runs(self, request: Request) -> Response:
        """Return all runs with their parents."""
        _only(request, ())
        return JSONResponse([describe(run) for run in self._runs.values()])

    async def run(self, request: Request) -> Response:
        """Return the number of items, the accuracy and the tasks of a run."""
        _only(request, ("run",))
        served = self._served_run(request, "run")
        return JSONResponse(await self._in(self._builder, self._numbers, served))

    async def rule(self, request: Request) -> Response:
        """Return the rule of comparisons, and the names of the noise run and its model before."""
        _only(request, ())
        setup = self._setup
        noise = None if setup.noise is None else setup.noise.run.name
        repeated = None if setup.repeated is None else self._runs[setup.repeated].run.name
        return JSONResponse(
            {"rule": setup.rule.model_dump(mode="json"), "noise": noise, "repeated": repeated}
        )

    async def progress(self, request: Request) -> Response:
        """Return the progress of a comparison; empty if it is not running."""
        _only(request, ())
        before, after = self._ids(request)
        progress = self._progress.get((before.id, after.id))
        if progress is None:
            return JSONResponse({})
        seconds = round(time.monotonic() - progress.started, 1)
        return JSONResponse(
            {"words": progress.words, "step": progress.step, "steps": STEPS, "seconds": seconds}
        )

    async def comparison(self, request: Request) -> Response:
        """Return the report of a comparison without items, and its figures."""
        _only(request, ())
        async with self._pair(request) as table:
            return Response(table.answer, media_type="application/json")

    async def cell(self, request: Request) -> Response:
        """Return only the verdict on two runs: a cell of the matrix on the start page."""
        _only(request, ())
        before, after = self._ids(request)
        make = partial(self._start_cell, before, after)
        async with self._cells.use((before.id, after.id), make) as cell:
            return Response(cell, media_type="application/json")

    async def facets(self, request: Request) -> Response:
        """Return the values by which items can be filtered."""
        _only(request, ())
        async with self._pair(request) as table:
            return JSONResponse(table.facets)

    async def items(self, request: Request) -> Response:
        """Return a page of items."""
        _only(request, (*FACETS, "q", "sort", "offset", "limit"))
        offset = _number(request, "offset", 0, MAX_OFFSET)
        limit = _number(request, "limit", 50, MAX_ROWS)
        selection = _selection(request)
        page = partial(self._store.page, offset=offset, limit=limit)
        async with self._pair(request) as table, self._hits(table, selection.q) as hits:
            total, rows = await self._in(self._readers, page, table, selection, hits)
        return JSONResponse({"total": total, "rows": rows})

    async def item(self, request: Request) -> Response:
        """Return one item with all its texts, and its position in the selection."""
        _only(request, (*FACETS, "q", "sort", "key"))
        selection, key = _selection(request), _key(request)
        find = self._store.find
        async with self._pair(request) as table, self._hits(table, selection.q) as hits:
            item, index = await self._in(self._readers, find, table, selection, hits, key)
        return JSONResponse({"item": item, "place": index})

    def _pair(self, request: Request) -> AbstractAsyncContextManager[PairTable]:
        """Return the requested comparison; it is not dropped while in use."""
        before, after = self._ids(request)
        return self._pairs.use((before.id, after.id), partial(self._start, before, after))

    def _hits(self, table: PairTable, text: str) -> AbstractAsyncContextManager[str | None]:
        """Return the hits of a search, not dropped while in use; None without a search."""
        if not text:
            return nullcontext()
        make = partial(self._batched_search.find, table, text)
        return self._searches.use((table.name, text), make)

    def _in(self, executor: Executor, call: Callable[..., T], *args: object) -> asyncio.Future[T]:
        return asyncio.get_running_loop().run_in_executor(executor, call, *args)

    def _ids(self, request: Request) -> tuple[ServedRun, ServedRun]:
        before, after = (self._served_run(request, name) for name in ("before", "after"))
        if before.id == after.id:
            raise HTTPException(400, "a run cannot be compared with itself")
        return before, after

    def _served_run(self, request: Request, name: str) -> ServedRun:
        run = self._runs.get(request.query_params.get(name, ""))
        if run is None:
            raise HTTPException(404, f"unknown run: {name} must be an id from /api/runs")
        return run

    async def _start(self, before: ServedRun, after: ServedRun) -> PairTable:
        progress = self._progress[before.id, after.id] = Progress()
        try:
            return await self._in(self._builder, self._compare, (before, after), progress)
        finally:
            del self._progress[before.id, after.id]

    async def _start_cell(self, before: ServedRun, after: ServedRun) -> str:
        return await self._in(self._builder, self._cell, (before, after))

    def _cell(self, served: tuple[ServedRun, ServedRun]) -> str:
        def compare() -> str:
            sides = align([self._side(run) for run in served])
            total = self._compare_sides(sides, noise).result.total
            return json.dumps(
                {
                    "forgotten": percent(total.forgetting.value),
                    "words": ", ".join(filter(None, (verdict_words(total), interval(total)))),
                    "tone": TONES[total.verdict],
                }
            )

        noise = self._noise(served[0])
        return self._store.keep_text(self._key_of("cell", served, noise), compare)

    def _noise(self, before: ServedRun) -> ServedRun | None:
        return self._setup.noise if self._setup.repeated == before.id else None

    def _compare_sides(self, sides: Sequence[Side], noise: ServedRun | None) -> Comparison:
        again = None if noise is None else align([sides[0], self._side(noise)])[1]
        return compare_sides(sides[0], sides[1], self._setup.rule, extra=Extra(noise=again))

    def _key_of(self, kind: str, served: Sequence[ServedRun], noise: ServedRun | None) -> object:
        stamps = [run.stamp for run in served]
        parts = [*stamps, *([noise.stamp] if noise else []), self._setup.rule.model_dump_json()]
        return _cache_key(kind, parts)

    def _compare(self, served: tuple[ServedRun, ServedRun], progress: Progress) -> PairTable:
        progress.next("checking the results")
        for own in served:
            require_undamaged(own)
        sides = align([self._side(run) for run in served])
        runs = [side.run for side in sides]
        stamps = [run.stamp for run in served]
        noise = self._noise(served[0])
        texts = []
        for index, (own, run) in enumerate(zip(served, runs, strict=True)):
            progress.next(f"reading the texts of {run.name}")
            # Tasks may be renamed to match those of the other side.
            parts = [own.stamp] if run is own.run else [*stamps, index]
            texts.append(self._store.add_texts(run, _cache_key("texts", parts)))

        def compare() -> tuple[Pairs, bytes]:
            progress.next("pairing items")
            comparison = self._compare_sides(sides, noise)
            answer = _answer(comparison.result)
            progress.next("writing the list of items")
            return comparison.pairs, answer

        return self._store.add(runs, texts, compare, self._key_of("pairs", served, noise))

    def _numbers(self, served: ServedRun) -> dict[str, int | float | list[str] | None]:
        side = self._side(served)
        with reading(side.run):
            scores = side.measured.scores
            right = (nw.col("score") >= self._setup.rule.correct_at).cast(nw.Float64).mean()
            accuracy = scores.filter(~nw.col("score").is_null()).select(right).collect().item()
            items = scores.select("task", "item").unique().select(nw.len()).collect().item()
            tasks = scores.select("task").unique().collect()["task"].to_list()
        return {"items": items, "accuracy": accuracy, "tasks": sorted(map(str, tasks))}

    def _side(self, served: ServedRun) -> Side:
        if served.id not in self._sides:
            self._sides[served.id] = prepare(served.run, self._setup.rule.metric)
        return self._sides[served.id]

    def close(self) -> None:
        """Stop all running work."""
        self._store.close()
        for executor in (self._builder, self._searcher, self._readers):
            executor.shutdown(wait=False, cancel_futures=True)


async def _let_go(cell: str) -> None:
    """Do nothing: a cell has nothing to close."""


def _cache_key(kind: str, parts: Sequence[object]) -> object:
    """Return a cache key; None if a part is unknown, so that nothing is reused."""
    return None if None in parts else (kind, *parts)


def make_app(
    explorer: Explorer, *, hosts: Collection[str], port: int, token: str | None
) -> ASGIApp:
    """Return the web application.

    Args:
        explorer: answers the requests.
        hosts: allowed values of the Host header.
        port: port of the server.
        token: token that clients need; None allows everyone.
    """
    page, policy = page_html()

    async def show_page(request: Request) -> Response:  # noqa: ARG001  # as Starlette calls it
        return Response(page, media_type="text/html", headers={"Content-Security-Policy": policy})

    routes = [
        Route("/", show_page),
        Route("/api/runs", explorer.runs),
        Route("/api/run", explorer.run),
        Route("/api/rule", explorer.rule),
        Route("/api/progress", explorer.progress),
        Route("/api/comparison", explorer.comparison),
        Route("/api/cell", explorer.cell),
        Route("/api/facets", explorer.facets),
        Route("/api/items", explorer.items),
        Route("/api/item", explorer.item),
    ]
    app = Starlette(
        routes=routes,
        middleware=[Middleware(GZipMiddleware, minimum_size=2_000, compresslevel=4)],
        exception_handlers={
            HTTPException: _say_http,
            ForgetmapError: _say_ours,
            duckdb.Error: _say_engine,
            Exception: _say_engine,
        },
    )
    # Outermost, because error responses bypass other middleware and need its headers too.
    return Guard(app, hosts, port, token)


def page_html() -> tuple[str, str]:
    """Return the page, and the Content-Security-Policy that allows only its scripts."""
    # Vega keeps 150 MB in the process that bundles it.
    return served_html(kept_bundle() or call_apart(vega_bundle))


def _answer(result: ComparisonResult) -> bytes:
    """Return the payload without items, and the figures, as JSON."""
    items = [Items(comparison=0, total=count_flips(result.total, KINDS), columns={})]
    payload = assemble([result], items)
    figures = call_apart(figures_json, payload)  # Vega keeps 150 MB in its process
    return f'{{"payload": {payload.model_dump_json()}, "figures": {figures}}}'.encode()


def _only(request: Request, names: Collection[str]) -> None:
    """Refuse unknown parameters: a misspelt filter must not be ignored."""
    for name, value in request.query_params.multi_items():
        if name not in names and name not in ("before", "after"):
            raise HTTPException(400, f"unknown parameter {name[:40]!r}")
        if len(value) > MAX_VALUE_LENGTH:
            raise HTTPException(400, f"{name} is longer than {MAX_VALUE_LENGTH:,} characters")


def _selection(request: Request) -> Selection:
    values = {name: request.query_params.get(name, "") for name in (*FACETS, "q", "sort")}
    if values["sort"] not in SORTS:
        raise HTTPException(400, f"sort must be one of {', '.join(filter(None, SORTS))}")
    if len(values["q"]) > MAX_QUERY_LENGTH:
        raise HTTPException(400, f"q is longer than {MAX_QUERY_LENGTH} characters")
    return Selection(**values)


def _number(request: Request, name: str, default: int, most: int) -> int:
    text = request.query_params.get(name, str(default))
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(most))):
        raise HTTPException(400, f"{name} must be a whole number from 0 to {most:,}")
    if int(text) > most:
        raise HTTPException(400, f"{name} must be at most {most:,}")
    return int(text)


def _key(request: Request) -> tuple[str, str, int]:
    parts = [unquote(part) for part in request.query_params.get("key", "").split("/")]
    if len(parts) != 3 or not (parts[2].isascii() and parts[2].isdigit() and len(parts[2]) < 9):
        raise HTTPException(400, "key must be TASK/ITEM/REPEAT, each part URL-encoded")
    return parts[0], parts[1], int(parts[2])


async def _say_http(request: Request, error: Exception) -> Response:  # noqa: ARG001
    assert isinstance(error, HTTPException)  # noqa: S101
    return refused(error.status_code, error.detail)


async def _say_ours(request: Request, error: Exception) -> Response:  # noqa: ARG001
    """Return why two runs cannot be compared, without their paths."""
    assert isinstance(error, ForgetmapError)  # noqa: S101
    return refused(422, error.message, error.hint)


async def _say_engine(request: Request, error: Exception) -> Response:  # noqa: ARG001
    """Return an error without details: messages of the engine name files and tables."""
    if isinstance(error, duckdb.CatalogException):
        return refused(503, "this comparison was just removed from memory; try again", "ask again.")
    return refused(500, "the results could not be read", "check that the files still exist.")
