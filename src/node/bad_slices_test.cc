// SPDX-License-Identifier: Apache-2.0
//
// Bundles whose slices are not what they say: the call fails at its sender with the reason, the name of the ifunc and
// of the node, and both nodes go on. Each case spoils the machine code of a working ifunc in one place.
#include <elf.h>

#include <functional>

#include "node/testing/node_test_kit.h"

namespace tc::node {
namespace {

using test::Background;
using testing::AllOf;
using testing::HasSubstr;

// A relocatable image, taken apart just enough to be spoilt.
class Image {
 public:
  explicit Image(Bytes& file) : file_(file) {}

  Elf64_Ehdr& header() { return at<Elf64_Ehdr>(0); }
  Elf64_Phdr& segment(uint32_t type) {
    for (uint64_t i = 0; i < header().e_phnum; ++i)
      if (auto& found = at<Elf64_Phdr>(header().e_phoff + i * sizeof(Elf64_Phdr)); found.p_type == type) return found;
    ADD_FAILURE() << "no segment of type " << type;
    return at<Elf64_Phdr>(0);
  }
  Elf64_Dyn& dynamic(int64_t tag) {
    const auto& table = segment(PT_DYNAMIC);
    for (uint64_t i = 0; i < table.p_filesz; i += sizeof(Elf64_Dyn))
      if (auto& found = at<Elf64_Dyn>(table.p_offset + i); found.d_tag == tag) return found;
    ADD_FAILURE() << "no dynamic entry " << tag;
    return at<Elf64_Dyn>(0);
  }
  Elf64_Rela& first_relocation() {
    const uint64_t address = dynamic(DT_RELA).d_un.d_ptr;
    for (uint64_t i = 0; i < header().e_phnum; ++i) {
      const auto& load = at<Elf64_Phdr>(header().e_phoff + i * sizeof(Elf64_Phdr));
      if (load.p_type == PT_LOAD && address >= load.p_vaddr && address < load.p_vaddr + load.p_filesz)
        return at<Elf64_Rela>(address - load.p_vaddr + load.p_offset);
    }
    ADD_FAILURE() << "no relocations";
    return at<Elf64_Rela>(0);
  }

 private:
  template <class T>
  T& at(uint64_t offset) {
    EXPECT_LE(offset + sizeof(T), file_.size());
    return *reinterpret_cast<T*>(file_.data() + offset);
  }
  Bytes& file_;
};

struct Spoilt {
  const char* name;
  std::function<void(Image)> spoil;
  const char* reason;
};
void PrintTo(const Spoilt& spoilt, std::ostream* out) { *out << spoilt.name; }

class BadSlice : public testing::TestWithParam<Spoilt> {};

uint16_t other_machine() { return TargetTriple::host().arch == Arch::aarch64 ? EM_X86_64 : EM_AARCH64; }

INSTANTIATE_TEST_SUITE_P(
    Objects, BadSlice,
    testing::Values(
        Spoilt{"of_another_machine", [](Image i) { i.header().e_machine = other_machine(); },
               "object is for ELF machine"},
        Spoilt{"of_32_bits", [](Image i) { i.header().e_ident[EI_CLASS] = ELFCLASS32; }, "64-bit, little-endian"},
        Spoilt{"of_the_wrong_endian", [](Image i) { i.header().e_ident[EI_DATA] = ELFDATA2MSB; },
               "64-bit, little-endian"},
        Spoilt{"not_linked", [](Image i) { i.header().e_type = ET_REL; }, "when a linked image"},
        Spoilt{"with_an_executable_stack",
               [](Image i) {
                 auto& segment = i.segment(PT_DYNAMIC);
                 segment.p_type = PT_GNU_STACK;
                 segment.p_flags = PF_R | PF_W | PF_X;
               },
               "executable stack"},
        Spoilt{"with_thread_locals", [](Image i) { i.segment(PT_DYNAMIC).p_type = PT_TLS; }, "thread-local"},
        Spoilt{"with_writable_code", [](Image i) { i.segment(PT_LOAD).p_flags = PF_R | PF_W | PF_X; }, "with flags 7"},
        Spoilt{"with_a_relocation_out_of_range", [](Image i) { i.first_relocation().r_offset = 0x10; },
               "lies outside the data half"},
        Spoilt{"with_a_relocation_of_unknown_kind",
               [](Image i) { i.first_relocation().r_info = ELF64_R_INFO(0, 0x3fff); }, "relocation of type 16383"}),
    [](const auto& info) { return info.param.name; });

TEST_P(BadSlice, is_refused_at_the_sender_by_name_and_both_go_on) {
  const auto built = test::load_bundle("echo");
  const auto found = built.find(SliceRole::target, SliceForm::object, TargetTriple::host());
  ASSERT_TRUE(found);
  auto manifest = built.manifest();
  auto object = built.unpack(*found).value();
  GetParam().spoil(Image(object));
  Slice slice = manifest.slices[*found];
  slice.compressed = false;
  slice.unpacked_size = static_cast<uint32_t>(object.size());
  manifest.slices = {slice};
  const auto bundle = Bundle::pack(std::move(manifest), {std::move(object)});
  ASSERT_TRUE(bundle) << bundle.error().message;

  test::Net net;
  auto target = net.make(1);
  auto client = net.make(2);
  const Background running(*target);
  auto* link = test::connect(*client, "n1");
  char payload = 'x';
  const auto message = source::Message::create(client->register_bundle(*bundle).value(), &payload, 1, 1 << 20).value();
  const auto answer = test::call(*client, *link, *message);
  EXPECT_NE(answer->status, TC_OK);
  EXPECT_THAT(answer->message, AllOf(HasSubstr("node 1"), HasSubstr("'echo'"), HasSubstr(GetParam().reason)));
  EXPECT_EQ(test::call(*client, *link, *test::message(*client, "append", "x"))->status, TC_ERR_IFUNC)
      << "the next ifunc runs, and misses its data";
}

}  // namespace
}  // namespace tc::node
