// SPDX-License-Identifier: Apache-2.0
//
// Functions that each message runs lie side by side, in one section that begins on a page of its own (capi/hot_page.ld). With
// more nodes than cores the processor finds out anew for each message where a page of code lies, which takes as long as four
// cold cache lines of it (docs/measuring.md, "What a hop touches").
//
// One page holds them all, the wait for the next message among them; there is little room left.
//
// For whole functions that are neither inline nor templates: compilers refuse to mix those in one section.
#pragma once

#define TC_ON_HOT_PAGE [[gnu::hot, gnu::section("tc_hot_page")]]
