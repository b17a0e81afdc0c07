"""Paths of the pages of the site, and links between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from forgetmap.report.tables import slug_of, table_names
from forgetmap.study import PairDetail, StudyDetail

START, LOST, DOWNLOADS = "index.html", "items.html", "downloads.html"
ITEMS_FOLDER, TABLES_FOLDER, FIGURES_FOLDER = "items", "tables", "figures"


@dataclass(frozen=True, slots=True)
class SiteNames:
    """Files of the site, relative to its folder.

    Attributes:
        stages: group -> page.
        pairs: (before, after) -> page, including merges.
        items: (before, after) -> file with all changed items; empty if there are none.
        categories: name -> page.
        models: id -> page.
        tables: group -> prefix of the names of its tables.
    """

    stages: dict[str, str]
    pairs: dict[tuple[str, str], str]
    items: dict[tuple[str, str], str]
    categories: dict[str, str]
    models: dict[str, str]
    tables: dict[str, str]

    def pair(self, pair: PairDetail, **state: str) -> str:
        """Return the page of a pair; a state selects its items."""
        page = self.pairs[pair.before, pair.after]
        has_items = (pair.before, pair.after) in self.items
        return f"{page}#{urlencode(state)}" if state and has_items else page


def name_pages(detail: StudyDetail) -> SiteNames:
    """Return a file for every page; names from inputs are never used unchanged."""
    every = [*detail.pairs, *detail.merges]
    pairs = _numbered([f"{pair.before}-{pair.after}" for pair in every])
    keys = [(pair.before, pair.after) for pair in every]
    models = [model.id for model in detail.study.models]
    models += [merge.id for merge in detail.study.merges]
    return SiteNames(
        stages=_pages("stages", detail.groups),
        pairs={key: f"pairs/{name}.html" for key, name in zip(keys, pairs, strict=True)},
        items={
            key: f"{ITEMS_FOLDER}/{name}.csv"
            for key, name in zip(keys, pairs, strict=True)
            if detail.answers is not None
        },
        categories=_pages("categories", detail.categories[1:]),
        models=_pages("models", models),
        tables=table_names(detail),
    )


def _pages(folder: str, names: Sequence[str]) -> dict[str, str]:
    files = _numbered(names)
    return {name: f"{folder}/{file}.html" for name, file in zip(names, files, strict=True)}


def _numbered(names: Sequence[str]) -> list[str]:
    digits = max(2, len(str(len(names))))
    return [f"{number:0{digits}d}-{slug_of(name)}" for number, name in enumerate(names, start=1)]
