"""Reading and validation of a study file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from forgetmap._plugins import did_you_mean
from forgetmap.errors import FieldError
from forgetmap.study.declaration import UNKNOWN, Study, StudyModel, StudyPair
from forgetmap.study.toml_file import HINT, TomlFile, TomlPath, parse_toml, read_toml_file

_MESSAGES = {
    "extra_forbidden": "unknown field",
    "tuple_type": "expected a list: [...], or tables [[...]]",
    "model_type": "expected a table: [...]",
    "missing": "missing field",
    "too_short": "there is none",
}
_HINT = f"see docs/studies.md for all fields; {HINT}"


def read_study(path: str | Path) -> Study:
    """Read a study from a TOML file.

    Raises:
        InputError: the file is missing or not TOML, a field is invalid, or models, pairs and merges
            are inconsistent; the error names the line.
    """
    return _make_study(read_toml_file(Path(path)))


def parse_study(text: str, origin: str) -> Study:
    """Parse a study from a text; errors as in `read_study`."""
    return _make_study(parse_toml(text, origin))


def pair_line(study: Study, pair: StudyPair) -> int | None:
    """Return the line that declares a pair: its own, or that of the parent; None without a file."""
    path = Path(study.origin)
    if not path.is_file():
        return None
    for index, named in enumerate(study.named_pairs):
        if (named.before, named.after) == (pair.before, pair.after):
            return read_toml_file(path).line(("pair", index))
    for index, merge in enumerate(study.merges):
        if merge.id == pair.after:
            return read_toml_file(path).line(("merge", index))
    index = [model.id for model in study.models].index(pair.after)
    return read_toml_file(path).line(("model", index, "parent"))


def model_line(study: Study, name: str, field: str | None = None) -> int | None:
    """Return the line of a model or merge, or of one of its fields; None without a file."""
    path = Path(study.origin)
    if not path.is_file():
        return None
    ids = {
        "model": [model.id for model in study.models],
        "merge": [merge.id for merge in study.merges],
    }
    for table, names in ids.items():
        if name in names:
            place: TomlPath = (table, names.index(name))
            return read_toml_file(path).line(place if field is None else (*place, field))
    return None


def _make_study(file: TomlFile) -> Study:
    if "origin" in file.value:
        raise _error(file, ("origin",), _MESSAGES["extra_forbidden"])
    try:
        study = Study(**file.value).model_copy(update={"origin": file.file})
    except ValidationError as error:
        raise _field_error(error, file) from None
    for path, message, hint in _faults(study):
        raise _error(file, path, message, hint)
    return study


def _field_error(error: ValidationError, file: TomlFile) -> FieldError:
    # If a field is missing, a misspelt one is the cause.
    first = min(error.errors(), key=lambda one: one["type"] != "extra_forbidden")
    message = _MESSAGES.get(first["type"], first["msg"].removeprefix("Value error, "))
    return _error(file, _without_types(first["loc"], file), message)


def _without_types(location: TomlPath, file: TomlFile) -> TomlPath:
    """Return the location of an error, without the types of value that were tried."""
    path: TomlPath = ()
    for part in location:
        if path in file.lines and (*path, part) not in file.lines and len(path) > 2:
            break
        path = (*path, part)
    return path


def _error(file: TomlFile, path: TomlPath, message: str, hint: str = _HINT) -> FieldError:
    name = "".join(f"[{part + 1}]" if isinstance(part, int) else f".{part}" for part in path)
    return FieldError(
        message, file=file.file, line=file.line(path), field=name.lstrip(".") or None, hint=hint
    )


Fault = tuple[TomlPath, str, str]
"""Location, problem and hint."""


def _faults(study: Study) -> Iterator[Fault]:
    """Yield inconsistencies, causes before their consequences."""
    yield from _repeated_ids(study)
    yield from _unknown_models(study)
    yield from _cycles(study)
    yield from _repeated_pairs(study)
    yield from _missing_sizes(study)
    if not study.pairs and not study.merges:
        yield (), "there are no pairs", "add a `parent` to a model, or list pairs: [[pair]]."


def _repeated_ids(study: Study) -> Iterator[Fault]:
    seen: set[str] = set()
    ids: list[tuple[TomlPath, str]] = [
        *((("model", index, "id"), model.id) for index, model in enumerate(study.models)),
        *((("merge", index, "id"), merge.id) for index, merge in enumerate(study.merges)),
    ]
    for path, name in ids:
        if name in seen:
            yield path, f"two models have the id {name!r}", "rename one."
        seen.add(name)


def _unknown_models(study: Study) -> Iterator[Fault]:
    known = {model.id for model in study.models}
    names: list[tuple[TomlPath, str]] = [
        (("model", index, "parent"), model.parent)
        for index, model in enumerate(study.models)
        if model.parent is not None
    ]
    for index, pair in enumerate(study.named_pairs):
        names += [(("pair", index, "before"), pair.before), (("pair", index, "after"), pair.after)]
    for index, merge in enumerate(study.merges):
        for field in ("models", "references"):
            names += [(("merge", index, field), name) for name in getattr(merge, field)]
    for path, name in names:
        if name not in known:
            hint = f"{did_you_mean(name, known)}add a [[model]] with this id, or correct it."
            yield path, f"there is no model {name!r}", hint


def _cycles(study: Study) -> Iterator[Fault]:
    parents = {model.id: model.parent for model in study.models}
    for index, model in enumerate(study.models):
        line, name = [model.id], model.parent
        while name is not None and name not in line:
            line.append(name)
            name = parents[name]
        if name == model.id:
            way = " <- ".join([*line, model.id])
            yield (
                ("model", index, "parent"),
                f"the parents form a cycle: {way}",
                "correct one parent.",
            )


def _repeated_pairs(study: Study) -> Iterator[Fault]:
    seen = set()
    for index, pair in enumerate(study.named_pairs):
        if pair.before == pair.after:
            yield ("pair", index, "after"), f"{pair.after!r} is compared with itself", "correct it."
        if (pair.before, pair.after) in seen:
            yield ("pair", index, "before"), "this pair is listed twice", "remove one of them."
        seen.add((pair.before, pair.after))


def _missing_sizes(study: Study) -> Iterator[Fault]:
    """Yield models without a size in a series and stage whose sizes form a trend."""
    series: dict[tuple[str, str], list[StudyModel]] = defaultdict(list)
    for pair in study.pairs:
        after = study.model(pair.after)
        if after.made_like is not None:
            series[after.made_like, pair.group].append(after)
    for (name, group), models in series.items():
        sizes = {model.billions for model in models if model.billions is not None}
        for model in models:
            if len(sizes) > 1 and model.size is None:
                yield (
                    ("model", study.models.index(model)),
                    f"{model.id!r} has no size, but {name} in {group!r} has a trend with size",
                    f'add size = "7B", or size = "{UNKNOWN}" to exclude it from the trend.',
                )
