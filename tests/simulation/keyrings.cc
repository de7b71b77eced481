// SPDX-License-Identifier: Apache-2.0
#include "simulation/keyrings.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>

#include "trust/key_pair.h"

namespace tc::simulation {

namespace {

trust::PublicKey key_of(uint32_t number) {
  std::array<std::byte, trust::KeyPair::seed_bytes> seed{};
  seed[0] = static_cast<std::byte>(number);
  return trust::KeyPair::from_seed(seed).value().public_key();
}

}  // namespace

Keyrings::Keyrings(Dice& dice, transport::SimulatedNetwork& network, std::vector<std::string> addresses)
    : addresses_(std::move(addresses)),
      has_key_(addresses_.size()),
      leaves_(addresses_.size() * addresses_.size(), Leave::any),
      folder_(TemporaryDirectory::create().value()) {
  const auto stranger = static_cast<uint32_t>(addresses_.size() - 1);
  const bool is_of_one_user = dice.once_in(2);
  for (uint32_t number = 0; number < addresses_.size(); ++number) {
    has_key_[number] = number == stranger || (!is_of_one_user && dice.once_in(3));
    if (has_key_[number]) network.make_foreign(addresses_[number], key_of(number));
    leave(number, stranger) = Leave::none;
  }
  for (uint32_t number = 0; number < stranger; ++number) (void)write(number).value();
}

std::string Keyrings::file(uint32_t number) const { return folder_.path() / addresses_[number]; }

bool Keyrings::any_has_key() const { return std::count(has_key_.begin(), has_key_.end(), true) > 1; }

Status Keyrings::set(uint32_t at, uint32_t whose, Leave what) {
  if (!has_key_[whose] || at == whose) return {};
  leave(at, whose) = what;
  return write(at);
}

bool Keyrings::may_run(uint32_t at, uint32_t whose) const { return !has_key_[whose] || leave(at, whose) == Leave::any; }

Status Keyrings::write(uint32_t at) const {
  const auto name = file(at);
  std::ofstream out(name, std::ios::trunc);
  for (uint32_t whose = 0; whose < addresses_.size(); ++whose)
    if (has_key_[whose] && leave(at, whose) != Leave::gone)
      out << fmt::format("n{} {} {} at={}\n", whose, key_of(whose).text(), words_of(leave(at, whose)),
                         addresses_[whose]);
  out.close();
  if (out && ::chmod(name.c_str(), 0600) == 0) return {};
  return fail(TC_ERR_INTERNAL, "{} cannot be written", name);
}

}  // namespace tc::simulation
