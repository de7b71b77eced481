# SPDX-License-Identifier: Apache-2.0
using ThreeChains
using ThreeChains.Target

struct Order
    amount::UInt32
    change::Int16
    level::UInt8
    price::Float64
end

@ifunc function structure(payload::Ptr{Order})
    order = unsafe_load(payload)
    return (order.price * order.amount, Int64(order.amount) + order.change - order.level)
end
