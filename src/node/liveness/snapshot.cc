// SPDX-License-Identifier: Apache-2.0
#include "node/liveness/snapshot.h"

#include <algorithm>

#include "node/links.h"

namespace tc::node {

namespace {

// Origins whose last snapshot is remembered: a peer must not fill our memory with questions.
constexpr size_t parts_limit = 1024;
// More calls of one origin than this are not counted one by one; its snapshot is void instead.
constexpr size_t alive_limit = 1u << 20;

bool erase(std::vector<const Link*>& links, const Link* link) { return std::erase(links, link) != 0; }
bool contains(const std::vector<const Link*>& links, const Link* link) {
  return std::ranges::find(links, link) != links.end();
}

}  // namespace

void Snapshots::ask() { begin(self_.instance, ++number_, nullptr); }

bool Snapshots::make_room() {
  if (parts_.size() < parts_limit) return true;
  const auto old = std::ranges::find_if(parts_, [](const auto& entry) { return entry.second.done; });
  if (old == parts_.end()) return false;
  parts_.erase(old);
  return true;
}

void Snapshots::drop(std::unordered_map<uint64_t, Part>::iterator part) {
  if (!part->second.done) --recording_;
  parts_.erase(part);
}

void Snapshots::begin(uint64_t origin, uint32_t number, Link* parent) {
  if (const auto older = parts_.find(origin); older != parts_.end()) drop(older);
  if (!make_room()) return;  // the origin gets no report, and waits for its deadlines
  auto& part = parts_[origin];
  ++recording_;
  part.number = number;
  part.parent = parent;
  each_call_([&](uint64_t caller, uint64_t token) {
    if (caller == origin) add(part, token);
  });
  std::vector<Link*> links;
  links_.each([&](Link& link) {
    if (!link.is_lost()) links.push_back(&link);
  });
  part.links.assign(links.begin(), links.end());
  part.markers_due = part.links;
  erase(part.markers_due, parent);
  for (auto* link : links) {
    const uint8_t flags = link == parent ? wire::marker_from_child : 0;
    link->post_event(wire::event_marker, wire::encode_marker({origin, number, flags}));
  }
  settle(origin, part);
}

void Snapshots::on_marker(Link& from, const wire::Marker& marker) {
  const auto found = parts_.find(marker.origin);
  const bool is_ours = marker.origin == self_.instance;
  if (found == parts_.end() || found->second.number < marker.number) {
    if (!is_ours) begin(marker.origin, marker.number, &from);  // else: an echo of one that we dropped, or a lie
    return;
  }
  auto& part = found->second;
  if (part.number > marker.number) return;
  if (!contains(part.links, &from)) {
    if ((marker.flags & wire::marker_unrecorded) == 0)
      from.post_event(wire::event_marker, wire::encode_marker({marker.origin, marker.number, wire::marker_unrecorded}));
    return;
  }
  if (!erase(part.markers_due, &from)) return;
  if ((marker.flags & wire::marker_unrecorded) != 0) part.is_void = true;
  if ((marker.flags & wire::marker_from_child) != 0) part.reports_due.push_back(&from);
  settle(marker.origin, part);
}

void Snapshots::on_report(Link& from, const wire::Report& report) {
  const auto found = parts_.find(report.origin);
  if (found == parts_.end() || found->second.number != report.number) return;
  auto& part = found->second;
  if (!erase(part.reports_due, &from)) return;
  part.is_void = part.is_void || report.is_void;
  for (const auto token : report.tokens) add(part, token);
  settle(report.origin, part);
}

void Snapshots::on_link_lost(const Link& link) {
  for (auto entry = parts_.begin(); entry != parts_.end();) {
    const auto here = entry++;
    auto& [origin, part] = *here;
    if (part.parent == &link) {
      drop(here);  // nobody to report to
      continue;
    }
    if (!erase(part.links, &link)) continue;
    const bool marker_was_due = erase(part.markers_due, &link);
    const bool report_was_due = erase(part.reports_due, &link);
    if (part.done || (!marker_was_due && !report_was_due)) continue;
    part.is_void = true;
    settle(origin, part);
  }
}

void Snapshots::record_call(const Link& link, uint64_t caller, uint64_t token) {
  const auto found = parts_.find(caller);
  if (found == parts_.end() || found->second.done || !contains(found->second.markers_due, &link)) return;
  add(found->second, token);
}

void Snapshots::add(Part& part, uint64_t token) {
  if (part.alive.size() < alive_limit)
    part.alive.insert(token);
  else
    part.is_void = true;
}

void Snapshots::settle(uint64_t origin, Part& part) {
  if (part.done || !part.markers_due.empty() || !part.reports_due.empty()) return;
  part.done = true;
  --recording_;
  const auto alive = std::exchange(part.alive, {});
  const bool is_void = part.is_void;
  if (part.parent == nullptr) return done_(is_void, alive);
  wire::Report report{origin, part.number, is_void, {alive.begin(), alive.end()}};
  part.parent->post_event(wire::event_report, wire::encode_report(report));
}

}  // namespace tc::node
