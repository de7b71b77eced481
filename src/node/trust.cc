// SPDX-License-Identifier: Apache-2.0
#include "node/trust.h"

namespace tc::node {

Error not_trusted(const transport::Origin& origin) {
  return {TC_ERR_DENIED,
          fmt::format("{} is not trusted: without keys only processes of the same user on this host are; "
                      "start the node with trust 'any' to let in everybody",
                      origin.text)};
}

}  // namespace tc::node
