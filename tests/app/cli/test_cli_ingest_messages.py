"""What `goodput ingest` says of files that give nothing, less than they could, or are left out."""

import json

import pytest
from tests.app.command_line import run
from tests.tables import each, gives

from goodput_app.cli.skipped_files import skipped_files
from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions

RATES = "gpu_model,price_per_gpu_h,valid_from\n"
SINFO = "NODELIST|PARTITION|STATE|GRES\nn1|gpu*|idle|gpu:h100:8\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("ingested")


def ingested(folder, source, name, text, *options):
    """Ingest a file with this text, or without one an empty folder."""
    path = folder / name
    if text is None:
        path.mkdir()
    else:
        path.write_text(text)
    return run("ingest", source, str(path), "--db", str(folder / "one.duckdb"), *options)


def test_a_file_fails_where_every_row_is_rejected(folder):
    undated, dated = "H100,3,2026-01-01\n", "H100,3,2026-01-01T00:00Z\n"

    none = ingested(folder, "rates", "undated.csv", RATES + undated)
    one = ingested(folder, "rates", "mixed.csv", RATES + undated + dated)

    assert (none.exit_code, one.exit_code) == (1, 0)
    assert none.stderr.endswith("nothing was ingested: every row was rejected.\n")
    assert one.stderr.startswith("Rejected: 1 row, see `goodput show raw.rejects --db ")


def test_an_empty_folder_is_named(folder):
    for source in ("auto", "slurm"):
        result = ingested(folder, source, source, None)
        said = f"there are no files in {folder / source}."
        assert (result.exit_code, said in result.stderr) == (1, True)


@each(
    ("empty.txt", "", 1, "the file is empty"),
    ("none.txt", "No reservations in the system\n", 0, "it lists nothing"),
)
def test_an_empty_file_is_named_and_a_text_without_rows_fine(folder, name, text, code, said):
    result = ingested(folder, "slurm", name, text)
    assert result.exit_code == code
    assert result.stderr == f"{folder / name}: slurm: {said}.\n"


STARTED = "[after megatron is initialized] datetime: 2026-11-20 14:00:00 \n"
LAST_STEP = (
    "[2026-11-20 14:00:0{}] iteration {}/ 9 | elapsed time per iteration (ms): 1000.0 | loss: 1 |\n"
)
OPTIONS = ("--timezone", "UTC", "--node", "n1", "--observed-at", "2026-11-20T15:00Z")


def test_a_log_without_a_node_says_how_its_gpu_time_becomes_known(here):
    (here / "train.log").write_text(STARTED + LAST_STEP.format(1, 1))
    read = ("ingest", "auto", "train.log", "--timezone", "UTC")

    unknown, otherwise = (
        "Unknown GPU time of train: ",
        "train.log: ingested before with other options",
    )

    first = run(*read).stderr
    (here / "other.log").write_text(STARTED + LAST_STEP.format(2, 2))
    other = run("ingest", "auto", "other.log", "--timezone", "UTC", "--node", "n1").stderr
    again = run(*read, "--node", "n1").stderr
    assert "`goodput forget train.log --db goodput.duckdb`, then ingest" in again
    run("forget", "train.log")
    whole = run(*read, "--node", "n1").stderr

    assert [one in first for one in (unknown, otherwise)] == [True, False]
    assert unknown not in other
    assert [one in again for one in (unknown, otherwise)] == [False, True]
    assert [one in whole for one in (unknown, otherwise)] == [False, False]
    assert "it balances" in run("ledger").stderr


def test_logs_of_one_name_in_several_folders_are_named(here):
    for step, folder in enumerate(("one", "two"), 1):
        (here / folder).mkdir()
        (here / folder / "train.log").write_text(STARTED + LAST_STEP.format(step, step))
    read = ("ingest", "auto", "--timezone", "UTC", "--node", "n1")

    first = run(*read, "one").stderr
    both = run(*read, "two").stderr

    said = "one/train.log, two/train.log: they count as logs of one run, by their name."
    assert (said in first, said in both) == (False, True)

    (here / "nodes.txt").write_text(SINFO)
    of = ("ingest", "slurm", "nodes.txt", "--cluster", "lab", "--observed-at")
    (_, again) = (run(*of, f"2026-11-20T{hour}:00Z").stderr for hour in (14, 15))
    assert "other options" not in again, "a snapshot that did not change"


SAID = {
    "no_step.log": (STARTED + " iteration 1/ 9 | consumed samples: 1 | elapsed time: 1 s |\n",
        "job-log: no step was read; line 2 (iteration 1/ 9 | consumed samples: 1 | elapsed time: "
        "1 s |) was rejected: the line looks like an iteration of Megatron, which has"),
    "no_save.log": (
        STARTED + LAST_STEP.format(1, 1),
        "job-log: steps and no finished save were read; until the job completes its steps count as",
    ),
    "half_saved.log": (
        STARTED + LAST_STEP.format(1, 1) + "successfully saved checkpoint for iteration: 1\n",
        "job-log: steps and no finished save were read; line 3 (successfully saved checkpoint for",
    ),
    "plain_loop.log": ("Traceback (most recent call last):\nstep 12 loss 2.3\n" + STARTED,
        "job-log: no step was read; line 2 (step 12 loss 2.3) looks like a training step of no"),
    "ticks.log": (
        STARTED + "".join(f"tick {n} obj=3.1\n" for n in range(9)),
        "job-log: no step was read; if a number that rises in it is that of the step, `goodput pro",
    ),
    "epochs.log": ("2026-11-20T14:00:00Z {'loss': 2.3, 'epoch': 0.1}\n",
        "job-log: no step was read; the dictionaries of the Hugging Face Trainer have an epoch"),
    "dmesg.txt": (
        "2026-11-20T14:00:00+0000 n1 kernel: all is well\n",
        "kernel-log: no line of it is an Xid or SXid of NVIDIA's driver or a process killed for me",
    ),
    "amd.txt": (
        "2026-11-20T14:00:00+0000 n1 kernel: Out of memory: Killed process 7 (python)\n"
        "2026-11-20T14:00:01+0000 n1 kernel: amdgpu 0000:68:00.0: amdgpu: GPU reset begin!\n" * 2,
        "kernel-log: Xid and SXid lines of NVIDIA's driver were read; 2 lines of AMD's driver ",
    ),
    "messages": (
        "2026-11-20T14:00:00+0000 n1 kernel: all is well\n"
        "2026-11-20T14:00:01+0000 n1 python3[7]: step 1 loss 2.5\n" * 2,
        "kernel-log: steps of a job are in it, too; `goodput ingest job-log` reads them",
    ),
    "slurm-7.out": (
        "2026-11-20 14:00:00+0000 step 1 loss 2.5\n[7.512] NVRM: Xid (PCI:0000:9b:00): 79\n" * 2,
        "kernel-log: its lines of the kernel were not read: times count from boot",
    ),
    "scrapes.prom": ('DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1"} 5\n' * 2,
        "it has several scrapes, and nothing says when each was taken. Write a line before each: "),
    "page.prom": ('DCGM_FI_DEV_GPU_UTIL{gpu="0"} 5\n', "dcgm: no r"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "given"), SAID.items(), ids=SAID.keys())
def test_a_recognised_file_says_what_it_did_not_give(folder, name, given):
    text, said = given
    assert f"{folder / name}: {said}" in ingested(folder, "auto", name, text, *OPTIONS).stderr


def test_a_file_whose_values_differ_from_anothers_is_named(here):
    for node, busy in {"gpu01": 90, "gpu02": 10}.items():
        row = f"2026/11/20 14:00:00.000, 0, {busy} %\n"
        (here / f"{node}.csv").write_text("timestamp, index, utilization.gpu [%]\n" + row)
    read = ("ingest", "auto", "gpu01.csv", "gpu02.csv", "--timezone", "UTC", "--node")

    said = "gpu02.csv: 1 row left out: gpu01.csv has other values for the same thing and time. Wh"
    assert said in run(*read, "gpu01").stderr
    assert said not in run(*read, "gpu01").stderr, "read before"
    otherwise = ("--timezone", "UTC", "--node", "gpu01", "--run-id", "no log")
    assert "other options" not in run("ingest", "auto", "gpu01.csv", *otherwise).stderr


UNKNOWN = {
    "pmon.txt": ("# gpu         pid   type     sm    mem\n# Idx           #    C/G      %      %\n",
                 "this output of nvidia-smi is not read. `nvidia-smi --query-gpu=timestamp,uuid,"),
    "pmon_DT.txt": ("#Date       Time        gpu   pid  type\n", "this output of nvidia"),
    "smi_L.txt": ("GPU 0: NVIDIA A100 (UUID: GPU-5d5ba0d6)\n  MIG 1g.5gb Device 0: (UUID: MIG-1)\n",
                  "this output of nvidia-smi is not read"),
    "apps.csv": ("timestamp, gpu_uuid, pid, process_name\n2026/08/20 14:00:00.123, GPU-1, 7, p\n",
                 "this output of nvidia-smi is not read"),
    "smi.csv": ("timestamp; index; utilization.gpu [%]\n2026/08/20 14:00:00.123; 0; 50 %\n",
                "cells between semicolons are not read"),
    "gpustat.json": ('{"query_time": "2026-11-20T12:00:00", "gpus": [{"utilization.gpu": 93}]}\n',
                     "gpustat is not read. `nvidia-smi --query-gpu=timestamp,"),
    "noheader.log": ("Fri Nov 20 10:00:00 UTC 2026\n90 %, 22000 MiB\n" * 9, "rows of nvidia-sm"),
    "nvitop.csv": (",resources/duration (s),resources/cuda:0 (gpu:0)/power (W)\n", "the CSV of n"),
    "nvtop.json": ('[\n {"device_name": "RTX 3090",\n "gpu_util": "90%"\n}]\n', "nvtop is"),
    "amd_metric.csv": ("gpu,gfx_activity,umc_activity\n0,95,30\n", "rocm-smi and amd-smi"),
    "amd_metric.json": ('[\n {\n "gpu": 0,\n "usage": {}}]\n', "rocm-smi and amd-smi"),
    "rocm.json": ('{"card0": {"GPU use (%)": "95"}}\n', "rocm-smi and amd-smi"),
    "cgroup.prom": ('cgroup_cpus{jobid="51",step=""} 8 1795168800000\n', "cgroup_exporter has no"),
    "plain.prom": ('amd_gpu_use{index="0"} 95\n', "a scrape of an exporter that is not read"),
    "slurmctld.log": ("[2026-11-20T09:59:00.148] _job_complete: JobId=4\n", "slurmctld.log is"),
    "nccl_1_0.json": ('[\n{"name": "Group API", "cat": "GROUP_API", "ph": "b"}\n', "dumps of NC"),
    "tb.csv": ("Wall time,Step,Value\n1795939230.0,10,2.99\n", "scalars that TensorBoard exports"),
    "trainer_state.json": ('{\n "epoch": 1.0,\n "log_history": []}\n', "trainer_state.json has"),
    "history.parquet": ("PAR1\0\0", "Parquet with these columns is not read"),
    "keras.csv": ("epoch,accuracy,loss\n0,0.9,3.0\n", "a table of steps or epochs without"),
    "rocm.txt": ("===== ROCm System Management Interface =====\n", "rocm-smi and amd-smi"),
    "diag.txt": ("+-----+-----+\n| Diagnostic  | Result  |\n", "this output of dcgmi is not read"),
    "panel.csv": ('"Time","GPU 0"\n2026-11-20 12:00:00,93\n', "a panel's CSV of Grafana is not"),
    "sacct.txt": ("JobID      JobName  Partition\n----- ---------- ----------\n4711 train gpu\n",
                  "sacct cuts columns of this form, which is not read. `TZ=UTC SLURM_TIME_FORMAT"),
    "promtool.txt": ('DCGM_FI_DEV_GPU_UTIL{gpu="0"} =>\n50 @[1787234400]\n',
                     "this output of promtool is not read"),
    "export.journal": ("__CURSOR=s=a\n__REALTIME_TIMESTAMP=1787234400123456\nMESSAGE=x\n",
                       "this form of a kernel log is not read"),
    "full.journal": ("Thu 2026-08-20 14:00:00 CEST gpu01 kernel: NVRM: loading\n",
                     "this form of a kernel log is not read"),
    "squeue.txt": ("             JOBID PARTITION     NAME     USER ST       TIME  NODES\n",
                   "this output of squeue is not read"),
    "squeue_o.txt": ("JOBID|ST|NODELIST(REASON)|TRES_PER_NODE\n601|R|gpu07|gres/gpu:8\n",
                     "this output of squeue is not read"),
    "sinfo_Nel.txt": ("Thu Aug 20 14:00:00 2026\nNODELIST   NODES PARTITION       STATE CPUS\n",
                      "this output of sinfo is not read"),
    "sinfo.txt": ("PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\n",
                  "this output of sinfo is not read. `sinfo -N -a -o "),
    "pods.txt": ("NAME      READY   STATUS    RESTARTS   AGE\n",
                 "this output of kubectl is not read"),
    "describe.txt": ("Name:             llm-0\nNamespace:        nlp\n",
                     "this output of kubectl is not read"),
    "bjobs.txt": ("JOBID   USER    STAT  QUEUE      FROM_HOST\n", "LSF and PBS are not read"),
    "trainer_log.jsonl": ('{"current_steps": 5, "total_steps": 100, "loss": 2.3, "epoch": 0.1}\n',
                          "trainer_log.jsonl of LLaMA-Factory is not read"),
    "wandb-metadata.json": ('{\n"startedAt": "2026",\n"gpu": 1,\n"program": "train.py"}\n',
                            "this file of a run of W&B has no steps"),
    "debug-core.log": ('{"time":"2026","level":"INFO","msg":"main: starting server","pid":1}\n' * 9,
                       "this file of a run of W&B has no steps"),
    "scalars.csv": ("Wall time,Step,Value\n1795939230.0,10,2.9\n", "scalars that TensorBoard"),
    "amd_smi.prom": ('# TYPE amd_gpu_power gauge\namd_gpu_power{gpu_power="0"} 9e+07\n',
                     "a scrape of an exporter that is not read. Those that are: the table"),
    "chart.csv": ('"Step","llama - train/loss","llama - train/loss__MIN"\n"0","3.1","3.1"\n',
                  "the CSV of a chart of W&B has no times and is not read. `run.history()"),
    "runs.csv": ("Start Time,Duration,Run ID,Name\n2026-11-27 10:00:00,1.0h,0a1b,ant\n",
                 "a list of runs of MLflow is not read"),
    "metrics.json": ('{"resourceMetrics":[{"resource":{}}]}\n',
                     "files of OpenTelemetry are not read. Metrics that are sent"),
    "rates.csv": ("gpu_model;price_per_gpu_h;currency\r\nH100;2,50;EUR\r\n",
                  "cells between semicolons are not read. CSV is, with commas between cells"),
    "metrics.csv": ("epoch,lr-AdamW,step,train_loss\n0,0.0001,49,2.1\n",
                    "a table of steps or epochs without times is not read"),
    "lauf.log": ("".join(f"27.11.2026 10:00:{n} Durchlauf {n}: Verlust 1,1\n" for n in range(9)),
                 "a number rises from line to line, as in the log of a job; if it is one, `good"),
    "loop.log": ("hello\nstep 12 loss 2.3\n",
                 "line 2 (step 12 loss 2.3) looks like a training step of no known format"),
    "bar.log": (" 12%|#   | 12/100 [00:05<00:40,  2.2it/s]\n",
                "line 1 (12%|#   | 12/100 [00:05<00:40,  2.2it/s]) looks like a training step"),
}  # fmt: skip


@pytest.fixture(scope="module")
def store(module_store):
    return module_store()


@pytest.mark.parametrize(("name", "given"), UNKNOWN.items(), ids=UNKNOWN.keys())
def test_a_file_that_no_source_reads_names_what_would_be_read(store, tmp_path, name, given):
    (tmp_path / name).write_text(given[0])

    summary = ingest(store, "auto", [tmp_path / name], ReadOptions())

    assert summary.unrecognised == [str(tmp_path / name)]
    (hint,) = summary.hints
    assert hint.startswith(f"{tmp_path / name}: {given[1]}")


def test_what_would_be_read_is_said_of_unknown_files_objects_and_node_states(folder):
    event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "reason": "Failed"}
    events = json.dumps({"apiVersion": "v1", "kind": "List", "items": [event]})

    unknown = ingested(folder, "auto", "loop.log", UNKNOWN["loop.log"][0])
    said = ingested(folder, "auto", "events.json", events).stderr
    timeless = ingested(folder, "slurm", "sinfo.txt", SINFO).stderr
    timed = ingested(folder, "slurm", "sinfo.txt", SINFO, "--observed-at", "2026-11-20T14:00Z")

    assert unknown.exit_code == 1
    assert f"{folder / 'loop.log'}: {UNKNOWN['loop.log'][1]}" in unknown.stderr
    assert "kubernetes: no row was read; Event objects have no fact of the ledger. Those of" in said
    assert timeless.startswith("Node states need --observed-at: ")
    assert "--observed-at" not in timed.stderr


ZONE = "carries no offset from UTC. Name its time zone with --timezone (such as Europe/Berlin)."

REFUSED = [f"logs/{i}.txt: time 2026-11-20T11:45:{i:02} {ZONE}" for i in range(5)]

test_files_with_one_reason_are_one_sentence = gives(
    lambda *given: [*skipped_files(*given)],
    ([*REFUSED, "x.txt: it is cut at line 7."], [], "auto",
     [f"skipped 5 files: time 2026-11-20T11:45:00 {ZONE} logs/0.txt, logs/1.txt, "
      "logs/2.txt ...", "skipped: x.txt: it is cut at line 7."]),
    (["nothing there"], [], "auto", ["skipped: nothing there"]),
    ([], [], "auto", []),
    ([], ["a"], "auto", ["1 file of no known format skipped: a"]),
    ([], ["a", "b", "c"], "auto", ["3 files of no known format skipped: a, b, c"]),
    ([], ["a", "b", "c", "d"], "auto", ["4 files of no known format skipped: a, b, c ..."]),
    ([], ["a", "b"], "mlperf", ["2 files of another format than mlperf skipped: a, b"]),
)  # fmt: skip
