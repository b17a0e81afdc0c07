"""Model folders: read bit for bit, and broken ones refused immediately."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import merge_models
import tiny_models
from forgetmap.errors import ForgetmapError, MissingInputError, ModelError, UnreadableError
from forgetmap.merge.checkpoint import Checkpoint

pytestmark = pytest.mark.needs_torch

INDEX = "model.safetensors.index.json"


@pytest.fixture(scope="module")
def sharded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkpoints") / "llama"
    return merge_models.save_model(folder, tiny_models.tiny_model("llama"))


@pytest.fixture
def copied(sharded: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "copy"
    folder.mkdir()
    for path in sharded.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    return folder


def shard(folder: Path, number: int = 0) -> Path:
    return sorted(folder.glob("model-*.safetensors"))[number]


def test_every_tensor_is_read_bit_for_bit(sharded: Path) -> None:
    state = tiny_models.tiny_model("llama").state_dict()
    opened = Checkpoint.open(sharded)
    assert opened.tensors.keys() == state.keys()
    for name, expected in state.items():
        assert torch.equal(opened.read(name), expected)
        assert opened.tensors[name].shape == tuple(expected.shape)
        assert opened.tensors[name].dtype == "float32"


@pytest.mark.parametrize(
    "dtype", ["float64", "bfloat16", "float16", "float8_e4m3fn", "int64", "bool"]
)
def test_all_kinds_of_values_and_sizes(dtype: str, tmp_path: Path) -> None:
    kind = getattr(torch, dtype)
    tensors = {
        "some": torch.arange(6.0).reshape(2, 3).to(kind),
        "one": torch.tensor(1.0).to(kind),
        "none": torch.empty(0, 4).to(kind),
    }
    opened = Checkpoint.open(merge_models.save_tensors(tmp_path / "m", tensors))
    for name, expected in tensors.items():
        read = opened.read(name)
        assert (read.dtype, read.shape) == (expected.dtype, expected.shape)
        assert torch.equal(read.float(), expected.float())


def test_the_stamp_notices_a_changed_weight(copied: Path) -> None:
    before = Checkpoint.open(copied).stamp
    assert Checkpoint.open(copied).stamp == before
    path = shard(copied)
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    assert Checkpoint.open(copied).stamp != before


def cut_off(folder: Path) -> None:
    path = shard(folder)
    path.write_bytes(path.read_bytes()[:-5])


def cut_in_header(folder: Path) -> None:
    path = shard(folder)
    path.write_bytes(path.read_bytes()[:20])


def empty_file(folder: Path) -> None:
    shard(folder).write_bytes(b"")


def too_long(folder: Path) -> None:
    path = shard(folder)
    path.write_bytes(path.read_bytes() + b"more")


def with_header(folder: Path, change: Callable[[dict[str, dict[str, object]]], None]) -> None:
    path = shard(folder)
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    change(header)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + content[8 + length :])


def overlapping(folder: Path) -> None:
    def change(header: dict[str, dict[str, object]]) -> None:
        first, second = [name for name in header if name != "__metadata__"][:2]
        header[second]["data_offsets"] = header[first]["data_offsets"]
        header[second]["shape"] = header[first]["shape"]

    with_header(folder, change)


def wrong_shape(folder: Path) -> None:
    def change(header: dict[str, dict[str, object]]) -> None:
        header[next(name for name in header if name != "__metadata__")]["shape"] = [3]

    with_header(folder, change)


def negative_shape(folder: Path) -> None:
    def change(header: dict[str, dict[str, object]]) -> None:
        header[next(name for name in header if name != "__metadata__")]["shape"] = [-1, -1]

    with_header(folder, change)


def strange_dtype(folder: Path) -> None:
    def change(header: dict[str, dict[str, object]]) -> None:
        header[next(name for name in header if name != "__metadata__")]["dtype"] = "F4"

    with_header(folder, change)


def header_of_noise(folder: Path) -> None:
    shard(folder).write_bytes(struct.pack("<Q", 4) + b"\xff\xfe{}" + b"0" * 100)


def header_is_a_list(folder: Path) -> None:
    shard(folder).write_bytes(struct.pack("<Q", 2) + b"[]")


@pytest.mark.parametrize(
    "damage",
    [cut_off, cut_in_header, empty_file, too_long, overlapping, wrong_shape, negative_shape,
     strange_dtype, header_of_noise, header_is_a_list],
)  # fmt: skip
def test_a_broken_file_is_named(damage: Callable[[Path], None], copied: Path) -> None:
    damage(copied)
    with pytest.raises(UnreadableError) as caught:
        Checkpoint.open(copied)
    assert caught.value.file == str(shard(copied))


def test_missing_shards_are_named(copied: Path) -> None:
    gone = shard(copied, 1)
    gone.unlink()
    with pytest.raises(MissingInputError, match=rf"1 of \d+ shards are missing: {gone.name}"):
        Checkpoint.open(copied)


def test_an_index_that_names_other_tensors(copied: Path) -> None:
    told = json.loads((copied / INDEX).read_text())
    told["weight_map"]["nowhere.weight"] = shard(copied).name
    (copied / INDEX).write_text(json.dumps(told))
    with pytest.raises(UnreadableError, match=r"nowhere\.weight"):
        Checkpoint.open(copied)


@pytest.mark.parametrize("content", ["{}", "[]", "{", '{"weight_map": {"a": "../b"}}'])
def test_an_index_that_is_none(content: str, copied: Path) -> None:
    (copied / INDEX).write_text(content)
    with pytest.raises(UnreadableError) as caught:
        Checkpoint.open(copied)
    assert caught.value.file == str(copied / INDEX)


def test_a_folder_without_safetensors(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(ModelError, match=r"pytorch_model\.bin"):
        Checkpoint.open(tmp_path)


@pytest.mark.parametrize("name", ["no/such/folder/at/all", "", "~nobody", "two words"])
def test_what_is_no_model(name: str) -> None:
    with pytest.raises(ForgetmapError):
        Checkpoint.open(name)


def test_a_model_of_the_hub_is_taken_from_the_cache(
    copied: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants

    commit = "0" * 40
    home = tmp_path / "hub" / "models--org--name"
    (home / "snapshots").mkdir(parents=True)
    (home / "refs").mkdir()
    (home / "refs" / "main").write_text(commit)
    copied.rename(home / "snapshots" / commit)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    opened = Checkpoint.open("org/name")
    assert opened.folder == home / "snapshots" / commit
    assert opened.tensors.keys() == tiny_models.tiny_model("llama").state_dict().keys()
