"""Models with different vocabularies: refused, or aligned by a stated rule.

- `error`: refused.
- `smallest`: the first rows, as many as all models have, if their tokens are the same.
- `base`: the tokens of the base; a model that lacks one uses the row of the base.
- `union`: the tokens of the base, then those that other models added; a model that lacks one uses
  the row of the base, or the mean of the models that have it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forgetmap.errors import TRUNCATED_HINT, ModelError, UnreadableError
from forgetmap.merge.checkpoint import Checkpoint, TensorChange
from forgetmap.merge.layers import has_a_row_per_token

if TYPE_CHECKING:
    import torch

    from forgetmap.merge.recipe.model import Recipe

VOCABULARY_HINT = (
    "set vocabulary to 'smallest' (tokens of all models), 'base' (tokens of the base) or 'union'."
)


@dataclass(frozen=True, slots=True)
class Tokens:
    """The content of a tokenizer.json.

    Attributes:
        ids: ids of all tokens.
        ordinary: ids of the tokens that were not added later.
        added: entries of the added tokens.
    """

    ids: dict[str, int]
    ordinary: dict[str, int]
    added: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class SharedVocabulary:
    """Models with the same tokens.

    Attributes:
        models: models to merge.
        tokenizer: the model whose tokenizer is used.
        added: entries that its tokenizer.json lacks.
    """

    models: dict[str, Checkpoint]
    tokenizer: str
    added: list[dict[str, Any]] = field(default_factory=list)


def share_vocabulary(recipe: Recipe, models: dict[str, Checkpoint]) -> SharedVocabulary:
    """Align the models of a recipe to one vocabulary.

    Raises:
        ModelError: that is not possible, or was not requested.
    """
    tokenizer_model = recipe.tokenizer if recipe.tokenizer in models else None
    main = tokenizer_model or recipe.base or next(iter(models))
    rows = {name: _rows(model) for name, model in models.items()}
    tokens = {name: read_tokens(model) for name, model in models.items()}
    if _is_same_vocabulary(rows, tokens):
        return SharedVocabulary(models, main)
    if recipe.vocabulary == "error":
        raise _vocabulary_error(rows, tokens)
    if recipe.vocabulary == "smallest":
        return _smallest(models, rows, tokens, tokenizer_model)
    known = {name: item for name, item in tokens.items() if item is not None}
    if len(known) < len(models):
        without = next(name for name in models if name not in known)
        raise ModelError(
            f"{without} has no tokenizer.json, so its tokens are unknown.",
            hint="save its tokenizer with transformers' save_pretrained, as a fast tokenizer.",
        )
    added = _added_tokens(main, known) if recipe.vocabulary == "union" else []
    return _by_token(models, known, main, added)


def read_tokens(model: Checkpoint) -> Tokens | None:
    """Return the tokens of a model, if it has a tokenizer.json."""
    path = model.tokenizer_folder / "tokenizer.json"
    if not path.is_file():
        return None
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        vocabulary, added = content["model"]["vocab"], content.get("added_tokens") or []
        if isinstance(vocabulary, list):  # Unigram: pairs of token and score
            vocabulary = {token: at for at, (token, _) in enumerate(vocabulary)}
        ids = vocabulary | {entry["content"]: entry["id"] for entry in added}
    except (ValueError, LookupError, TypeError) as error:
        raise UnreadableError(
            f"Not a tokenizer: {error}.", file=str(path), hint=TRUNCATED_HINT
        ) from error
    later = {entry["content"] for entry in added}
    ordinary = {token: at for token, at in vocabulary.items() if token not in later}
    return Tokens(ids, ordinary, added)


def _rows(model: Checkpoint) -> int | None:
    """Return the number of rows of the input embedding."""
    sizes = (info.shape[0] for name, info in model.tensors.items() if has_a_row_per_token(name))
    return next(sizes, None)


def _is_same_vocabulary(
    rows: Mapping[str, int | None], tokens: Mapping[str, Tokens | None]
) -> bool:
    """Return whether sizes are equal, and the ids of ordinary tokens, as far as known.

    Added tokens may differ: fine-tuning renames reserved tokens.
    """
    known = [item.ordinary for item in tokens.values() if item is not None]
    return len(set(rows.values())) == 1 and all(item == known[0] for item in known[1:])


def _vocabulary_error(
    rows: Mapping[str, int | None], tokens: Mapping[str, Tokens | None]
) -> ModelError:
    if len(set(rows.values())) > 1:
        facts = ", ".join(f"{name} {count:,} rows" for name, count in rows.items() if count)
        return ModelError(
            f"The models have vocabularies of different sizes: {facts}.", hint=VOCABULARY_HINT
        )
    (first, one), *others = [(name, item) for name, item in tokens.items() if item is not None]
    other, two = next((n, item) for n, item in others if item.ordinary != one.ordinary)
    differ = sorted(set(one.ordinary.items()) ^ set(two.ordinary.items()), key=lambda item: item[1])
    return ModelError(
        f"{first} and {other} have vocabularies of the same size but with different tokens: "
        f"{len({token for token, _ in differ}):,} differ, such as {differ[0][0]!r}.",
        hint=VOCABULARY_HINT,
    )


def _smallest(
    models: dict[str, Checkpoint],
    rows: Mapping[str, int | None],
    tokens: Mapping[str, Tokens | None],
    tokenizer_model: str | None,
) -> SharedVocabulary:
    least = min(count for count in rows.values() if count is not None)
    known = {name: item for name, item in tokens.items() if item is not None}
    meaning = {
        name: {token: at for token, at in item.ordinary.items() if at < least}
        for name, item in known.items()
    }
    first = next(iter(meaning.values()), {})
    wrong = next((name for name, item in meaning.items() if item != first), None)
    if wrong is not None:
        raise ModelError(
            f"The first {least:,} tokens of {wrong} are not those of {next(iter(meaning))}.",
            hint="set vocabulary to 'base' or 'union', which match tokens by their text.",
        )
    fitting = tokenizer_model or next(name for name, count in rows.items() if count == least)
    if fitting in known and max(known[fitting].ids.values()) >= least:
        raise ModelError(
            f"The tokenizer of {fitting} has more than the {least:,} remaining tokens.",
            hint="set tokenizer to a model with fewer tokens, or vocabulary to 'base'.",
        )
    cut = {
        name: _resize(model, least, lambda _: lambda t: t[:least]) for name, model in models.items()
    }
    return SharedVocabulary(cut, fitting)


def _resize(model: Checkpoint, rows: int, change_of: Any) -> Checkpoint:
    names = [name for name in model.tensors if has_a_row_per_token(name)]
    changes: dict[str, TensorChange] = {name: change_of(name) for name in names}
    return model.with_changes(changes, rows, {**model.config, "vocab_size": rows})


def _added_tokens(main: str, tokens: Mapping[str, Tokens]) -> list[dict[str, Any]]:
    """Return entries for the tokens that the main tokenizer lacks, numbered after its last."""
    have, entries = set(tokens[main].ids), []
    last = max(tokens[main].ids.values())
    for name, item in tokens.items():
        ordinary = next((token for token in item.ordinary if token not in have), None)
        if ordinary is not None:
            raise ModelError(
                f"{name} has ordinary tokens that {main} lacks, such as {ordinary!r}; tokenizers "
                "that split text differently have no union.",
                hint="set vocabulary to 'base'.",
            )
        for entry in item.added:
            if entry["content"] not in have:
                have.add(entry["content"])
                last += 1
                entries.append({**entry, "id": last})
    return entries


def _by_token(
    models: dict[str, Checkpoint],
    tokens: Mapping[str, Tokens],
    main: str,
    added: list[dict[str, Any]],
) -> SharedVocabulary:
    ids = tokens[main].ids | {entry["content"]: entry["id"] for entry in added}
    rows = max(_rows(models[main]) or 0, max(ids.values()) + 1)
    row_indices = {name: _match_rows(item, ids, rows) for name, item in tokens.items()}
    token_ids = set(ids.values())
    for at in range(_rows(models[main]) or 0):
        if at not in token_ids:
            row_indices[main][at] = at  # rows without a token stay those of the base
    resized = {
        name: _resize(
            model,
            rows,
            lambda tensor, n=name: _fill_missing_rows(models, row_indices, main, n, tensor),
        )
        for name, model in models.items()
    }
    return SharedVocabulary(resized, main, added)


def _match_rows(tokens: Tokens, ids: Mapping[str, int], rows: int) -> list[int]:
    """Return the row of a model for each row of the result; -1 if it has none."""
    row_indices = [-1] * rows
    for token, row in ids.items():
        row_indices[row] = tokens.ids.get(token, -1)
    return row_indices


def _fill_missing_rows(
    models: Mapping[str, Checkpoint],
    row_indices: Mapping[str, Sequence[int]],
    main: str,
    name: str,
    tensor: str,
) -> TensorChange:
    """Return a change that sorts the rows of a model, and fills in missing ones."""

    def change(weight: torch.Tensor) -> torch.Tensor:
        import torch  # heavy

        result = _take_rows(weight, row_indices[name])
        lacking = torch.tensor([at < 0 for at in row_indices[name]])
        if not lacking.any():
            return result
        total, count = torch.zeros(result.shape), torch.zeros(len(result))
        for other, at in row_indices.items():
            has = torch.tensor([row >= 0 for row in at])
            if other != main:  # if the base has a row, only that one is used
                has &= torch.tensor([row < 0 for row in row_indices[main]])
            has &= lacking
            if has.any():
                source = _tensor_or_embedding(models[other], tensor)
                total[has] += _take_rows(models[other].read(source), at)[has].float()
                count[has] += 1
        shaped = count.clamp(min=1).reshape(-1, *[1] * (result.dim() - 1))
        result[lacking] = (total / shaped)[lacking].to(result.dtype)
        return result

    return change


def _take_rows(weight: torch.Tensor, row_indices: Sequence[int]) -> torch.Tensor:
    import torch  # heavy

    return weight[torch.tensor(row_indices).clamp(min=0, max=len(weight) - 1)]


def _tensor_or_embedding(model: Checkpoint, tensor: str) -> str:
    """Return the tensor itself, or the input embedding if the output layer is tied to it."""
    if tensor in model.tensors:
        return tensor
    return next(name for name in model.tensors if has_a_row_per_token(name))


def extend_tokenizer(folder: Path, added: Sequence[Mapping[str, Any]]) -> None:
    """Write added tokens into the files of a tokenizer."""
    path = folder / "tokenizer.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    content["added_tokens"] = [*(content.get("added_tokens") or []), *added]
    path.write_text(json.dumps(content, ensure_ascii=False, indent=2), encoding="utf-8")
    config = folder / "tokenizer_config.json"
    if not config.is_file():
        return
    settings = json.loads(config.read_text(encoding="utf-8"))
    if "added_tokens_decoder" in settings:
        for entry in added:
            entry_without_id = {key: value for key, value in entry.items() if key != "id"}
            settings["added_tokens_decoder"][str(entry["id"])] = entry_without_id
        config.write_text(json.dumps(settings, ensure_ascii=False, indent=2), encoding="utf-8")
