"""Structures for kernels: one word to pass on, with fields that kernels can replace.

numba's own structures (StructRef) count references atomically whenever a kernel reads an array from one or passes one
on, which took half of the time of a run with millions of event messages. Ours belong to Python: it makes them, and they
live as long as its object. Kernels borrow the structures and their arrays without counting.

Hence two rules. Use an array from a structure only while the structure holds it. To return one to Python, or to put it
into another structure, read it with `kept`.
"""

from __future__ import annotations

import hashlib
from typing import Any

from numba import typeof, types
from numba.core import cgutils
from numba.core.datamodel import models
from numba.core.imputils import impl_ret_borrowed
from numba.core.typing.templates import AttributeTemplate
from numba.experimental.jitclass.base import imp_dtor
from numba.extending import (
    NativeValue,
    infer_getattr,
    intrinsic,
    lower_getattr_generic,
    lower_setattr_generic,
    register_model,
    unbox,
)

from coverlay import kernel

_MEMORY = types.MemInfoPointer(types.voidptr)


class StructureType(types.StructRef):
    """Named by a digest; otherwise the types of fifty arrays would be part of every symbol of the compiled code."""

    def __init__(self, called: str, fields: Any) -> None:
        super().__init__(fields)
        self.name = f"{called}-{hashlib.sha256(repr(self._fields).encode()).hexdigest()[:16]}"
        self._inside = super().get_data_type()

    def get_data_type(self) -> Any:
        """The type at the address. numba would make it, and write out its name, at every access of a field."""
        return self._inside


register_model(StructureType)(models.OpaqueModel)  # an address without a reference count


@infer_getattr
class _Fields(AttributeTemplate):
    key = StructureType

    def generic_resolve(self, kind: Any, field: str) -> Any:
        return kind.field_dict.get(field)


@lower_getattr_generic(StructureType)
def _get(context: Any, builder: Any, kind: Any, of: Any, field: str) -> Any:
    value = getattr(_inside(context, builder, kind, of), field)
    return _borrowed(context, builder, kind.field_dict[field], value)


@lower_setattr_generic(StructureType)
def _set(context: Any, builder: Any, signature: Any, args: Any, field: str) -> None:
    kind, given = signature.args
    _put(context, builder, _inside(context, builder, kind, args[0]), field, args[1], given, kind.field_dict[field])


def _put(context: Any, builder: Any, inside: Any, field: str, value: Any, given: Any, wanted: Any) -> None:
    new, old = context.cast(builder, value, given, wanted), getattr(inside, field)
    context.nrt.incref(builder, wanted, new)
    context.nrt.decref(builder, wanted, old)  # after `incref`: it may be the same array
    setattr(inside, field, new)


@intrinsic
def put_fields(_: Any, of: Any, given: Any) -> Any:
    """For kernels: set every field of a structure to the field of the same name of a named tuple."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        inside = _inside(context, builder, of, args[0])
        for field, wanted in of.field_dict.items():
            at = given.fields.index(field)
            _put(context, builder, inside, field, builder.extract_value(args[1], at), given[at], wanted)
        return context.get_dummy_value()

    return types.void(of, given), code


@unbox(StructureType)
def _unbox(_: Any, given: Any, c: Any) -> Any:
    number = c.pyapi.object_getattr_string(given, "address")
    address = c.pyapi.long_as_voidptr(number)
    c.pyapi.decref(number)
    return NativeValue(address)


def _inside(context: Any, builder: Any, kind: Any, of: Any) -> Any:
    """The fields at an address, for numba's code to read and write."""
    fields = kind.get_data_type()
    address = builder.bitcast(of, context.data_model_manager[fields].get_value_type().as_pointer())
    return cgutils.create_struct_proxy(fields)(context, builder, ref=address)


def _borrowed(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """An array, or each array of a tuple, without the address of its counter."""
    if isinstance(kind, types.Array):
        model = context.data_model_manager[kind]
        for counter in ("meminfo", "parent"):
            at = model.get_field_position(counter)
            value = builder.insert_value(value, cgutils.get_null_value(value.type.elements[at]), at)
        return value
    if isinstance(kind, types.BaseTuple):
        for at, part in enumerate(kind.types):
            mine = _borrowed(context, builder, part, builder.extract_value(value, at))
            value = builder.insert_value(value, mine, at)
        return value
    return impl_ret_borrowed(context, builder, kind, value)


@intrinsic
def kept(_: Any, of: Any, field: Any) -> Any:
    """For kernels: a field's value, which stays valid after the field is replaced; `field` is a constant."""
    if not isinstance(field, types.StringLiteral):  # numba tries without constants first
        return None
    name = field.literal_value

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        value = getattr(_inside(context, builder, of, args[0]), name)
        return impl_ret_borrowed(context, builder, signature.return_type, value)

    return of.field_dict[name](of, field), code


@intrinsic
def _memory_for(_: Any, kind: Any) -> Any:
    """New memory for a structure, all zeros; numba frees the arrays in it when Python releases it."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        made = kind.instance_type
        inside = context.data_model_manager[made.get_data_type()].get_value_type()
        size = context.get_constant(types.uintp, context.get_abi_sizeof(inside))
        memory = context.nrt.meminfo_alloc_dtor(builder, size, imp_dtor(context, builder.module, made))
        data = builder.bitcast(context.nrt.meminfo_data(builder, memory), inside.as_pointer())
        builder.store(cgutils.get_null_value(inside), data)
        return memory

    return _MEMORY(kind), code


@intrinsic
def _at(_: Any, kind: Any, address: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[1], cgutils.voidptr_t)

    return kind.instance_type(kind, address), code


class Structure:
    """A structure that Python holds and passes to kernels. `address` is for kernels, see `structure`."""

    _numba_type_: Any
    _new_memory: Any

    def __init__(self) -> None:
        self._memory = type(self)._new_memory()
        self.address: int = self._memory.data


def structure(name: str, **examples: Any) -> tuple[Any, Any]:
    """Define a structure; each field is given by an example value, a numba type or another structure's class.

    Returns a class, whose instances begin with all fields zero, and a function for kernels that returns the structure
    at an address: a network has thousands of tables.
    """

    def type_of(example: Any) -> Any:
        if isinstance(example, types.Type):
            return example
        return getattr(example, "_numba_type_", None) or typeof(example)

    made = StructureType(name, [(field, type_of(example)) for field, example in examples.items()])
    new_memory = kernel(lambda: _memory_for(made))
    seen = type(name, (Structure,), {"_numba_type_": made, "_new_memory": staticmethod(new_memory)})
    return seen, kernel(inner=True, inline="always")(lambda address: _at(made, address))
