"""Node lists of accounting rows: the names that Slurm's notation stands for, whatever its form."""

import polars as pl
from hypothesis import example, given
from hypothesis import strategies as st

from goodput_ingest.formats import hostlist
from goodput_ingest.sources.slurm import node_lists

PREFIXES = st.sampled_from(["n", "gpu-a", "7", "rack1.node", "-", ""])
NUMBERS = st.integers(0, 130)


@st.composite
def texts(draw):
    """Return one node, a range or several; widths differ and some ranges run backwards."""
    low, high, width = draw(NUMBERS), draw(NUMBERS), draw(st.integers(1, 4))
    written = f"{low:0{width}d}-{high:0{draw(st.integers(1, 4))}d}"
    more = draw(st.sampled_from(["", ",150", ",150-151"]))
    end = draw(st.sampled_from(["", "-ib", ",other", "]"]))
    return f"{draw(PREFIXES)}[{written}{more}]{end}"


def expanded(text):
    try:
        return hostlist.expand(text)
    except hostlist.HostlistError:
        return None


@given(st.lists(texts() | st.sampled_from(["node7", "", "None assigned", "a,b"]) | st.none()))
@example(["n[08-11]", "n[8-11]", "n[1-1]", "n[2-1]"])
@example(["n[0-999999999]"])
def test_rows_have_the_nodes_that_their_lists_stand_for(lists):
    rows = pl.DataFrame({"NodeList": lists}, schema={"NodeList": pl.String})

    found, problem = node_lists.with_nodes(rows)

    expected = [None if text is None else expanded(text) for text in lists]
    assert found["nodes"].to_list() == expected
    is_wrong = [
        text is not None and nodes is None for text, nodes in zip(lists, expected, strict=True)
    ]
    assert found.select(problem.is_not_null()).to_series().to_list() == is_wrong
