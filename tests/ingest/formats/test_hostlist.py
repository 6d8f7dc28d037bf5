"""Host lists, against what `scontrol show hostnames` of Slurm 24.11 printed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goodput_ingest.formats.hostlist import HostlistError, expand

PRINTED = {
    "node001": "node001",
    "node[001-004,007]": "node001 node002 node003 node004 node007",
    "node[001-003]x": "node001x node002x node003x",
    "a[1-2]b[3-4]": "a1b3 a1b4 a2b3 a2b4",
    "gpu-a[01-02],gpu-b05": "gpu-a01 gpu-a02 gpu-b05",
    "n[9-11]": "n9 n10 n11",
    "n[09-11]": "n09 n10 n11",
    "n[8,10-12,100]": "n8 n10 n11 n12 n100",
    "rack[0-1]-node[08-10]": (
        "rack0-node08 rack0-node09 rack0-node10 rack1-node08 rack1-node09 rack1-node10"
    ),
    "node[001-002],node[004-005],login1": "node001 node002 node004 node005 login1",
    "n[0-10]": "n0 n1 n2 n3 n4 n5 n6 n7 n8 n9 n10",
    "x[1-1]": "x1",
    "a[1,01,001]": "a1 a01 a001",
}


@pytest.mark.parametrize("text", PRINTED)
def test_a_host_list_expands_as_slurm_expands_it(text):
    assert expand(text) == PRINTED[text].split()


@pytest.mark.parametrize("text", ["", "None assigned", "(null)"])
def test_no_nodes_are_an_empty_list(text):
    assert expand(text) == []


@pytest.mark.parametrize(
    "text", ["n[1-", "n1]", "n[[1]]", "n[a-b]", "n[]", "n[3-1]", "a,,b", "a b", "n[1-2-3]", "a\x00"]
)
def test_what_is_no_host_list_is_refused(text):
    with pytest.raises(HostlistError):
        expand(text)


@pytest.mark.parametrize(
    "text", ["n[0-1000000]", "n[0-999999999999999999]", "a[1-1001]b[1-1000]", "n[1-999999],a,b"]
)
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
