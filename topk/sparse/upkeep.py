"""What matchers over a store of expressions share, with places or without: upkeep, counters, and batches on all cores.

Kernels release the interpreter lock, and every search has a scratch to itself: `_begin` takes one from a pool or makes
one, `_end` gives it back. What a search finds to be done for the searches after it (`_before_search`, `_maintain`) is
done behind a gate at which searches begin and end, and what changes the structure waits until nobody else searches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from numpy.typing import NDArray

from coverlay import CoverlayError, unknown_name
from topk.answers import NONE_FOUND, Batch, Found, Match, Stats, pairs
from topk.container import Subscriptions, how_many, stored_id
from topk.kernels.threads import WORKERS, in_threads
from topk.options import check_type, default_of
from topk.predicates import SparseCatalogue
from topk.sparse.rows import ExpressionStore

# Of Stats; what kernels count. Looking up an attribute in a directory and reading a weight for a bound are comparisons.
COUNTED = ("entries", "nodes", "comparisons", "queued")
ENTRIES, NODES, COMPARISONS, QUEUED = range(len(COUNTED))

_OF_SEARCHES = ("_gate", "_searching", "_over", "_spare")  # attributes that a copy has anew


class Counting(Protocol):
    """What one thread needs while it searches; `counts` are those of `COUNTED`, in that order."""

    counts: NDArray[Any]
    first: bool  # whether it has the first share of a batch; a structure that learns does so from this share


S = TypeVar("S", bound=Counting)


class StoredIndex(Subscriptions, Generic[S]):
    """Rows in a store, and a structure over them that subclasses keep up to date."""

    options: ClassVar[Mapping[str, str]] = {}  # option → one line of help
    priced_like: ClassVar[str | None] = None  # what it costs where a profile does not say it
    scratch: Callable[[int], S]  # of the number of attributes

    def __init__(self, catalogue: SparseCatalogue) -> None:
        self.dimensions = catalogue.dimensions
        self.stats = Stats()
        self.store = ExpressionStore(catalogue)
        self._nobody_searches()

    def _nobody_searches(self) -> None:
        self._gate = Lock()
        self._searching = 0  # calls that have begun and not ended
        self._over = 0  # queries since `_maintain`
        self._spare: list[S] = []

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in _OF_SEARCHES}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._nobody_searches()

    def __len__(self) -> int:
        return len(self.store)

    def __contains__(self, id: object) -> bool:
        return id in self.store.row_of

    def ids(self) -> list[int]:
        return list(self.store.row_of)

    def insert(self, row: int) -> None:
        """Take the stored row into the structure."""

    def delete(self, row: int) -> None:
        """Take the row out; it is still stored."""

    @property
    def overhead(self) -> int:
        """Bytes beyond the expressions themselves."""
        return 0

    def check(self) -> None:
        """Verify the structure's invariants; AssertionError names the first one broken."""
        self.store.check()

    @property
    def nbytes(self) -> int:
        return self.store.nbytes + self.overhead

    def remove(self, id: int) -> None:
        id = stored_id(id, self)
        self.delete(self.store.row_of[id])
        self.store.remove(id)
        self.stats.deletes += 1

    def _count(self, k: int | None) -> int:
        return how_many(k, len(self))

    # ---- searches ---------------------------------------------------------------------------------------

    def _before_search(self) -> None:
        """Finish postponed work; others may be searching, and may go on with what was before."""
        self.store.refresh()

    def _maintain(self, queries: int) -> None:
        """These queries are over and nobody searches: whatever the structure wants to change, it may."""

    def _begin(self, scratches: int = 1) -> list[S]:
        """A scratch for each thread of a search that begins."""
        with self._gate:
            self._before_search()
            self._searching += 1
            taken = [self._spare.pop() for _ in range(min(scratches, len(self._spare)))]
        return taken + [type(self).scratch(self.dimensions) for _ in range(scratches - len(taken))]

    def _end(self, queries: int, scratches: list[S]) -> None:
        """A search is over; a scratch of one that failed is not given back, because it may not be clean."""
        with self._gate:
            self.stats.queries += queries
            for scratch in scratches:
                self.stats.add(**dict(zip(COUNTED, scratch.counts.tolist(), strict=True)))
                scratch.counts[:] = 0
            self._spare += scratches
            self._searching -= 1
            self._over += queries
            if not self._searching:
                self._maintain(self._over)
                self._over = 0

    def _one(self, answer: Callable[[S], Found]) -> list[Match]:
        """The answer that a scratch gives."""
        used = self._begin()
        done: list[S] = []
        try:
            used[0].first = True
            found = answer(used[0])
            done = used
        finally:
            self._end(len(done), done)
        return pairs(found)

    def _batch(self, count: int, answer: Callable[[int, S], Found]) -> Batch:
        """answer(i, scratch) for i up to `count`, on all cores."""
        answers = [NONE_FOUND] * count

        def part(which: int, scratch: S) -> None:
            for i in range(which, count, WORKERS):
                answers[i] = answer(i, scratch)

        self._on_all_cores(count, part)
        return Batch.of(answers)

    def _on_all_cores(self, queries: int, part: Callable[[int, S], None]) -> None:
        """Run part(number, scratch) on a thread per core."""
        used = self._begin(WORKERS)
        done: list[S] = []
        try:
            for which, scratch in enumerate(used):
                scratch.first = which == 0
            in_threads(lambda which: part(which, used[which]), range(WORKERS))
            done = used
        finally:
            self._end(queries, done)


Made = TypeVar("Made")


def create(methods: Mapping[str, type[Made]], what: str, name: str, catalogue: Any, options: Mapping[str, Any]) -> Made:
    """Build the matcher `name` of a registry; CoverlayError lists the valid names and options."""
    if name not in methods:
        raise unknown_name(f"{what} matching method", name, methods)
    cls: Any = methods[name]
    for option, value in options.items():
        if option not in cls.options:
            raise CoverlayError(f"{name} has no option {option!r}; it has: {', '.join(sorted(cls.options))}")
        check_type(option, value, default_of(option, (cls,)))
    made: Made = cls(catalogue, **options)
    return made
