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
// The same for a node that now listens at `address`, and removes it. Empty as well when the node asked for any port ("HOST:0" in
// `listen`): the node that had this port before was another one.
std::string take_last_words(std::string_view address, std::string_view listen);

}  // namespace tc::node
