"""What matchers over a store of expressions share, with places or without: upkeep, counters, and batches on all cores.

Kernels release the interpreter lock and each thread has its own scratch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from numpy.typing import NDArray

from coverlay import CoverlayError, unknown_name
from topk.contract import NONE_FOUND, Batch, Found, Stats, how_many, stored_id
from topk.kernels.threads import WORKERS, in_threads
from topk.options import check_type, default_of
from topk.sparse.catalogue import SparseCatalogue
from topk.sparse.rows import ExpressionStore

# Of Stats; what kernels count. Looking up an attribute in a directory and reading a weight for a bound are comparisons.
COUNTED = ("entries", "nodes", "comparisons", "queued")
ENTRIES, NODES, COMPARISONS, QUEUED = range(len(COUNTED))


class Counting(Protocol):
    """What one thread needs while it searches; `counts` are those of `COUNTED`, in that order."""

    counts: NDArray[Any]


S = TypeVar("S", bound=Counting)


class StoredIndex(Generic[S]):
    """Rows in a store, and a structure over them that subclasses keep up to date."""

    name: ClassVar[str]
    options: ClassVar[Mapping[str, str]] = {}  # option → one line of help
    scratch: Callable[[int], S]  # of the number of attributes

    def __init__(self, catalogue: SparseCatalogue) -> None:
        self.dimensions = catalogue.dimensions
        self.stats = Stats()
        self._store = ExpressionStore(catalogue)
        self._scratch = [type(self).scratch(self.dimensions)]

    def __len__(self) -> int:
        return len(self._store)

    def __contains__(self, id: object) -> bool:
        return id in self._store.row_of

    def _insert(self, row: int) -> None:
        """Take the stored row into the structure."""

    def _delete(self, row: int) -> None:
        """Take the row out; it is still stored."""

    @property
    def overhead(self) -> int:
        """Bytes beyond the expressions themselves."""
        return 0

    def check(self) -> None:
        """Verify the structure's invariants; AssertionError names the first one broken."""
        self._store.check()

    @property
    def nbytes(self) -> int:
        return self._store.nbytes + self.overhead

    def remove(self, id: int) -> None:
        """Remove one subscription; CoverlayError if it is not there."""
        id = stored_id(id, self)
        self._delete(self._store.row_of[id])
        self._store.remove(id)
        self.stats.deletes += 1

    def _count(self, k: int | None) -> int:
        return how_many(k, len(self))

    def _batch(self, count: int, answer: Callable[[int, S], Found]) -> Batch:
        """answer(i, scratch) for i up to `count`, on all cores."""
        answers = [NONE_FOUND] * count

        def part(which: int, scratch: S) -> None:
            for i in range(which, count, WORKERS):
                answers[i] = answer(i, scratch)

        self._on_all_cores(part)
        self._account(count)
        return Batch.of(answers)

    def _on_all_cores(self, part: Callable[[int, S], None]) -> None:
        """Run part(number, scratch) on a thread per core."""
        while len(self._scratch) < WORKERS:
            self._scratch.append(type(self).scratch(self.dimensions))
        in_threads(lambda which: part(which, self._scratch[which]), range(WORKERS))

    def _account(self, queries: int) -> None:
        self.stats.queries += queries
        for scratch in self._scratch:
            self.stats.add(**dict(zip(COUNTED, scratch.counts.tolist(), strict=True)))
            scratch.counts[:] = 0


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
