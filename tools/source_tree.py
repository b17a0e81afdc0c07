"""A package of Python modules as its source shows it: imports, doors, classes, documentation.

Nothing is imported; each file is parsed once. A door is an `__init__.py` that only lists names of
its package: imports under `TYPE_CHECKING` and a literal `__all__`.
"""

from __future__ import annotations

import ast
import gc
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, TypeAlias


class Import(NamedTuple):
    """One name that a file takes from a module of the tree."""

    module: str
    """Dotted name, also for relative imports."""
    name: str | None
    """None if the module itself is imported."""


@dataclass(frozen=True)
class SourceFile:
    """One parsed module."""

    module: str
    text: str
    tree: ast.Module
    is_init: bool
    nodes: list[ast.AST]
    """Every node of the tree, because walking a tree costs as much as parsing it."""

    @property
    def package(self) -> str:
        """First-level package or module below the root; for the root, its own name."""
        return self.module.split(".")[1] if "." in self.module else self.module

    @cached_property
    def imports(self) -> tuple[Import, ...]:
        """Imports from the same root, also inside functions and under `TYPE_CHECKING`."""
        return tuple(self._imports(self.nodes))

    @cached_property
    def listed_names(self) -> list[str] | None:
        """`__all__`; None if it is missing or not a literal list of strings."""
        assignment = self.definition("__all__")
        if not isinstance(assignment, ast.Assign | ast.AnnAssign) or assignment.value is None:
            return None
        try:
            names = ast.literal_eval(assignment.value)
        except ValueError:
            return None
        return names if isinstance(names, list) else None

    @cached_property
    def typing_imports(self) -> dict[str, Import]:
        """Imports under `if TYPE_CHECKING:`, by local name."""
        blocks = [
            node
            for node in self.tree.body
            if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
        ]
        return {
            source.name or source.module: source
            for block in blocks
            for source in self._imports(ast.walk(block))
        }

    @cached_property
    def is_door(self) -> bool:
        """Whether the file only lists names: no function or class, no runtime import of ours."""
        at_run_time = set(self.imports) - set(self.typing_imports.values())
        root = self.module.split(".", maxsplit=1)[0]
        allowed = {Import(f"{root}._lazy", "load_on_use")}
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        makes = [node for node in self.tree.body if isinstance(node, kinds)]
        return (
            self.is_init
            and at_run_time <= allowed
            and all(getattr(node, "name", "") == "__dir__" for node in makes)
        )

    def definition(self, name: str) -> ast.stmt | None:
        """Return the last top-level statement that defines a name: the first may be an overload."""
        return next((node for node in reversed(self.tree.body) if name in _names_made(node)), None)

    def is_documented(self, name: str) -> bool:
        """Whether a name has a docstring, a string below or a comment."""
        node = self.definition(name)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            return ast.get_docstring(node) is not None
        if node is None:
            return False
        following = self.tree.body[self.tree.body.index(node) + 1 :][:1]
        if any(_is_text(statement) for statement in following):
            return True
        lines = self.text.splitlines()
        above = lines[node.lineno - 2] if node.lineno > 1 else ""
        own = lines[node.lineno - 1 : node.end_lineno]
        return above.startswith("#") or any("  # " in line for line in own)

    def modules_in_strings(self) -> Iterator[tuple[str, bool]]:
        """Yield dotted names below the root in strings, and whether `import_module` gets them.

        Code in strings counts, such as code for a new interpreter. Of an f-string only the
        beginning is known.
        """
        root = self.module.split(".", maxsplit=1)[0]
        to_import = {
            id(part)
            for node in self.nodes
            if isinstance(node, ast.Call)
            and ast.unparse(node.func).split(".")[-1] in {"import_module", "__import__"}
            for argument in node.args[:1]
            for part in ast.walk(argument)
        }
        code = re.compile(rf"\b(?:from|import) ({root}\.[\w.]+)")
        for node in self.nodes:
            if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
                continue
            if node.value.startswith(f"{root}.") and len(node.value.split()) == 1:
                yield node.value.split(":")[0].rstrip("."), id(node) in to_import
            for module in code.findall(node.value):
                yield module, False

    def _imports(self, nodes: Iterable[ast.AST]) -> Iterator[Import]:
        root = self.module.split(".", maxsplit=1)[0]
        for node in nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    if alias.name.split(".")[0] == root:
                        yield Import(alias.name, None)
            elif isinstance(node, ast.ImportFrom):
                module = self._absolute(node)
                if module.split(".")[0] == root:
                    for alias in node.names:
                        yield Import(module, alias.name)

    def _absolute(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        parts = self.module.split(".")
        above = parts[: len(parts) - node.level + self.is_init]
        return ".".join([*above, node.module] if node.module else above)


Tree: TypeAlias = Mapping[str, SourceFile]
"""Files by dotted name; the name of a package stands for its `__init__.py`."""


def read_tree(folder: Path) -> Tree:
    """Read every module of the package in `folder`, whose name is the root of all dotted names."""
    # All nodes are kept, so garbage collection would only scan them repeatedly.
    collects = gc.isenabled()
    gc.disable()
    try:
        files = (_read_file(folder, path) for path in sorted(folder.rglob("*.py")))
        return {file.module: file for file in files}
    finally:
        if collects:
            gc.enable()


def _read_file(folder: Path, path: Path) -> SourceFile:
    parts = (folder.name, *path.relative_to(folder).with_suffix("").parts)
    is_init = parts[-1] == "__init__"
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text, str(path))
    module = ".".join(parts[:-1] if is_init else parts)
    return SourceFile(module, text, tree, is_init, list(ast.walk(tree)))


def resolve(tree: Tree, source: Import) -> str | None:
    """Return the module that an import finally leads to, through doors; None if there is none."""
    if source.name and f"{source.module}.{source.name}" in tree:
        return f"{source.module}.{source.name}"
    file = tree.get(source.module)
    if file is None:
        return None
    if file.is_door and source.name in file.typing_imports:
        return resolve(tree, file.typing_imports[source.name])
    return source.module


def home_of(tree: Tree, module: str, name: str) -> SourceFile | None:
    """Return the file that defines a name of a module, through all doors and re-exports."""
    file = tree.get(module)
    while file is not None and file.definition(name) is None:
        source = next((item for item in file.imports if item.name == name), None)
        file = tree.get(source.module) if source else None
    return file


def packages_used(file: SourceFile) -> set[str]:
    """Return the first-level packages that a file imports, except its own and the root."""
    used = {source.module.split(".")[1] for source in file.imports if "." in source.module}
    return used - {file.package}


def names_past_doors(tree: Tree) -> list[str]:
    """Return imports from another package other than `from root.package import listed_name`."""
    return [
        f"{file.module} takes {source.module}{f'.{source.name}' if source.name else ''}"
        for file in tree.values()
        for source in file.imports
        if _package(source) != file.package and not _is_public(tree, source)
    ]


def string_imports(tree: Tree) -> list[str]:
    """Return modules of other packages that are named in strings."""
    return [
        f"{file.module} names {module}"
        for file in tree.values()
        for module, is_imported in file.modules_in_strings()
        if (is_imported or (module in tree and module.count(".") > 1))
        and _package(Import(module, None)) != file.package
    ]


def cycles(edges: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Return groups of nodes that lead to each other, each group sorted."""
    reach = {node: _reachable(node, edges) for node in edges}
    groups = {
        tuple(sorted(other for other in reach[node] if node in reach.get(other, ())))
        for node in edges
        if node in reach[node]
    }
    return [list(group) for group in sorted(groups)]


def module_edges(tree: Tree) -> dict[str, set[str]]:
    """Return the modules that each module leads to; doors lead on to the modules they list."""
    return {
        file.module: {
            target
            for source in file.imports
            if (target := resolve(tree, source)) and not tree[target].is_door
        }
        for file in tree.values()
        if not file.is_door
    }


def package_edges(tree: Tree) -> dict[str, set[str]]:
    """Return the first-level packages that each package leads to, without the root."""
    edges: dict[str, set[str]] = {}
    for file in tree.values():
        if "." in file.module:
            edges.setdefault(file.package, set()).update(packages_used(file))
    return edges


def repeated_classes(tree: Tree) -> list[str]:
    """Return names of more than one class."""
    counts = Counter(
        node.name for file in tree.values() for node in file.nodes if isinstance(node, ast.ClassDef)
    )
    return sorted(name for name, count in counts.items() if count > 1)


def undocumented_names(tree: Tree) -> list[str]:
    """Return listed names without a docstring, a string below or a comment, as `package.name`."""
    bare = set()
    for file in tree.values():
        for name in file.listed_names or ():
            home = home_of(tree, file.module, name)
            if home is None or not home.is_documented(name):
                bare.add(f"{(home or file).package}.{name}")
    return sorted(bare)


def faulty_doors(tree: Tree) -> list[str]:
    """Return faults in the lists of names of packages."""
    faults = []
    for file in tree.values():
        has_list = file.definition("__all__") is not None
        names = set(file.listed_names or ())
        if has_list and file.listed_names is None:
            faults.append(f"{file.module}: __all__ is no literal list")
        elif file.is_door and names != set(file.typing_imports):
            different = sorted(names ^ set(file.typing_imports))
            faults.append(f"{file.module}: listed or imported, not both: {', '.join(different)}")
        faults += [
            f"{file.module}: {name} is also a module"
            for name in sorted(names)
            if file.is_init and f"{file.module}.{name}" in tree
        ]
    return faults


def _package(source: Import) -> str:
    """Return the first-level package of an import; for the root, its own name."""
    return source.module.split(".")[:2][-1]


def _is_public(tree: Tree, source: Import) -> bool:
    if "." not in source.module:
        return source.name == "__version__"
    file = tree.get(source.module)
    if source.name is None or source.module.count(".") > 1 or file is None:
        return False
    if file.is_init:
        return source.name in (file.listed_names or ())
    return not source.name.startswith("_")


def _reachable(start: str, edges: Mapping[str, Iterable[str]]) -> set[str]:
    reached: set[str] = set()
    waiting = list(edges.get(start, ()))
    while waiting:
        node = waiting.pop()
        if node not in reached:
            reached.add(node)
            waiting += edges.get(node, ())
    return reached


def _names_made(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {node.name}
    if isinstance(node, ast.Assign):
        names = (part for target in node.targets for part in ast.walk(target))
        return {name.id for name in names if isinstance(name, ast.Name)}
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return {node.target.id}
    return set()


def _is_text(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
