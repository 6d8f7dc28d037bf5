"""Bounds of host lists; what they expand to: the golden case of slurm with lists of every form."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tables import each

from goodput_ingest.formats.hostlist import HostlistError, expand


@each("n[0-1000000]", "n[0-999999999999999999]", "a[1-1001]b[1-1000]", "n[1-999999],a,b")
def test_more_hosts_than_the_limit_are_refused_without_being_made(text):
    with pytest.raises(HostlistError, match="too many hosts"):
        expand(text)


@given(st.text(alphabet="n0123456789[],-", max_size=30))
def test_any_text_gives_names_or_a_stated_error(text):
    try:
        names = expand(text, limit=1_000)
    except HostlistError:
        return
    assert len(names) <= 1_000
    assert not any(set("[],") & set(name) for name in names)
