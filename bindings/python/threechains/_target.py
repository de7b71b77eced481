# SPDX-License-Identifier: Apache-2.0
"""A target of Numba's, beside its `cpu`: code for a process that is not this one.

Registered as an extension, so that the library functions that Numba writes in Python (sum, max, sort…) are lowered by
the same rules as the ifunc itself: nothing is optimised, linked or run here, no exception is a pickled object, and
nothing is ever allocated.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from llvmlite import binding as ll
from llvmlite import ir
from numba.core import (
    callconv, cgutils, codegen, cpu, descriptors, dispatcher, errors, fastmathpass, sigutils, typing, utils,
)
from numba.core.registry import CPUDispatcher
from numba.core.target_extension import CPU, dispatcher_registry, jit_registry, target_registry

from threechains import _types
from threechains._ifunc import Ifunc

NAME = "threechains"
# Lowered for this one. Plain code differs from other 64-bit little-endian targets' in the two lines that name it.
TRIPLE = "x86_64-unknown-linux-gnu"
# TC_FAIL_EXCEPTION, and the codes of exceptions that the other languages know as well (ifunc.h).
EXCEPTION_CODE = -6
_CODES: dict[type, int] = {IndexError: -3, ArithmeticError: -4}
_INT32, _BYTE = ir.IntType(32), ir.IntType(8)
_POINTER = _BYTE.as_pointer()


class _Library(codegen.AOTCodeLibrary):
    """Leaves optimising to the importer: what is vectorised here would never get wider at the target."""

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        pass


class _Codegen(codegen.AOTCPUCodegen):
    """Numba's, without an engine that would run what it makes."""

    _library_class = _Library

    def _init(self, llvm_module: Any) -> None:
        machine = ll.Target.from_triple(TRIPLE).create_target_machine(reloc="pic", codemodel="default")
        self._tm_features = ""
        self._tm = machine
        self._target_data = machine.target_data
        self._data_layout = str(self._target_data)
        self._loopvect = False
        self._opt_level = 0

    def _create_empty_module(self, name: str) -> ir.Module:
        module = ir.Module(cgutils.normalize_ir_text(name))
        module.triple = TRIPLE
        if self._data_layout:
            module.data_layout = self._data_layout
        return module

    def _check_llvm_bugs(self) -> None:
        pass

    def magic_tuple(self) -> tuple[str, str, str]:
        return (TRIPLE, "", "")


class _Failures(callconv.CPUCallConv):
    """Exceptions as a sentence and a code instead of a pickled object, which no target could read."""

    def _store(self, builder: ir.IRBuilder, exc: Any, exc_args: Any, loc: Any) -> None:
        code, text = _describe(exc, exc_args or (), loc)
        name = f".failure.{code}.{hashlib.sha256(text.encode()).hexdigest()[:16]}"
        module = builder.module
        record = module.globals.get(name)
        if record is None:
            words = cgutils.global_constant(module, ".failure.text", c_string(text))
            fields = [words.bitcast(_POINTER), _INT32(code), _POINTER(None), _POINTER(None), _INT32(0)]
            record = ir.GlobalVariable(module, callconv.excinfo_t, name)
            record.initializer = callconv.excinfo_t(fields)
            record.linkage = "internal"
            record.global_constant = True
        builder.store(record, self._get_excinfo_argument(builder.function))

    def set_static_user_exc(self, builder: ir.IRBuilder, exc: Any, exc_args: Any = None, loc: Any = None,
                            func_name: Any = None) -> None:
        self._store(builder, exc, exc_args, loc)

    def set_dynamic_user_exc(self, builder: ir.IRBuilder, exc: Any, exc_args: Any, nb_types: Any, loc: Any = None,
                             func_name: Any = None) -> None:
        self._store(builder, exc, tuple("…" if isinstance(arg, ir.Value) else arg for arg in exc_args), loc)


def _describe(exc: Any, exc_args: tuple[Any, ...], loc: Any) -> tuple[int, str]:
    place = f" ({os.path.basename(loc.filename)}:{loc.line})" if loc is not None and loc.filename else ""
    if exc is _types.Failure and len(exc_args) == 2 and isinstance(exc_args[0], int):
        return exc_args[0], str(exc_args[1])
    if exc is _types.Failure:
        raise errors.NumbaError("'tc.Failure' takes a number and a text that are written there", loc=loc)
    name = exc.__name__ if exc is not None else "an exception"
    words = ", ".join(str(arg) for arg in exc_args)
    code = next((code for kind, code in _CODES.items() if isinstance(exc, type) and issubclass(exc, kind)), EXCEPTION_CODE)
    return code, f"{name}: {words}{place}" if words else f"{name}{place}"


def c_string(text: str) -> ir.Constant:
    data = bytearray(text.encode() + b"\0")
    return ir.Constant(ir.ArrayType(_BYTE, len(data)), data)


class _Context(cpu.CPUContext):
    def init(self) -> None:
        self.is32bit = False
        ll.initialize_all_targets()
        ll.initialize_all_asmprinters()
        self._internal_codegen = _Codegen("threechains")
        self.aot_mode = True

    @utils.threadsafe_cached_property
    def call_conv(self) -> _Failures:
        return _Failures(self)

    def post_lowering(self, mod: Any, library: Any) -> None:
        """Without Numba's runtime library."""
        if self.fastmath:
            fastmathpass.rewrite_module(mod, self.fastmath)

    def get_executable(self, library: Any, fndesc: Any, env: Any) -> Any:
        """Something unique that stands for the function: it is never called here."""
        return functools.partial(_not_here, fndesc.qualname)


def _not_here(name: str) -> None:
    raise RuntimeError(f"{name} is compiled for a target, and cannot be called here")


class _Options(cpu.CPUTargetOptions):
    def finalize(self, flags: Any, options: dict[str, Any]) -> None:
        super().finalize(flags, options)
        flags.enable_pyobject = False
        flags.enable_looplift = False
        flags.no_cpython_wrapper = True
        flags.no_cfunc_wrapper = True
        flags.error_model = "numpy"


class _Typing(typing.Context):
    """Knows what `tc.forward` and the like mean, and takes functions decorated with @numba.njit as they are written,
    not as they are compiled for this process."""

    def __init__(self) -> None:
        super().__init__()
        # What calls of C stand for, by the function or `tc.external` that the author wrote: _calls.py.
        self.meanings: dict[Any, Any] = {}
        self.meaning_of_external: Callable[[_types.External], Any] | None = None
        self._helpers: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        self.helpers_under_way = 0
        # What is compiled here once is used by all ifuncs. `tc.forward` is something else in each of them, so that a
        # helper which calls it is compiled in contexts of its ifunc's own.
        self.shared = True
        self.helper_forwards = False  # did one ask for `tc.forward` here?

    def resolve_value_type(self, val: Any) -> Any:
        if val is _types.forward and self.shared and self.helpers_under_way:
            self.helper_forwards = True
            raise errors.TypingError("'tc.forward' in a function that other ifuncs use as well")
        if isinstance(val, _types.External):
            if val not in self.meanings and self.meaning_of_external is not None:
                self.meanings[val] = self.meaning_of_external(val)
                self.refresh()  # Numba registers what is new only then
            val = self.meanings[val]
        elif isinstance(val, (types.FunctionType, types.BuiltinFunctionType, type(np.dot))) and val in self.meanings:
            val = self.meanings[val]
        elif isinstance(val, CPUDispatcher):
            val = self._helper(val, val.py_func, val.targetoptions)
        elif isinstance(val, Ifunc) and val.__wrapped__ is not None:
            val = self._helper(val, val.__wrapped__, {})
        try:
            return super().resolve_value_type(val)
        except ValueError:  # Numba does not know it
            if not isinstance(val, types.FunctionType):
                raise
        return super().resolve_value_type(self._helper(val, val, {}))

    def _helper(self, key: Any, function: Callable[..., Any], options: Any) -> Any:
        """A function that an ifunc calls: what compiles it along with it."""
        if key not in self._helpers:
            self._helpers[key] = _jit(function, **options)
        return self._helpers[key]


class _Descriptor(descriptors.TargetDescriptor):
    options = _Options

    @utils.threadsafe_cached_property
    def typing_context(self) -> _Typing:
        return _Typing()

    @utils.threadsafe_cached_property
    def target_context(self) -> _Context:
        return _Context(self.typing_context, NAME)

    @contextlib.contextmanager
    def own_contexts(self) -> Iterator[None]:
        """Contexts for one ifunc: Numba loads all that it knows into them anew (80 ms), and keeps them. The caller has
        the compiler's lock."""
        names = ("typing_context", "target_context")
        shared = {name: self.__dict__.pop(name) for name in names}
        try:
            self.typing_context.shared = False
            yield
        finally:
            for name in names:
                self.__dict__.pop(name, None)
            self.__dict__.update(shared)


class _Target(CPU):
    """Whatever works for a CPU works here."""


class _Dispatcher(dispatcher.Dispatcher):
    """Compiles a library function of Numba's, or a @njit function, that an ifunc calls."""

    def compile(self, sig: Any) -> Any:
        arguments, result = sigutils.normalize_signature(sig)
        existing = self.overloads.get(tuple(arguments))
        if existing is None:
            context = descriptor.typing_context
            context.helpers_under_way += 1
            try:
                with self._compiling_counter:
                    existing = self._compiler.compile(arguments, result)
            finally:
                context.helpers_under_way -= 1
                if context.helper_forwards:
                    self._compiler._failed_cache.clear()  # the next ifunc must find the same, and not a remembered error
            self.overloads[tuple(arguments)] = existing
        return existing.entry_point


target_registry[NAME] = _Target
descriptor = _Descriptor(NAME)
_Dispatcher.targetdescr = descriptor
dispatcher_registry[_Target] = _Dispatcher


def _jit(*args: Any, **options: Any) -> Any:
    options.pop("target", None)
    known = ("nopython", "boundscheck", "fastmath", "inline", "no_cpython_wrapper", "error_model", "forceinline")
    options = {key: value for key, value in options.items() if key in known}
    if args:
        return _Dispatcher(args[0], targetoptions=options)
    return lambda function: _Dispatcher(function, targetoptions=options)


jit_registry[_Target] = _jit
