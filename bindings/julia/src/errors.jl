# SPDX-License-Identifier: Apache-2.0

"What cannot be made into an ifunc; the message names the symbol or the address, the place, and what to do instead."
struct IfuncError <: Exception
    message::String
end
Base.showerror(io::IO, error::IfuncError) = print(io, "IfuncError: ", error.message)

"""
A call into the library, or a call at a target, that failed. `status` is the library's word for it ("timeout"), `code`
the number that the ifunc gave to `fail` (else 0), `node` the number of the node that answered.
"""
struct RemoteError <: Exception
    status::String
    message::String
    code::Int32
    node::UInt32
end
RemoteError(status, message) = RemoteError(status, message, 0, 0)
Base.showerror(io::IO, error::RemoteError) = print(io, "RemoteError (", error.status, "): ", error.message)
