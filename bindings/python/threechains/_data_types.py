# SPDX-License-Identifier: Apache-2.0
"""Is a node's data what an ifunc takes it for? The part that runs at the node: _data.py says what a description is.

Any program can give a node a description, so no more of it is read than the node says that there is.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import register_jitable

from threechains import _data
from threechains._signature import Parameter
from threechains._target import c_string

_INT64, _BYTE = ir.IntType(64), ir.IntType(8)
# In the sentences that travel with the code these bytes stand for two lines of the description.
_TYPE, _SHAPE = 1, 2
_TEXT = types.CPointer(types.uint8)  # an array would be seven arguments


def compare(context: Any, builder: ir.IRBuilder, parameter: Parameter, description: Any, size: Any) -> tuple[Any, Any]:
    """Whether the data is something else than the parameter says, and a text that says so."""
    texts = [_data.type_line(parameter.dtype) + "\n", *_sentences(parameter)]
    most = _INT64(_data.DESCRIPTION_BYTES)
    read = builder.select(builder.icmp_unsigned("<", size, most), size, most)
    # The lines are short, as the description is: a sentence with three of them has room.
    room = max(len(text.encode()) for text in texts) + 3 * _data.DESCRIPTION_BYTES + 1
    words = builder.bitcast(cgutils.alloca_once(builder, ir.ArrayType(_BYTE, room)), _BYTE.as_pointer())
    constants = [cgutils.global_constant(builder.module, ".text", c_string(text)).bitcast(_BYTE.as_pointer()) for text in texts]
    signature = types.boolean(_TEXT, types.int64, *[_TEXT] * 5)
    compiled = context.compile_subroutine(builder, _complain, signature)
    function = compiled.library.get_function(compiled.fndesc.llvm_func_name)
    for attribute in ("noinline", "minsize", "optsize"):  # it is called for each piece of data, and travels with the code
        function.add_function_attribute(attribute)
    _, is_wrong = context.call_internal_no_propagate(builder, compiled.fndesc, signature, [description, read, *constants, words])
    return is_wrong, words  # it raises nothing


def _sentences(parameter: Parameter) -> tuple[str, str, str]:
    label, name = f"'{parameter.name}'", parameter.data_name
    subject, dtype, shape = f"data '{name}' of this node is", chr(_TYPE), chr(_SHAPE)
    return (_data.of_another_type(label, parameter, subject, dtype, shape), _data.of_another_shape(label, subject, dtype, shape),
            f"data '{name}{_data.SUFFIX}' of this node does not say of what type '{name}' is: give that data another name")


def _complain(text: Any, size: Any, wanted: Any, of_another_type: Any, of_another_shape: Any, unreadable: Any, words: Any) -> Any:
    """Compiled by Numba. Writes what is wrong with data of this description; False: nothing is. `wanted` is its first line."""
    same = 0
    while same < size and wanted[same] != 0 and text[same] == wanted[same]:
        same += 1
    is_of_type = wanted[same] == 0
    dimensions = _after_line(text, size, 0)
    dtype = _after_line(text, size, dimensions)
    shape = _after_line(text, size, dtype)
    end = shape
    while end < size and text[end] != 0:
        end += 1
    sentence = unreadable
    if end < size:
        if is_of_type and text[same] == 0x31 and text[same + 1] == 0x0A:  # "1"
            return False
        sentence = of_another_shape if is_of_type else of_another_type
    at = i = 0
    while sentence[i] != 0:
        source, begin, stop = sentence, i, i + 1
        if sentence[i] == _TYPE:
            source, begin, stop = text, dtype, shape - 1
        elif sentence[i] == _SHAPE:
            source, begin, stop = text, shape, end
        while begin < stop:
            is_ours = sentence[i] > _SHAPE
            words[at] = source[begin] if is_ours or 0x20 <= source[begin] < 0x7F else 0x3F  # "?"
            begin += 1
            at += 1
        i += 1
    words[at] = 0
    return True


@register_jitable
def _after_line(text: Any, size: Any, at: Any) -> Any:
    while at < size and text[at] != 0x0A:
        at += 1
    return at + 1
