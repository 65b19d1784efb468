"""Writes the corpus of manifests and of files of safetensors: small ones that are right, and one for each way to be wrong.

    python3 tests/checkpoint/fuzz/corpus.py      Python 3.8 or newer; found_* are the fuzzers' and stay
"""
import copy
import hashlib
import json
import os
import struct

here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus")


def write(kind, name, content):
    with open(os.path.join(here, kind, name), "wb") as file:
        file.write(content)


def manifest(name, value, head=b"shardbook checkpoint 1\nsha256 "):
    content = value if isinstance(value, bytes) else json.dumps(value).encode() + b"\n"
    write("manifest", name, head + hashlib.sha256(content).hexdigest().encode() + b"\n" + content)


good = {
    "step": 3, "config": {"tp": 2, "set": ["a=b"]}, "chunk": 1 << 20,
    "files": [{"name": "rank0.data", "bytes": 72, "sums": "0123abcd"}, {"name": "rank1.data", "bytes": 32, "sums": "89ef4567"}],
    "tensors": [
        {"name": "w", "dtype": "f32", "shape": [4, 6], "boxes": [
            {"file": 0, "at": 0, "begin": [0, 0], "end": [2, 6]}, {"file": 0, "at": 48, "begin": [2, 0], "end": [3, 4]},
            {"file": 1, "at": 0, "begin": [2, 4], "end": [3, 6]}, {"file": 1, "at": 8, "begin": [3, 0], "end": [4, 6]}]},
        {"name": "s", "dtype": "f64", "shape": [], "boxes": [{"file": 0, "at": 64, "begin": [], "end": []}]}]}


def but(name, change):
    value = copy.deepcopy(good)
    change(value)
    manifest(name, value)


def at(*path_and_value):
    *path, key, new = path_and_value

    def change(value):
        for step in path:
            value = value[step]
        if new is None:
            del value[key]
        else:
            value[key] = new
    return change


manifest("good", good)
manifest("nothing", b"")
manifest("no_tensors", {"step": 0, "config": {}, "chunk": 1 << 20, "files": [], "tensors": []})
manifest("no_object", b"[]")
manifest("no_json", b"{\"step\": ")
manifest("deep", b"[" * 100 + b"]" * 100)
manifest("number_overflow", b"{\"step\": 1e999}")
manifest("form_2", good, b"shardbook checkpoint 2\nsha256 ")
write("manifest", "empty", b"")
write("manifest", "head_alone", b"shardbook checkpoint 1\nsha256 ")
write("manifest", "other_sum", b"shardbook checkpoint 1\nsha256 " + b"0" * 64 + b"\n{}")
box = ("tensors", 0, "boxes", 0)
for name, change in {
        "step_negative": at("step", -1), "step_fraction": at("step", 1.5), "step_huge": at("step", (1 << 64) - 1), "step_missing": at("step", None),
        "config_list": at("config", []), "chunk_other": at("chunk", 4096), "chunk_zero": at("chunk", 0),
        "file_escapes": at("files", 0, "name", "../rank0.data"), "file_absolute": at("files", 0, "name", "rank0/x"), "file_hidden": at("files", 0, "name", ".data"),
        "file_manifest": at("files", 0, "name", "manifest"), "file_twice": at("files", 0, "name", "rank1.data"), "file_no_text": at("files", 0, "name", 7),
        "file_huge": at("files", 0, "bytes", 1 << 62), "file_longer": at("files", 0, "bytes", 73), "sums_short": at("files", 0, "sums", "0123"),
        "sums_no_digits": at("files", 0, "sums", "0123ABCD"), "tensor_twice": at("tensors", 1, "name", "w"), "tensor_no_name": at("tensors", 1, "name", ""),
        "tensor_escape_sequence": at("tensors", 1, "name", "\x1b[2J"), "dtype_unknown": at("tensors", 0, "dtype", "f8"), "shape_zero": at("tensors", 0, "shape", [0, 6]),
        "shape_overflows": at("tensors", 0, "shape", [1 << 40, 1 << 40]), "shape_five": at("tensors", 0, "shape", [1, 1, 1, 4, 6]), "shape_text": at("tensors", 0, "shape", ["4", 6]),
        "box_outside": at(*box, "end", [5, 6]), "box_empty": at(*box, "end", [0, 6]), "box_backward": at(*box, "begin", [3, 0]), "box_dims": at(*box, "end", [2]),
        "box_other_file": at(*box, "file", 2), "box_huge_file": at(*box, "file", 1 << 40), "box_negative_file": at(*box, "file", -1), "box_behind": at(*box, "at", 1 << 50),
        "box_overlaps": at("tensors", 0, "boxes", 1, {"file": 0, "at": 48, "begin": [1, 0], "end": [2, 4]}), "box_missing": at("tensors", 0, "boxes", 3, None), "boxes_none": at("tensors", 0, "boxes", []),
        "box_behind_by_one": at("tensors", 0, "boxes", 3, "at", 9), "tile_twice": at("tensors", 0, "boxes", 3, "at", 4)}.items():
    but(name, change)
but("tile_gap", lambda value: (at("files", 1, "bytes", 33)(value), at("tensors", 0, "boxes", 3, "at", 9)(value)))
but("box_twice", lambda value: value["tensors"][0]["boxes"].append(value["tensors"][0]["boxes"][0]))


def safe(name, header, data=b"", length=None):
    content = header if isinstance(header, bytes) else json.dumps(header).encode()
    write("safetensors", name, struct.pack("<Q", len(content) if length is None else length) + content + data)


two = {"__metadata__": {"shardbook.step": "3"}, "a": {"dtype": "F64", "shape": [], "data_offsets": [0, 8]}, "b": {"dtype": "F32", "shape": [2, 2], "data_offsets": [8, 24]}}


def two_but(*path_and_value):
    value = copy.deepcopy(two)
    at(*path_and_value)(value)
    return value


safe("good", two, bytes(24))
safe("padded", json.dumps(two).encode() + b"   ", bytes(24))
safe("bf16_and_i32", {"x": {"dtype": "BF16", "shape": [3], "data_offsets": [0, 6]}, "y": {"dtype": "I32", "shape": [1], "data_offsets": [6, 10]}}, bytes(10))
safe("no_tensor", {})
safe("too_long", two, bytes(25))
safe("too_short", two, bytes(23))
safe("length_huge", two, bytes(24), (1 << 64) - 1)
safe("length_above_limit", two, bytes(24), 100_000_001)
safe("length_behind", two, bytes(24), 4096)
safe("blank_first", b" " + json.dumps(two).encode(), bytes(24))
safe("no_json", b"{\"a\":", bytes(24))
safe("deep", b"{\"a\":" * 50 + b"1" + b"}" * 50)
safe("list", b"[]")
safe("name_twice", b'{"a":{"dtype":"F64","shape":[],"data_offsets":[0,8]},"a":{"dtype":"F64","shape":[],"data_offsets":[0,8]}}', bytes(8))
safe("key_twice", b'{"a":{"dtype":"F64","shape":[],"shape":[],"data_offsets":[0,8]}}', bytes(8))
safe("metadata_number", two_but("__metadata__", "x", 1), bytes(24))
safe("metadata_list", two_but("__metadata__", []), bytes(24))
safe("hole", two_but("b", "data_offsets", [9, 25]), bytes(25))
safe("overlap", two_but("b", "data_offsets", [4, 20]), bytes(20))
safe("backward", two_but("b", "data_offsets", [24, 8]), bytes(24))
safe("offsets_huge", two_but("b", "data_offsets", [8, (1 << 64) - 1]), bytes(24))
safe("offsets_negative", two_but("b", "data_offsets", [-8, 8]), bytes(24))
safe("offsets_three", two_but("b", "data_offsets", [8, 16, 24]), bytes(24))
safe("dtype_unknown", two_but("b", "dtype", "F8_E4M3"), bytes(24))
safe("dtype_number", two_but("b", "dtype", 4), bytes(24))
safe("shape_overflows", two_but("b", "shape", [1 << 32, 1 << 32]), bytes(24))
safe("shape_zero", two_but("b", "shape", [0]), bytes(24))
safe("shape_five", two_but("b", "shape", [1, 1, 1, 2, 2]), bytes(24))
safe("member_missing", two_but("b", "shape", None), bytes(24))
safe("member_more", two_but("b", "more", 1), bytes(24))
safe("name_with_blank", {"a b": {"dtype": "F64", "shape": [], "data_offsets": [0, 8]}}, bytes(8))
write("safetensors", "empty", b"")
write("safetensors", "seven_bytes", bytes(7))
