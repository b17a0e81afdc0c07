"""The links of README and docs: those inside must lead somewhere, those outside are listed.

    python tools/page_links.py            print every external address, with the pages that name it

Nothing is downloaded. Anchors are those of GitHub, which the site uses too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
FENCE = re.compile(r"^ *(```|~~~).*?^ *\1[ \t]*$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\[(?:[^\[\]]|\[[^\]]*\])*\]\(\s*<?([^()\s>]+(?:\([^()]*\))?)>?[^()]*\)")
BARE = re.compile(r"<(https?://[^>\s]+)>")
HEADING = re.compile(r"^#{1,6} +(.+?) *#* *$", re.MULTILINE)
OWN_ANCHOR = re.compile(r'<a (?:id|name)="([^"]+)"')
OUTSIDE = re.compile(r"^[a-z][a-z+.-]*:", re.IGNORECASE)


def pages() -> list[Path]:
    """Return every page for readers, including notebooks."""
    return sorted(
        [
            *ROOT.glob("*.md"),
            *(ROOT / "docs").rglob("*.md"),
            *(ROOT / "docs").rglob("*.ipynb"),
            *(ROOT / "design").glob("*.md"),
        ]
    )


def text_of(page: Path) -> str:
    """Return the Markdown of a page or of the cells of a notebook."""
    text = page.read_text(encoding="utf-8")
    if page.suffix != ".ipynb":
        return text
    cells = json.loads(text)["cells"]
    return "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")


def links_of(page: Path) -> list[str]:
    """Return the targets of all links and pictures of a page, except in code."""
    text = FENCE.sub("", text_of(page))
    text = re.sub(r"`[^`\n]*`", lambda code: "x" * len(code[0]), text)
    return [*LINK.findall(text), *BARE.findall(text)]


def anchors_of(page: Path) -> set[str]:
    """Return the anchors of a page."""
    text = FENCE.sub("", text_of(page))
    anchors: dict[str, int] = {}
    found: set[str] = set(OWN_ANCHOR.findall(text))
    for heading in HEADING.findall(text):
        name = slug(heading)
        number = anchors.get(name, 0)
        anchors[name] = number + 1
        found.add(f"{name}-{number}" if number else name)
    return found


def slug(heading: str, separator: str = "-") -> str:
    """Return the anchor of a heading, as on GitHub."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)|</?\w[^>]*>", r"\1", heading)
    kept = "".join(letter for letter in text.lower() if letter.isalnum() or letter in "-_ ")
    return kept.strip(" ").replace(" ", separator)


def faults_of(page: Path) -> Iterator[str]:
    """Yield internal links without a target."""
    for target in links_of(page):
        if OUTSIDE.match(target):
            continue
        path, _, anchor = target.partition("#")
        place = (page.parent / path).resolve() if path else page
        if not place.exists():
            yield f"{target}: there is no such file"
        elif anchor and place.suffix in {".md", ".ipynb"} and anchor not in anchors_of(place):
            yield f"{target}: {place.name} has no such heading"


def outside_links() -> dict[str, list[str]]:
    """Return external address -> pages that name it."""
    named: dict[str, list[str]] = {}
    for page in pages():
        for target in links_of(page):
            if OUTSIDE.match(target):
                named.setdefault(target, []).append(str(page.relative_to(ROOT)))
    return dict(sorted(named.items()))


def main() -> None:
    """List the external links."""
    for target, places in outside_links().items():
        print(target, *sorted(set(places)), sep="\t")


if __name__ == "__main__":
    main()
