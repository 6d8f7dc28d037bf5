"""Carbon intensities that a site writes."""

from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.registry import recognise
from goodput_ingest.sources.site.carbon import Carbon


def carbon(folder, text, cluster=None):
    file = folder / "carbon.csv"
    file.write_text(text)
    assert recognise(file) is Carbon
    (batch,) = Carbon(file, ReadOptions(cluster=cluster)).extract()
    return batch


def test_an_intensity_alone_holds_always_and_adds_nothing(tmp_path):
    row = carbon(tmp_path, "g_per_kwh\n400\n").rows.row(0, named=True)

    assert (row["valid_from_at"], row["valid_to_at"], row["cluster"]) == (None, None, None)
    assert (row["pue"], row["server_ratio"]) == (1, 1)


def test_the_command_names_the_cluster_where_the_row_does_not(tmp_path):
    rows = carbon(tmp_path, "cluster,g_per_kwh\neast,1\n,2\n", "west").rows

    assert rows["cluster"].to_list() == ["east", "west"]
