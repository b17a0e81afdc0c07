"""Prints what can be counted of a source tree, one column per folder.

    .venv/bin/python tools/metrics.py before=../old/src/forgetmap after=src/forgetmap

The length of a function is the number of lines of its body without docstring; overloads are left
out. Blocks are runs of at least ten equal lines, ignoring blank lines and indentation; each further
copy counts once. These numbers are for information, not targets.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from statistics import median, quantiles

from source_tree import (
    SourceFile,
    Tree,
    cycles,
    module_edges,
    names_past_doors,
    read_tree,
    repeated_classes,
    undocumented_names,
)

BLOCK_LINES = 10


def main() -> None:
    """Print the table of the folders in the arguments, `NAME=FOLDER` each."""
    folders = dict(argument.split("=", maxsplit=1) for argument in sys.argv[1:])
    columns = {name: measure(read_tree(Path(folder))) for name, folder in folders.items()}
    print(f"| | {' | '.join(columns)} |")
    print("|---" * (len(columns) + 1) + "|")
    for row in next(iter(columns.values())):
        print(f"| {row} | {' | '.join(column[row] for column in columns.values())} |")


def measure(tree: Tree) -> dict[str, str]:
    """Return every count of a tree, by its name in the table."""
    lengths = [length for file in tree.values() for length in _body_lengths(file)]
    lines = sum(len(file.text.splitlines()) for file in tree.values())
    comments = [comment for file in tree.values() for comment in _comments(file)]
    counts = {
        "packages": len(_packages(tree)),
        "modules, without `__init__`": sum(not file.is_init for file in tree.values()),
        "lines of source": lines,
        "lines of a module, median": median(len(file.text.splitlines()) for file in tree.values()),
        "functions": len(lengths),
        "lines of a function, median": median(lengths),
        "lines of a function, P90": quantiles(lengths, n=10)[-1],
        "names taken past public interfaces": len(names_past_doors(tree)),
        "modules in import cycles": sum(map(len, cycles(module_edges(tree)))),
        "class names used twice": len(repeated_classes(tree)),
        "public names without documentation": len(undocumented_names(tree)),
        "`noqa`": sum("noqa" in text for text, _ in comments),
        "comment lines": sum(is_alone for _, is_alone in comments),
        f"identical blocks of {BLOCK_LINES}+ lines": sum(1 for _ in _repeated_blocks(tree)),
    }
    return {name: f"{count:,.0f}" for name, count in counts.items()}


def _packages(tree: Tree) -> set[str]:
    return {file.package for file in tree.values() if file.module.count(".") > 1}


def _body_lengths(file: SourceFile) -> Iterator[int]:
    for node in file.nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not _is_overload(node):
            has_more = ast.get_docstring(node) is not None and len(node.body) > 1
            first = node.body[1] if has_more else node.body[0]
            yield (node.end_lineno or 0) - first.lineno + 1


def _is_overload(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(ast.unparse(decorator).endswith("overload") for decorator in node.decorator_list)


def _comments(file: SourceFile) -> Iterator[tuple[str, bool]]:
    """Yield each comment, and whether it has its own line."""
    for token in tokenize.generate_tokens(io.StringIO(file.text).readline):
        if token.type == tokenize.COMMENT:
            yield token.string, token.line.strip() == token.string


def _repeated_blocks(tree: Tree) -> Iterator[str]:
    """Yield where a copy of earlier lines begins."""
    seen: dict[tuple[str, ...], tuple[str, int]] = {}
    for file in tree.values():
        lines = [line.strip() for line in file.text.splitlines() if line.strip()]
        copied_to = 0
        for start in range(len(lines) - BLOCK_LINES + 1):
            block = tuple(lines[start : start + BLOCK_LINES])
            module, earlier = seen.setdefault(block, (file.module, start))
            if (module, earlier) != (file.module, start):
                if start >= copied_to:
                    yield f"{file.module}: {block[0]}"
                copied_to = start + BLOCK_LINES


if __name__ == "__main__":
    main()
