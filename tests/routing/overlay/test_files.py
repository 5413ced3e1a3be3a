"""Overlays from files: formats, tidying with warnings, latencies from attributes and coordinates."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coverlay import CoverlayError
from routing.overlay.files import distinct
from routing.overlay.graph import load_overlay


@pytest.fixture
def load(tmp_path):
    def load(text, name="net.edgelist", **options):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        overlay = load_overlay(str(path), np.random.default_rng(0), **options)
        overlay.check()
        return overlay

    return load


def names(overlay):
    return [overlay.graph.nodes[b]["name"] for b in range(overlay.brokers)]


def links(overlay):
    by_name = names(overlay)
    return {(by_name[u], by_name[v]): data["latency"] for u, v, data in overlay.graph.edges(data=True)}


def test_edge_list_with_latencies_comments_and_commas(load):
    overlay = load("# a net\na b 2\nb,c,3.5  # slow\n\nc d 1\n")
    assert links(overlay) == {("a", "b"): 2.0, ("b", "c"): 3.5, ("c", "d"): 1.0}
    assert overlay.warnings == ()
    assert overlay.kind == "file"


def test_numbered_brokers_keep_their_numbers(load):
    overlay = load("2 10 1\n10 1 1\n1 0 4\n")
    assert names(overlay) == ["0", "1", "2", "10"]


def test_a_csv_header_is_not_a_link(load):
    assert links(load("source,target,latency\na,b,1\n", "net.csv")) == {("a", "b"): 1.0}


@pytest.mark.parametrize("data", [True, False])
def test_what_networkx_writes_as_an_edge_list(load, tmp_path, data):
    graph = nx.path_graph(4)
    nx.set_edge_attributes(graph, 2.0, "delay")
    nx.write_edgelist(graph, tmp_path / "written.txt", data=data)
    overlay = load((tmp_path / "written.txt").read_text())
    assert set(links(overlay).values()) == ({2.0} if data else {1.0})


def test_parallel_links_collapse_to_the_fastest_and_loops_go(load):
    overlay = load("a b 5\nb a 2\na b 9\nb b 1\nb c 1\n")
    assert links(overlay) == {("a", "b"): 2.0, ("b", "c"): 1.0}
    assert any("2 parallel links" in w for w in overlay.warnings)
    assert any("1 link from a broker to itself" in w for w in overlay.warnings)


def test_the_largest_component_is_kept(load):
    overlay = load("x y 1\na b 1\nb c 1\nu v 1\n")
    assert names(overlay) == ["a", "b", "c"]
    assert any("3 components: the largest was kept, 3 of 7 brokers" in w for w in overlay.warnings)


def test_no_latencies_and_no_coordinates_is_said(load):
    overlay = load("a b\nb c\n")
    assert set(links(overlay).values()) == {1.0}
    assert any("neither latencies nor coordinates" in w for w in overlay.warnings)


def test_an_explicit_latency_overrules_the_file(load):
    overlay = load("a b 5\nb c\n", latency={"kind": "constant", "value": 7.0})
    assert set(links(overlay).values()) == {7.0}
    assert overlay.warnings == ()


@pytest.mark.parametrize("suffix", ["graphml", "gml"])
def test_round_trip_through_networkx_formats(load, tmp_path, suffix):
    graph = nx.cycle_graph(5)
    for u, v in graph.edges:
        graph.edges[u, v]["latency"] = 1.0 + u + v
    {"graphml": nx.write_graphml, "gml": nx.write_gml}[suffix](graph, tmp_path / f"net.{suffix}")
    overlay = load((tmp_path / f"net.{suffix}").read_text(), f"net.{suffix}")
    assert {frozenset((u, v)): d["latency"] for u, v, d in overlay.graph.edges(data=True)} == {
        frozenset((u, v)): d["latency"] for u, v, d in graph.edges(data=True)
    }
    assert overlay.tree.number_of_edges() == 4


GML = """graph [
  node [ id 0 label "Paris" Longitude 2.35 Latitude 48.86 ]
  node [ id 1 label "London" Longitude -0.13 Latitude 51.51 ]
  node [ id 2 label "Relay" ]
  node [ id 3 label "Rome" Longitude 12.5 Latitude 41.9 ]
  edge [ source 0 target 1 ]
  edge [ source 0 target 1 ]
  edge [ source 0 target 2 ]
  edge [ source 2 target 3 ]
]"""


def test_topology_zoo_style_gml(load):
    overlay = load(GML, "zoo.gml")
    assert names(overlay) == ["Paris", "London", "Relay", "Rome"]
    assert overlay.latency(0, 1) == pytest.approx(344 * 0.005, abs=0.02)  # 344 km of glass
    assert overlay.graph.nodes[2]["x"] == pytest.approx((2.35 + 12.5) / 2)
    assert any("1 parallel link:" in w for w in overlay.warnings)
    assert any("gives 1 of 4 brokers no coordinates, or half of them: Relay" in w for w in overlay.warnings)


def test_labels_that_repeat_are_told_apart_and_the_others_kept(load):
    overlay = load(GML.replace("London", "Paris"), "zoo.gml")
    assert names(overlay) == ["Paris", "Paris (2)", "Relay", "Rome"]
    assert any("labels that several brokers share; renamed: Paris (2)" in note for note in overlay.warnings)
    overlay.check()


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (["None"] * 3, ["None", "None (2)", "None (3)"]),
        (["a", "a (2)", "a", "a"], ["a", "a (2)", "a (3)", "a (4)"]),
        (["a", "a", "a (2)", "a (2)"], ["a", "a (3)", "a (2)", "a (2) (2)"]),
        (["x", "y"], ["x", "y"]),
    ],
)
def test_a_name_of_the_file_is_never_given_to_another_broker(labels, names):
    assert distinct(labels) == names


@given(st.lists(st.sampled_from(["a", "b", "a (2)", "a (3)", "a (2) (2)"]), max_size=12))
def test_names_are_distinct_and_first_labels_stay(labels):
    found = distinct(labels)
    assert len(set(found)) == len(labels)
    first = {label: row for row, label in reversed(list(enumerate(labels)))}
    assert all(found[row] == label for label, row in first.items())


def test_brokers_are_called_by_name_or_number_and_names_come_first(load):
    overlay = load("1 2\n2 3\n", "net.edgelist")
    assert names(overlay) == ["1", "2", "3"]
    assert [overlay.called(given) for given in ("1", 3, "0", " 2 ")] == [0, 2, 0, 1]
    with pytest.raises(CoverlayError, match="there is no broker '7'; brokers are called by number, 0 to 2, or by name"):
        overlay.called("7")
    with pytest.raises(CoverlayError, match="did you mean 'Paris'"):
        load(GML, "zoo.gml").called("Pariss")


def test_links_that_take_no_time_are_counted_and_a_floor_lifts_them(load):
    text = pair("Longitude 2.0 Latitude 48.0", "Longitude 2.0 Latitude 48.0")
    assert any("1 of 1 links of" in note and "take 0 ms" in note for note in load(text, "net.gml").warnings)
    lifted = load(text, "net.gml", floor=0.25)
    assert lifted.latency(0, 1) == 0.25
    assert not any("0 ms" in note for note in lifted.warnings)


def test_plane_coordinates_give_distances(load):
    text = GML.replace("Longitude", "x").replace("Latitude", "y").replace('label "Relay"', 'label "Relay" x 0 y 0')
    overlay = load(text, "plane.gml")
    assert overlay.latency(0, 2) == pytest.approx(np.hypot(2.35, 48.86))


def test_what_a_unit_of_the_plane_takes_is_said(load):
    (note,) = load(pair("x 3 y 0", "x 0 y 4"), "plane.gml").warnings
    assert note.endswith("no latencies: links take 1 ms per unit of length; set overlay.latency to change that")


def test_degrees_count_where_a_program_wrote_too_where_it_drew_the_brokers(load):
    text = GML.replace("Longitude", 'x "300" y "20" Longitude')
    assert load(text, "zoo.gml").latency(0, 1) == load(GML, "zoo.gml").latency(0, 1)


def test_the_place_of_a_single_broker_does_not_make_all_links_instant(load):
    overlay = load(pair("lat 9 lon 18"), "net.gml")
    assert overlay.latency(0, 1) == 1.0
    assert any("has coordinates of one place only" in note for note in overlay.warnings)
    assert any("every link takes 1 ms" in note for note in overlay.warnings)


GRAPHML = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="d" for="edge" attr.name="rtt" attr.type="double"/>
  <graph edgedefault="directed">
    <node id="a"/><node id="b"/><node id="c"/>
    <edge source="a" target="b"><data key="d">4.0</data></edge>
    <edge source="b" target="a"><data key="d">6.0</data></edge>
    <edge source="b" target="c"><data key="d">1.5</data></edge>
  </graph>
</graphml>"""


def test_graphml_with_a_named_attribute_and_arrows(load):
    overlay = load(GRAPHML, "net.graphml", latency_attribute="rtt")
    assert links(overlay) == {("a", "b"): 4.0, ("b", "c"): 1.5}
    assert any("directed" in w for w in overlay.warnings)
    assert not any("parallel" in w for w in overlay.warnings), "two arrows are one two-way link"


def test_a_single_broker(load):
    assert load('graph [ node [ id 4 label "only" ] ]', "one.gml").brokers == 1


def pair(first="", second="", link=""):
    """Two linked brokers in GML, with these attributes."""
    nodes = f'node [ id 0 label "a" {first} ] node [ id 1 label "b" {second} ]'
    return f"graph [ {nodes} edge [ source 0 target 1 {link} ] ]"


MISTAKES = [
    ("net.svg", "", {}, "ends in none of: .csv, .edgelist"),
    ("net.txt", "", {}, "holds no brokers"),
    ("net.txt", "a b 1\na\n", {}, "line 2: 'a' is not a link"),
    ("net.txt", "a b c d\n", {}, "line 1: 'a b c d' is not a link"),
    ("net.txt", "a b fast\n", {}, "latency 'fast' is not a number"),
    ("net.txt", "a b -1\n", {}, "latency '-1' is not a number of milliseconds of at least 0"),
    ("net.txt", "a b nan\n", {}, "latency 'nan' is not a number"),
    ("net.txt", "a b {1\n", {}, "is not a dictionary"),
    ("net.txt", "a b 1\nb c\n", {}, "link b–c has no attribute 'latency' or 'delay'"),
    ("net.txt", "a b\n", {"latency_attribute": "rtt"}, "link a–b has no attribute 'rtt'"),
    ("net.txt", "a b\n", {"latency_attribute": "rtt", "latency": 1}, "exclude each other"),
    ("net.txt", "a b\n", {"latency": {"kind": "distance"}}, "the brokers have no coordinates"),
    ("net.txt", "a b {[]: 1}\n", {}, "'{[]: 1}' is not a dictionary"),
    ("net.txt", f"a b {{1: {'[' * 3000}\n", {}, "[… is not a dictionary"),
    ("net.txt", "a b 1e309\n", {}, "latency '1e309' is not a number"),
    ("net.gml", pair("graphics 5"), {}, "node 0 has graphics 5; it must be one table"),
    ("net.gml", pair(link=f"latency 1{'0' * 400}"), {}, "0… is not a number of milliseconds"),
    ("net.gml", pair("lat 91 lon 10"), {}, "'a' is at latitude 91, longitude 10; degrees go from -90 to 90"),
    ("net.gml", pair("lat 9 lon 181"), {}, "'a' is at latitude 9, longitude 181; degrees go from -90 to 90"),
    ("net.gml", pair("x 1.0E308 y 0", "x -1.0E308 y 0"), {"latency": {"kind": "distance"}}, "too far apart"),
    ("net.graphml", "<graphml>", {}, "is not GraphML that can be read"),
    ("net.gml", "graph [ node [ ] ]", {}, "is not GML that can be read"),
    ("net.gml", "graph [ node [ id 1 ] edge [ source 1 target 2 ] ]", {}, "is not GML that can be read"),
]


@pytest.mark.parametrize(("name", "text", "options", "message"), MISTAKES)
def test_mistakes_in_overlay_files_are_sentences(load, name, text, options, message):
    with pytest.raises(CoverlayError) as caught:
        load(text, name, **options)
    assert message in str(caught.value)


def test_a_coordinate_beyond_all_numbers_is_none(load):
    overlay = load(GML.replace("Longitude 2.35", f"Longitude 1{'0' * 400}"), "net.gml")
    assert any("2 of 4 brokers no coordinates, or half of them: Paris, Relay" in note for note in overlay.warnings)


def test_link_attributes_may_be_called_as_they_like(load):
    assert load("a b {'u_for_edge': 1, 'key': [], 'latency': 3}\n").latency(0, 1) == 3


def test_a_missing_file(tmp_path):
    with pytest.raises(CoverlayError, match="cannot be read: No such file"):
        load_overlay(str(tmp_path / "none.gml"), np.random.default_rng(0))


def test_bytes_that_are_no_text(tmp_path):
    (tmp_path / "net.txt").write_bytes(b"\xff\xfe\x00a")
    with pytest.raises(CoverlayError, match="is not UTF-8 text"):
        load_overlay(str(tmp_path / "net.txt"), np.random.default_rng(0))
