// SPDX-License-Identifier: Apache-2.0
#include "node/bootstrap/pmix_host.h"

#include "base/plugin.h"
#include "node/bootstrap/pmix_plugin.h"

namespace tc::node::bootstrap {

Result<std::unique_ptr<Bootstrap>> open_pmix(const Options& options) {
  if (!launched_by_pmix())
    return fail(TC_ERR_INVALID,
                "bootstrap is pmix when no PMIx launcher started this process (PMIX_NAMESPACE and PMIX_RANK are not "
                "set): start it with mpirun or srun --mpi=pmix");
  const auto library = open_plugin(pmix_plugin_name, options.pmix_plugin);
  if (!library)
    return fail(TC_ERR_UNSUPPORTED,
                "the PMIx plug-in cannot be loaded ({}); install {} and libpmix, or name it with the setting "
                "pmix-plugin",
                library.error().message, pmix_plugin_name);
  const auto found = find_in_plugin(*library, pmix_factory_name);
  if (!found) return context("the PMIx plug-in", found.error());
  const auto factory = reinterpret_cast<PmixFactory>(*found);
  std::unique_ptr<Bootstrap> made(factory(pmix_plugin_version, &options));
  if (made == nullptr)
    return fail(TC_ERR_UNSUPPORTED,
                "the PMIx plug-in does not speak version {} of its interface: install the one that belongs to this "
                "library",
                pmix_plugin_version);
  return made;
}

}  // namespace tc::node::bootstrap
