// SPDX-License-Identifier: Apache-2.0
#include "node/named_data.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

namespace tc::node {

Result<SharedFile> SharedFile::of(int descriptor, size_t size) {
  struct stat file{};
  if (::fstat(descriptor, &file) != 0 || !S_ISREG(file.st_mode))
    return fail(TC_ERR_INVALID, "descriptor {} is no file", descriptor);
  if (static_cast<uint64_t>(file.st_size) < size)
    return fail(TC_ERR_INVALID, "the file of the data has {} bytes when the data has {}", file.st_size, size);
  SharedFile shared;
  shared.descriptor_ = Fd(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
  if (!shared.descriptor_) return fail(TC_ERR_IO, "cannot keep the file of the data: {}", system_words(errno));
  shared.is_writable_ = (::fcntl(descriptor, F_GETFL) & O_ACCMODE) == O_RDWR;
  return shared;
}

}  // namespace tc::node
