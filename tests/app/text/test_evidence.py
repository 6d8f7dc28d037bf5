"""What missing evidence would show, held against the sources, their golden cases and the pages."""

import re
from pathlib import Path

import pytest
from tests.ingest.golden_cases import FORMATS, name_of

from goodput_app.dashboard import theme
from goodput_app.text import evidence
from goodput_ingest.sources.registry import sources

MAIN = Path(theme.__file__).with_name("main.py").read_text("utf-8")


@pytest.mark.usefixtures("all_packages")
def test_each_source_is_there_and_brings_a_table_of_its_kind():
    brought = {
        name_of(folder / "case"): {file.stem[9:] for file in folder.glob("*/expected_*.csv")}
        for folder in FORMATS.values()
    }
    wrong = [
        (kind.evidence, source)
        for kind in evidence.kinds()
        for source in kind.sources
        if brought.get(source) and brought[source].isdisjoint(kind.tables)
    ]

    assert wrong == []
    named = {source for kind in evidence.kinds() for source in kind.sources}
    assert named == sources().keys() - {"bundle"}


def test_each_page_is_one_of_the_dashboard():
    titles = set(re.findall(r'_page\("\w+\.py", "(\w+)"', MAIN))
    assert {page for kind in evidence.kinds() for page in kind.pages} <= titles


def test_what_is_there_is_not_missing():
    there = {kind.evidence for kind in {*evidence.missing(())} - {*evidence.missing(["rates"])}}
    assert there == {"GPU prices"}
