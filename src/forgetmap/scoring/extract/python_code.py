"""Python code in a response: in blocks or bare, among prose, complete or a continuation.

The code that defines the required names is used. Of several such blocks the last one counts, with
helpers from the blocks before it; blocks that only call the code are ignored.
"""

from __future__ import annotations

import ast
import re
import textwrap
import warnings
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

_FENCE = re.compile(
    r"^[ \t]*(?P<mark>`{3,}|~{3,})[ \t]*(?P<language>[\w+#.-]*)[^\n`]*$", re.MULTILINE
)
_PYTHON = frozenset({"", "python", "py", "python3", "py3", "python2", "pycon", "ipython"})
_OPENING = re.compile(r"^(?:from|import|def|class|async|@)\b|^@|^[A-Za-z_]\w*[ \t]*=", re.MULTILINE)
_LEADING_TABS = re.compile(r"^\t+", re.MULTILINE)
_MAX_OPENINGS = 10
_MAX_CUTS = 20
_MAX_CHARS = 50_000


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """Python code that defines a required name.

    Attributes:
        source: the code, which can be parsed.
        alone: whether the response is only this: one block, or bare code.
    """

    source: str
    alone: bool


def find_python(response: str, names: Collection[str], question: str = "") -> CodeBlock | None:
    """Find the code in a response that defines one of the required names.

    Args:
        response: the response without thinking.
        names: required names; any definition counts if empty.
        question: the question, which may begin the function that the response completes, and may
            contain imports and helpers that the response does not repeat.
    """
    response = _with_spaces(response[:_MAX_CHARS])
    start = _start_in(_with_spaces(question), names)
    blocks = fenced_blocks(response)
    ways = (
        (
            _of_blocks(response, blocks, names),
            _completed(start, blocks, names, alone=_is_block_only(response)),
        )
        if blocks
        else (_of_text(response, names), _completed(start, [response], names, alone=True))
    )
    for source, alone in chain(*ways):
        return CodeBlock(_with_start(start, source, names), alone)
    return None


def fenced_blocks(text: str) -> list[str]:
    """Return the blocks of Python or of no stated language; the last one may be unclosed."""
    blocks: list[str] = []
    opened: re.Match[str] | None = None
    for fence in _FENCE.finditer(text):
        if opened is None:
            opened = fence
        elif fence["mark"].startswith(opened["mark"]) and not fence["language"]:
            blocks += _python_block(opened, text[opened.end() : fence.start()])
            opened = None
    if opened is not None:
        blocks += _python_block(opened, text[opened.end() :])
    return blocks


def defined_names(source: str) -> set[str]:
    """Return the names defined at the top level of code."""
    tree = parse(source)
    names: set[str] = set()
    for node in tree.body if tree else ():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return names


def parse(source: str) -> ast.Module | None:
    """Return the syntax tree; None if this is not Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # such as invalid escapes in strings
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _with_spaces(text: str) -> str:
    """Unify line ends, and replace leading tabs by spaces."""
    text = text.replace("\r\n", "\n")
    return _LEADING_TABS.sub(lambda tabs: "    " * len(tabs[0]), text)


def _compiles(source: str) -> bool:
    """Whether code compiles, which is stricter than parsing: `return` only in functions."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(source, "<response>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _python_block(fence: re.Match[str], inside: str) -> list[str]:
    language = fence["language"].casefold()
    return [textwrap.dedent(inside.strip("\n"))] if language in _PYTHON else []


def _is_block_only(response: str) -> bool:
    """Whether the response is a single block."""
    text = response.strip()
    fences = list(_FENCE.finditer(text))
    return (
        len(fences) == 2  # opening and closing
        and fences[0].start() == 0
        and fences[1].end() == len(text)
    )


def _of_blocks(
    response: str, blocks: Sequence[str], names: Collection[str]
) -> Iterator[tuple[str, bool]]:
    """Yield the last block with a required definition, with helpers from those before it."""
    readable = [block for block in map(_readable, blocks) if block]
    defining = [index for index, block in enumerate(readable) if _defines(block, names)]
    if not defining:
        return
    last = defining[-1]
    helpers = [block for index, block in enumerate(readable[:last]) if index not in defining]
    alone = _is_block_only(response)
    for source in ("\n\n".join([*map(_definitions, helpers), readable[last]]), readable[last]):
        if parse(source):
            yield source, alone


def _of_text(response: str, names: Collection[str]) -> Iterator[tuple[str, bool]]:
    """Yield bare code, possibly with prose around it."""
    tree = parse(response)
    if tree and _defines(response, names):
        source = _without_words(response, tree)
        yield source, source == response
    position = 0
    for _ in range(_MAX_OPENINGS):
        opening = _OPENING.search(response, position)
        if opening is None:
            return
        source = _without_prose(response[opening.start() :])
        if source and _defines(source, names):
            yield source, False
        position = opening.start() + max(len(source), 1)


def _completed(
    start: str, bodies: Sequence[str], names: Collection[str], *, alone: bool
) -> Iterator[tuple[str, bool]]:
    """Yield the function that the question begins, with the body in the response."""
    if not start or not names:
        return
    blocks = [f"{start}\n{body}" for text in bodies for body in _indented(text)]
    for block in blocks:
        if _compiles(block):
            yield block, alone
    for block in blocks:
        source = _without_prose(block, at_least=start.count("\n") + 2)
        if source and _compiles(source):
            yield source, False


def _indented(body: str) -> Iterator[str]:
    """Yield a body as it is, or with restored indentation of the first line or of all lines."""
    body = body.strip("\n")
    if body[:1].isspace():
        yield body
    elif body:
        yield f"    {body}"
        yield textwrap.indent(textwrap.dedent(body), "    ")


def _readable(block: str) -> str:
    """Return a block up to the prose that keeps it from being Python."""
    return block if parse(block) else _without_prose(block)


def _without_prose(text: str, at_least: int = 1) -> str:
    """Return the text up to the first line that is not Python; empty if that is too short."""
    lines = text.split("\n")
    for _ in range(_MAX_CUTS):
        source = "\n".join(lines)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(source)
        except SyntaxError as error:
            lines = lines[: max(min(error.lineno or 1, len(lines)) - 1, 0)]
        except (ValueError, RecursionError, MemoryError):
            return ""
        else:
            return _without_words(source, tree)
        if len(lines) < at_least:
            return ""
    return ""


def _without_words(source: str, tree: ast.Module) -> str:
    """Remove single words at the end, which are prose that is also valid Python."""
    body = list(tree.body)
    while body and isinstance(body[-1], ast.Expr) and isinstance(body[-1].value, ast.Name):
        body.pop()
    if len(body) == len(tree.body):
        return source
    return "\n".join(source.split("\n")[: body[-1].end_lineno]) if body else ""


def _defines(source: str, required: Collection[str]) -> bool:
    names = defined_names(source)
    return bool(names & set(required)) if required else bool(names)


def _definitions(source: str) -> str:
    """Return imports, functions, classes and constants, without other statements."""
    kinds = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    tree = parse(source)
    kept = [node for node in (tree.body if tree else ()) if isinstance(node, (*kinds, ast.Assign))]
    return "\n".join(ast.unparse(node) for node in kept)


def _start_in(question: str, required: Collection[str]) -> str:
    """Return the code in a question that begins a required function."""
    if not required:
        return ""
    names = "|".join(map(re.escape, sorted(required)))
    signature = re.compile(rf"^def (?:{names})\b", re.MULTILINE)
    for text in (*fenced_blocks(question), question):
        if signature.search(text):
            opening = _OPENING.search(text)
            return text[opening.start() if opening else 0 :].rstrip()
    return ""


def _with_start(start: str, source: str, names: Collection[str]) -> str:
    """Prepend imports and helpers of the question that the source lacks."""
    if not start or source.startswith(start):
        return source
    tree = parse(start) or parse(f"{start}\n    pass")
    own = defined_names(source) | set(names)
    kept = [
        ast.unparse(node)
        for node in (tree.body if tree else ())
        if isinstance(node, ast.Import | ast.ImportFrom)
        or (isinstance(node, ast.FunctionDef) and node.name not in own)
    ]
    whole = "\n".join([*kept, source])
    return whole if _compiles(whole) else source
