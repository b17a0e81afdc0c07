"""Hooks of mkdocs: the pages of the site that are no files of docs, and links that leave docs.

The home page is the README, the tutorial is the notebook, and the pages of Python packages come
from docstrings, which griffe reads without importing anything. Files of the repository that are not
pages have no address on the site: a link to one becomes its path.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files
from mkdocstrings_handlers.python._internal import rendering

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from architecture import LAYERS  # noqa: E402  # beside this file, which mkdocs loads by its path
from notebook_page import notebook_page  # noqa: E402
from page_links import slug  # noqa: E402

SOURCE = ROOT / "src" / "forgetmap"
MOVED = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "vulnerabilities.md",
}
"""Pages at the top of the repository -> their paths on the site."""
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")
MERMAID = re.compile(r"```mermaid\n.*?```", re.DOTALL)
PRIVATE = {"cli", "__main__", "pytest_plugin", "doctor"}
"""Modules for commands, not for Python users."""


def on_config(config: Any) -> Any:
    """Add commands and packages to the list of pages."""
    # By default it runs ruff for every signature, which takes half of the build time.
    setattr(rendering, "_get_formatter", lambda: break_signature)  # noqa: B010  # a private name
    config["mdx_configs"]["toc"]["slugify"] = slug  # links work on GitHub and here
    reference = next(each["Reference"] for each in config["nav"] if "Reference" in each)
    sections = {name: pages for each in reference for name, pages in each.items()}
    names = [re.findall(r"\(cli/([\w-]+)\.md\)", (ROOT / "docs/cli.md").read_text("utf-8"))]
    sections["Commands"] += [{name: f"cli/{name}.md"} for name in names[0]]
    sections["Python"] += [{name: f"api/{name}.md"} for name in packages()]
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the generated pages."""
    made = {place: (ROOT / name).read_text("utf-8") for name, place in MOVED.items()}
    made = {place: _from_top(text) for place, text in made.items()}
    made["tutorial.md"] = notebook_page(ROOT / "docs" / "tutorial.ipynb")
    made["api/index.md"] = root_page()
    made |= {f"api/{name}.md": package_page(name) for name in packages()}
    for place, text in made.items():
        files.append(File.generated(config, place, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: object) -> str:
    """Replace links that leave docs by paths, and the layers by boxes."""
    if page.parent is None:
        page.meta.setdefault("hide", ["navigation"])  # a list with one entry
    markdown = MERMAID.sub(lambda _: layers(), markdown)
    depth = page.file.src_uri.count("/")
    markdown = LINK.sub(lambda match: _link(match, depth), markdown)
    return markdown.replace("(tutorial.ipynb)", "(tutorial.md)")


def packages() -> list[str]:
    """Return packages with public names."""
    return [
        name
        for name in sorted(_purposes())
        if not name.startswith("_") and name not in PRIVATE and _all_names(name)
    ]


def root_page() -> str:
    """Return the page of `import forgetmap as fm`."""
    rows = [f"| [`forgetmap.{name}`]({name}.md) | {_purposes()[name]} |" for name in packages()]
    table = "\n".join(["| package | |", "|---|---|", *rows])
    return (
        "# Python\n\n`import forgetmap as fm` has what most programs need. Everything else is "
        f"imported from its package.\n\n{table}\n\n## forgetmap\n\n"
        "::: forgetmap\n    options:\n      heading_level: 3\n      show_submodules: false\n"
    )


def package_page(name: str) -> str:
    """Return the page of the names in `__all__` of a package."""
    return f"# forgetmap.{name}\n\n::: forgetmap.{name}\n"


def break_signature(code: str, length: int) -> str:
    """Put each parameter on its own line if a signature is too long."""
    code = " ".join(code.split())
    opened = code.find("(")
    if len(code) <= length or not code.startswith("def ") or opened < 0:
        return f"{code}\n"
    depth, starts = 0, [opened + 1]
    bare = re.sub(r"'[^']*'|\"[^\"]*\"", lambda text: "_" * len(text[0]), code)
    for index in range(opened, len(code)):
        depth += (bare[index] in "([{") - (bare[index] in ")]}")
        if depth == 1 and bare[index] == ",":
            starts.append(index + 1)
        elif depth == 0:
            break
    ends = [*(start - 1 for start in starts[1:]), index]
    parts = (code[start:end].strip() for start, end in zip(starts, ends, strict=True))
    lines = "".join(f"    {part},\n" for part in parts if part)
    return f"{code[: opened + 1]}\n{lines}{code[index:]}\n"


def layers() -> str:
    """Return the layers of the architecture, the highest first."""
    rows = [
        "".join(f"<span><b>{name}</b> {_plain(purpose)}</span>" for name, purpose in layer.items())
        for layer in reversed(LAYERS)
    ]
    return '<div class="layers">' + "".join(f"<div>{row}</div>" for row in rows) + "</div>"


def _plain(text: str) -> str:
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", text)


def _purposes() -> dict[str, str]:
    return {name: purpose for layer in LAYERS for name, purpose in layer.items()}


def _all_names(name: str) -> list[str]:
    path = SOURCE / name / "__init__.py" if (SOURCE / name).is_dir() else SOURCE / f"{name}.py"
    stated = re.search(r"^__all__ = \[(.*?)\]", path.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    return re.findall(r'"(\w+)"', stated[1]) if stated else []


def _from_top(text: str) -> str:
    """Return a page from the top of the repository, with links relative to docs."""

    def moved(match: re.Match[str]) -> str:
        mark, label, target = match.groups()
        path, hash_, anchor = target.partition("#")
        if "://" in target or not path:
            return match[0]
        inside = path.removeprefix("docs/") if path.startswith("docs/") else f"../{path}"
        return f"{mark}[{label}]({inside}{hash_}{anchor})"

    return LINK.sub(moved, text)


def _link(match: re.Match[str], depth: int) -> str:
    mark, label, target = match.groups()
    up = "../" * (depth + 1)
    if not target.startswith(up):
        return match[0]
    path, _, anchor = target.removeprefix(up).partition("#")
    if path in MOVED:
        return f"{mark}[{label}]({'../' * depth}{MOVED[path]}{'#' if anchor else ''}{anchor})"
    bare = label.strip("`")
    return f"`{path}`" if bare in path else f"{label} (`{path}`)"
