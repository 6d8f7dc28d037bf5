"""The Prometheus mode of the NCCL Inspector: means of windows, a file a GPU."""

import pytest

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.nccl.inspector import NcclInspector
from goodput_ingest.sources.registry import recognise
from goodput_queries.errors import IngestError


def test_the_prometheus_mode_needs_an_option_when_it_was_written(store, tmp_path):
    path = tmp_path / "nccl_inspector_metrics_55aa8e95-02cb-59dd-8a6f-15cbd706e86e.prom"
    labels = 'node="vm",gpu="GPU2",collective="AllGather",message_size="6-7MB"'
    path.write_text(f"nccl_bus_bandwidth_gbs{{{labels}}} 60.5\n")

    assert recognise(path) is NcclInspector
    with pytest.raises(IngestError, match="--observed-at"):
        ingest(store, "nccl-inspector", [path], ReadOptions())
