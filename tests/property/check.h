// SPDX-License-Identifier: Apache-2.0
//
// Does a journal add up? The rules, for each message:
//
//   - Nothing runs that was not accepted, nothing runs twice, and all bytes are those that were sent.
//   - A message that was accepted has run, or its sender was told. What may be lost in silence is a message without an
//     answer whose sender was killed, whose receiver ended, or whose endpoint was closed before a flush said that all is
//     done.
//   - A call's sender was told how it ended, and that fits what ran: TC_OK only when all of it ran and the answer is right,
//     and an error only where there was a cause.
//   - Messages of one endpoint run in the order in which they were sent, without gaps, unless the sender was told of one.
//   - A flush that says TC_OK came after everything before it had run.
//   - A link is lost only where one of the two nodes ended or the endpoint was closed.
//
// Thread: any one, when nobody writes the journal.
#pragma once

#include <string>
#include <vector>

#include "journal.h"

namespace tc::property {

struct Findings {
  std::vector<std::string> wrong;
  size_t missing = 0;  // of them: what may still come
  // For the summary.
  size_t accepted = 0, refused = 0, ran = 0, answered = 0, failed = 0, lost = 0;
};

Findings check(const Journal& journal, size_t nodes);

}  // namespace tc::property
