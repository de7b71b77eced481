// SPDX-License-Identifier: Apache-2.0
// All ways by which assembly comes into bitcode. (The compiler, which reads what stands at file scope, finds an empty file.)
#if defined(INCBIN)
#define DIRECTIVE ".incbin \"/dev/null\""
#elif defined(INCLUDE)
#define DIRECTIVE ".include \"/dev/null\""
#else
#define DIRECTIVE ".byte 1"
#endif

#if defined(AT_FILE_SCOPE)
__asm__(".pushsection .rodata\n" DIRECTIVE "\n.popsection");
void assembly_main(void) {}
#elif defined(WITH_LABELS)
void assembly_main(void) {
  __asm__ goto(".pushsection .rodata\n" DIRECTIVE "\n.popsection" : : : : out);
out:;
}
#else
void assembly_main(void) { __asm__ volatile(".pushsection .rodata\n" DIRECTIVE "\n.popsection"); }
#endif
