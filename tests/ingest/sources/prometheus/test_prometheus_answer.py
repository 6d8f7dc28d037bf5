"""Answers of Prometheus's API become points; broken parts become rejects."""

import json

import numpy as np
import pytest

from goodput_ingest.prometheus_api.answer import LABELS_MAX, AnswerError, is_on_a_grid, parse

T = 1_787_234_539.482


def body(*results, kind="matrix", **more):
    data = {"resultType": kind, "result": list(results)}
    return json.dumps({"status": "success", "data": data, **more}).encode()


def result(*points, **labels):
    return {"metric": {"__name__": "m", **labels}, "values": [list(p) for p in points]}


@pytest.mark.parametrize(
    ("points", "values"),
    [
        ([(T, "NaN"), (T + 30, "4"), (T + 60, "nan")], [4.0]),
        ([(T, "+Inf"), (T + 1, "-Inf"), (T + 2, "1e+06")], [np.inf, -np.inf, 1e6]),
        ([(T + 30, "2"), (T, "1"), (T + 30, "2")], [1.0, 2.0]),
        ([(T, "900"), (T + 30, "950"), (T + 60, "10")], [900.0, 950.0, 10.0]),
    ],
    ids=["no stale marker", "infinities", "in order and once", "a counter that falls"],
)
def test_readings_of_a_series(points, values):
    answer = parse(body(result(*points)))

    assert answer.series[0].values.tolist() == values
    assert answer.notes() == []


def test_a_value_that_is_no_number_costs_only_its_point():
    """An old exporter's conversion error, seen as a value (dcgm-exporter issue 394)."""
    bad = result((T, "1"), (T + 30, "ERROR - FAILED TO CONVERT TO STRING"), (T + 60, "3"))

    answer = parse(body(bad, result((T, "9"))))

    assert [one.values.tolist() for one in answer.series] == [[1.0, 3.0], [9.0]]
    assert [note.reason for note in answer.notes()] == [
        "series 1 of the answer: a point is not a number: "
        '[1787234569.482, "ERROR - FAILED TO CONVERT TO STRING"]'
    ]


HISTOGRAM = {"metric": {"__name__": "h"}, "histograms": [[T, {"count": "1", "sum": "2"}]]}


@pytest.mark.parametrize(
    ("text", "noted"),
    [
        (body(), []),
        # Thanos says so when a store did not answer: the data has holes that nobody sees
        (
            body(result((T, "1")), warnings=["partial response"], infos=["no suffix"]),
            ["the server warned: partial response", "the server warned: no suffix"],
        ),
        (body(HISTOGRAM), ["native histograms are not read"]),
        (
            body(result(*((T + i, "x") for i in range(1000)))),
            [
                *["a point is not a number"] * 5,
                "series 1 of the answer: 1000 of its points are not",
            ],
        ),
        (body(result((-1, "1"), (1e18, "2"), (T, "3"))), ["2 of its points have no valid time"]),
    ],
    ids=["nothing", "warnings", "native histograms", "many bad points", "points at no moment"],
)
def test_what_is_noted_of_an_answer(text, noted):
    found = [note.reason for note in parse(text).notes()]

    assert len(found) == len(noted)
    assert all(said in reason for said, reason in zip(noted, found, strict=True))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "not JSON"),
        (b"<html>", "not JSON"),
        (b'{"status":"success","data":{"resultType":"matrix","result":[{"metric"', "truncated"),
        (b"[" * 100_000, "Expected `object`"),
        (b'{"data":{"result":[' + b"[" * 100_000, "nested too deeply"),
        (b"\xff\xfe\x00", "not JSON"),
        (b'{"status":"success","data":["a"]}', "not an answer to a query"),
        (b'{"status":"success"}', "not an answer to a query"),
        (b"{}", "not an answer to a query"),
        (b'{"status":"success","data":{"resultType":"scalar","result":[1,"2"]}}', "is scalar"),
        (
            b'{"status":"success","data":{"resultType":"matrix","result":7}}',
            "not an answer to a query",
        ),
        (b'{"status":"error","errorType":"timeout","error":"too slow"}', "said timeout: too slow"),
    ],
)
def test_what_is_no_answer_is_refused_in_words(text, said):
    with pytest.raises(AnswerError, match=said):
        parse(text)


def test_a_broken_series_does_not_cost_the_others():
    answer = parse(
        b'{"status":"success","data":{"resultType":"matrix","result":['
        b'{"metric":{"__name__":7},"values":[]},'
        b'{"metric":{"__name__":"deep"},"values":[[1,' + b"[" * 200 + b"]" * 200 + b"]]},"
        b'{"metric":{"__name__":"good"},"values":[[1787234539.482,"5"]]}]}}'
    )

    assert [one.name for one in answer.series if len(one.times_ms)] == ["good"]
    assert len(answer.notes()) == 2


def test_a_bomb_of_labels_is_rejected():
    bomb = result((T, "1"), **{f"l{i}": "x" for i in range(LABELS_MAX)})

    answer = parse(body(bomb, result((T, "2"), long="x" * 100_000)))

    assert "has 101 labels" in answer.notes()[0].reason
    assert [len(one.labels["long"]) for one in answer.series] == [4096]


def test_a_text_that_looks_like_values_stays_a_label():
    (one,) = parse(body(result((T, "1"), evil='","values":[[1,"2"]]'))).series

    assert one.values.tolist() == [1.0]
    assert one.labels["evil"] == '","values":[[1,"2"]]'


def test_points_on_a_grid_are_distinguished_from_scrapes():
    """query_range repeats the last sample for up to five minutes: its gaps do not show."""
    grid = [(1_787_234_520 + 60 * i, "1") for i in range(10)]
    scraped = [(1_787_234_520.217 + 60 * i, "1") for i in range(10)]

    assert is_on_a_grid(parse(body(result(*grid), result(*grid[3:6]))).series)
    assert not is_on_a_grid(parse(body(result(*scraped))).series)
    assert not is_on_a_grid(parse(body(result(*grid), result(*scraped))).series)
    assert not is_on_a_grid(parse(body(result(*grid[:2]))).series)
    assert not is_on_a_grid(parse(body()).series)
