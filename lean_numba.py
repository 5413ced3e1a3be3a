"""What we change in numba so that kernels compile in less time. Only `coverlay.kernel` imports this module.

Two kinds of savings. numba does not repeat work: what a call means, what an inlined kernel contains, which variables
live where. And it writes less for LLVM, whose input it makes as text: an array is passed to a kernel as one value
instead of nine, an element is read in 7 instructions instead of 27. What kernels compute stays the same.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import cache, partial
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.compiler import Flags
from numba.core.datamodel.models import ArrayModel
from numba.core.imputils import impl_ret_borrowed
from numba.core.inline_closurecall import InlineWorker
from numba.core.lowering import Lower
from numba.core.postproc import PostProcessor, VariableLifetime
from numba.core.runtime.context import NRTContext
from numba.core.targetconfig import ConfigStack
from numba.core.transforms import canonicalize_cfg
from numba.core.types.functions import BaseFunction
from numba.core.typing.templates import _OverloadFunctionTemplate
from numba.extending import lower_builtin
from numba.np import arrayobj

_MEMINFO, _DATA, _SHAPE = 0, 4, 5  # fields of numba's arrays
_TUPLE: Any = types.BaseTuple  # type: ignore[attr-defined]


class KernelFlags(Flags):
    """The flags that kernels are compiled with.

    numba stores what it compiles for a kernel (`max`, `np.empty`, …) under the kernel's flags, and compares all flags
    at every lookup. These flags are equal if they ask for the same code, whoever calls it, and are quick to compare.
    """

    _who_calls = frozenset(("no_compile", "no_cpython_wrapper", "no_cfunc_wrapper", "release_gil", "enable_ssa"))

    def __init__(self, given: Any = None, no_compile: bool = False) -> None:
        super().__init__(given)
        if no_compile:
            self.no_compile = self.no_cpython_wrapper = self.no_cfunc_wrapper = True

    def __hash__(self) -> int:
        return 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KernelFlags) and self._code() == other._code()

    def _code(self) -> dict[str, Any]:
        return {name: value for name, value in self._values.items() if name not in self._who_calls}


def only_for_kernels(compiled: Any) -> Any:
    """Make no machine code: the callers contain the kernel and optimise it. A call from Python is an error."""
    compiled._compiler._customize_flags = partial(KernelFlags, no_compile=True)

    def add_overload(result: Any) -> None:
        library, entry_point = result.library, object()  # an entry point only has to be unique
        library._optimize_final_module = lambda: None
        library._finalize_final_module = lambda: setattr(library, "_finalized", True)
        compiled.targetctx.insert_user_function(entry_point, result.fndesc, [library])
        compiled.overloads[tuple(result.signature.args)] = result._replace(entry_point=entry_point)

    def refuse(*_: Any, **__: Any) -> Any:
        raise TypeError(f"{compiled.__name__} is an inner kernel: only kernels can call it")

    compiled.add_overload, compiled._compile_for_args = add_overload, refuse
    return compiled


def _of_a_kernel() -> bool:
    """Whether numba compiles a kernel of ours now: other code has other flags."""
    return isinstance(ConfigStack.top_or_none(), KernelFlags)


def _remember_calls() -> None:
    """Let numba remember what a call of one of its own functions means in a kernel.

    Where a kernel adds two numbers, numba tries its definitions of `+` one after the other, at every place and in every
    pass. Nearly all calls recur with the same types; looking them up again took about a sixth of the compile time.
    """
    functions: Any = BaseFunction
    look_up, known = functions.get_call_type, dict[Any, Any]()

    def get_call_type(function: Any, context: Any, args: Any, kws: Any) -> Any:
        if not _of_a_kernel():
            return look_up(function, context, args, kws)
        call = function, args, tuple(kws.items()), ConfigStack.top_or_none()
        found = known.get(call)
        if found is None:
            found = known[call] = look_up(function, context, args, kws)
        return found

    functions.get_call_type = get_call_type


def _remember_inlined() -> None:
    """Let numba analyse an inlined kernel, with all that it inlines, once; it copies the result before changing it."""
    worker: Any = InlineWorker
    analyse, known = worker.run_untyped_passes, dict[Any, Any]()

    def run_untyped_passes(self: Any, function: Any, enable_ssa: bool = False) -> Any:
        if enable_ssa or not isinstance(self.flags, KernelFlags):
            return analyse(self, function, enable_ssa)
        found = known.get((function, self.flags))
        if found is None:
            found = known[function, self.flags] = analyse(self, function)
        return found

    worker.run_untyped_passes = run_untyped_passes


def _build_in_overloads() -> None:
    """Treat what numba has as Python code (`np.empty`, `max`) as inner: nobody calls machine code of its own."""
    template: Any = _OverloadFunctionTemplate
    decorator_for = template._get_jit_decorator

    def get_jit_decorator(self: Any) -> Any:
        jit = decorator_for(self)
        if not _of_a_kernel():
            return jit
        return lambda **options: lambda function: only_for_kernels(jit(**options)(function))

    template._get_jit_decorator = get_jit_decorator


def _know_arrays() -> None:
    """Tell numba how to convert an array to an array; it would search all its modules wherever it meets one."""
    lower_builtin("__array__", types.Array)(lambda context, builder, signature, args: args[0])


def _forget_lifetimes() -> None:
    """Do not compute after every pass which variables live in which block: only generators and object mode ask."""
    processor: Any = PostProcessor
    with_lifetimes = processor.run

    def run(self: Any, emit_dels: bool = False, extend_lifetimes: bool = False) -> None:
        code = self.func_ir
        if code.is_generator or not _of_a_kernel():
            return with_lifetimes(self, emit_dels, extend_lifetimes)
        code.blocks = canonicalize_cfg(code.blocks)
        code.variable_lifetime, code.generator_info = VariableLifetime(code.blocks), None
        if emit_dels:
            self._insert_var_dels(extend_lifetimes)

    processor.run = run


def _pass_arrays_whole() -> None:
    """Pass an array as one value of LLVM's, not taken apart by the caller and put together by what it calls.

    This is how compiled functions call each other, so it holds for all that numba compiles in this process.
    """
    model: Any = ArrayModel
    model.get_argument_type = model.get_value_type
    model.as_argument = model.from_argument = lambda self, builder, value: value


def _count_few_references() -> None:
    """Find the one reference count of an array without taking out its other fields, and none in plain values."""
    counts: Any = NRTContext
    lower: Any = Lower
    all_of, delete = counts.get_meminfos, lower.delvar

    @cache
    def counted(context: Any, kind: Any) -> bool:
        return bool(context.data_model_manager[kind].contains_nrt_meminfo())

    def get_meminfos(self: Any, builder: Any, kind: Any, value: Any) -> Any:
        if not counted(self._context, kind):
            return []
        if isinstance(kind, types.Array):
            return [(kind, builder.extract_value(value, _MEMINFO))]
        return all_of(self, builder, kind, value)

    def delvar(self: Any, name: str) -> None:
        if counted(self.context, self.typeof(name)):
            delete(self, name)
        elif name not in self._blk_local_varmap:
            self._singly_assigned_vars.discard(name)  # as numba does: it is also assigned in another block

    counts.get_meminfos, lower.delvar = get_meminfos, delvar


def _reach_elements_directly() -> None:
    """Compute an element's address from the array's value; numba copies the array to the stack at every access.

    Only for whole elements of C-contiguous arrays. numba does the rest, and all if accesses are to be checked.
    """

    def getitem(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind, index = signature.args
        address = _element(context, builder, kind, args[0], index, args[1])
        if address is None:
            of_tuple = isinstance(index, _TUPLE)
            numbas = arrayobj.getitem_array_tuple if of_tuple else arrayobj.getitem_arraynd_intp
            return numbas(context, builder, signature, args)
        value = arrayobj.load_item(context, builder, kind, address)
        return impl_ret_borrowed(context, builder, signature.return_type, value)

    def setitem(context: Any, builder: Any, signature: Any, args: Any) -> None:
        kind, index, given = signature.args
        address = _element(context, builder, kind, args[0], index, args[1])
        if address is None:
            return arrayobj.setitem_array(context, builder, signature, args)
        arrayobj.store_item(context, builder, kind, context.cast(builder, args[2], given, kind.dtype), address)

    for index in (types.Integer, _TUPLE):
        lower_builtin(operator.getitem, types.Array, index)(getitem)
        lower_builtin(operator.setitem, types.Array, index, types.Any)(setitem)


def _element(context: Any, builder: ir.IRBuilder, kind: Any, array: Any, index: Any, value: Any) -> Any:
    """The address of the element at an index (an integer or a tuple of them); None if that is not for us."""
    kinds: Sequence[Any] = index.types if isinstance(index, _TUPLE) else (index,)
    if kind.layout != "C" or context.enable_boundscheck or len(kinds) != kind.ndim or not kinds:
        return None
    if not all(isinstance(one, types.Integer) for one in kinds):
        return None
    place = None
    for axis, one in enumerate(kinds):
        at = builder.extract_value(value, axis) if isinstance(index, _TUPLE) else value
        at = context.cast(builder, at, one, types.intp if one.signed else types.uintp)
        length = builder.extract_value(array, [_SHAPE, axis])
        if one.signed:  # −1 is the last one
            at = builder.select(builder.icmp_signed("<", at, at.type(0)), builder.add(at, length), at)
        place = at if place is None else builder.add(builder.mul(place, length), at)
    return builder.gep(builder.extract_value(array, _DATA), [place])


_remember_calls()
_remember_inlined()
_build_in_overloads()
_know_arrays()
_forget_lifetimes()
_pass_arrays_whole()
_count_few_references()
_reach_elements_directly()
