"""What we set on the dispatchers of our own kernels, by names that numba's documentation does not show.

No other module uses such names. Only `coverlay.kernel` imports this one, for the versions of numba that
`make test-versions` tests; for others kernels are plain `njit`. Nothing here changes numba or functions of others.
"""

from __future__ import annotations

import pickle
from typing import Any

from numba.core.compiler import CompileResult
from numba.core.serialize import dumps  # pickles what the standard library cannot, for example types of functions

from compiled_code import CompiledCode


def keep(dispatcher: Any) -> None:
    """Keep compiled code in files of ours; documented is only numba's own cache, which does not see called kernels."""
    dispatcher._cache = _Cache(dispatcher.py_func)


class _Cache:
    """What a dispatcher calls of its `_cache`."""

    def __init__(self, function: Any) -> None:
        self._code = CompiledCode(function)
        self.cache_path = None
        self.enable = self.disable = self.flush = lambda: None

    def load_overload(self, signature: Any, target: Any) -> Any:
        target.refresh()  # as numba's own cache does: the code may need what was registered since
        processor = target.codegen().magic_tuple()
        return self._code.load(signature, processor, lambda kept: CompileResult._rebuild(target, *pickle.loads(kept)))

    def save_overload(self, signature: Any, compiled: Any) -> None:
        if not compiled.library.has_dynamic_globals:  # which are addresses in this process
            self._code.save(signature, compiled.codegen.magic_tuple(), dumps(compiled._reduce()))


def only_for_kernels(dispatcher: Any) -> None:
    """Make no machine code: callers contain the kernel's code and optimise it. A call from Python is an error."""

    def flags_for(flags: Any) -> Any:
        flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
        return flags

    def add_overload(result: Any) -> None:
        library, entry_point = result.library, object()  # callers find it by the entry point, which has to be unique
        library._optimize_final_module = lambda: None
        library._finalize_final_module = lambda: setattr(library, "_finalized", True)
        dispatcher.targetctx.insert_user_function(entry_point, result.fndesc, [library])
        dispatcher.overloads[tuple(result.signature.args)] = result._replace(entry_point=entry_point)

    def refuse(*_: Any, **__: Any) -> Any:
        raise TypeError(f"{dispatcher.__name__} is an inner kernel: only kernels can call it")

    dispatcher._compiler._customize_flags = flags_for
    dispatcher.add_overload, dispatcher._compile_for_args = add_overload, refuse
