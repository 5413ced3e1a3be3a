"""The user's own data: both forms, both formats, and mistakes with file, row and column."""

import math

import numpy as np
import pandas as pd
import pytest

from coverlay import CoverlayError
from sim.random_streams import streams
from sim.workloads import load_workload
from sim.workloads.arrivals import PUBLISH, SUBSCRIBE, UNSUBSCRIBE, schedule

SCHEMA = {
    "price": {"kind": "continuous", "low": 0, "high": 100},
    "year": {"kind": "integer", "low": 1900, "high": 2030},
    "issue": {"kind": "categorical", "categories": ["MSFT", "IBM", "AAPL"]},
}
BOUNDS = "price_lo,price_hi,year_lo,score,broker,id\n1,2.5,1990,0.5,3,s1\n,10,,2,0,s2\n"
TEXTS = 'text,score\n"price < 10 weight 2 and issue != ""IBM""",4\nyear >= 1990 score 3,\n'
EVENTS = "price,issue,time,broker\n5,MSFT,20,1\n,AAPL,10,0\n"


@pytest.fixture
def load(tmp_path):
    def load(subscriptions, events=None, schema=SCHEMA):
        paths = []
        for name, text in (("subs.csv", subscriptions), ("events.csv", events)):
            if text is not None:
                (tmp_path / name).write_text(text, encoding="utf-8")
            paths.append(None if text is None else str(tmp_path / name))
        workload = load_workload(*paths, schema)
        workload.check()
        return workload

    return load


def test_bounds(load):
    workload = load(BOUNDS, EVENTS)
    inf = math.inf
    assert workload.lo.tolist() == [[1, 1990, -inf], [-inf, -inf, -inf]]
    assert workload.hi.tolist() == [[2.5, inf, inf], [10, inf, inf]]
    assert workload.mentioned.tolist() == [[True, True, False], [True, False, False]]
    assert workload.scores.tolist() == [0.5, 2.0]
    assert workload.homes.tolist() == [3, 0]
    assert workload.ids == ("s1", "s2")


def test_events_are_ordered_by_time(load):
    workload = load(BOUNDS, EVENTS)
    np.testing.assert_array_equal(workload.events, [[math.nan, math.nan, 2], [5, math.nan, 0]])
    assert workload.times.tolist() == [10, 20]
    assert workload.publishers.tolist() == [0, 1]


def test_texts(load):
    workload = load(TEXTS)
    assert workload.hi[0].tolist() == [math.nextafter(10, 0), math.inf, 2.0]
    assert workload.weights.tolist() == [[2, 0, 1], [0, 1, 0]]
    assert workload.scores.tolist() == [4.0, 3.0], "the column wins where it says something"
    assert workload.residue(0).excluded == ((2, (1.0,)),)
    assert list(workload.residues) == [0]
    assert len(workload.events) == 0


def test_weights_categories_and_whole_numbers(load):
    text = "price_lo,price_weight,year_lo,year_hi,issue_lo,issue_hi\n1,2.5,1990.5,1999.5,IBM,IBM\n"
    workload = load(text)
    assert workload.lo.tolist() == [[1, 1991, 1]]
    assert workload.hi.tolist() == [[math.inf, 1999, 1]]
    assert workload.weights.tolist() == [[2.5, 1, 1]]


def test_a_schema_is_worked_out_from_the_data(load):
    workload = load("a_lo,a_hi,b_lo,b_hi\n0,5,,3\n2,inf,1,\n", "b,a\n9,-1\n", schema=None)
    assert workload.schema.names == ("a", "b")
    assert workload.schema.domain.tolist() == [[-1, 5], [1, 9]]
    assert workload.events.tolist() == [[-1, 9]]


def test_constant_columns_still_make_a_domain(load):
    assert load("a_lo,a_hi\n3,3\n", schema=None).schema.domain.tolist() == [[3, 4]]
    assert load("a_lo,a_hi\n,\n", schema=None).schema.domain.tolist() == [[0, 1]]


def test_parquet_equals_csv(load, tmp_path):
    from_csv = load(BOUNDS, EVENTS)
    for name in ("subs", "events"):
        pd.read_csv(tmp_path / f"{name}.csv").to_parquet(tmp_path / f"{name}.parquet")
    from_parquet = load_workload(str(tmp_path / "subs.parquet"), str(tmp_path / "events.parquet"), SCHEMA)
    for column in ("lo", "hi", "mentioned", "scores", "weights", "events", "homes", "publishers", "times"):
        np.testing.assert_array_equal(getattr(from_csv, column), getattr(from_parquet, column))
    assert from_csv.ids == from_parquet.ids


def test_a_parquet_file_with_an_index_and_nothing_else_has_no_columns(tmp_path):
    file = tmp_path / "subs.parquet"
    pd.DataFrame(index=pd.Index([3, 4], name=None)).to_parquet(file, index=True)
    with pytest.raises(CoverlayError, match="has no columns"):
        load_workload(str(file), None, SCHEMA)


def test_a_weight_of_nearness_needs_a_place(load):
    schema = {"lat": {"kind": "latitude"}, "lon": {"kind": "longitude"}}
    with pytest.raises(CoverlayError, match="line 3, column alpha: it weighs a place"):
        load("near_lat,near_lon,alpha\n1,2,\n,,0.5\n", None, schema)


def test_blank_lines_and_a_byte_order_mark_are_fine(load):
    assert len(load("\ufeffprice_lo\n1\n\n2\n").lo) == 2


MISTAKES = [
    (BOUNDS.replace("2.5", "x"), None, "subs.csv, line 2, column price_hi: 'x' is not a number"),
    (BOUNDS.replace("2.5", "nan"), None, "line 2, column price_hi: 'nan' is not a number"),
    (BOUNDS.replace("2.5", "0.5"), None, "line 2, column price_lo: [1, 0.5] can never match"),
    ("price_lo\ninf\n", None, "can never match"),
    ("price_hi\n-inf\n", None, "line 2, column price_hi: [-inf, -inf] can never match"),
    (BOUNDS.replace("0.5", "inf"), None, "line 2, column score: 'inf' is not a finite number"),
    (BOUNDS.replace(",3,s1", ",-3,s1"), None, "line 2, column broker: '-3' must not be negative"),
    (BOUNDS.replace(",3,s1", ",1.5,s1"), None, "column broker: '1.5' is not the number of a broker"),
    (BOUNDS.replace(",3,s1", ",,s1"), None, "line 2, column broker: the cell is empty"),
    (BOUNDS.replace("s2", "s1"), None, "line 3, column id: 's1' is the id of line 2 already"),
    (BOUNDS.replace("s2", ""), None, "line 3, column id: the cell is empty"),
    (BOUNDS.replace("year_lo", "yeer_lo"), None, "has a column 'yeer_lo'; it may have: price_lo"),
    ("price_lo,price_weight\n1,-2\n", None, "column price_weight: '-2' must not be negative"),
    ("issue_lo\nSUN\n", None, "line 2, column issue_lo: issue has no category 'SUN'"),
    ("price_lo,price_lo\n1,2\n", None, "column 'price_lo' more than once"),
    ("price_lo,price_hi\n1\n", None, "line 2 has 1 cells for 2 columns"),
    ("", None, "is empty; its first line names the columns"),
    ('price_lo\n"1\n', None, "cannot be read"),
    ("price_lo;price_hi\n1;2\n", None, "subs.csv separates columns by ';'; use commas"),
    ("text\nprice <\n", None, "line 2, column text: column 8: expected a number"),
    ("text\nprice < 1 and price > 2\n", None, "line 2, column text: subscription 0 can never match"),
    ("text,price_lo\ntrue,1\n", None, "has a column 'price_lo'; it may have: text, score"),
    (BOUNDS, "price,colour\n1,red\n", "events.csv has a column 'colour'; it may have: price, year, issue"),
    (BOUNDS, "price\n1\n500\n", "events.csv, line 3, column price: price is 500.0, outside its bounds 0 to 100"),
    (BOUNDS, "year\n1990.5\n", "line 2, column year: year is integer; 1990.5 is not a whole number"),
    (BOUNDS, "issue\nSUN\n", "line 2, column issue: issue has no category 'SUN'"),
    (BOUNDS, "price,time\n1,-1\n", "column time: '-1' must not be negative"),
    (BOUNDS, "price,time\n1,\n", "column time: the cell is empty"),
]


@pytest.mark.parametrize(("subscriptions", "events", "message"), MISTAKES)
def test_mistakes_name_file_row_and_column(load, subscriptions, events, message):
    with pytest.raises(CoverlayError) as caught:
        load(subscriptions, events)
    assert message in str(caught.value)


def test_mistakes_about_files_as_a_whole(load, tmp_path):
    with pytest.raises(CoverlayError, match="needs a \\[schema\\] table"):
        load(TEXTS, schema=None)
    with pytest.raises(CoverlayError, match="it needs a text column, or <attribute>_lo"):
        load("score\n1\n", schema=None)
    with pytest.raises(CoverlayError, match=r"needs workload\.subscriptions_file"):
        load_workload(None, "events.csv")
    with pytest.raises(CoverlayError, match=r"ends in none of: \.csv, \.parquet"):
        load_workload("subs.xlsx", None)
    with pytest.raises(CoverlayError, match="cannot be read: No such file"):
        load_workload(str(tmp_path / "none.csv"), None)
    for name in ("broken.parquet", "broken.csv"):
        (tmp_path / name).write_bytes(b"\xff\xfe\x00")
        with pytest.raises(CoverlayError, match="broken"):
            load_workload(str(tmp_path / name), None)


def test_one_nanosecond_timestamp_is_a_range(load):
    """Adding 1 to a number beyond 2^53 changes nothing, and an attribute needs two ends."""
    now = 1_700_000_000_000_000_000
    ((low, high),) = load(f"at_lo,at_hi\n{now},{now}\n", f"at\n{now}\n", None).schema.domain
    assert low == now < high


def test_what_files_do_not_say_is_said(load):
    (drawn,) = load("price_lo\n1\n", "price,year,issue\n5,2000,IBM\n").warnings
    assert drawn.endswith(
        "not in your files, so [arrivals] decides: "
        "brokers of subscriptions, times of subscriptions, brokers of events, times of events"
    )
    whole = "price_lo,broker,time\n1,0,0\n"
    assert load(whole, "price,year,issue,broker,time\n5,2000,IBM,0,1\n6,,,0,2\n").warnings == ()
    lacking, unordered = load(whole, "price,broker,time\n5,0,2\n6,0,1\n").warnings
    assert lacking.endswith("events.csv has no column year, issue: no event has a value there")
    assert unordered.endswith("is not in order of time: events are numbered by time, not by line")


@pytest.mark.parametrize(
    ("second", "leaves"),
    [
        ("ann,100,,,,2", 400),
        ("ann,100,,3,,2", 400),
        ("ann,100,300,,,", 300),
        ("ann,100,inf,,,", np.inf),
        ("ann,400,,,,", np.inf),
    ],
)
def test_a_change_leaves_when_the_subscription_would_have_left(tmp_path, second, leaves):
    path = tmp_path / "subs.csv"
    path.write_text(f"id,time,until,price_lo,broker,score\nann,0,400,5,0,1\n{second}\n")
    workload = load_workload(str(path), None)
    assert workload.left.tolist() == [min(workload.came[1], 400), leaves]


def test_a_change_of_score_under_a_misspelt_id_is_not_silently_a_subscription_to_everything(load):
    rows = "id,time,price_lo,broker,score\nann,0,5,0,1\nann,100,,,2\nzoe,200,,0,3\n"
    assert [note for note in load(rows).warnings if "match every event (1, first in line 4)" in note]


def test_a_json_key_given_twice_is_refused(tmp_path):
    (tmp_path / "s.jsonl").write_text('{"price_lo": 1, "price_lo": 2}\n')
    with pytest.raises(CoverlayError, match="line 1 has a key more than once"):
        load_workload(str(tmp_path / "s.jsonl"), None)


def test_the_index_of_a_pandas_frame_is_no_attribute(tmp_path):
    pd.DataFrame({"price_lo": [1.0, 2.0]}, index=[5, 7]).to_parquet(tmp_path / "s.parquet")
    assert load_workload(str(tmp_path / "s.parquet"), None).schema.names == ("price",)


def test_a_recording_can_be_repeated(tmp_path):
    """One after the other, a mean gap apart; what else is recorded of an event goes with it."""
    (tmp_path / "s.csv").write_text("a_lo,a_hi\n0,9\n")
    (tmp_path / "e.csv").write_text("a,broker,time\n3,1,10\n4,0,11\n5,2,14\n")
    once = load_workload(str(tmp_path / "s.csv"), str(tmp_path / "e.csv"))
    thrice = once.repeated(3)
    assert thrice.events[:, 0].tolist() == [3, 4, 5] * 3
    assert thrice.publishers.tolist() == [1, 0, 2] * 3
    assert thrice.times.tolist() == [10, 11, 14, 16, 17, 20, 22, 23, 26]
    assert once.repeated(1) is once


def test_the_order_of_requests_at_one_moment_can_be_given(tmp_path) -> None:
    """Without the columns: those that come, those that leave, events; with them, the smaller number."""
    subs, events = tmp_path / "subs.csv", tmp_path / "events.csv"
    subs.write_text("price_lo,price_hi,broker,time,until,order,until_order\n0,5,0,0,7,0,8\n1,6,0,7,,6,\n2,7,0,7,,2,\n")
    events.write_text("price,broker,time,order\n3,0,7,7\n4,0,7,3\n5,0,9,\n")
    workload = load_workload(str(subs), str(events))
    assert workload.events.ravel().tolist() == [4.0, 3.0, 5.0]
    timeline = schedule("static", streams(1), workload, 1)
    timeline.check()
    steps = timeline.time, timeline.kind, timeline.index
    at_seven = [(int(k), int(i)) for t, k, i in zip(*steps, strict=True) if t == 7]
    assert at_seven == [(SUBSCRIBE, 2), (PUBLISH, 0), (SUBSCRIBE, 1), (PUBLISH, 1), (UNSUBSCRIBE, 0)]


def test_an_order_needs_times(tmp_path) -> None:
    subs, events = tmp_path / "subs.csv", tmp_path / "events.csv"
    subs.write_text("price_lo,price_hi,order\n0,5,1\n")
    events.write_text("price,order\n3,1\n")
    with pytest.raises(CoverlayError, match="'order'; it needs a column 'time'"):
        load_workload(str(subs), None)
    subs.write_text("price_lo,price_hi\n0,5\n")
    with pytest.raises(CoverlayError, match="'order'; it needs a column 'time'"):
        load_workload(str(subs), str(events))
