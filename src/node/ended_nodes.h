// SPDX-License-Identifier: Apache-2.0
//
// How nodes of this user ended that a fatal signal ended (target/last_words.h): one small file for each address that such a
// node listened at, in the folder last-words beside the user's keys. The next node at that address takes the file, and tells
// its peers. Who connects where no node is any more finds it, too.
//
// Thread: any.
#pragma once

#include <string>
#include <string_view>

namespace tc::node {

// For the node that listens at `address`; empty: the user has no folder.
std::string last_words_file(std::string_view address);
// What the node that listened there before said; empty: it ended otherwise, or that is long ago.
std::string last_words_of(std::string_view address);
// The same, and removes it.
std::string take_last_words(std::string_view address);

}  // namespace tc::node
