// SPDX-License-Identifier: Apache-2.0
#include "trust/grant.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trust/testing/keys.h"

namespace tc::trust {
namespace {

using ::testing::HasSubstr;
using testing::public_key;

Grant read(std::string_view fields) {
  return parse_grant(fmt::format("ana {} {}", public_key(1).text(), fields)).value();
}

std::string error_of(std::string_view fields) {
  const auto grant = parse_grant(fmt::format("ana {} {}", public_key(1).text(), fields));
  return grant ? "" : grant.error().message;
}

TEST(Grant, a_line_without_fields_lets_signed_code_run_and_forbids_nothing_more) {
  const auto grant = read("");
  EXPECT_EQ(grant.name, "ana");
  EXPECT_EQ(grant.key, public_key(1));
  EXPECT_EQ(grant.run, Run::signed_code);
  EXPECT_EQ(grant.where, Where::process);
  EXPECT_TRUE(grant.read.is_all() && grant.write.is_all() && grant.libraries.is_all() && grant.exports.is_all());
  EXPECT_TRUE(grant.hosts.empty());
  EXPECT_FALSE(grant.code_budget || grant.rate || grant.until || grant.revoked);
}

TEST(Grant, every_field_is_read) {
  const auto grant = read(
      "run=any in=cell read=table*,log write=log libs=none exports=f hosts=10.0.0.0/8,::1 at=10.0.0.1:7001 code=2M "
      "rate=100 "
      "until=2027-01-31 revoked=2026-12-24T18:30:05Z");
  EXPECT_EQ(grant.run, Run::any);
  EXPECT_EQ(grant.where, Where::cell);
  EXPECT_TRUE(grant.read.contains("table7") && grant.read.contains("log"));
  EXPECT_FALSE(grant.read.contains("logs") || grant.read.contains("tabl"));
  EXPECT_TRUE(grant.write.contains("log"));
  EXPECT_FALSE(grant.write.contains("table"));
  EXPECT_FALSE(grant.libraries.contains("libm.so.6") || grant.libraries.contains("none"));
  EXPECT_TRUE(grant.exports.contains("f"));
  ASSERT_EQ(grant.hosts.size(), 2u);
  EXPECT_TRUE(grant.hosts[0].contains("10.1.2.3"));
  EXPECT_EQ(grant.code_budget, 2u << 20);
  EXPECT_EQ(grant.rate, 100u);
  EXPECT_EQ(to_text(*grant.until), "2027-01-31T00:00:00Z");
  EXPECT_EQ(to_text(*grant.revoked), "2026-12-24T18:30:05Z");
}

TEST(Grant, what_is_written_is_read_back) {
  for (const auto* const fields :
       {"", "run=none", "run=any in=cell", "read=a", "read=a write=*", "read=a,b* write=b*", "write=none", "write=a",
        "read=none", "libs=x exports=none hosts=10.0.0.0/8 at=127.0.0.1:1,[::1]:2 code=4096 rate=7",
        "until=2027-01-31T00:00:00Z revoked=2026-01-01T00:00:01Z"})
    EXPECT_EQ(fields_of(read(fields)), fields);
}

TEST(Grant, fields_that_are_given_replace_those_of_the_same_name_alone) {
  const auto with = [](std::string_view before, std::string_view given) {
    return fields_of(with_fields(read(before), given).value());
  };
  EXPECT_EQ(with("", "run=any"), "run=any");
  EXPECT_EQ(with("run=any rate=7", "rate=9"), "run=any rate=9");
  EXPECT_EQ(with("run=any rate=7", "run=signed"), "rate=7");
  EXPECT_EQ(with("rate=7 until=2027-01-31", ""), "rate=7 until=2027-01-31T00:00:00Z");
  EXPECT_EQ(with("read=a write=b", "read=c"), "read=c write=b");
  EXPECT_EQ(with("", "read=c"), "read=c") << "which may write nothing, as in a new line";
  EXPECT_EQ(with_fields(read("run=any"), "walk=any").error().code, TC_ERR_INVALID);
}

TEST(Grant, a_line_that_says_what_may_be_read_allows_no_writing) {
  EXPECT_FALSE(read("read=table").write.contains("table"));
  EXPECT_TRUE(read("write=table").read.contains("other"));
}

TEST(Grant, a_wrong_field_is_refused_by_its_name_and_with_its_value) {
  EXPECT_THAT(error_of("walk=any"), HasSubstr("there is no field 'walk': they are run, in, read"));
  EXPECT_THAT(error_of("run=all"), HasSubstr("field run: 'all' is none of signed, any, none"));
  EXPECT_THAT(error_of("in=jail"), HasSubstr("field in: 'jail'"));
  EXPECT_THAT(error_of("read=a,,b"), HasSubstr("field read: 'a,,b' has an empty name"));
  EXPECT_THAT(error_of("read="), HasSubstr("field read:"));
  EXPECT_THAT(error_of("libs=a*b"), HasSubstr("'a*b' has a '*' that is not its last character"));
  EXPECT_THAT(error_of("hosts=10.0.0.1/8"), HasSubstr("field hosts:"));
  for (const auto* const at : {"at=north", "at=:7001", "at=north:", "at=north:x1"})
    EXPECT_THAT(error_of(at), HasSubstr("field at:")) << at;
  EXPECT_THAT(error_of("code=0"), HasSubstr("field code: '0' is no whole number from 1"));
  EXPECT_THAT(error_of("code=18446744073709551615G"), HasSubstr("field code:"));
  EXPECT_THAT(error_of("rate=4294967296"), HasSubstr("field rate:"));
  EXPECT_THAT(error_of("rate=-1"), HasSubstr("field rate:"));
  EXPECT_THAT(error_of("until=tomorrow"), HasSubstr("field until: 'tomorrow' is no time"));
  EXPECT_THAT(error_of("run"), HasSubstr("'run' is no field"));
  EXPECT_THAT(error_of("run=any run=none"), HasSubstr("field run stands there twice"));
}

TEST(Grant, a_line_without_name_or_key_is_refused) {
  for (const auto& line :
       std::vector<std::string>{"", "ana", "ana ed25519:AAAA", ".ana " + public_key(1).text(), "a/b x"})
    EXPECT_FALSE(parse_grant(line)) << line;
}

TEST(Grant, more_names_than_fit_a_field_are_refused) {
  std::string names = "a";
  for (int i = 1; i < 64; ++i) names += ",a";
  EXPECT_EQ(error_of("read=" + names), "");
  EXPECT_THAT(error_of("read=" + names + ",a"), HasSubstr("65 names when at most 64"));
}

TEST(Time, dates_that_no_calendar_has_are_refused) {
  for (const auto* const text :
       {"2027-02-29", "2027-13-01", "2027-00-01", "2027-1-1", "2027-01-01T24:00:00Z", "2027-01-01T00:00:00",
        "2027-01-01 00:00:00Z", "-027-01-01", "2027-01-01T00:60:00Z", "2027-01-01T00:00:60Z", ""})
    EXPECT_FALSE(parse_time(text)) << text;
  EXPECT_EQ(to_text(parse_time("2028-02-29").value()), "2028-02-29T00:00:00Z");
  EXPECT_EQ(parse_time("1970-01-02T00:00:01Z")->time_since_epoch().count(), 86401);
}

}  // namespace
}  // namespace tc::trust
