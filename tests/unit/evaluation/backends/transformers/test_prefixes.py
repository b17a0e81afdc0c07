"""Prefixes are shared if and only if they are equal."""

from __future__ import annotations

import random

import pytest

from forgetmap.evaluation.backends.transformers.prefixes import (
    MAX_TREE_STEM,
    MIN_HEAD,
    MIN_MEMBERS,
    TokenPath,
    Tokens,
    common_length,
    group_by_head,
    grow_tree,
)


def some_tokens(source: random.Random, length: int) -> Tokens:
    return tuple(source.randrange(3) for _ in range(length))


@pytest.mark.parametrize("seed", range(20))
def test_common_length_counts_equal_tokens(seed: int) -> None:
    source = random.Random(seed)
    start = some_tokens(source, source.randrange(40))
    one, other = start + some_tokens(source, 5), start + some_tokens(source, source.randrange(5))
    expected = 0
    while expected < min(len(one), len(other)) and one[expected] == other[expected]:
        expected += 1
    assert common_length(one, other) == expected


def test_every_stem_is_in_one_group_and_begins_with_its_head() -> None:
    source = random.Random(3)
    heads = [some_tokens(source, 40) for _ in range(3)]
    stems = [heads[n % 3] + some_tokens(source, source.randrange(30)) for n in range(50)]
    stems += [some_tokens(source, 25) for _ in range(20)]
    groups = group_by_head(stems)
    assert sorted(member for group in groups for member in group.members) == list(range(70))
    for group in groups:
        assert len({stems[member][: group.head] for member in group.members}) == 1


def test_each_few_shot_head_is_found_behind_a_common_instruction() -> None:
    source = random.Random(4)
    instruction = some_tokens(source, 2 * MIN_HEAD)
    heads = [(*instruction, task, *some_tokens(source, 60)) for task in range(5)]
    stems = [heads[n % 5] + (100 + n,) for n in range(40)]
    groups = {group.members: group.head for group in group_by_head(stems)}
    assert groups == {tuple(range(task, 40, 5)): len(heads[task]) for task in range(5)}


def test_few_prompts_share_no_head_unless_it_is_long() -> None:
    few, long = MIN_MEMBERS - 1, MAX_TREE_STEM + 1
    short = [(*([1] * (MAX_TREE_STEM - 1)), n) for n in range(few)]
    assert [group.head for group in group_by_head(short)] == [0]
    assert [group.head for group in group_by_head([(1,) * long] * few)] == [long]


def test_no_stems_make_no_groups() -> None:
    assert group_by_head([]) == []


@pytest.mark.parametrize("head", [0, 7])
def test_a_tree_holds_each_shared_token_once(head: int) -> None:
    source = random.Random(5)
    start = some_tokens(source, 10)
    paths = [TokenPath(0, n, start + some_tokens(source, 2 + n % 5), 10) for n in range(12)]
    tree = grow_tree(paths, head)
    inner = [path.tokens[head:-1] for path in paths]
    prefixes = {tokens[: n + 1] for tokens in inner for n in range(len(tokens))}
    assert len(tree.tokens) == len(prefixes)
    for path, route in zip(tree.paths, tree.routes, strict=True):
        assert tuple(tree.tokens[node] for node in route) == path.tokens[head:-1]
        assert [tree.depths[node] for node in route] == list(range(len(route)))
