// SPDX-License-Identifier: Apache-2.0
#include "journal.h"

#include <sys/mman.h>

#include <new>

namespace tc::property {

// Fresh pages are zero, and that is what a journal begins with; its pages are taken as they are written.
JournalMemory make_journal() {
  void* const memory =
      mmap(nullptr, sizeof(Journal), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  return JournalMemory(static_cast<Journal*>(memory));
}

void UnmapJournal::operator()(Journal* journal) const noexcept { munmap(journal, sizeof(Journal)); }

}  // namespace tc::property
