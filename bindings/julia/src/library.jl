# SPDX-License-Identifier: Apache-2.0

const library_handle = Ref{Ptr{Cvoid}}(C_NULL)

"The library: `\$TC_LIBRARY`, or libthreechains.so.0 where the loader finds it."
function library()
    library_handle[] == C_NULL && (library_handle[] = Libdl.dlopen(get(ENV, "TC_LIBRARY", "libthreechains.so.0")))
    return library_handle[]
end

"Calls a function of the C API, looked up once for each place that calls it."
macro tc(name, result, types, arguments...)
    cached = Ref{Ptr{Cvoid}}(C_NULL)
    return quote
        found = $cached
        found[] == C_NULL && (found[] = Libdl.dlsym(library(), $(QuoteNode(name))))
        ccall(found[], $(esc(result)), $(esc(types)), $(map(esc, arguments)...))
    end
end

status_name(status) = unsafe_string(@tc(tc_status_name, Cstring, (Cint,), status))
function check(status)
    status == 0 && return nothing
    throw(RemoteError(status_name(status), unsafe_string(@tc(tc_error_message, Cstring, ()))))
end
