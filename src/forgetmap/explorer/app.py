"""The web application: runs, comparisons, items, and the page that shows them."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar
from urllib.parse import unquote

import duckdb
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from forgetmap.errors import ForgetmapError
from forgetmap.explorer.drawing import figures
from forgetmap.explorer.runs import KnownRun, describe
from forgetmap.explorer.security import Guard, refused
from forgetmap.explorer.shell import page_html
from forgetmap.explorer.store import FACETS, READERS, SORTS, PairTable, Selection, Store
from forgetmap.pairing.align import align
from forgetmap.pairing.match import Side, prepare
from forgetmap.report.build import assemble
from forgetmap.report.payload import Items
from forgetmap.transitions.cells import CELL_NAMES
from forgetmap.transitions.comparison import compare_sides
from forgetmap.transitions.flips import KINDS
from forgetmap.transitions.result import ComparisonResult, Rule

MOST_PAIRS, MOST_SEARCHES = 8, 32
"""Comparisons and searches kept; those asked for longest ago go first."""
MOST_ROWS, MOST_LETTERS, LONGEST_NAME = 500, 200, 2_000
FURTHEST = 1_000_000_000
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Served:
    """A comparison as it is served."""

    table: PairTable
    answer: bytes


class Kept(Generic[T]):
    """The last few results, each made once however many ask for it at the same time."""

    def __init__(self, most: int, drop: Callable[[T], None]) -> None:
        self._most = most
        self._drop = drop
        self._made: OrderedDict[Hashable, asyncio.Future[T]] = OrderedDict()

    async def get(self, key: Hashable, make: Callable[[], T], where: Executor) -> T:
        """The result for a key, made by a thread of `where` if it is not there."""
        loop = asyncio.get_running_loop()
        if key not in self._made:
            self._made[key] = loop.run_in_executor(where, make)
            self._made[key].add_done_callback(partial(self._forget_failed, key))
        self._made.move_to_end(key)
        # One client that goes away must not take it from the others.
        found = await asyncio.shield(self._made[key])
        await self._make_room(loop, where)
        return found

    def _forget_failed(self, key: Hashable, done: asyncio.Future[T]) -> None:
        if done.cancelled() or done.exception() is not None:
            self._made.pop(key, None)

    async def _make_room(self, loop: asyncio.AbstractEventLoop, where: Executor) -> None:
        done = [key for key, each in self._made.items() if each.done()]
        for key in done[: max(len(self._made) - self._most, 0)]:
            old = self._made.pop(key).result()
            await loop.run_in_executor(where, self._drop, old)


class Explorer:
    """Answers questions about runs and pairs of them.

    Args:
        runs: those that can be asked for.
        store: where pairs are kept.
    """

    def __init__(self, runs: Sequence[KnownRun], store: Store) -> None:
        self._runs = {each.id: each for each in runs}
        self._store = store
        self._sides: dict[str, Side] = {}
        self._pairs: Kept[Served] = Kept(MOST_PAIRS, lambda old: store.drop(old.table))
        self._searches: Kept[str] = Kept(MOST_SEARCHES, store.drop_hits)
        # Comparing uses the one connection that files are read through: one at a time.
        self._builder = ThreadPoolExecutor(1, "comparing")
        self._readers = ThreadPoolExecutor(READERS - 1, "reading")
        # A search takes all processors for a while: filters must not queue behind several.
        self._searcher = ThreadPoolExecutor(1, "searching")

    async def runs(self, request: Request) -> Response:
        """All runs, with their parents."""
        _only(request, ())
        return JSONResponse([describe(each) for each in self._runs.values()])

    async def comparison(self, request: Request) -> Response:
        """What a report says, without items; and its figures."""
        _only(request, ())
        served = await self._pair(request)
        return Response(served.answer, media_type="application/json")

    async def facets(self, request: Request) -> Response:
        """What items can be filtered by."""
        _only(request, ())
        served = await self._pair(request)
        return JSONResponse(served.table.facets)

    async def items(self, request: Request) -> Response:
        """A page of items."""
        _only(request, (*FACETS, "q", "sort", "offset", "limit"))
        offset = _number(request, "offset", 0, FURTHEST)
        limit = _number(request, "limit", 50, MOST_ROWS)
        chosen = _selection(request)
        served = await self._pair(request)
        hits = await self._hits(served.table, chosen.q)
        total, rows = await self._read(
            partial(self._store.page, served.table, chosen, hits, offset=offset, limit=limit)
        )
        return JSONResponse({"total": total, "rows": rows})

    async def item(self, request: Request) -> Response:
        """One item with all its texts, and its place in the selection."""
        _only(request, (*FACETS, "q", "sort", "key"))
        chosen, key = _selection(request), _key(request)
        served = await self._pair(request)
        hits = await self._hits(served.table, chosen.q)
        item, place = await self._read(partial(self._store.find, served.table, chosen, hits, key))
        return JSONResponse({"item": item, "place": place})

    async def _pair(self, request: Request) -> Served:
        before, after = (self._known(request, name) for name in ("before", "after"))
        if before.id == after.id:
            raise HTTPException(400, "a run is not compared with itself")
        make = partial(self._compare, before, after)
        return await self._pairs.get((before.id, after.id), make, self._builder)

    async def _hits(self, table: PairTable, text: str) -> str | None:
        if not text:
            return None
        make = partial(self._store.search, table, text)
        return await self._searches.get((table.name, text), make, self._searcher)

    async def _read(self, read: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._readers, read)

    def _known(self, request: Request, name: str) -> KnownRun:
        found = self._runs.get(request.query_params.get(name, ""))
        if found is None:
            raise HTTPException(404, f"there is no such run: {name} takes an id of /api/runs")
        return found

    def _compare(self, before: KnownRun, after: KnownRun) -> Served:
        first, second = align([self._side(before), self._side(after)])
        comparison = compare_sides(first, second, Rule())
        return Served(self._store.add(comparison), _answer(comparison.result))

    def _side(self, known: KnownRun) -> Side:
        if known.id not in self._sides:
            self._sides[known.id] = prepare(known.run)
        return self._sides[known.id]

    def close(self) -> None:
        """Stop whatever is running."""
        self._store.close()
        for each in (self._builder, self._searcher, self._readers):
            each.shutdown(wait=False, cancel_futures=True)


def make_app(explorer: Explorer, *, hosts: Collection[str], token: str | None) -> Starlette:
    """The application.

    Args:
        explorer: who answers.
        hosts: what the Host header may say.
        token: what a client must know; None on loopback.
    """
    page, policy = page_html()

    async def show_page(request: Request) -> Response:  # noqa: ARG001  # as Starlette calls it
        return Response(page, media_type="text/html", headers={"Content-Security-Policy": policy})

    routes = [
        Route("/", show_page),
        Route("/api/runs", explorer.runs),
        Route("/api/comparison", explorer.comparison),
        Route("/api/facets", explorer.facets),
        Route("/api/items", explorer.items),
        Route("/api/item", explorer.item),
    ]
    return Starlette(
        routes=routes,
        middleware=[
            Middleware(Guard, hosts=hosts, token=token),
            Middleware(GZipMiddleware, minimum_size=2_000, compresslevel=4),
        ],
        exception_handlers={
            HTTPException: _say_http,
            ForgetmapError: _say_ours,
            duckdb.Error: _say_engine,
            Exception: _say_engine,
        },
    )


def _answer(result: ComparisonResult) -> bytes:
    """The payload without items, and the figures, as JSON."""
    total = {kind: getattr(result.total, CELL_NAMES[cell]) for kind, cell in KINDS.items()}
    items = [Items(comparison=0, total=total, columns={})]
    payload = assemble([result], items, None, texts=True, redact=None, title=None, made=None)
    return f'{{"payload": {payload.model_dump_json()}, "figures": {figures(payload)}}}'.encode()


def _only(request: Request, names: Collection[str]) -> None:
    """Refuse what nobody understands: a filter with a typing error must not pass for none."""
    for name, value in request.query_params.multi_items():
        if name not in names and name not in ("before", "after"):
            raise HTTPException(400, f"there is no parameter {name[:40]!r}")
        if len(value) > LONGEST_NAME:
            raise HTTPException(400, f"{name} is longer than {LONGEST_NAME:,} characters")


def _selection(request: Request) -> Selection:
    given = {name: request.query_params.get(name, "") for name in (*FACETS, "q", "sort")}
    if given["sort"] not in SORTS:
        raise HTTPException(400, f"sort is one of {', '.join(filter(None, SORTS))}")
    if len(given["q"]) > MOST_LETTERS:
        raise HTTPException(400, f"q is longer than {MOST_LETTERS} characters")
    return Selection(**given)


def _number(request: Request, name: str, default: int, most: int) -> int:
    text = request.query_params.get(name, str(default))
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(most))):
        raise HTTPException(400, f"{name} is a whole number from 0 to {most:,}")
    if int(text) > most:
        raise HTTPException(400, f"{name} is at most {most:,}")
    return int(text)


def _key(request: Request) -> tuple[str, str, int]:
    parts = [unquote(part) for part in request.query_params.get("key", "").split("/")]
    if len(parts) != 3 or not (parts[2].isascii() and parts[2].isdigit() and len(parts[2]) < 9):  # noqa: PLR2004
        raise HTTPException(400, "key is TASK/ITEM/REPEAT, each of them URL-encoded")
    return parts[0], parts[1], int(parts[2])


async def _say_http(request: Request, error: Exception) -> Response:  # noqa: ARG001
    assert isinstance(error, HTTPException)  # noqa: S101
    return refused(error.status_code, error.detail)


async def _say_ours(request: Request, error: Exception) -> Response:  # noqa: ARG001
    """Why two runs cannot be compared; where they are is nobody's business."""
    assert isinstance(error, ForgetmapError)  # noqa: S101
    return refused(422, error.message, error.hint)


async def _say_engine(request: Request, error: Exception) -> Response:  # noqa: ARG001
    """The engine names files and tables in its messages."""
    if isinstance(error, duckdb.CatalogException):
        return refused(503, "this comparison was put aside just now", "ask again.")
    return refused(500, "the results could not be read", "see whether the files are still there.")
