"""Free GPU time with demand: which waiting jobs could have used it."""

import pytest
from tests.queries.conftest import built_together

DEMAND, NONE = {"idle_with_demand": 100}, {"idle_no_demand": 100}
# what it shows: what the accounting has of a job that waits 100 s, GPU-seconds of a free GPU
WAITING = {
    "for resources": ({"reason": "Resources"}, DEMAND),
    "for jobs before it": ({"reason": "Priority"}, DEMAND),
    "without a reason": ({"reason": None}, DEMAND),
    "for a reason that no table has": ({"reason": "SomethingNew"}, DEMAND),
    "for another job": ({"reason": "Dependency"}, NONE),
    "for its time": ({"reason": "BeginTime"}, NONE),
    "for a licence": ({"reason": "Licenses"}, NONE),
    "held by its user": ({"reason": "JobHeldUser"}, NONE),
    "held by a limit of its QOS": ({"reason": "QOSMaxGRESPerUser"}, NONE),
    "held by a limit of its association": ({"reason": "AssocGrpGRES"}, NONE),
    "with details of the reason": ({"reason": "Dependency (afterok:7)"}, NONE),
    "for its reservation": ({"reason": "Resources", "reservation": "course"}, NONE),
}  # fmt: skip


@pytest.mark.parametrize(("job", "expected"), WAITING.values(), ids=WAITING)
@built_together
def test_a_job_that_waits(cluster, job, expected):
    cluster.node("a", 1, partitions=("p",))
    cluster.watched(100)
    asked = {"gpus_requested": 1, "partition": "p", **job}
    cluster.job("1", None, None, [], 0, "PENDING", submit=0, **asked)
    yield
    assert cluster.gpu_s() == expected


@built_together(builds=2)
def test_the_last_reason_that_the_accounting_has_decides(cluster):
    cluster.node("a", 1, partitions=("p",))
    cluster.watched(100)
    asked = {"gpus_requested": 1, "partition": "p", "submit": 0}
    for reason, second, expected in (("QOSMaxGRESPerUser", 50, NONE), ("Priority", 90, DEMAND)):
        known = {"reason": reason, "observed_at": cluster.at(second)}
        cluster.job("1", None, None, [], 0, "PENDING", **asked, **known)
        yield
        assert cluster.gpu_s() == expected
