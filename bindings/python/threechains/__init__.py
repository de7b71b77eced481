# SPDX-License-Identifier: Apache-2.0
"""Three-Chains: move functions, not only data, between the processes of a distributed system.

    import threechains as tc

    hello = tc.ifunc.from_c('''
        #include <threechains/ifunc.h>
        void hello_main(void *payload, size_t size, void *target_args) { tc_reply(payload, size); }
    ''')
    with tc.LocalCluster(2) as cluster:
        print(cluster.submit(hello, b"world", node=1).result().text())

docs/python.md is the tutorial. What the words mean is in docs/architecture.md.
"""

try:
    from threechains import _native
except ImportError as error:
    raise ImportError(f"threechains cannot load its library: {error}. It needs Linux on x86-64 with glibc 2.35 or newer and the "
                      "version of Python that it was built for (docs/install.md)") from error

from threechains import _tool as _tool
from threechains._arrow import as_arrow, columns_of
from threechains._cluster import Cluster, Endpoint, LocalCluster
from threechains._errors import (
    ArgumentError, ArgumentIndexError, ArgumentOverflowError, ArgumentTypeError, ArgumentValueError, CallCrashed, CallTimeout,
    Error, IfuncError, NotAtANodeError, RemoteError, Status,
)
from threechains._future import Future
from threechains._ifunc import Ifunc, ifunc
from threechains._native import Message, Reply
from threechains._node import Node
from threechains._types import (
    Failure, array, column, data, external, forward, forward_as, has_data, inject, log, node_count, node_id, out,
)

_tool.offer_ucx()
__version__: str = _native.version()

__all__ = [
    "ArgumentError", "ArgumentIndexError", "ArgumentOverflowError", "ArgumentTypeError", "ArgumentValueError", "CallCrashed",
    "CallTimeout", "Cluster", "Endpoint", "Error", "Failure", "Future", "Ifunc", "IfuncError", "LocalCluster", "Message", "Node", "NotAtANodeError",
    "RemoteError", "Reply", "Status", "array", "as_arrow", "column", "columns_of", "data", "external", "forward", "forward_as",
    "has_data", "ifunc", "inject", "log", "node_count", "node_id", "out",
    "__version__",
]
