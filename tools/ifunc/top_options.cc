// SPDX-License-Identifier: Apache-2.0
#include "ifunc/top_options.h"

namespace tc::command {

void TopOptions::add_to(CLI::App& app) {
  AskOptions::add_to(app);
  app.remove_option(app.get_option("--json"));  // `ifunc stat --json` has the numbers for programs
  app.add_option("--interval", interval_s, "Seconds between two looks")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  // Keys reach the other columns. A view without this one keeps its order.
  app.add_option("--sort", sort, "The column by which ifuncs and links are sorted; `calls`, unless set")
      ->type_name("name|calls|failures|mean|p99|busy|total|received|sent")
      ->check(CLI::IsMember({"name", "calls", "failures", "mean", "p99", "busy", "total", "received", "sent"}));
  app.add_flag("--once", once, "Print it as text, after two looks; so it does where there is no terminal");
}

}  // namespace tc::command
