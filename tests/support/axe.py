"""Accessibility faults that axe-core reports on a page, and labels on the axes of its figures."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from playwright.sync_api import Page

from node_tools import node_file

RUN = "() => axe.run(document, {resultTypes: ['violations']}).then((found) => found.violations)"
AXES = """() => [...document.querySelectorAll("figure svg .role-axis")].map((axis) => ({
  figure: axis.closest("figure").id,
  title: [...axis.querySelectorAll(".role-axis-title text")].map((it) => it.textContent).join(" "),
  labels: [...axis.querySelectorAll(".role-axis-label text")].map((it) => it.textContent),
}))"""
SIGNED = re.compile(r"drop|change|difference|drift|effect|points|percent of|benefit", re.IGNORECASE)
"""Titles of axes that show changes, whose shares may be negative."""
PERCENT = re.compile(r"([-\N{MINUS SIGN}+]?)([\d.]+)%")


@cache
def _script() -> str:
    return node_file("axe-core/axe.min.js").read_text(encoding="utf-8")


def faults_of(page: Page) -> list[str]:
    """Return the faults of a page, from minor to critical."""
    if not page.evaluate("() => Boolean(window.axe)"):
        page.evaluate(f"{_script()};0")
    faults: list[dict[str, Any]] = page.evaluate(RUN)
    return [
        f"{fault['impact']} {fault['id']}: {fault['nodes'][0]['html'][:200]}" for fault in faults
    ]


def shares_beyond(page: Page) -> list[str]:
    """Return the labels of axes of shares that are not between 0% and 100%."""
    return [
        f"{axis['figure']}, {axis['title']}: {label}"
        for axis in page.evaluate(AXES)
        for label in axis["labels"]
        if not _is_within(label, is_signed=bool(SIGNED.search(axis["title"])))
    ]


def _is_within(label: str, *, is_signed: bool) -> bool:
    number = PERCENT.fullmatch(label)
    if number is None:
        return True
    is_below = number[1] in ("-", "\N{MINUS SIGN}") and float(number[2]) > 0
    return float(number[2]) <= 100 and (is_signed or not is_below)
