// SPDX-License-Identifier: Apache-2.0
//
// Thread: the one that makes the policy.
#pragma once

#include "target/policy.h"

namespace tc::ucp {

// Lets ifuncs call the functions of <threechains/ucp_ifunc.h>: an ifunc can register, send and poll.
void export_api(target::Policy& policy);

}  // namespace tc::ucp
