"""Service times from counted work: what work costs, by a profile of coefficients.

A profile is a TOML file with the coefficients of one machine, in microseconds; `coverlay calibrate` writes one. Shipped
profiles are in `broker/profiles/` and are chosen by name. From the work counted while it is processed, a message takes

    a subscription   control + Σ searches + byte × bytes sent
    an event         event + table × tables asked + entry × entries compared there
                     + query + matcher_entry × entries + matcher_node × nodes + result × results + byte × bytes sent
    a search         check + probe × probes + candidate × candidates + page × pages + round_trip × round trips

with the coefficients of the method that searched (`auto`: of the one it uses). Searching for the entries that a new one
covers (active mode), or that together may cover it (union), takes `covered` + `covered_entry` × entries held;
subtracting boxes from each other is not charged. Searches that decide nothing about a link are charged too, although
they have no row among the decisions: those of the receiver that prunes its table (both kinds), and those for covers of
advertisements. Where tables are ranked (`routing.rank`), each has a matcher of its own and takes as long as that.

`query` and what follows it, up to the nodes, is charged only where the broker's own clients are asked: not at a broker
without subscriptions of its own, and not for answers and awards (the k best of the whole network), which look at
candidates that were found before. Pages and round trips follow from probes and candidates, see covering/stats.py;
only methods that compare candidates inside key ranges have a coefficient for them. Nothing here reads a clock: the same
work takes the same time anywhere.

The formulas are plain functions of records with these names, so the compiled engine compiles the very same ones.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from coverlay import CoverlayError, Registry, quoted, unknown_name
from routing.contract import Search

PROFILES = Path(__file__).parent / "profiles"
DEFAULT = "xeon-vm-2026-11"
MILLISECOND = 1000.0  # in microseconds
MOST = 2**63 - 1  # most probes that are charged and recorded; an emulated search in many dimensions counts more


@dataclass(frozen=True)
class SearchPrice:
    """What searches by one covering method cost, in milliseconds."""

    check: float
    probe: float
    covered: float
    covered_entry: float
    candidate: float = 0.0


@dataclass(frozen=True)
class Prices:
    """What work costs in one network, in milliseconds."""

    control: float
    event: float
    byte: float
    result: float
    table: float
    entry: float
    query: float
    matcher_entry: float
    matcher_node: float
    page: float
    round_trip: float
    search: Mapping[str, SearchPrice]

    def searching(self, search: Search) -> float:
        """The time of the searches for one decision."""
        took = 0.0
        for work in search.asked:
            probes, pages, trips = (min(count, MOST) for count in (work.probes, work.pages, work.round_trips))
            took += search_time(self, self.search[work.method], probes, work.candidates, pages, trips)
        for method, entries, pages in search.held:
            took += covered_time(self, self.search[method], entries, pages)
        return took


# ── the formulas, for Python and, compiled, for records of the same names ─────────────────────────────────


def search_time(prices: Any, price: Any, probes: int, candidates: int, pages: int, trips: int) -> float:
    compared = price.probe * probes + price.candidate * candidates
    return price.check + compared + prices.page * pages + prices.round_trip * trips


def covered_time(prices: Any, price: Any, entries: int, pages: int) -> float:
    """One pass over all entries: one round trip."""
    return price.covered + price.covered_entry * entries + prices.page * pages + prices.round_trip


def control_time(prices: Any, searching: float, sent: int) -> float:
    return prices.control + searching + prices.byte * sent


def tables_time(prices: Any, asked: int, compared: int) -> float:
    return prices.table * asked + prices.entry * compared


def matching_time(prices: Any, entries: int, nodes: int) -> float:
    return prices.query + prices.matcher_entry * entries + prices.matcher_node * nodes


def ranked_tables_time(prices: Any, asked: int, entries: int, nodes: int) -> float:
    """For tables that say which of their entries match best: each has a matcher of its own."""
    return prices.query * asked + prices.matcher_entry * entries + prices.matcher_node * nodes


def event_time(prices: Any, tables: float, matching: float, results: int, sent: int) -> float:
    return prices.event + tables + matching + prices.result * results + prices.byte * sent


# ── profiles ───────────────────────────────────────────────────────────────────────────────────────────────

MESSAGE = ("control", "event", "byte", "result")
TABLES = ("table", "entry")
_STORAGE = ("page", "round_trip")
_SEARCH = ("check", "probe", "covered", "covered_entry")
_WITH_CANDIDATES = ("check", "probe", "candidate", "covered", "covered_entry")
MATCHER = ("query", "entry", "node")
_SECTIONS = {"message": MESSAGE, "tables": TABLES, "storage": _STORAGE}


@dataclass(frozen=True)
class Profile:
    """The coefficients of a machine, in microseconds, checked."""

    where: str  # the name or file it was read from
    flat: Mapping[str, float]  # of messages, tables and storage
    covering: Mapping[str, Mapping[str, float]]
    matching: Mapping[str, Mapping[str, Mapping[str, float]]]  # kind of catalogue → method

    def prices(self, methods: Iterable[str], kind: str, matcher: str) -> Prices:
        """For a network that searches by these methods and matches by this one."""
        borrowed, found = self.borrowed(methods, kind, matcher), {}
        for method in methods:
            known = borrowed.get(method, method)
            if known not in self.covering:
                raise self._lacks(f"covering method {quoted(method)}", self.covering, known)
            found[method] = SearchPrice(**{key: value / MILLISECOND for key, value in self.covering[known].items()})
        matchers = self.matching.get(kind, {})
        known = borrowed.get(matcher, matcher)
        if known not in matchers:
            raise self._lacks(f"matching.{kind} method {quoted(matcher)}", matchers, known)
        query, entry, node = (matchers[known][key] / MILLISECOND for key in MATCHER)
        flat = {key: value / MILLISECOND for key, value in self.flat.items()}
        return Prices(**flat, query=query, matcher_entry=entry, matcher_node=node, search=found)

    def borrowed(self, methods: Iterable[str], kind: str, matcher: str) -> dict[str, str]:
        """The methods that the profile lacks, and whose price they take, as their classes say (`priced_like`)."""
        import topk

        like = searches_priced_like()
        found = {method: like[method] for method in methods if method not in self.covering and like.get(method)}
        other = getattr(topk.registry(kind).get(matcher), "priced_like", None)
        if matcher not in self.matching.get(kind, {}) and other is not None:
            found[matcher] = other
        return {method: known for method, known in found.items() if known is not None}

    def _lacks(self, what: str, known: Mapping[str, Any], name: str) -> CoverlayError:
        names, said = ", ".join(sorted(known)) or "none", f"profile {quoted(self.where)} has no coefficients for {what}"
        if name in plugged():
            cure = 'A plug-in says whose it takes, as priced_like = "scan"; `coverlay calibrate --plugin FILE` measures'
        else:
            cure = "`coverlay calibrate --methods all` measures"
        return CoverlayError(f"{said}; it has: {names}. {cure} them")


def shipped_profiles() -> list[str]:
    return sorted(path.stem for path in PROFILES.glob("*.toml"))


def plugged() -> set[str]:
    """The names of searches and matchers that plug-ins registered."""
    import covering
    import topk
    from routing.strategies import STRATEGIES

    registries: list[Registry[Any]] = [covering.METHODS, STRATEGIES, *topk.REGISTRIES.values()]
    return {name for registry in registries for name in registry.written}


def search_keys() -> dict[str, tuple[str, ...]]:
    """The coefficients of searches by the names that a profile has them under; `auto` is one of them at a time."""
    import covering
    from routing.strategies import STRATEGIES

    compares = {method.name for method in covering.METHODS.values() if method.compares_candidates}
    searching = [*(m.charged_as() for m in covering.METHODS.values()), *(s.charged_as for s in STRATEGIES.values())]
    return {name: _WITH_CANDIDATES if name in compares else _SEARCH for names in searching for name in names}


def searches_priced_like() -> dict[str, str | None]:
    """What searches cost that a profile does not have: the price of another, by the names that profiles use."""
    import covering
    from routing.strategies import STRATEGIES

    of_strategies = {name: chosen.priced_like for chosen in STRATEGIES.values() for name in chosen.charged_as}
    return {**{name: method.priced_like for name, method in covering.METHODS.items()}, **of_strategies}


def is_file(profile: str) -> bool:
    """Is it the path of a file, not the name of a shipped profile?"""
    return profile.endswith(".toml") or "/" in profile


def load_profile(profile: str = DEFAULT) -> Profile:
    """A shipped profile by name, or any other by the path of its file."""
    if not is_file(profile) and profile not in shipped_profiles():
        raise unknown_name("profile", profile, [*shipped_profiles(), "a path that ends with .toml"])
    return _checked(_read(Path(profile)), profile) if is_file(profile) else _shipped(profile)


@cache
def _shipped(profile: str) -> Profile:
    """Cached: every point of a sweep asks for it, and it does not change."""
    return _checked(_read(PROFILES / f"{profile}.toml"), profile)


def _read(path: Path) -> dict[str, Any]:
    """The tables of a profile, merged over those of its base."""
    try:
        data = tomllib.loads(path.read_text())
    except OSError as error:
        raise CoverlayError(f"profile {quoted(str(path))} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CoverlayError(f"profile {quoted(str(path))} is not a TOML file: {error}") from None
    base = data.pop("base", None)
    if base is None:
        return data
    if base not in shipped_profiles() or PROFILES / f"{base}.toml" == path:
        raise unknown_name("base of a profile", base, shipped_profiles())
    return _merged(_read(PROFILES / f"{base}.toml"), data)


def _merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    result = dict(below)
    for key, value in above.items():
        both = isinstance(value, dict) and isinstance(below.get(key), dict)
        result[key] = _merged(below[key], value) if both else value
    return result


def _checked(data: dict[str, Any], where: str) -> Profile:
    import topk
    from broker.ranking import KINDS  # imports numba: only where a profile is read

    known = {*_SECTIONS, "covering", "matching", "about"}
    _refuse_others(f"profile {quoted(where)}", data, sorted(known))
    flat: dict[str, float] = {}
    for section, keys in _SECTIONS.items():
        flat.update(_coefficients(where, section, data.get(section, {}), keys))
    searches, matchers = (_table(where, section, data.get(section, {})) for section in ("covering", "matching"))
    known_searches = search_keys()
    _refuse_unknown(where, "covering method", searches, known_searches)
    _refuse_unknown(where, "kind of matching", matchers, KINDS)
    for kind in matchers:
        _refuse_unknown(
            where, f"matching.{kind} method", _table(where, f"matching.{kind}", matchers[kind]), topk.methods(kind)
        )
    of_search = {
        name: _coefficients(where, f"covering.{name}", searches[name], known_searches[name]) for name in searches
    }
    of_kind = {
        kind: {name: _coefficients(where, f"matching.{kind}.{name}", known[name], MATCHER) for name in known}
        for kind, known in matchers.items()
    }
    return Profile(where, flat, of_search, of_kind)


def _refuse_unknown(where: str, what: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Refuse a name that is in no registry."""
    for name in given:
        if name not in known:
            cure = "a plug-in's name needs the plug-in (--plugin FILE)"
            raise CoverlayError(f"profile {quoted(where)}: {unknown_name(what, name, known)}; {cure}")


def _refuse_others(place: str, given: Iterable[str], keys: Iterable[str]) -> None:
    """Refuse a key that a table does not take."""
    for key in given:
        if key not in keys:
            raise CoverlayError(f"{place} has {quoted(key)}; it takes: {', '.join(keys)}")


def _table(where: str, section: str, given: Any) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise CoverlayError(f"profile {quoted(where)}: [{section}] is {quoted(given)}; it must be a table")
    return given


def _coefficients(where: str, section: str, given: Any, keys: tuple[str, ...]) -> dict[str, float]:
    """The numbers of one section: all that it needs, nothing else, each a finite number of microseconds from 0 on."""
    _refuse_others(f"profile {quoted(where)}: [{section}]", _table(where, section, given), keys)
    for key in keys:
        if key not in given:
            raise CoverlayError(f"profile {quoted(where)}: [{section}] lacks the coefficient {key}")
        value = given[key]
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
            raise CoverlayError(
                f"profile {quoted(where)}: [{section}] {key} is {quoted(value)}; "
                "it must be a finite number of microseconds, 0 or more"
            )
    return {key: float(given[key]) for key in keys}
