"""Objects of the Kubernetes API: what pages and commands show of them."""

import json

import pytest
from tests.ingest.golden_cases import GOLDEN

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions

K8S = ReadOptions(cluster="k8s")


@pytest.fixture
def built(whole_store, tmp_path):
    """Return what reads a select after objects were loaded, one list after the other."""

    def read(sql, *lists):
        for number, items in enumerate(lists):
            path = items
            if isinstance(items, list):
                path = tmp_path / f"{number}.json"
                path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
            ingest(whole_store, "auto", [path], K8S)
        whole_store.build()
        return whole_store.read(sql).rows()

    return read


def test_gpus_of_claims_are_held_by_name_and_share(built):
    held = built(
        """select regexp_extract(job_run_key, '/([\\w-]+)@', 1), gpu_uuid,
            any_value((share_hi - share_lo) / share_of)
        from intermediate.int_holds inner join intermediate.int_gpu_units using (gpu_uuid, gpu_instance)
        where gpu_uuid like 'GPU-%' group by 1, 2 order by 1""",  # noqa: E501 -- one join
        GOLDEN / "kubernetes" / "pods_with_claims_and_shares" / "input.json",
    )

    assert held == [
        ("half", "GPU-1", 0.5), ("llm", "GPU-0", 1), ("one-of-two", "GPU-2", 0.5),
        ("quarter", "GPU-1", 0.25), ("two-of-two", "GPU-2", 0.5),
    ]  # fmt: skip
