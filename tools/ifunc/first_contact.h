// SPDX-License-Identifier: Apache-2.0
//
// `first-contact=ask`: a node that this user never connected to is shown at the terminal, as ssh does with a host.
#pragma once

#include <string>

#include "base/result.h"

namespace tc::command {

// A connection to `address` ended with `refusal`. If that was because first-contact is ask, asks whether the node's key is the
// right one, and remembers it when it is: then connect again. Otherwise `refusal`, also when there is no terminal.
Status ask_about(const Error& refusal, const std::string& address);

}  // namespace tc::command
