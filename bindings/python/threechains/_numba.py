# SPDX-License-Identifier: Apache-2.0
"""Python functions as ifuncs: Numba's code generator, with another end.

Numba types and lowers the function once, as plain 64-bit code (_target.py), and a `NAME_main` is put around it that
takes the payload apart, calls it, and replies. The bitcode goes to `ifunc build` like any other front end's: it
optimises and checks it.

These are Numba's internals: pyproject.toml pins the version that this was tested with.
"""

from __future__ import annotations

import inspect
import pathlib
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from llvmlite import binding as ll
from llvmlite import ir
from numba.core import cgutils, cpu, errors, types
from numba.core.compiler import Flags, compile_extra
from numba.core.compiler_lock import global_compiler_lock
from numba.core.target_extension import target_override
from numba.extending import intrinsic, overload
from numba.np import arrayobj, numpy_support

from threechains import _target, _types
from threechains._errors import IfuncError, Status
from threechains._ifunc import DEFAULT_TARGETS, Ifunc, _build
from threechains._signature import Parameter, Signature
from threechains._target import c_string

# Replies larger than this are built in the ifunc's own memory instead of on the target's stack.
_STACK_BYTES = 16 * 1024
_PAYLOAD_CODE = -2
_NO_DATA_CODE = -3
_INT32, _INT64, _BYTE = ir.IntType(32), ir.IntType(64), ir.IntType(8)
_POINTER = _BYTE.as_pointer()

def _numba_type(parameter: Parameter) -> types.Type:
    scalar = numpy_support.from_dtype(parameter.dtype)
    return scalar if parameter.kind == "scalar" else types.Array(scalar, 1, "C")


# ---- NAME_main ----------------------------------------------------------------------------------------------


class _Entry:
    """Writes `NAME_main`, which takes the payload apart, calls the function, and replies."""

    def __init__(self, context: Any, signature: Signature, compiled: Any, name: str) -> None:
        self.context, self.signature, self.compiled = context, signature, compiled
        self.module = context.create_module(f"{name}.entry")
        fntype = ir.FunctionType(ir.VoidType(), [_POINTER, _INT64, _POINTER])
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

    def _external(self, symbol: str, result: ir.Type, *arguments: ir.Type) -> ir.Function:
        return cgutils.get_or_insert_function(self.module, ir.FunctionType(result, arguments), symbol)

    def _text(self, text: str) -> Any:
        return cgutils.global_constant(self.module, ".text", c_string(text)).bitcast(_POINTER)

    def _fail(self, code: Any, words: Any) -> None:
        self.builder.call(self._external("tc_fail", ir.VoidType(), _INT32, _POINTER), [code, words])

    def _fail_if(self, condition: Any, code: int, words: str) -> None:
        with self.builder.if_then(condition, likely=False):
            self._fail(_INT32(code), self._text(words))
            self.builder.ret_void()

    def _array(self, parameter: Parameter, data: Any, count: Any) -> Any:
        kind = _numba_type(parameter)
        array = arrayobj.make_array(kind)(self.context, self.builder)
        itemsize = self.context.get_constant(types.intp, parameter.dtype.itemsize)
        pointer = self.builder.bitcast(data, array.data.type)
        arrayobj.populate_array(array, pointer, [count], [itemsize], itemsize, meminfo=None)
        return array._getvalue()

    def _arguments(self) -> list:
        builder, signature = self.builder, self.signature
        header = signature.header_bytes
        wrong = f"the payload is not what '{signature.name}' takes; the caller and this code differ"
        if header:
            self._fail_if(builder.icmp_unsigned("<", self.size, _INT64(header)), _PAYLOAD_CODE, wrong)
        offset: Any = _INT64((header + 15) & ~15)
        values, slot = [], 0
        for parameter in signature.parameters:
            if parameter.kind == "data":
                values.append(self._data(parameter))
            elif parameter.kind == "out":
                values.append(self._out(parameter))
            elif parameter.kind == "scalar":
                values.append(self._scalar(parameter, slot))
                slot += 8
            elif not header:  # the only thing that travels: the payload itself
                count = builder.udiv(self.size, _INT64(parameter.dtype.itemsize))
                values.append(self._array(parameter, self.payload, count))
            else:
                count = builder.load(builder.bitcast(builder.gep(self.payload, [_INT64(slot)]), _INT64.as_pointer()))
                slot += 8
                room = builder.udiv(builder.sub(self.size, offset), _INT64(parameter.dtype.itemsize))
                beyond = builder.or_(builder.icmp_unsigned(">", offset, self.size),
                                     builder.icmp_unsigned(">", count, room))
                empty = builder.icmp_unsigned("==", count, _INT64(0))
                self._fail_if(builder.and_(beyond, builder.not_(empty)), _PAYLOAD_CODE, wrong)
                values.append(self._array(parameter, builder.gep(self.payload, [offset]), count))
                size = builder.mul(count, _INT64(parameter.dtype.itemsize))
                offset = builder.and_(builder.add(builder.add(offset, size), _INT64(15)), _INT64(~15))
        return values

    def _scalar(self, parameter: Parameter, slot: int) -> Any:
        kind = _numba_type(parameter)
        place = self.builder.gep(self.payload, [_INT64(slot)])
        pointer = self.builder.bitcast(place, self.context.get_data_type(kind).as_pointer())
        return self.context.unpack_value(self.builder, kind, pointer)

    def _data(self, parameter: Parameter) -> Any:
        builder = self.builder
        size = cgutils.alloca_once(builder, _INT64)
        find = self._external("tc_data", _POINTER, _POINTER, _INT64.as_pointer())
        found = builder.call(find, [self._text(parameter.data_name), size])
        self._fail_if(cgutils.is_null(builder, found), _NO_DATA_CODE,
                      f"this node exposes no data '{parameter.data_name}'")
        count = builder.udiv(builder.load(size), _INT64(parameter.dtype.itemsize))
        return self._array(parameter, found, count)

    def _out(self, parameter: Parameter) -> Any:
        size = parameter.dtype.itemsize * parameter.count
        kind = ir.ArrayType(_BYTE, size)
        if size <= _STACK_BYTES:
            place = cgutils.alloca_once(self.builder, kind)
            place.align = 16
        else:
            place = cgutils.add_global_variable(self.module, kind, ".out")
            place.initializer, place.linkage, place.align = kind(None), "internal", 16
        data = self.builder.bitcast(place, _POINTER)
        cgutils.memset(self.builder, data, _INT64(size), 0)
        self.out = (data, size)
        return self._array(parameter, data, _INT64(parameter.count))

    def _reply(self, restype: types.Type, value: Any) -> None:
        builder, context = self.builder, self.context
        if self.out is not None:
            data, size = self.out
        elif isinstance(restype, types.BaseTuple):
            size = 8 * len(restype)
            place = cgutils.alloca_once(builder, ir.ArrayType(_INT64, len(restype)), zfill=True)
            for i, kind in enumerate(restype):
                slot = cgutils.gep_inbounds(builder, place, 0, i)
                target = builder.bitcast(slot, context.get_data_type(kind).as_pointer())
                context.pack_value(builder, kind, builder.extract_value(value, i), target)
            data = builder.bitcast(place, _POINTER)
        elif restype is types.none:
            return
        else:
            kind = context.get_data_type(restype)
            place = cgutils.alloca_once(builder, kind)
            context.pack_value(builder, restype, value, place)
            data, size = builder.bitcast(place, _POINTER), context.get_abi_sizeof(kind)
        reply = self._external("tc_reply", _INT32, _POINTER, _INT64)
        builder.call(reply, [data, _INT64(size)])


_RUNTIME = pathlib.Path(__file__).with_name("_runtime.ll").read_text()


def _forward_for(signature: Signature) -> Any:
    """`tc.forward` for this ifunc: packs arguments as callers do, and calls tc_forward."""
    travelling = signature.travelling
    kinds = [_numba_type(parameter) for parameter in travelling]
    one_array = len(kinds) == 1 and travelling[0].kind == "array"

    @intrinsic
    def forward(typingctx, node, *arguments):
        given = arguments[0] if len(arguments) == 1 and isinstance(arguments[0], types.BaseTuple) else arguments
        numbers = all(isinstance(kind, (types.Number, types.Boolean)) for kind in given)
        fits = len(given) == len(kinds) and (one_array or numbers)
        if any(isinstance(kind, types.Array) for kind in kinds) and (not one_array or given[0] != kinds[0]):
            fits = False
        if not fits:
            names = ", ".join(parameter.name for parameter in travelling)
            raise errors.TypingError(f"'tc.forward' of {signature.name} takes (node, {names}), numbers or one array")

        def write(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> Any:
            values = cgutils.unpack_tuple(builder, args[1], len(kinds))
            if one_array:
                array = arrayobj.make_array(kinds[0])(context, builder, values[0])
                data = builder.bitcast(array.data, _POINTER)
                size = builder.mul(array.nitems, _INT64(travelling[0].dtype.itemsize))
            else:
                place = cgutils.alloca_once(builder, ir.ArrayType(_INT64, max(len(kinds), 1)), zfill=True)
                for i, (value, had, kind) in enumerate(zip(values, given, kinds)):
                    slot = cgutils.gep_inbounds(builder, place, 0, i)
                    target = builder.bitcast(slot, context.get_data_type(kind).as_pointer())
                    context.pack_value(builder, kind, context.cast(builder, value, had, kind), target)
                data, size = builder.bitcast(place, _POINTER), _INT64(8 * len(kinds))
            fntype = ir.FunctionType(_INT32, [_INT32, _POINTER, _INT64])
            send = cgutils.get_or_insert_function(builder.module, fntype, "tc_forward")
            number = context.cast(builder, args[0], sig.args[0], types.uint32)
            return builder.call(send, [number, data, size])

        return types.int32(node, types.StarArgTuple(given)), write

    return forward


def _lower(function: Callable, signature: Signature, flags: Flags) -> tuple[Any, types.Type]:
    """The function's module, and its type of result."""
    typing_context, context = _target.descriptor.typing_context, _target.descriptor.target_context
    typing_context.forward = _forward_for(signature) if "forward" in function.__code__.co_names else None
    typing_context.refresh()
    context.refresh()
    library = context.codegen().create_library(signature.name)
    runtime = ll.parse_assembly(_RUNTIME)
    runtime.triple = _target.TRIPLE
    library.add_llvm_module(runtime)
    arguments = tuple(_numba_type(parameter) for parameter in signature.parameters)
    result = None if signature.result is None else signature.result_type(numpy_support.from_dtype, types)
    with target_override(_target.NAME):
        compiled = compile_extra(typing_context, context, function, arguments, result, flags, locals={},
                                 library=library)
    _check_result(compiled.fndesc.restype, signature)
    library.add_ir_module(_Entry(context, signature, compiled, signature.name).write())
    library.finalize()
    return library._final_module, compiled.fndesc.restype


def _bitcode_for(module: Any, triple: str, name: str) -> bytes:
    """The module as if it had been lowered for this triple. The importer refuses what another CPU does not have."""
    machine = ll.Target.from_triple(triple).create_target_machine(reloc="pic", codemodel="default")
    layout = str(machine.target_data)
    if not layout.startswith("e-") or "-p:32:32" in layout:
        raise IfuncError(f"{name}: {triple} is not 64-bit little-endian", triple, "leave it out of targets",
                         Status.UNSUPPORTED)
    module.triple = triple
    module.data_layout = layout
    return module.as_bitcode()


def _check_result(kind: types.Type, signature: Signature) -> None:
    members = list(kind) if isinstance(kind, types.BaseTuple) else [kind]
    has_out = any(parameter.kind == "out" for parameter in signature.parameters)
    if has_out and kind is not types.none:
        raise IfuncError(f"{signature.name}: returns {kind} and has a tc.out parameter, which is its answer", str(kind),
                         "return nothing", Status.INVALID)
    for member in members:
        plain = member is types.none or isinstance(member, (types.Number, types.Boolean, types.NPDatetime))
        small = not isinstance(kind, types.BaseTuple) or (member is not types.none and _itemsize(member) <= 8)
        if not plain or not small:
            raise IfuncError(f"{signature.name}: an answer of type {kind} cannot travel", str(kind),
                             "return a number or a tuple of numbers, or fill a parameter tc.out(dtype, count)",
                             Status.INVALID)


def _itemsize(kind: types.Type) -> int:
    return numpy_support.as_dtype(kind).itemsize


def compile_ifunc(function: Callable, *, name: str | None = None, targets: Sequence[str] = DEFAULT_TARGETS,
                  boundscheck: bool = False, fastmath: bool = False, extern: Sequence[str] = (),
                  deps: Sequence[str] = (), scope: Mapping[str, Any] | None = None) -> Ifunc:
    """What `@tc.ifunc` does. `scope` are names for annotations, beside the function's globals."""
    signature = Signature.of(function, name, scope)
    flags = Flags()
    flags.no_cpython_wrapper = True
    flags.no_cfunc_wrapper = True
    flags.nrt = True
    flags.error_model = "numpy"
    flags.boundscheck = boundscheck
    if fastmath:
        flags.fastmath = cpu.FastMathOptions(True)
    with tempfile.TemporaryDirectory(prefix="threechains-") as directory:
        module, result = _lower_or_refuse(function, signature, flags)
        inputs = []
        for triple in targets:
            path = pathlib.Path(directory, f"{signature.name}.{triple}.bc")
            path.write_bytes(_bitcode_for(module, triple, signature.name))
            inputs.append(str(path))
        if deps:
            pathlib.Path(inputs[0]).with_suffix(".deps").write_text("\n".join(deps) + "\n")
        bundle = _build(inputs, signature.name, (), extern, (), ())
    is_tuple = isinstance(result, types.BaseTuple)
    members = tuple(numpy_support.as_dtype(member) for member in result) if is_tuple else None
    single = None if members is not None or result is types.none else numpy_support.as_dtype(result)
    ifunc = Ifunc(bundle, encode=signature.encoder(), decode=signature.decoder(members, single))
    ifunc.__wrapped__ = function
    ifunc.__doc__ = inspect.getdoc(function)
    return ifunc


def _lower_or_refuse(function: Callable, signature: Signature, flags: Flags) -> tuple[Any, types.Type]:
    with global_compiler_lock:
        try:
            return _lower(function, signature, flags)
        except errors.NumbaError as error:
            raise _refusal(signature.name, error) from None


def _refusal(name: str, error: errors.NumbaError) -> IfuncError:
    words = str(error).strip()
    symbol = words.split("'")[1] if words.count("'") >= 2 else ""
    return IfuncError(f"{name}: Numba cannot compile it: {words}", symbol,
                      "an ifunc works on numbers and NumPy arrays, without Python objects; pass data as arguments, "
                      "tc.array or tc.data", Status.COMPILE)


# ---- What an ifunc may call ---------------------------------------------------------------------------------

_tc_id = types.ExternalFunction("tc_id", types.uint32())
_tc_count = types.ExternalFunction("tc_count", types.uint32())


@overload(_types.node_id)
def _node_id():
    return lambda: _tc_id()


@overload(_types.node_count)
def _node_count():
    return lambda: _tc_count()
