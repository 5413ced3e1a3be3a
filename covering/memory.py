"""Arrays behind one array of addresses, for kernels that need dozens of them.

A kernel that takes arrays as arguments carries seven words and a reference count of each through every call, and the
compiler pays for it too: with the arrays of a run in nested tuples, the compiled engine took three minutes to compile
and spent most of its time counting references. So the arrays stand in a table, three words each (address, rows,
columns), and a kernel takes only the table's address and makes the views that it needs; a view costs three loads. (The
table itself as an array would be counted again, atomically, in every call that is not inlined: a sixth of a run.)

    memory = Memory(count)
    memory.put(POINTS, points)           # and again whenever an array is replaced: the table keeps it alive
    points_of = matrix_of(POINTS, np.float64)
    kernel(memory.address)               # in it: points = points_of(table)

A kernel that calls another one contains it, compiled and optimised once more. Where that would happen at several places
or levels, the callee is a C function (`linkable`) whose address stands in the table, and callers `call` it.
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from typing import Any

import numpy as np
from llvmlite import ir
from numba import carray, cfunc, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from coverlay import kernel

WORDS = 3  # of an entry: address, rows, columns


@intrinsic
def pointer(typingctx: Any, address: Any) -> Any:
    """A whole number as an address."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(types.voidptr))

    return types.voidptr(types.int64), codegen


@intrinsic(prefer_literal=True)
def on_stack(typingctx: Any, words: Any) -> Any:
    """Address of so many words, a constant, that are there until the function that asks returns.

    For scratch arrays of kernels that are called once per search: `carray(on_stack(8), (n,), np.int64)`. An array from
    `np.empty` costs 50 ns, and more for counting references to it.
    """
    if not isinstance(words, types.IntegerLiteral):
        return None
    count = words.literal_value

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word = ir.IntType(64)
        with builder.goto_entry_block():  # once per call, even where it stands in a loop
            room = builder.alloca(word, size=ir.Constant(word, count))
        return builder.bitcast(room, context.get_value_type(types.voidptr))

    return types.voidptr(words), codegen


@kernel(cached=False)
def words_at(table: int) -> Any:
    """The words of a table; nobody asks for its length."""
    return carray(pointer(table), (1 << 16,), np.int64)


@intrinsic
def _call(typingctx: Any, address: Any, a: Any, b: Any, c: Any, d: Any, e: Any) -> Any:
    word = types.int64

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        i64 = ir.IntType(64)
        function = ir.FunctionType(i64, [i64] * 5)
        return builder.call(builder.inttoptr(arguments[0], function.as_pointer()), arguments[1:])

    return word(word, word, word, word, word, word), codegen


@kernel
def call(table: int, place: int, a: int, b: int, c: int, d: int) -> int:
    """Call the linkable function whose address stands at a place of the table (Memory.link)."""
    return _call(words_at(table)[place], table, np.int64(a), np.int64(b), np.int64(c), np.int64(d))


class linkable:
    """Makes a function of (address of the table, four whole numbers) → whole number that kernels can `call`.

    It is compiled when its address is first asked for, not when the module is imported.
    """

    def __init__(self, function: Callable[[int, int, int, int, int], int]) -> None:
        self._function = function

    @cached_property
    def _compiled(self) -> Any:
        return cfunc("int64(int64, int64, int64, int64, int64)", cache=True, nopython=True)(self._function)

    @property
    def address(self) -> int:
        address: int = self._compiled.address
        return address


class Memory:
    """A table of arrays, C-contiguous, of one or two dimensions; `extra` words of the owner's own follow them."""

    def __init__(self, count: int, extra: int = 0) -> None:
        self.table = np.zeros(WORDS * count + extra, np.int64)
        self._kept: list[NDArray[Any] | None] = [None] * count

    def put(self, place: int, array: NDArray[Any]) -> None:
        assert array.flags.c_contiguous
        assert array.ndim in (1, 2)
        self._kept[place] = array
        columns = array.shape[1] if array.ndim == 2 else 1
        self.table[WORDS * place : WORDS * (place + 1)] = array.ctypes.data, len(array), columns

    @property
    def address(self) -> int:
        """Of the table: what a kernel takes that is called from Python, see `words_at`."""
        return int(self.table.ctypes.data)

    def link(self, place: int, function: Any) -> None:
        """Put the address of a linkable function into one of the owner's words."""
        self.table[place] = function.address

    def get(self, place: int) -> Any:
        array = self._kept[place]
        assert array is not None, f"nothing was put at {place}"
        return array


def rows_of(place: int, dtype: Any) -> Callable[[Any], Any]:
    """A function for kernels: the array at a place of a table, of one dimension."""
    at = WORDS * place

    @kernel(cached=False)
    def view(table: int) -> Any:
        words = words_at(table)
        return carray(pointer(words[at]), (words[at + 1],), dtype)

    return view


def small_pages(shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """An array of zeros for what is written once, or of which little may ever be used: the rest takes no memory.

    For large arrays numpy asks for pages of 2 MB. A virtual machine that reports free memory to its host gives back
    just these, and to get one again costs ten times as much as small pages that were never given back (3 ms per MB
    against 0.35 where this was measured): half the time of a short run.
    """
    size = math.prod(shape)
    pages = mmap.mmap(-1, max(1, size * np.dtype(dtype).itemsize), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(AttributeError, OSError):  # where there are no large pages
        pages.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(pages, dtype, size).reshape(shape)


def block_for(rows: int, layout: np.dtype[Any]) -> NDArray[np.uint8]:
    """Memory for so many rows of a record, column by column: each column begins at a multiple of eight bytes."""
    return small_pages((-(-rows // 8) * 8, layout.itemsize), np.uint8)


def column_in(block: NDArray[np.uint8], layout: np.dtype[Any], name: str, count: int) -> NDArray[Any]:
    """The first rows of a column of a block."""
    fields: Any = layout.fields
    dtype, offset, *_ = fields[name]
    start = offset * len(block)
    return block.reshape(-1)[start : start + count * dtype.itemsize].view(dtype)


def column_of(place: int, layout: np.dtype[Any], name: str) -> Callable[[Any], Any]:
    """A function for kernels: a column of the block at a place of a table."""
    at = WORDS * place
    fields: Any = layout.fields
    dtype, offset, *_ = fields[name]

    @kernel(cached=False)
    def view(table: int) -> Any:
        words = words_at(table)
        return carray(pointer(words[at] + offset * words[at + 1]), (words[at + 1],), dtype)

    return view


def matrix_of(place: int, dtype: Any) -> Callable[[Any], Any]:
    """The same, of two dimensions."""
    at = WORDS * place

    @kernel(cached=False)
    def view(table: int) -> Any:
        words = words_at(table)
        return carray(pointer(words[at]), (words[at + 1], words[at + 2]), dtype)

    return view
