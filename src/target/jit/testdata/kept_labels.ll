; SPDX-License-Identifier: Apache-2.0
; Jumps to labels by a table of tables, as the toolchain names those (tc_variable_0 ...): all compilations share them.
@calls = global i64 0
@forward = constant [2 x ptr] [ptr blockaddress(@run, %one), ptr blockaddress(@run, %two)]
@backward = constant [2 x ptr] [ptr blockaddress(@run, %two), ptr blockaddress(@run, %one)]
@all = constant [2 x ptr] [ptr @forward, ptr @backward]

define i64 @run(i64 %mode, i64 %step) {
  %at = getelementptr ptr, ptr @all, i64 %mode
  %table = load ptr, ptr %at
  %entry = getelementptr ptr, ptr %table, i64 %step
  %label = load ptr, ptr %entry
  store i64 %step, ptr @calls
  indirectbr ptr %label, [label %one, label %two]
one:
  ret i64 1
two:
  ret i64 2
}
