// SPDX-License-Identifier: Apache-2.0
#include "transport/peer_table.h"

#include <gtest/gtest.h>

namespace tc::transport {
namespace {

TEST(PeerTable, entries_stay_where_they_are_while_it_grows) {
  PeerTable table;
  std::vector<const PeerEntry*> entries;
  for (size_t place = 0; place < 5 * PeerTable::block_entries; ++place) {
    table.make_room(place);
    ASSERT_TRUE(table.has(place));
    EXPECT_EQ(table[place].in.token, PeerEntry::no_token);
    table[place].in.token = place;
    entries.push_back(&table[place]);
  }
  EXPECT_FALSE(table.has(entries.size()));
  for (size_t place = 0; place < entries.size(); ++place) {
    EXPECT_EQ(&table[place], entries[place]);
    EXPECT_EQ(table[place].in.token, place);
  }
}

TEST(PeerTable, all_that_a_node_with_few_peers_touches_lies_on_one_page) {
  const PeerTable table;
  const auto page = [&](size_t place) { return reinterpret_cast<uintptr_t>(&table[place]) / 4096; };
  EXPECT_EQ(page(0), page(PeerTable::block_entries - 1));
}

TEST(PeerTable, a_shared_entry_outlives_it) {
  std::shared_ptr<PeerEntry> entry;
  {
    PeerTable table;
    table.make_room(PeerTable::block_entries);
    entry = table.share(PeerTable::block_entries);
  }
  entry->in.token = 7;
  EXPECT_EQ(entry->in.token, 7u);
}

}  // namespace
}  // namespace tc::transport
