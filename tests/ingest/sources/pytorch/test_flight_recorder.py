import gzip
import os
import pickle

import pytest
from tests.ingest.golden_cases import golden_path
from tests.tables import each

from goodput_ingest.formats import files
from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.pytorch.flight_recorder import FlightRecorder
from goodput_queries.errors import IngestError

FILE = golden_path("flight_recorder/a_hang_rank_0_pickled/input.rank_0")
RECORDED = pickle.loads(FILE.read_bytes())  # noqa: S301 -- a file of ours
GROUPS = {name: {"0": RECORDED[name]["0"]} for name in ("pg_config", "pg_status")}


def entry(**fields):
    return {**RECORDED["entries"][-1], **fields}


def dump(*entries, **fields):
    return {**RECORDED, **GROUPS, "entries": list(entries), **fields}


def pickled(folder, value, name="nccl_trace_rank_3"):
    path = folder / name
    path.write_bytes(pickle.dumps(value, protocol=2))
    return path


def read(store, path, cluster=None):
    assert FlightRecorder.recognises(path, files.head(path))
    return [store.load(b) for b in FlightRecorder(path, ReadOptions(cluster)).extract()]


@each(
    ("comm_lib_trace_rank_12", 12), ("fr-fsdp-rank0.json", 0), ("nccl_trace_rank_3_node17", 3),
    ("node17.trace.5", 5),
)  # fmt: skip
def test_the_rank_is_taken_from_the_file_name(store, tmp_path, name, rank):
    read(store, pickled(tmp_path, dump(entry()), name))
    assert store.read("select rank from raw.flight_records").item() == rank


class Malicious:
    """An object whose unpickling would run a command."""

    def __init__(self, folder):
        self.command = f"touch {folder}/owned"

    def __reduce__(self):
        return os.system, (self.command,)


def test_a_pickle_that_would_run_code_is_refused_and_runs_none(store, tmp_path):
    path = pickled(tmp_path, dump(entry(), extra=Malicious(tmp_path)))

    with pytest.raises(IngestError, match="only built-in values are read"):
        read(store, path)

    assert not (tmp_path / "owned").exists()


@each({"global": b"cos\nsystem\n.",
"stack_global": b"\x8c\x02os\x8c\x06system\x93.",
"persistent id": b"Pid\n.",
"extension": b"\x82\x01.",
"memo far away": b"r\xff\xff\xff\x7f.",
})  # fmt: skip
def test_every_way_of_a_pickle_out_of_built_in_values_is_closed(store, tmp_path, tail):
    path = tmp_path / "trace_rank_1"
    path.write_bytes(b"\x80\x04(X\x09\x00\x00\x00pg_configX\x09\x00\x00\x00pg_status" + tail)
    with pytest.raises(IngestError, match=r"only built-in values|outside itself|too large"):
        read(store, path)


WHOLE = pickle.dumps(dump(entry()), protocol=2)


@each({
    **{f"cut at {cut}": ("trace_rank_1", WHOLE[:cut], "cut or broken") for cut in (30, 200, -1)},
    "a cut gzip": ("trace_rank_1.gz", gzip.compress(WHOLE)[:-60], "cut or damaged"),
    "deep JSON": ("trace_rank_1.json", b'{"comm_lib_version":"2","entries":' + b"[" * 200_000,
                  "not a Flight Recorder dump"),
})  # fmt: skip
def test_a_damaged_dump_is_refused_with_a_sentence(tmp_path, name, content, why):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(IngestError, match=why):
        list(FlightRecorder(tmp_path / name, ReadOptions()).extract())


def test_a_later_dump_of_the_process_completes_what_was_open(store, tmp_path):
    read(store, pickled(tmp_path, dump(entry())))
    done = entry(state="completed", time_discovered_completed_ns=1_795_178_049_719_559_388)
    read(store, pickled(tmp_path, dump(done)))

    assert store.read("select state from raw.flight_records").rows() == [("completed",)]
    assert store.read("select count(*) from raw.flight_groups").item() == 2


def test_other_pickles_are_not_recognised(tmp_path):
    for content in (pickle.dumps({"entries": []}), b"\x80"):
        assert not FlightRecorder.recognises(tmp_path / "rank_1", content)
