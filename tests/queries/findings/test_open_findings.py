"""Open findings with what a notification says: the owner of the job, and its GPUs idle now."""

from tests.queries.conftest import built_together

HOUR = 3600


@built_together
def test_an_idle_job_names_its_user_and_since_when_its_gpus_are_idle(cluster):
    """A running job whose GPUs went idle after 20 of 60 minutes."""
    cluster.job_on_a_node("7", 0, None, 4, state="RUNNING", job_name="train", user_name="ann")
    cluster.watched(HOUR)
    for gpu in range(4):
        cluster.samples(f"a#{gpu}", cluster.every(-10, HOUR), lambda second: second <= 1200)
    yield
    columns = "user_name, team, job_name, state, severity, owner, idle_gpus, idle_since_at"
    rows = cluster.read(
        f"select {columns} from marts.open_findings where rule = 'idle_allocation'"
    ).rows()
    of_job = ("ann", "team", "train", "open", "note", "team")
    assert rows == [(*of_job, 4, cluster.at(1200))]
