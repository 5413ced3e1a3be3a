"""What matchers of all kinds offer as containers of subscriptions.

Any number of threads may ask one index at the same time: a search keeps nothing in the index but counts, of which
`stats` may lose some. Whoever changes an index needs a lock that keeps readers out.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Iterable, Iterator
from copy import deepcopy
from typing import Any, ClassVar, Self

from coverlay import CoverlayError, quoted
from topk.checks import checked_id, is_whole


class Subscriptions(ABC):
    """Stored subscriptions by id. Iteration is over ids; a copy shares nothing with its original."""

    name: ClassVar[str]
    calibrated: ClassVar[bool] = (
        False  # usual enough to be measured whenever prices are; a subclass does not inherit it
    )
    dimensions: int

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def __contains__(self, id: object) -> bool: ...

    @abstractmethod
    def ids(self) -> list[int]:
        """The ids of all subscriptions, in no particular order."""

    @abstractmethod
    def remove(self, id: int) -> None:
        """Remove one subscription; CoverlayError if it is not there."""

    def __iter__(self) -> Iterator[int]:
        return iter(self.ids())

    def __copy__(self) -> Self:
        return deepcopy(self)  # one that shares arrays with the original would change with it

    def __repr__(self) -> str:
        held = "1 subscription" if len(self) == 1 else f"{len(self):,} subscriptions"
        of = "1 attribute" if self.dimensions == 1 else f"{self.dimensions} attributes"
        return f"<matcher {self.name}: {held} of {of}{self._manner()}>"

    def _manner(self) -> str:
        """What else tells this index from others, after a comma; for `repr`."""
        return ""

    def remove_many(self, ids: Iterable[int]) -> None:
        """Remove subscriptions; on a mistake none is removed."""
        gone = [stored_id(id, self) for id in ids]
        if len(set(gone)) < len(gone):
            raise CoverlayError(f"ids {quoted(gone)} repeat; give each id once")
        for id in gone:
            self.remove(id)

    def clear(self) -> None:
        """Remove everything; `stats` goes on counting."""
        self.remove_many(self.ids())


def new_id(id: Any, index: Container[int]) -> int:
    """An id that may be added; CoverlayError if the index has it."""
    id = checked_id(id)
    if id in index:
        raise CoverlayError(f"subscription {id} is already in the index")
    return id


def stored_id(id: Any, index: Container[int]) -> int:
    """An id that the index has; CoverlayError if it does not."""
    id = checked_id(id)
    if id not in index:
        raise CoverlayError(f"subscription {id} is not in the index")
    return id


def how_many(k: int | None, most: int) -> int:
    """How many answers to return: k, or `most` if that is less or k is None."""
    if k is None:
        return most
    if not (is_whole(k) and k >= 0):
        raise CoverlayError(f"k must be 0 or more, or None for all matches, not {quoted(k)}")
    return min(int(k), most)
