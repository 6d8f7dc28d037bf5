"""Evidence of rules in the files and tables of a made-up fleet, by the table `rows.toml`.

Each `[[plant]]` of it is put once into each fleet, `share` of the fleets where it says so, on
nodes of its own beside the others, on a GPU of a job of the fleet (`on_fleet`) or in a cluster of
its own (`is_apart`). `given`, and one of `one_of`, are as in the cases of rules; `file` is text for
the reader of `source`, `{t}` its time. `{n}` is the name of the plant, `$x` a value that varies: by
`vary` between two numbers, by `choose` one row of several. `length` seconds of it begin anywhere in
the fleet's time, of `is_last` they end with it. `about` must be found, what `also` names by rule
may be, and nothing else.
"""

import json
import random
import tomllib
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
from tests.findings.truth import ACTIVE, BIN_MS, Expected, of_use
from tests.queries.findings.given import Given, times
from tests.queries.loaders import START as CASES_START
from tests.queries.loaders import Evidence, loaded_at_once

from goodput_ingest.run.ingest import ingest
from goodput_queries.database import LocalStore
from goodput_queries.objectives.goodput import Objective, as_variable
from goodput_synthetic.demo import recipe

TABLE = tomllib.loads(Path(__file__).with_name("rows.toml").read_text("utf-8"))
START = datetime(2026, 11, 17, 12)  # noqa: DTZ001 -- of the fleets; moments are naive UTC
MERGED = {"unused_gpus": "GPUs were active in no reading"}  # what another finding says of it
LEAST_S = 7_200  # that a job of the fleet had a GPU on which something is planted
FIXED = {"gpus", "nodes"}  # tables of what is there all the time


@dataclass
class Plant(Given):
    """A cluster that gets what is planted at its time in the fleet."""

    shift: timedelta = timedelta()

    def load(self, table: str, rows: list[dict[str, Any]], source: str = "test") -> None:
        """Keep rows, moved to their time."""
        moved = START - CASES_START + (timedelta() if table in FIXED else self.shift)
        rows = [{key: value + moved if isinstance(value, datetime) else value
                 for key, value in row.items()} for row in rows]  # fmt: skip
        super().load(table, rows, source)


def filled(value: Any, names: dict[str, Any]) -> Any:
    """Return a value of the table with what its names stand for."""
    if isinstance(value, dict):
        return {key: filled(of, names) for key, of in value.items()}
    if isinstance(value, list):
        return [filled(of, names) for of in value]
    if isinstance(value, str):
        return names[value[1:]] if value.startswith("$") else value.format_map(names)
    return value


def add(store: LocalStore, folder: Path, hours: int, seed: int) -> dict[str, Expected]:
    """Plant the table into a fleet that is read in, build it, and return what must be found."""
    chance = random.Random(seed)  # noqa: S311 -- a test
    found = {plant["rule"]: Expected() for plant in TABLE["plant"]}
    steps = {step.source: step.options for step in recipe(folder)}
    texts: dict[str, list[str]] = defaultdict(list)
    objectives: list[Objective] = []
    given: dict[str, list[tuple[timedelta, list[dict[str, Any]]]]] = defaultdict(list)
    last: list[dict[str, Any]] = []
    gpus = _held(folder)
    chance.shuffle(gpus)
    for number, plant in enumerate(TABLE["plant"]):
        if chance.random() >= plant.get("share", 1):
            continue
        length, end = plant.get("length", 7200), hours * 3600
        at = end - length if plant.get("is_last") else chance.randint(600, end - length)
        names = {"n": f"p{number}x", **chance.choice(TABLE["sizes"])}
        names |= chance.choice(plant.get("choose", [{}]))
        for name, (low, high) in plant.get("vary", {}).items():
            names[name] = round(chance.uniform(low, high), 4)
        if plant.get("on_fleet"):
            of = gpus.pop()
            at = chance.randint(int(of["from_s"]) + 1200, int(of["from_s"] + of["s"] - length))
            names |= of
        entries = plant["given"] + chance.choice(plant.get("one_of", [[]]))
        for entry in entries:
            if "file" in entry:
                for second in times(entry.get("ts", 0), entry.get("every"), entry.get("to")):
                    moment = START + timedelta(seconds=at + second)
                    of_unix = moment.replace(tzinfo=UTC).timestamp()
                    line = filled(entry["file"], names | {"t": moment, "unix": of_unix})
                    texts[entry["source"]].append(line + "\n")
        entries = [filled(entry, names) for entry in entries if "file" not in entry]
        last += [entry for entry in entries if "status" in entry]
        entries = [entry for entry in entries if "status" not in entry]
        cluster = names["n"] if plant.get("is_apart") else "atlas"
        given[cluster].append((timedelta(seconds=at), entries))
        objectives += [Objective(**filled(of, names)) for of in plant.get("objectives", [])]
        found[plant["rule"]].must |= set(filled(plant.get("about", []), names))
        for rule, subjects in plant.get("also", {}).items():
            found[rule].may |= set(filled(subjects, names))
    for number, (cluster, plants) in enumerate(given.items()):
        with loaded_at_once(Evidence(store, cluster, 10**6 * (number + 1)), Plant) as plant:
            for plant.shift, entries in plants:
                plant.first_pid += 1000
                for entry in entries:
                    getattr(plant, f"_add_{next(iter(entry))}")(**entry)
    for source, lines in texts.items():
        path = folder / f"planted-{source}.{TABLE['files'][source]}"
        path.write_text("".join(lines))
        ingest(store, source, [path], steps.get(source, steps["inventory"]))
    store.build()
    store.variables["goodput_objectives"] = as_variable(objectives)
    for entry in last:  # how late a source is goes by the clock
        Plant(store)._add_status(**entry)
    _of_fleet(folder, found)
    thresholds = dict(store.read("select name, value from reference.thresholds").rows())
    found["below_full_use"].may |= of_use(folder, thresholds)["below_full_use"].may
    return found


def _held(folder: Path) -> list[dict[str, Any]]:
    """Return the whole GPUs that a job of the fleet had: since when and how long, in seconds."""
    inventory = pl.read_csv(folder / "inventory.csv").select("gpu_uuid", "node", "gpu_index")
    since_ms = int(START.replace(tzinfo=UTC).timestamp()) * 1000
    length = pl.col("end_ms").max() - pl.col("start_ms").min()
    return (
        pl.read_parquet(folder / "truth.parquet")
        .filter(pl.col("run_id").is_not_null() & (pl.col("gpu_instance") == ""))
        .group_by("run_id", "gpu_uuid", maintain_order=True)
        .agg(
            from_s=(pl.col("start_ms").min() - since_ms) / 1000,
            s=length / 1000,
            is_whole=(pl.col("end_ms") - pl.col("start_ms")).sum() == length,
        )
        .filter("is_whole", pl.col("s") >= LEAST_S)
        .join(inventory, on="gpu_uuid", maintain_order="left")
        .select("from_s", "s", "node", run="run_id", gpu="gpu_uuid", index="gpu_index")
        .unique("gpu", maintain_order=True)
        .to_dicts()
    )


def _of_fleet(folder: Path, found: dict[str, Expected]) -> None:
    """Add what happens in the fleet without being planted."""
    for line in (folder / "truth_notes.jsonl").read_text().splitlines():
        note = json.loads(line)
        if note.get("story") == "long-finetune":  # it has one GPU that it does not use
            is_long = note["to_ms"] - note["from_ms"] >= LEAST_S * 1000
            (found["unused_gpus"].must if is_long else found["unused_gpus"].may).add(note["run_id"])
        elif note.get("story") == "nccl-hang":
            found["hang"].may.add(note["run_id"])
        if "node" in note:
            found["bad_node"].may.add(note["node"])
    truth = pl.read_parquet(folder / "truth.parquet").filter(pl.col("run_id").is_not_null())
    is_late = pl.col("end_ms") > pl.col("start_ms").min() + BIN_MS  # not only in its start-up
    is_used = (pl.col("expected").is_in(ACTIVE) & is_late).any()
    unused = truth.group_by("run_id", "gpu_uuid").agg(is_used=is_used).filter(~pl.col("is_used"))
    found["unused_gpus"].may |= set(unused["run_id"])
    found["cluster_unavailable"].may.add("atlas")
    # and MIG GPUs, as jobs come
    found["empty_slices"].may |= set(truth.filter(pl.col("gpu_instance") != "")["gpu_uuid"])


def found(store: LocalStore, truth: dict[str, Expected]) -> dict[str, list[tuple[str, str]]]:
    """Return subject and confidence of the findings of these rules, named as the truth names it."""
    sql = """select findings.*, runs.run_id from marts.findings as findings
        left join (select distinct run_key, run_id from intermediate.int_attempts) as runs
            using (run_key)"""
    listed: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for row in store.read(sql).rows(named=True):
        rule = next((rule for rule, text in MERGED.items() if text in row["evidence"]), row["rule"])
        if (of_rule := truth.get(rule)) is None:
            continue
        subject = row["subject"]
        names = [row[key] for key in ("gpu_uuid", "node", "run_id", "cluster")]
        names = [name for name in (subject.split(": ")[0], subject, *names) if name]
        known = of_rule.must | of_rule.may
        name = next((name for name in names if name in known), " ".join(names[1:]))
        listed[rule].append((name, row["confidence"]))
    return listed
