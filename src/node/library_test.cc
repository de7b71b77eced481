// SPDX-License-Identifier: Apache-2.0
//
// Libraries that are sent to a node and change what other ifuncs there do (2021 paper, section 2.1).
#include "node/testing/node_test_kit.h"

namespace tc::node::test {
namespace {

struct Answer {
  char version[8] = {};
  uint32_t result = 0, calls = 0;
};

class Library : public testing::Test {
 protected:
  void start(const Net::Adjust& adjust = [](Config& config) { config.allowed_exports = {"greeting_*"}; }) {
    target = net.make(1, adjust);
    client = net.make(2);
    running = std::make_unique<Background>(*target);
    link = test::connect(*client, "n1");
  }
  // The files of its versions have names of their own; the library has one.
  static Bundle library(const std::string& version) { return renamed(load_bundle("library_" + version), "greeting"); }
  std::shared_ptr<Future> send(Node& from, Link& to, Bundle bundle, std::string_view payload = "") {
    return test::call(from, to, *test::message(from, std::move(bundle), payload));
  }
  std::shared_ptr<Future> send(const std::string& version) { return send(*client, *link, library(version)); }
  std::shared_ptr<Future> use(uint32_t value) {
    return send(*client, *link, load_bundle("uses_library"), {reinterpret_cast<const char*>(&value), sizeof value});
  }
  Answer used(uint32_t value) {
    const auto future = use(value);
    EXPECT_EQ(future->status, TC_OK) << future->message;
    Answer answer;
    if (future->bytes.size() == sizeof answer) std::memcpy(&answer, future->bytes.data(), sizeof answer);
    return answer;
  }
  // Of a target that is not driven any more.
  uint64_t stat(const char* name) {
    running.reset();
    return target->stat(name).value();
  }

  Net net;
  std::unique_ptr<Node> target, client;
  std::unique_ptr<Background> running;
  Link* link = nullptr;
};

TEST_F(Library, ifuncs_that_come_later_link_to_its_functions_and_data) {
  start();
  ASSERT_EQ(send("one")->status, TC_OK);
  const auto answer = used(21);
  EXPECT_STREQ(answer.version, "one");
  EXPECT_EQ(answer.result, 42u);
  EXPECT_EQ(answer.calls, 1u);
  EXPECT_EQ(used(4).calls, 2u) << "its data lasts from call to call";
}

TEST_F(Library, a_newer_version_rebinds_ifuncs_that_are_there_already) {
  start();
  ASSERT_EQ(send("one")->status, TC_OK);
  EXPECT_EQ(used(21).result, 42u);
  ASSERT_EQ(send("two")->status, TC_OK);
  const auto answer = used(21);
  EXPECT_STREQ(answer.version, "two");
  EXPECT_EQ(answer.result, 1021u);
  EXPECT_EQ(answer.calls, 1u) << "the data is the new version's, too";
  EXPECT_EQ(stat("rebinds"), 1u);
  EXPECT_EQ(stat("codes"), 2u) << "the old version is freed";
}

TEST_F(Library, the_older_version_comes_back_when_it_is_sent_again) {
  start();
  for (const char* version : {"one", "two", "one", "two", "one"}) {
    ASSERT_EQ(send(version)->status, TC_OK);
    EXPECT_STREQ(used(1).version, version);
  }
  EXPECT_EQ(stat("codes"), 2u);
}

TEST_F(Library, a_version_that_lacks_what_is_used_is_refused_and_changes_nothing) {
  start();
  ASSERT_EQ(send("one")->status, TC_OK);
  EXPECT_EQ(used(21).result, 42u);
  const auto refused = send("less");
  EXPECT_EQ(refused->status, TC_ERR_UNRESOLVED);
  EXPECT_THAT(refused->message, testing::HasSubstr("ifunc 'uses_library', which uses it here, does not link to this"));
  EXPECT_STREQ(used(21).version, "one");
  EXPECT_EQ(used(21).calls, 3u) << "not even its data was touched";
}

TEST_F(Library, an_ifunc_that_came_too_early_works_once_the_library_is_there) {
  start();
  const auto early = use(21);
  EXPECT_EQ(early->status, TC_ERR_UNRESOLVED);
  EXPECT_THAT(early->message, testing::HasSubstr("greeting_"));
  EXPECT_THAT(early->message, testing::HasSubstr("send the library first"));
  ASSERT_EQ(send("one")->status, TC_OK);
  EXPECT_EQ(used(21).result, 42u);
}

TEST_F(Library, nobody_exports_what_the_operator_did_not_allow) {
  start({});
  const auto refused = send("one");
  EXPECT_EQ(refused->status, TC_ERR_DENIED);
  EXPECT_THAT(refused->message, testing::HasSubstr("--allow-export greeting_c"));
}

TEST_F(Library, a_rule_may_ask_where_the_library_comes_from) {
  start([](Config& config) {
    config.allowed_exports = {"greeting_calls", "greeting_version", "greeting_compute@elsewhere"};
  });
  const auto refused = send("one");
  EXPECT_EQ(refused->status, TC_ERR_DENIED);
  EXPECT_THAT(refused->message, testing::HasSubstr("greeting_compute"));
}

TEST_F(Library, the_applications_own_functions_and_other_libraries_cannot_be_replaced) {
  start();
  ASSERT_EQ(send("one")->status, TC_OK);
  const auto other = send(*client, *link, renamed(load_bundle("library_two"), "impostor"));
  EXPECT_EQ(other->status, TC_ERR_DENIED);
  EXPECT_THAT(other->message, testing::HasSubstr("another library exports already"));
  running.reset();
  target->policy().export_symbol("greeting_compute", reinterpret_cast<void*>(+[](uint32_t value) { return value; }));
  running = std::make_unique<Background>(*target);
  const auto over = send("two");
  EXPECT_EQ(over->status, TC_ERR_DENIED);
  EXPECT_THAT(over->message, testing::HasSubstr("the application of this node exports itself"));
}

TEST_F(Library, under_load_every_call_is_answered_by_one_version_and_none_by_a_mixture) {
  start();
  ASSERT_EQ(send("one")->status, TC_OK);
  EXPECT_EQ(used(1).result, 2u);
  std::vector<std::shared_ptr<Future>> futures, swaps;
  const auto uses = test::message(*client, "uses_library", std::string_view("\5\0\0\0", 4));
  const auto register_version = [&](const char* version) { return test::message(*client, library(version), ""); };
  const std::unique_ptr<source::Message> versions[] = {register_version("two"), register_version("one")};
  for (int i = 0; i < 2000; ++i) {
    const auto& message = i % 50 == 49 ? versions[i / 50 % 2] : uses;
    auto future = client->call(*link, *message, 20'000, Deadline::after_ms(5000));
    ASSERT_TRUE(future) << future.error().message;
    (message == uses ? futures : swaps).push_back(std::move(*future));
  }
  for (const auto& swap : swaps) {
    ASSERT_TRUE(client->poll_until(Deadline::after_ms(20'000), [&] { return swap->ready.load(); }));
    ASSERT_EQ(swap->status, TC_OK) << swap->message;
  }
  for (const auto& future : futures) {
    ASSERT_TRUE(client->poll_until(Deadline::after_ms(20'000), [&] { return future->ready.load(); }));
    ASSERT_EQ(future->status, TC_OK) << future->message;
    Answer answer;
    std::memcpy(&answer, future->bytes.data(), std::min(sizeof answer, future->bytes.size()));
    const bool is_one = std::string_view(answer.version) == "one";
    EXPECT_EQ(answer.result, is_one ? 10u : 1005u);
  }
  EXPECT_EQ(stat("rebinds"), 40u);
}

TEST_F(Library, a_bundle_that_exports_what_it_does_not_define_is_refused) {
  start();
  auto manifest = load_bundle("library_one").manifest();
  auto liar = load_bundle("library_one");
  manifest.exports.push_back("greeting_nothing");
  std::vector<Bytes> stored;
  for (size_t i = 0; i < manifest.slices.size(); ++i) stored.emplace_back(liar.stored(i).begin(), liar.stored(i).end());
  const auto refused = send(*client, *link, Bundle::pack(std::move(manifest), std::move(stored)).value());
  EXPECT_EQ(refused->status, TC_ERR_MALFORMED);
  EXPECT_THAT(refused->message, testing::HasSubstr("does not define 'greeting_nothing', which it exports"));
}

// The bundle with another manifest around the same slices.
template <class Change>
Bundle changed(const Bundle& bundle, Change change) {
  auto manifest = bundle.manifest();
  change(manifest);
  std::vector<Bytes> stored;
  for (size_t i = 0; i < manifest.slices.size(); ++i)
    stored.emplace_back(bundle.stored(i).begin(), bundle.stored(i).end());
  return Bundle::pack(std::move(manifest), std::move(stored)).value();
}

TEST_F(Library, who_may_not_export_what_the_old_version_does_may_not_replace_it) {
  start([](Config& config) { config.allowed_exports = {"greeting_version", "greeting_c*@n2"}; });
  ASSERT_EQ(send("one")->status, TC_OK) << "it comes from n2";
  auto other = net.make(3);
  auto* const its_link = test::connect(*other, "n1");
  const auto refused = send(*other, *its_link, library("less"));
  EXPECT_EQ(refused->status, TC_ERR_DENIED) << "though it exports nothing but greeting_version";
  EXPECT_THAT(refused->message, testing::HasSubstr("take the place of the version that is here"));
  EXPECT_THAT(refused->message, testing::HasSubstr("greeting_calls"));
  EXPECT_EQ(used(21).result, 42u);
}

TEST_F(Library, a_refused_ifunc_names_the_symbol_and_the_library_that_it_was_built_against) {
  start();
  const auto refused = use(21);
  EXPECT_EQ(refused->status, TC_ERR_UNRESOLVED);
  EXPECT_THAT(refused->message, testing::ContainsRegex("symbol 'greeting_(version|calls|compute)' is not available"));
  EXPECT_THAT(refused->message, testing::HasSubstr("built against library 'library_one', which is not on this node"));
}

TEST_F(Library, an_ifunc_whose_manifest_hides_what_it_uses_is_not_bound_to_a_library) {
  start();
  ASSERT_EQ(send("one")->status, TC_OK);
  auto hiding = changed(load_bundle("uses_library"), [](Manifest& manifest) {
    std::erase_if(manifest.imports, [](const auto& name) { return name.starts_with("greeting_"); });
  });
  const auto refused = send(*client, *link, std::move(hiding), std::string_view("\1\0\0\0", 4));
  EXPECT_EQ(refused->status, TC_ERR_UNRESOLVED) << "when the library is replaced, nobody would know that it is a user";
}

TEST_F(Library, libraries_do_not_link_to_each_other_and_not_in_circles) {
  start([](Config& config) { config.allowed_exports = {"*"}; });
  ASSERT_EQ(send("one")->status, TC_OK);
  // The user of a library, made to look like a library itself.
  auto chained = changed(load_bundle("uses_library"), [](Manifest& manifest) {
    manifest.entries |= entry_library;
    manifest.exports = {"ifunc_main"};
  });
  const auto refused = send(*client, *link, std::move(chained));
  EXPECT_EQ(refused->status, TC_ERR_UNRESOLVED);
  EXPECT_THAT(refused->message, testing::HasSubstr("libraries that are sent do not link to each other"));
  EXPECT_EQ(used(2).result, 4u);
}

TEST_F(Library, the_budget_evicts_its_users_and_never_the_library) {
  start([](Config& config) {
    config.allowed_exports = {"greeting_*"};
    config.code.budget_bytes = 64 * 1024;
  });
  ASSERT_EQ(send("one")->status, TC_OK);
  EXPECT_EQ(used(1).calls, 1u);
  for (int i = 0; i < 200; ++i)
    ASSERT_EQ(send(*client, *link, renamed(load_bundle("echo"), "echo" + std::to_string(i)))->status, TC_OK);
  EXPECT_EQ(used(1).calls, 2u) << "the library's data is still there";
  ASSERT_EQ(send("two")->status, TC_OK);
  EXPECT_EQ(used(1).result, 1001u);
  running.reset();
  EXPECT_GT(target->stat("code-evictions").value(), 100u);
  EXPECT_LE(target->stat("code-bytes").value(), 64u * 1024);
}

TEST_F(Library, a_sender_that_leaves_takes_nothing_with_it) {
  start();
  auto other = net.make(3);
  auto* const its_link = test::connect(*other, "n1");
  ASSERT_EQ(send(*other, *its_link, library("one"))->status, TC_OK);
  other.reset();
  EXPECT_EQ(used(21).result, 42u);
}

}  // namespace
}  // namespace tc::node::test
