"""The elements of a JSON document's arrays, one at a time."""

import gzip
import io
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goodput_ingest.formats import files
from goodput_ingest.formats.json_text import json_stream
from goodput_ingest.formats.json_text.json_stream import BrokenDocumentError, items

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


def read(data):
    return list(items(io.BufferedReader(io.BytesIO(data)), ("jobs",)))


@settings(max_examples=40)
@given(st.lists(VALUES, max_size=6), VALUES, st.sampled_from([None, 1]), st.integers(1, 9))
def test_elements_are_those_of_the_whole_document(jobs, meta, indent, chunk):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "CHUNK_BYTES", chunk)
        found = read(json.dumps({"jobs": jobs, "meta": meta}, indent=indent).encode())

    assert found == [*(("jobs", job) for job in jobs), ("meta", meta)]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"jobs":[1,2', "cut"),
        ('{"jobs":[1,2,{"a":', "cut or no JSON"),
        ('{"jobs":[1,2,' + "[" * 100_000, "nested too deeply"),
        ('{"jobs":[1,2,"' + "x" * 2_000, "too long"),
        ('{"jobs":[1,2;3]}', "',' is expected"),
    ],
)
def test_what_comes_before_the_damage_is_read(text, reason, monkeypatch):
    monkeypatch.setattr(json_stream, "VALUE_MAX_CHARS", 1_000 if "xxx" in text else 10**6)
    monkeypatch.setattr(files, "CHUNK_BYTES", 500)
    found = list[tuple[str, Any]]()

    with pytest.raises(BrokenDocumentError, match=reason):
        found.extend(items(io.BufferedReader(io.BytesIO(text.encode())), ("jobs",)))

    assert found == [("jobs", 1), ("jobs", 2)]


def test_a_cut_gzip_stream_gives_what_came_before_the_cut():
    whole = gzip.compress(json.dumps({"jobs": list(range(100_000))}).encode())
    cut = gzip.GzipFile(fileobj=io.BytesIO(whole[: len(whole) // 2]))
    found = list[tuple[str, Any]]()

    with pytest.raises(BrokenDocumentError):
        found.extend(items(cut, ("jobs",)))

    assert found[:1000] == [("jobs", n) for n in range(1000)]
