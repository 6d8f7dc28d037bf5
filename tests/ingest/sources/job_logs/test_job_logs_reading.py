"""How a job's log is read, whatever framework wrote it: whose it is, its times, its growth."""

import gzip
import json
import struct
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from tests.ingest.job_log_lines import ITERATION, parsed
from tests.tables import each

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.job_logs import nemo, reader
from goodput_ingest.sources.job_logs.source import JobLog
from goodput_ingest.sources.job_logs.wandb_history import WandbHistory
from goodput_ingest.sources.registry import recognise
from goodput_queries.errors import IngestError

BERLIN = ReadOptions(cluster="alpha", zone=ZoneInfo("Europe/Berlin"))
TEN = "".join(ITERATION.format(second=10 + n, step=n, ms=1000.0) for n in range(1, 11))


def events(store, columns="event, step"):
    return store.read(f"select {columns} from raw.job_events order by ts, event").rows()


@pytest.fixture
def read(read_text):
    """Return what reads a log with this text."""
    zone = {"cluster": "alpha", "zone": BERLIN.zone}
    return lambda text, name="train.log", **more: read_text("job-log", text, name, **(more or zone))


def test_a_run_of_wandb_has_the_host_the_gpus_and_the_job_that_it_noted(store, tmp_path):
    noted = {"host": "dgx", "gpu_count": 8, "slurm": {"job_id": "4711"}}
    (tmp_path / "wandb-metadata.json").write_text(json.dumps(noted))
    file, entry = tmp_path / "wandb-history.jsonl", {"_step": 1, "_timestamp": 1795939260.0}
    file.write_text(json.dumps(entry) + "\n")
    ingest(store, "wandb-history", [file], ReadOptions())
    assert events(store, "run_id, host, extra ->> '$.world_size'") == [
        ("4711", "dgx", "8"), ("4711", "dgx", None)]  # fmt: skip
    assert not WandbHistory.recognises(file, json.dumps({**entry, "_wandb": {}}).encode())


def test_the_file_of_an_offline_run_of_wandb_says_whose_it_is_and_where_it_ran(store, tmp_path):
    noted = {12: b"dgx", 13: b"ann", 27: b"\n\6job_id\x12\x044711"}  # of EnvironmentRecord
    fields = [bytes((n * 8 & 127 | 2 | 128, n >> 4, len(text))) + text for n, text in noted.items()]
    said = b"".join(fields) + bytes((19 * 8 & 127 | 128, 1, 8))  # GPUs
    record = bytes((26 * 8 & 127 | 2 | 128, 1, len(said))) + said
    file = tmp_path / "run-8w2kq1zt.wandb"
    kept = Path(__file__).with_name("offline_run.wandb").read_bytes()
    file.write_bytes(kept + struct.pack("<IHB", 0, len(record), 1) + record)
    ingest(store, "wandb-history", [file], ReadOptions())

    found = events(store, "distinct run_id, host, extra ->> '$.user', extra ->> '$.world_size', ts")
    assert {("4711", "dgx", "ann", None), ("4711", "dgx", None, "8")} <= {row[:4] for row in found}


@each(
    ("8", ["cpu_power"], "8"),
    ("8 each", ["gpu_0_power", "gpu_1_power"], "2"),
    ("", ["n1/gpu_0_power", "n2/gpu_0_power"], "2"),
)
def test_a_run_of_mlflow_has_the_gpus_it_names_else_measured(store, tmp_path, said, measured, gpus):
    files = {"params/world_size": said}
    for name in ("loss", *(f"system/{name}" for name in measured)):
        files[f"metrics/{name}"] = "1795939260000 2.5 1\n"
    for name, text in files.items():
        (file := tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    ingest(store, "mlflow", [tmp_path / "metrics" / "loss"], ReadOptions())
    assert events(store, "extra ->> '$.world_size'") == [(gpus,), (None,)]


# whose log it is

POD = "ml_exp-a.b-0_6f1c2d3e-0000-4000-8000-000000000001"


@each(
    ("SLURM_JOB_ID=4711\n", "slurm-99.out", "4711"),
    ("export SLURM_JOBID=4711_3\n", "x.log", "4711_3"),
    ("+ srun --jobid 4711 bash -c train\n", "x.log", "4711"),
    ("slurmstepd: error: *** JOB 4711 ON n1 CANCELLED AT 2026-08-20T15:00:00 ***\n", "x",
     "4711"),
    ('+ declare -x SLURM_JOB_ID="14"\n', "x.log", "14"),
    ("0: {'HOME': '/', 'SLURM_JOB_ID': '14'}\n", "x.log", "14"),
    ("SLURM_ARRAY_JOB_ID=12\nSLURM_JOB_ID=14\n", "x.log", "14"),
    ("x" * 70_000 + "\nSLURM_JOB_ID=14\n", "x.log", "x"),
    ("wandb: Syncing run brisk-sun-7\n", "slurm-4711.out", "4711"),
    ("wandb: Syncing run brisk-sun-7\n", "train.log", "brisk-sun-7"),
    ("wandb: Syncing run brisk\n", "wandb/run-20261127_184553-gry/files/output.log", "gry"),
    ("SLURM_JOB_ID=4711\nwandb: Syncing run brisk-sun-7\n", "x.log", "4711"),
    ("SLURM_JOB_ID=4711\nwandb: Syncing run brisk-sun-7\n", "train-7.out.log", "train-7"),
    ("", "slurm-4711.out", "4711"), ("", "pretrain-4711_3.out.gz", "4711_3"),
    ("", "slurm-14_3.out.1", "14_3"), ("", "pretrain-14_3.err", "14_3"),
    ("", "pretrain.4711.out", "4711"), ("", "pretrain.o4711", "4711"), ("", "4711.out", "4711"),
    ("", "slurm-4711-3.out", "4711"), ("", "pretrain-14.log", "pretrain-14"),
    ("", "train-rank-3.out", "train"), ("", "llm/rank_3.log", "llm"),
    ("", "llm/logs/rank_3.log", "llm"), ("", "llm/log/workerlog.0", "llm"),
    ("", "none_x7/attempt_0/3/stdout.log", "none_x7"), ("", "train-007.log", "train-007"),
    ("", "pretrain.log.1", "pretrain"), ("", "llama3.2024.log", "llama3.2024"),
    ("wandb: Syncing run brisk-sun-7\n", f"pods/{POD}/trainer/0.log", "ml/exp-a.b-0"),
    ("", f"pods/{POD}/trainer/104.log.20260820-140000.gz", "ml/exp-a.b-0"),
    ("", f"exp-a.b-0_ml_trainer-{'0a1b2c3d' * 8}.log", "ml/exp-a.b-0"),
)  # fmt: skip
def test_the_run_is_what_the_log_says_else_what_its_name_hints(tmp_path, text, name, run_id):
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    content = (text + TEN).encode()
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)

    (batch,) = JobLog(path, BERLIN).extract()

    assert batch.rows.select("run_id", "cluster").unique().rows() == [(run_id, "alpha")]


def test_a_log_of_which_the_newest_lines_come_first_is_refused(read):
    lines = [f"2026-08-20T14:03:{n}+02:00 {{}} step {n} loss 2.5\n" for n in range(20, 10, -1)]
    with pytest.raises(IngestError, match=r"newest lines come first.*logcli query --forward"):
        read("".join(lines))


# times


@each(
    ("I0820 14:03:10.500000 140234 train.py:600] Step 7: loss=2.31\n", "has no year"),
    ("[14:03:10] step 7 loss 2.31\n", "has a time of a form that is not read"),
    ("20 14:03:10 step 7 loss 2.31\n", "has a time of a form that is not read"),
    ("05/08/2026 14:03:10 step 7 loss 2.31\n", "may begin with the day or the month"),
    ("step 7 loss 2.31 [04:05<01:10:12]\n", "the line has no timestamp"),
)
def test_a_line_whose_time_is_not_read_says_why(read, text, reason):
    with pytest.raises(IngestError, match=rf"no times, such as line 1: .*{reason}"):
        read(text * 2)


def test_of_many_lines_without_a_moment_the_last_that_is_listed_says_so(store, read, monkeypatch):
    monkeypatch.setattr(reader, "LISTED_MAX", 2)
    text = "{'loss': 1.9321, 'epoch': 0.12}\n" * 5 + TEN

    read(text)

    assert store.read("select line, reason from raw.rejects order by line").rows() == [
        (1, "the line has no timestamp"),
        (2, "the line has no timestamp; further such lines are not listed"),
    ]


def test_of_more_undated_steps_than_are_kept_the_last_end_at_the_save(store, read, monkeypatch):
    monkeypatch.setattr(nemo, "STEPS_MAX", 3)
    step = "Training epoch 0, iteration {0}/9 | global_step: {0} | train_step_timing in s: 2\n"
    save = (
        "Global Checkpoint Save : Rank: 0 : Iteration: 4 : Start time: 1787234600s : "
        "Save duration: 1s"
    )

    read("".join(map(step.format, range(5))) + save)

    assert events(store, "step, epoch_ms(ts) // 1000 - 1787234600") == [
        (3, -4), (4, -2), (5, 0), (None, 1),
    ]  # fmt: skip
    assert store.read("select line from raw.rejects order by 1")["line"].to_list() == [1, 2]


def test_the_pods_of_a_file_of_one_run_are_that_run(store, read):
    line = "[pod/llm-{pod}/main] 2026-08-20T14:00:0{second}Z step {step} loss 2.5\n"
    lines = [line.format(pod=n % 2, second=n // 2, step=1 + n // 2) for n in range(4)]

    read("".join(["+ llm-2 > main\n", *lines]), run_id="llm")

    assert sorted(events(store, "run_id, step")) == [("llm", 1), ("llm", 2)]


# how many processes it has


PROCESSES = {
    "  world_size ...................................... 64": 64,
    "Initializing distributed: GLOBAL_RANK: 0, MEMBER: 1/16": 16,
    "Num_devices: 32, shape [1, 1, 32, 1]": 32,
    "All distributed processes registered. Starting with 8 processes": 8,
    "Num processes: 8": 8,
    "Building 2-D device mesh with ['dp_replicate', 'dp_shard'], [2, 8]": 16,
    "Building device mesh with parallelism: pp=2, dp_replicate=1, dp_shard=8, cp=1, tp=4, "
    "ep=4, etp=1": 64,
    "tensor model parallel world size: 4\nglobal world size: 32\nlocal world size: 8": 32,
    "  global_world_sizes=[16, 16]": 16,
    "[Rank 0] Saved model to /c/model_world_size_16_rank_0.pt": 16,
    "  min_nodes        : 2\n  max_nodes        : 2\n  nproc_per_node   : 8": 16,
    "(TaskRunner pid=1)  'n_gpus_per_node': 8,\n(TaskRunner pid=1)  'nnodes': 2,": 16,
    "  Instantaneous batch size per device = 8\n  Total train batch size (w. parallel, "
    "distributed & accumulation) = 64\n  Gradient Accumulation steps = 2": 4,
    "world size: 1": None,
    "local world size: 8": None,
    "world size: 999999": None,
}


@pytest.mark.parametrize(("text", "processes"), PROCESSES.items())
def test_the_number_of_processes_that_a_log_prints(store, read, text, processes):
    read(f"{text}\n{TEN}{text}\n{TEN}")

    said = store.read(
        "select extra ->> '$.world_size', ts from raw.job_events where kind = 'world_size'"
    ).rows()
    first = events(store, "ts")[0][0]
    assert said == ([] if processes is None else [(f"{processes}", first)])


@each(
    ("train.log", None, True, None), ("h100x4.log", None, True, None),
    ("rank_3.log", None, True, 3), ("x/attempt_0/3/stdout.log", None, True, 3),
    ("log/workerlog.3", None, True, 3),
    ("slurm-4711-3.out", None, True, 3), ("train-4711_3.out", None, True, None),
    (f"{POD}/c/0.log", None, False, None), (f"{POD}/c/0.log", "llm", True, None),
    ("llm-node12.out", None, False, None), ("worker0.log", "llm", True, None),
)  # fmt: skip
def test_a_log_of_a_rank_has_it_one_of_a_node_counts_none(store, read, name, run_id, counts, rank):
    read(f"world size: 8\n{TEN}", name, run_id=run_id, zone=BERLIN.zone)

    found = store.read(
        "select count_if(kind = 'world_size') > 0, max(rank), count(rank) = count(*) "
        "from raw.job_events"
    )
    assert found.row(0) == (counts, rank, rank is not None)


def test_logs_of_ranks_are_one_run_of_a_gpu_each_with_amounts_of_the_gang(whole_store, tmp_path):
    log = "".join(
        f"[2026-08-20 14:03:{10 + n},500] iteration {n}/ 9 | elapsed time per iteration (ms): "
        "1000.0 | global batch size: 32 |\n" for n in range(1, 9)
    )  # fmt: skip
    for rank, text in enumerate((log, log.replace(",500", ",620"), log)):
        path = tmp_path / f"x/attempt_0/{rank}/stdout.log"
        path.parent.mkdir(parents=True)
        path.write_text(text)
        ingest(whole_store, "job-log", [path], ReadOptions(zone=BERLIN.zone, node="n1"))
    whole_store.build()

    found = "select run_id, attempts, gpus from marts.runs"
    assert whole_store.read(found).rows() == [("x", 1, 3)]
    steps = whole_store.read("select distinct samples, ranks from intermediate.int_train_steps")
    assert steps.rows() == [(32, 3)]


# lives and formats


TITAN = "[titan] 2026-08-20 14:03:09,000 - root - INFO - step: 7  loss:  6.4  tps: 8,214\n"
DEEPSPEED = "[2026-08-20 14:03:20,900] [INFO] [logging.py:128:log_dist] step=10, skipped=0\n"
LABELS = (
    "[default7]:", "63: ", "[rank63]: ", "[1,0]<stdout>:", "[prterun-n1-12@1,0]<stdout>: ",
    "[3] ", "n-01.cluster.local: ", "trainer-1  | ", "trainer/0 ",
    "[2026-08-20T14:03:09Z] trainer/0 ", "Aug 20 14:03:09 n1 python3[123]: ",
    "[pod/train-0/main] ", "(Worker pid=71, ip=10.0.0.1) ",
)  # fmt: skip


@each({
    # Megatron with DeepSpeed prints each step twice
    "steps of one format alone": (TEN + DEEPSPEED, list(range(1, 11))),
    **{f"behind the label {label}": (f"{label} {TITAN}", [7]) for label in LABELS},
    "of a rank behind the label of its host": (TITAN.replace("[titan] ", "n1: [rank0]:"), [7]),
    "behind another rank on its line": (
        "[Rank 55] (after 20 iterations) memory (MB) | reserved: 26588.0"
        + ITERATION.format(second=11, step=1, ms=1000.0),
        [1]),
    "of a bar in a line that a container runtime cuts": (
        "2026-08-20T14:00:01Z stderr P \rtrain:   1%|1| 10/2000 [00:01<03:19, 9.9it/s, loss=2.0]"
        "\rtrain:   1%|1| 20/20\n"
        "2026-08-20T14:00:03Z stderr F 00 [00:02<03:18, 9.9it/s, loss=1.9]"
        "\rtrain:   2%|2| 30/2000 [00:03<03:17, 9.9it/s, loss=1.8]\n",
        [*range(10, 31)]),
    "a million steps in one line as one span": (
        TEN + ITERATION.format(second=59, step=1_000_000, ms=1000.0), [*range(1, 11), 1_000_000]),
})  # fmt: skip
def test_the_steps_of_a_log(store, read, text, steps):
    read(text)
    found = [event for event in events(store) if event[0] != "metric"]
    assert found == [("step", step) for step in steps]


# recognising


def test_marks_behind_a_long_preamble_are_found(tmp_path):
    preamble = "+++ export PATH=/usr/bin\n" * 20_000

    (tmp_path / "train.log").write_text(preamble + TEN)

    assert recognise(tmp_path / "train.log") is JobLog


@each(
    ("", "the file is empty"), ("nothing of the kind\n" * 50, "no line has the log format"),
    ("loss 1.0 step 2\n", "but no times"), ("lost 1.0 step 2\n", "no line has the log format"),
)  # fmt: skip
def test_other_text_is_no_job_log(read, tmp_path, text, reason):
    with pytest.raises(IngestError, match=reason):
        read(text)
    assert recognise(tmp_path / "train.log") is not JobLog


PRINTED = "[titan] 2026-08-20 14:{clock} - root - INFO - "


def test_versions_that_nccl_prints_go_with_the_next_event(whole_store, tmp_path):
    text = (
        "gpu7:311:311 [0] NCCL INFO NCCL version 2.28.9+cuda13.0\n"
        + PRINTED.format(clock="03:12,000") + "step: 401  loss:  6.41230  tps: 8,214\n"
        + PRINTED.format(clock="03:14,000") + "step: 402  loss:  6.41230  tps: 8,214\n"
    )  # fmt: skip

    parsed(whole_store, tmp_path, text)

    found = whole_store.read("select attribute, value from staging.stg_run_attributes order by all")
    assert found.rows() == [("cuda_version", "13.0"), ("nccl_version", "2.28.9")]


def test_a_quantised_model_has_no_mfu_and_says_so(whole_store, tmp_path):
    text = PRINTED.format(clock="03:12,000") + "step: 401  loss:  6.4  tps: 8,214  mfu: N/A\n"
    parsed(whole_store, tmp_path, text)
    assert whole_store.read("select mfu_ratio from raw.job_events").item() is None
    assert whole_store.read("select dtype from staging.stg_job_models").item() == "quantised"


T0_US = 1_787_234_400_000_000


def structured(name, at_ms, **fields):
    said = {"global_rank": 8, "local_rank": 0, "host_name": "node002", "pid": 4211, "step": 401}
    return json.dumps({**said, "log_type_name": name, "time_us": T0_US + at_ms * 1000, **fields})


FILE = "run7/structured_logs/training.global_rank_8.jsonl"


def test_a_file_that_is_said_to_be_one_is_read_among_other_lines(read_text):
    """`auto` leaves it to others; who names the source knows what the file is."""
    text = f"warning\nwarning\n{structured('structured_logger_started', 0)}\nwarning\n"

    summary = read_text("torchtitan-structured", text, FILE)

    assert (summary.rows, summary.rejects) == (1, 3)


def test_what_a_person_says_of_the_run_beats_the_folder(store, read_text):
    read_text("auto", structured("step_end", 1000, value=1000.0), FILE, run_id="4711")
    assert store.read("select run_id from raw.job_events").item() == "4711"
