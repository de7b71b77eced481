# SPDX-License-Identifier: Apache-2.0
"""Python functions as ifuncs: Numba's code generator, with another end.

Numba types and lowers the function once, as plain 64-bit code (_target.py), and a `NAME_main` is put around it that
takes the payload apart, calls it, and replies. The bitcode goes to `ifunc build` like any other front end's: it
optimises and checks it.

These are Numba's internals: pyproject.toml pins the version that this was tested with.
"""

from __future__ import annotations

import inspect
import os
import pathlib
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from llvmlite import binding as ll
from llvmlite import ir
from numba.core import cgutils, cpu, errors, types
from numba.core.compiler import Flags, compile_extra
from numba.core.compiler_lock import global_compiler_lock
from numba.core.target_extension import target_override
from numba.np import arrayobj, numpy_support

from threechains import _bundle, _columns, _data, _data_types, _target, _tool, _types
from threechains._calls import (
    BYTE, INT32, INT64, MEANINGS, POINTER, declare, external_for, forward_for, numba_type, text,
)
from threechains._errors import IfuncError, Status
from threechains._signature import Answer, Parameter, Signature, to_text
from threechains._target import EXCEPTION_CODE

# Replies larger than this are built in the ifunc's own memory instead of on the target's stack.
_STACK_BYTES = 16 * 1024

# ---- NAME_main ----------------------------------------------------------------------------------------------


class _Entry:
    """Writes `NAME_main`, which takes the payload apart, calls the function, and replies."""

    def __init__(self, context: Any, signature: Signature, compiled: Any, concurrent: bool) -> None:
        self.context, self.signature, self.compiled = context, signature, compiled
        self.concurrent = concurrent
        name = signature.name
        self.module = context.create_module(f"{name}.entry")
        fntype = ir.FunctionType(ir.VoidType(), [POINTER, INT64, POINTER])
        self.function = ir.Function(self.module, fntype, f"{name}_main")
        self.builder = ir.IRBuilder(self.function.append_basic_block("entry"))
        self.payload, self.size, _ = self.function.args
        self.end = self.size
        self.out: tuple[Any, int] | None = None

    def write(self) -> ir.Module:
        builder = self.builder
        arguments = self._arguments()
        fndesc = self.compiled.fndesc
        callee = ir.Function(self.module, self.context.call_conv.get_function_type(fndesc.restype, fndesc.argtypes),
                             fndesc.llvm_func_name)
        status, value = self.context.call_conv.call_function(builder, callee, fndesc.restype, fndesc.argtypes,
                                                             arguments)
        with builder.if_then(status.is_error, likely=False):
            record = builder.load(status.excinfoptr)
            self._fail(builder.extract_value(record, 1), builder.extract_value(record, 0))
            builder.ret_void()
        self._reply(fndesc.restype, value)
        builder.ret_void()
        return self.module

    def _fail(self, code: Any, words: Any) -> None:
        self.builder.call(declare(self.module, "tc_fail", ir.VoidType(), INT32, POINTER), [code, words])

    def _fail_if(self, condition: Any, code: int, words: str) -> None:
        with self.builder.if_then(condition, likely=False):
            self._fail(INT32(code), text(self.module, words))
            self.builder.ret_void()

    def _array(self, parameter: Parameter, data: Any, count: Any) -> Any:
        kind = numba_type(parameter)
        array = arrayobj.make_array(kind)(self.context, self.builder)
        itemsize = self.context.get_constant(types.intp, parameter.dtype.itemsize)
        pointer = self.builder.bitcast(data, array.data.type)
        arrayobj.populate_array(array, pointer, [count], [itemsize], itemsize, meminfo=None)
        return array._getvalue()

    def _arguments(self) -> list[Any]:
        builder, signature = self.builder, self.signature
        header = signature.header_bytes
        wrong = f"the payload is not what '{signature.name}' takes; the caller and this code differ"
        if header:
            self._fail_if(builder.icmp_unsigned("<", self.size, INT64(header)), EXCEPTION_CODE, wrong)
        offset: Any = INT64((header + 15) & ~15)
        values, slot = [], 0
        for parameter in signature.parameters:
            if parameter.kind == "data":
                values.append(self._data(parameter))
            elif parameter.kind == "column":
                values.append(self._column(parameter))
            elif parameter.kind == "out":
                values.append(self._out(parameter))
            elif parameter.kind == "scalar":
                values.append(self._scalar(parameter, slot))
                slot += 8
            elif not header:  # the only thing that travels: the payload itself
                count = builder.udiv(self.size, INT64(parameter.dtype.itemsize))
                values.append(self._array(parameter, self.payload, count))
            else:
                count = builder.load(builder.bitcast(builder.gep(self.payload, [INT64(slot)]), INT64.as_pointer()))
                slot += 8
                room = builder.udiv(builder.sub(self.size, offset), INT64(parameter.dtype.itemsize))
                beyond = builder.or_(builder.icmp_unsigned(">", offset, self.size),
                                     builder.icmp_unsigned(">", count, room))
                empty = builder.icmp_unsigned("==", count, INT64(0))
                self._fail_if(builder.and_(beyond, builder.not_(empty)), EXCEPTION_CODE, wrong)
                values.append(self._array(parameter, builder.gep(self.payload, [offset]), count))
                size = builder.mul(count, INT64(parameter.dtype.itemsize))
                offset = builder.and_(builder.add(builder.add(offset, size), INT64(15)), INT64(~15))
        return values

    def _scalar(self, parameter: Parameter, slot: int) -> Any:
        kind = numba_type(parameter)
        place = self.builder.gep(self.payload, [INT64(slot)])
        pointer = self.builder.bitcast(place, self.context.get_data_type(kind).as_pointer())
        return self.context.unpack_value(self.builder, kind, pointer)

    def _data(self, parameter: Parameter) -> Any:
        name = parameter.data_name
        found, size = self._find(name) if parameter.optional else self._bytes_of(name, f"this node exposes no data '{name}'")
        self._check_type(parameter)
        count = self.builder.udiv(size, INT64(parameter.dtype.itemsize))
        return self._array(parameter, found, count)

    def _check_type(self, parameter: Parameter) -> None:
        """The call fails where the node has a description of the data that does not fit."""
        builder = self.builder
        description, size = self._find(parameter.data_name + _data.SUFFIX)
        with builder.if_then(cgutils.is_not_null(builder, description)):
            is_wrong, words = _data_types.compare(self.context, builder, parameter, description, size)
            with builder.if_then(is_wrong, likely=False):
                self._fail(INT32(EXCEPTION_CODE), words)
                builder.ret_void()

    def _find(self, data_name: str) -> tuple[Any, Any]:
        """Where this named data is, and how many bytes it has. Null and 0: the node has none."""
        builder = self.builder
        size = cgutils.alloca_once(builder, INT64)
        find = declare(self.module, "tc_data", POINTER, POINTER, INT64.as_pointer())
        found = builder.call(find, [text(self.module, data_name), size])
        return found, builder.select(cgutils.is_null(builder, found), INT64(0), builder.load(size))

    def _bytes_of(self, data_name: str, missing: str) -> tuple[Any, Any]:
        """The same for data without which the call fails."""
        found, size = self._find(data_name)
        self._fail_if(cgutils.is_null(self.builder, found), EXCEPTION_CODE, missing)
        return found, size

    def _column(self, parameter: Parameter) -> Any:
        table = parameter.data_name.partition(".")[0]
        body = self._bytes_of(table, f"this node exposes no data '{table}'")
        directory = self._bytes_of(table + _columns.SUFFIX, f"this node's data '{table}' is no Arrow table")
        found, outcome = _columns.find(self.context, self.builder, parameter, body, directory)
        for code, words in _columns.REFUSALS.items():
            refused = self.builder.icmp_signed("==", outcome, INT64(code))
            self._fail_if(refused, EXCEPTION_CODE, words.format(name=parameter.data_name, type=_columns.name_of(parameter)))
        return found

    def _out(self, parameter: Parameter) -> Any:
        size = parameter.dtype.itemsize * parameter.count
        kind = ir.ArrayType(BYTE, size)
        if size <= _STACK_BYTES:
            place = cgutils.alloca_once(self.builder, kind)
            place.align = 16
        elif self.concurrent:  # calls that run at the same time would share it
            raise IfuncError(f"{self.signature.name}: an answer of {size} bytes in a tc.out parameter is built in memory "
                             "that all calls share", "tc.out", f"at most {_STACK_BYTES} bytes, or leave out concurrent=True",
                             Status.INVALID)
        else:
            place = cgutils.add_global_variable(self.module, kind, ".out")
            place.initializer, place.linkage, place.align = kind(None), "internal", 16
        data = self.builder.bitcast(place, POINTER)
        cgutils.memset(self.builder, data, INT64(size), 0)
        self.out = (data, size)
        return self._array(parameter, data, INT64(parameter.count))

    def _reply(self, restype: types.Type, value: Any) -> None:
        builder, context = self.builder, self.context
        if self.out is not None:
            data, size = self.out
        elif isinstance(restype, types.BaseTuple):
            size = 8 * len(restype)
            place = cgutils.alloca_once(builder, ir.ArrayType(INT64, len(restype)), zfill=True)
            for i, kind in enumerate(restype):
                slot = cgutils.gep_inbounds(builder, place, 0, i)
                target = builder.bitcast(slot, context.get_data_type(kind).as_pointer())
                context.pack_value(builder, kind, builder.extract_value(value, i), target)
            data = builder.bitcast(place, POINTER)
        elif isinstance(restype, types.Array):
            array = arrayobj.make_array(restype)(context, builder, value)
            data, size = builder.bitcast(array.data, POINTER), builder.mul(array.nitems, array.itemsize)
        elif restype is types.none:
            return
        else:
            kind = context.get_data_type(restype)
            place = cgutils.alloca_once(builder, kind)
            context.pack_value(builder, restype, value, place)
            data, size = builder.bitcast(place, POINTER), context.get_abi_sizeof(kind)
        size = INT64(size) if isinstance(size, int) else size
        reply = declare(self.module, "tc_reply", INT32, POINTER, INT64)
        builder.call(reply, [data, size])


_RUNTIME = pathlib.Path(__file__).with_name("_runtime.ll").read_text()


def _declared(deps: Sequence[str]) -> str:
    """Shared libraries, as a compiler's #pragma comment(lib, "m") declares them in bitcode."""
    for name in deps:
        if not re.fullmatch(r"[\w.+-]+", name):
            raise IfuncError(f"'{name}' is no library's name", name, "declare it as \"m\" or \"libm.so.6\"", Status.INVALID)
    nodes = [f'!{i} = !{{!"{name}"}}' for i, name in enumerate(deps)]
    numbers = ", ".join(f"!{i}" for i in range(len(nodes)))
    return "\n".join([f"!llvm.dependent-libraries = !{{{numbers}}}", *nodes, ""]) if nodes else ""


# What TC_CONCURRENT of <threechains/ifunc.h> defines.
_CONCURRENT = "@tc_concurrent = constant i32 1\n"


def _lower(function: Callable[..., Any], signature: Signature, flags: Flags, options: Options) -> tuple[Any, Any]:
    """The function's module, and its type of result."""
    typing_context, context = _target.descriptor.typing_context, _target.descriptor.target_context
    typing_context.meanings.update(MEANINGS)
    typing_context.meanings[_types.forward] = forward_for(signature)
    typing_context.meaning_of_external = external_for
    typing_context.refresh()
    context.refresh()
    library = context.codegen().create_library(signature.name)
    runtime = ll.parse_assembly(_RUNTIME + (_CONCURRENT if options.concurrent else "") + _declared(options.deps))
    runtime.triple = _target.TRIPLE
    library.add_llvm_module(runtime)
    arguments = tuple(numba_type(parameter) for parameter in signature.parameters)
    result = None if signature.result is None else signature.result_type(numpy_support.from_dtype, types)
    with target_override(_target.NAME):
        compiled = compile_extra(typing_context, context, function, arguments, result, flags, locals={},
                                 library=library)
    _check_result(compiled.fndesc.restype, signature)
    with target_override(_target.NAME), context.push_code_library(library):
        library.add_ir_module(_Entry(context, signature, compiled, options.concurrent).write())
    library.finalize()
    _add_mathematics(library._final_module, options)
    return library._final_module, compiled.fndesc.restype


# Functions of C's mathematics that are no instructions everywhere (_runtime.ll has those), and have no state.
_MATHEMATICS = frozenset("""
    acos acosh asin asinh atan atan2 atanh cbrt cos cosh erf erfc exp exp2 expm1 fma fmod frexp hypot ldexp log log10 log1p
    log2 logb modf nextafter pow remainder round scalbn sin sincos sinh tan tanh tgamma lgamma nearbyint fmax fmin fdim
""".split())


# Numba has names of its own for the gamma function.
_GAMMA = """
define {type} @numba_gamma{suffix}({type} %x) {{
  %y = call {type} @tgamma{suffix}({type} %x)
  ret {type} %y
}}
declare {type} @tgamma{suffix}({type})
"""


def _add_mathematics(module: Any, options: Options) -> None:
    """Declares the library m where the code needs it."""
    for suffix, kind in (("", "double"), ("f", "float")):
        if any(function.is_declaration and function.name == f"numba_gamma{suffix}" for function in module.functions):
            module.link_in(ll.parse_assembly(_GAMMA.format(suffix=suffix, type=kind)))
    if "m" not in options.deps and any(map(_is_mathematics, module.functions)):
        module.link_in(ll.parse_assembly(_declared(["m"])))


def _is_mathematics(function: Any) -> bool:
    """Does the code need the library m for that? Also for an intrinsic that becomes a call of it."""
    if not function.is_declaration:
        return False
    name = function.name
    intrinsic = re.fullmatch(r"llvm\.(acos|asin|atan|cos|cosh|exp|exp2|log|log10|log2|pow|sin|sinh|tan|tanh)\.f(?:32|64)", name)
    return intrinsic is not None or name in _MATHEMATICS or name.removesuffix("f") in _MATHEMATICS


def _bitcode_for(module: Any, triple: str, name: str) -> bytes:
    """The module as if it had been lowered for this triple. The importer refuses what another CPU does not have."""
    try:
        machine = ll.Target.from_triple(triple).create_target_machine(reloc="pic", codemodel="default")
    except RuntimeError as error:
        raise IfuncError(f"{name}: {error}", triple, "`ifunc build --target list` shows the triples that there are",
                         Status.INVALID) from None
    layout = str(machine.target_data)
    if not layout.startswith("e-") or "-p:32:32" in layout:
        raise IfuncError(f"{name}: {triple} is not 64-bit little-endian", triple, "leave it out of targets",
                         Status.UNSUPPORTED)
    module.triple = triple
    module.data_layout = layout
    return bytes(module.as_bitcode())


def _check_result(kind: types.Type, signature: Signature) -> None:
    if any(parameter.kind == "out" for parameter in signature.parameters) and kind is not types.none:
        raise IfuncError(f"{signature.name}: returns {kind} and has a tc.out parameter, which is its answer", str(kind),
                         "return nothing", Status.INVALID)
    if isinstance(kind, types.Array):
        travels = kind.ndim == 1 and kind.layout == "C"
    elif isinstance(kind, types.BaseTuple):
        travels = all(_is_number(member) and _fits_a_slot(numpy_support.as_dtype(member)) for member in kind)
    else:
        travels = kind is types.none or _is_number(kind)
    if not travels:
        raise IfuncError(f"{signature.name}: an answer of type {kind} cannot travel", str(kind),
                         "return a number, a tuple of bools, whole numbers and floats, or an array in one piece, or fill a "
                         "parameter tc.out(dtype, count)", Status.INVALID)


def _is_number(kind: types.Type) -> bool:
    return isinstance(kind, (types.Number, types.Boolean, types.NPDatetime))


def _fits_a_slot(dtype: Any) -> bool:
    return dtype.kind in "iufb" and dtype.itemsize <= 8


@dataclass(frozen=True)
class Options:
    """What `@tc.ifunc` can be given beside targets and bundled ifuncs: see there."""

    name: str | None = None
    boundscheck: bool = False
    fastmath: bool = False
    concurrent: bool = False
    extern: Sequence[str] = ()
    deps: Sequence[str] = ()


@dataclass(frozen=True)
class Emitted:
    bitcode: list[bytes]  # one for each triple
    signature: bytes  # what callers pass and get, as a bundle has it


def emit_bitcode(signature: Signature, function: Callable[..., Any], options: Options, targets: Sequence[str]) -> Emitted:
    """The function's code, before `ifunc build`."""
    flags = Flags()
    flags.no_cpython_wrapper = True
    flags.no_cfunc_wrapper = True
    flags.nrt = True
    flags.error_model = "numpy"
    flags.boundscheck = options.boundscheck
    if options.fastmath:
        flags.fastmath = cpu.FastMathOptions(True)
    module, result = _lower_or_refuse(function, signature, flags, options)
    text = to_text(signature, _answer(signature, result), inspect.getdoc(function))
    return Emitted([_bitcode_for(module, triple, signature.name) for triple in targets], text)


def compile_ifunc(function: Callable[..., Any], options: Options, targets: Sequence[str], along: Sequence[bytes],
                  scope: Mapping[str, Any]) -> bytes:
    """The bundle for all `targets`, with the function's signature. The bundles `along` travel with it. `scope` are names
    for annotations, beside the function's globals."""
    signature = Signature.of(function, options.name, scope)
    made = emit_bitcode(signature, function, options, targets)
    with tempfile.TemporaryDirectory(prefix="threechains-") as directory:
        inputs = [os.path.join(directory, f"{signature.name}.{triple}.bc") for triple in targets]
        with_along = [os.path.join(directory, f"{i}.ifunc") for i in range(len(along))]
        for path, content in zip([*inputs, *with_along], [*made.bitcode, *along]):
            pathlib.Path(path).write_bytes(content)
        choices = [word for symbol in options.extern for word in ("--extern", symbol)] + \
            [word for path in with_along for word in ("--with", path)]
        try:
            bundle = _tool.build(inputs, signature.name, choices)
        except IfuncError as error:
            raise _in_python(error, function, inputs) from None
    return _bundle.with_signature(bundle, made.signature)


# The importer's advice is for files of C.
_ADVICE = {
    "declare its library": 'a function of a library of C: @tc.ifunc(deps=["m"]); one that the target\'s application '
                           'exports: @tc.ifunc(extern=["NAME"])',
    "get the data by name": "an array that is too large to travel inside the code: expose it at the target and take it as "
                            "a parameter tc.data(name, dtype), or pass it as tc.array(dtype)",
}


def _in_python(error: IfuncError, function: Callable[..., Any], inputs: Sequence[str]) -> IfuncError:
    """The importer's words about bitcode, said of the function that it was made of."""
    words = error.message
    for path in inputs:
        words = words.replace(path, f"{function.__code__.co_filename}:{function.__code__.co_firstlineno}")
    hint = next((text for begin, text in _ADVICE.items() if error.hint.startswith(begin)), error.hint)
    return IfuncError(words.replace(error.hint, hint) if error.hint else words, error.symbol, hint, error.status)


def _answer(signature: Signature, result: types.Type) -> Answer:
    if signature.out is not None:
        return Answer("out", (signature.out.dtype,), signature.out.count)
    if isinstance(result, types.BaseTuple):
        return Answer("tuple", tuple(numpy_support.as_dtype(member) for member in result))
    if isinstance(result, types.Array):
        return Answer("array", (numpy_support.as_dtype(result.dtype),))
    return Answer("nothing") if result is types.none else Answer("number", (numpy_support.as_dtype(result),))


def _lower_where_it_may(function: Callable[..., Any], signature: Signature, flags: Flags,
                        options: Options) -> tuple[Any, Any]:
    """In the contexts that all ifuncs share, unless a helper of this one calls `tc.forward`."""
    shared = _target.descriptor.typing_context
    shared.helper_forwards = False
    try:
        lowered = _lower(function, signature, flags, options)
    except errors.NumbaError:
        if not shared.helper_forwards:
            raise
    else:
        if not shared.helper_forwards:
            return lowered
    with _target.descriptor.own_contexts():
        return _lower(function, signature, flags, options)


def _lower_or_refuse(function: Callable[..., Any], signature: Signature, flags: Flags,
                     options: Options) -> tuple[Any, Any]:
    with global_compiler_lock:
        try:
            return _lower_where_it_may(function, signature, flags, options)
        except (errors.NumbaError, errors.UnsupportedBytecodeError) as error:
            raise _refusal(function, error) from None
        except ImportError as error:  # Numba wants SciPy's BLAS, which a target does not have either
            raise IfuncError(f"{_place(function, None)}: {signature.name}: it needs a library of linear algebra ({error}), which "
                             f"a target does not have; {_LINEAR}", "numpy.linalg", _LINEAR) from None


_LINEAR = "write loops over the elements; np.dot and np.inner of two one-dimensional arrays are there"


def _place(function: Callable[..., Any], location: Any) -> str:
    if location is not None and location.filename:
        return f"{location.filename}:{location.line}"
    return f"{function.__code__.co_filename}:{function.__code__.co_firstlineno}"


# What Numba says of a name that stands for something of this process.
_OF_THIS_PROCESS = re.compile(r"Untyped \S+ (?:name )?'([^']+)'.*?Cannot determine Numba type of <class '([^']+)'>", re.S)


def _refusal(function: Callable[..., Any], error: Exception) -> IfuncError:
    words, place = str(error).strip(), _place(function, getattr(error, "loc", None))
    name = function.__name__
    if found := _OF_THIS_PROCESS.search(words):
        symbol, kind = found.groups()
        hint = _advice_about(kind)
        return IfuncError(f"{place}: {name}: '{symbol}' is of type {kind}, which a target does not have; {hint}", symbol, hint)
    if found := re.search(r"NameError: name '([^']+)' is not defined", words):
        hint = "define it before the function is decorated"
        return IfuncError(f"{place}: {name}: '{found[1]}' is not defined; {hint}", found[1], hint)
    symbol = words.split("'")[1] if words.count("'") >= 2 else ""
    return IfuncError(f"{place}: {name}: Numba cannot compile it: {words}", symbol,
                      "an ifunc works on numbers and NumPy arrays, without Python objects; pass data as arguments, "
                      "tc.array or tc.data")


def _advice_about(kind: str) -> str:
    if kind.startswith(("pandas.", "polars.", "pyarrow.")):
        return "pass its columns as arguments tc.array(dtype), or let nodes have them as tc.data(name, dtype)"
    if kind.startswith(("_io.", "io.", "pathlib.", "socket.")):
        return "read it here and pass what it holds, or let nodes have the file as tc.data(name, dtype)"
    return "work on numbers and NumPy arrays; pass what the function needs as arguments, tc.array or tc.data"
