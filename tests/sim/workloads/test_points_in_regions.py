"""The regional Zipf generator keeps the volumes that are asked for, and ranks cells as it says."""

from __future__ import annotations

import numpy as np
import pytest

from sim.workloads.located import Located, located_workload
from sim.workloads.points_in_regions import draw_points, draw_regions, regional_points, ring_shares


@pytest.mark.parametrize("d", [1, 2, 3, 4, 5, 8, 12])
@pytest.mark.parametrize("cells", [20, 100])
def test_regions_have_the_volume_of_table_1(d, cells):
    """v_min = v_max = 100^d / 20: to the cell where whole sides can make it, within thousandths otherwise."""
    sides = np.concatenate([draw_regions(np.random.default_rng(seed), d, cells=cells).side for seed in range(10)])
    assert ((sides >= 1) & (sides <= cells)).all()
    share = sides.astype(float).prod(axis=1) / (float(cells) ** d / 20)
    assert np.abs(share - 1).max() < (1e-9 if d <= 2 else 3e-3 if cells == 100 else 3e-2)
    if d > 2:
        assert len(np.unique(np.sort(sides, axis=1), axis=0)) > 1, "shapes differ"


@pytest.mark.parametrize(("d", "v_min", "v_max"), [(1, 3, 9), (2, 100, 150), (3, 1000, 2000), (8, 1e13, 2e13)])
def test_volumes_lie_between_the_bounds(d, v_min, v_max):
    regions = draw_regions(np.random.default_rng(3), d, regions=200, v_min=v_min, v_max=v_max)
    volumes = regions.side.astype(float).prod(axis=1)
    assert ((volumes >= v_min * (1 - 1e-9)) & (volumes <= v_max * (1 + 1e-9))).all()
    assert volumes.max() > 1.2 * volumes.min(), "they vary within the bounds"
    assert ((regions.start >= 0) & (regions.start + regions.side <= 100)).all()


def test_hundreds_of_dimensions_do_not_overflow():
    points = regional_points(np.random.default_rng(1), 50, 400, skew_within=0.5)
    assert ((points >= 0) & (points < 1)).all()


def by_rank(side, skew):
    """The chance of every cell of a region, cells of a ring alike: enumerated and ranked."""
    grid = np.indices(side).reshape(len(side), -1).T
    ring = np.floor(np.abs(grid - (np.array(side) - 1) / 2)).max(axis=1).astype(int)
    weight = np.arange(1, len(grid) + 1, dtype=float) ** -skew
    order = np.argsort(ring, kind="stable")
    chance = np.empty(len(grid))
    for r in np.unique(ring):
        chance[ring == r] = weight[np.isin(order, np.flatnonzero(ring == r))].mean()
    return (chance / chance.sum()).reshape(side), ring.reshape(side)


@pytest.mark.parametrize("skew", [0.0, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("side", [(5,), (4, 7), (9, 2, 6)])
def test_cells_are_hit_by_the_rank_of_their_ring(side, skew):
    """Every cell as often as its rank says, for every skew: 0 is uniform over the whole region."""
    chance, ring = by_rank(side, skew)
    shares = ring_shares(np.array([side]), skew)[0]
    assert shares == pytest.approx([chance[ring <= r].sum() for r in range(len(shares))])
    regions = draw_regions(np.random.default_rng(0), len(side), regions=1, cells=20)
    object.__setattr__(regions, "side", np.array([side]))
    object.__setattr__(regions, "start", np.array([[3] * len(side)]))
    n = 40_000
    cell = np.floor(draw_points(np.random.default_rng(7), n, regions, skew_within=skew) * 20).astype(int) - 3
    hits = np.zeros(side)
    np.add.at(hits, tuple(cell.T), 1)
    spread = np.sqrt(n * chance * (1 - chance))
    assert (np.abs(hits - n * chance) < 5 * spread + 1).all()


def test_small_regions_end_where_they_end():
    """A region of a fifth of the side of another has no heap of points at its rim."""
    regions = draw_regions(np.random.default_rng(0), 1, regions=2, cells=100)
    object.__setattr__(regions, "side", np.array([[5], [51]]))
    object.__setattr__(regions, "start", np.array([[0], [40]]))
    cell = np.floor(draw_points(np.random.default_rng(7), 50_000, regions, skew_within=0.0)[:, 0] * 100).astype(int)
    hits = np.bincount(cell, minlength=100)
    assert hits[:5].sum() == pytest.approx(25_000, rel=0.03)
    assert hits[:5].max() < 1.1 * hits[:5].min()


def test_more_values_mean_fewer_matches():
    """Figure 7 of SSTD 2015: ranges stay as wide, so the share of predicates that hold falls with the cardinality."""
    held = []
    for cardinality in (10, 100, 500):
        catalogue = located_workload(
            Located(subscriptions=2000, events=0, cardinality=cardinality)
        ).catalogue.expressions
        held.append(float((catalogue.hi - catalogue.lo + 1).mean()) / cardinality)
    assert held[0] > 0.4
    assert held[1] == pytest.approx(0.1, rel=0.1)
    assert held[2] == pytest.approx(0.02, rel=0.1)
