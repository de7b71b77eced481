// SPDX-License-Identifier: Apache-2.0
//
// Guesses which word was meant. Threads: any.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tc {

// The one of `known` that differs least from `word`, when it is a word with a typing error or the beginning of a longer one;
// else empty.
std::string_view closest(std::string_view word, const std::vector<std::string>& known);

// "there is no option 'lisen'; did you mean 'listen'?", the question only when there is a guess.
std::string there_is_no(std::string_view kind, std::string_view word, const std::vector<std::string>& known);

}  // namespace tc
