"""Records of jobs: lines with their times, GPUs by CUDA_VISIBLE_DEVICES, and the ledger of it."""

from tests.tables import each

from goodput_ingest.processes.output import LINE_MAX_BYTES, TimedLines
from goodput_ingest.processes.record import EVENTS, OUTPUT, new_record, visible_gpus
from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions

NOW_S = 1795177770.25
STAMP = b"2026-11-20T12:29:30.250000Z "


@each(
    ([b"a\nb\n"], [b"a", b"b"], b""), ([b"a", b"b\n"], [b"ab"], b""),
    ([b"a\r\nb\r", b"\n"], [b"a", b"b"], b""),
    ([b"\r 1%", b"\r 2%", b"\r 3%", b"\n"], [b" 1%", b" 3%"], b""),
    ([b"1%\r", b"2%\r", b"3%"], [b"1%"], b"3%"), ([b"\n"], [b""], b""),
    ([b"no end"], [], b"no end"),
    ([b"x" * (LINE_MAX_BYTES + 1)], [b"x" * (LINE_MAX_BYTES + 1)], b""),
)  # fmt: skip
def test_output_is_cut_into_lines_and_redrawn_ones_are_thinned(written, lines, rest):
    kept = TimedLines()

    found = b"".join(kept.lines(data, NOW_S) for data in written)

    assert found == b"".join(STAMP + line + b"\n" for line in lines)
    assert kept.rest(NOW_S) == (STAMP + rest + b"\n" if rest else b"")


@each(
    ("0, 3", 1, [{"local_rank": 0}, {"local_rank": 3}]),
    ("GPU-a,MIG-b", 1, [{"gpu_uuid": "GPU-a"}, {"gpu_uuid": "MIG-b"}]),
    ("1,-1,2", 1, [{"local_rank": 1}]), ("", 1, []), (None, 1, [{"gpu_uuid": "GPU-0"}]),
    (None, 0, []),
    (None, 2, []),  # of several it is not known which it uses
)  # fmt: skip
def test_gpus_of_a_job(tmp_path, named, there, gpus):
    for number in range(there):
        folder = tmp_path / f"driver/nvidia/gpus/0000:9{number}:00.0"
        folder.mkdir(parents=True)
        said = f"Model: \t X\nGPU UUID: \t GPU-{number}\nDevice Minor: \t 0\n"
        (folder / "information").write_text(said)

    assert visible_gpus(named, tmp_path) == gpus


def test_steps_of_the_output_are_those_of_the_recorded_run(whole_store, tmp_path):
    record = new_record(tmp_path, "train.py", "gpt-300", "0,1")
    record.start(NOW_S, "python train.py", "ann")
    lines = TimedLines()
    for step in range(1, 6):
        text = (
            f" iteration {step:8d}/ 100 | consumed samples: {step * 8} | elapsed time per "
            "iteration (ms): 10000.0 | global batch size: 8 | lm loss: 6.8E+00 |\n"
        )
        record.write(OUTPUT, lines.lines(text.encode(), NOW_S + 20 + 10 * step))
    record.event("job.end", NOW_S + 80)

    ingest(whole_store, "auto", [record.folder], ReadOptions(cluster="lab"))
    whole_store.build()

    run = whole_store.read("select run_id, user_name, gpus, state, attempts from marts.runs").rows()
    assert run == [("gpt-300", "ann", 2, "COMPLETED", 1)]
    ledger = "select category, sum(gpu_ms) / 2000 from marts.ledger_pieces group by all"
    spent_s = {"startup": 20, "step_unsplit": 50, "teardown": 10}  # of each GPU
    assert dict(whole_store.read(ledger).rows()) == spent_s
    names = {path.name for path in record.folder.iterdir()}
    assert names == {f"gpt-300{EVENTS}", f"gpt-300{OUTPUT}"}
