// SPDX-License-Identifier: Apache-2.0
// A frame table of the author's own making, which claims all addresses.
#ifdef WRITABLE
#define TABLE unsigned char
#else
#define TABLE const unsigned char
#endif
__attribute__((used, section(".eh_frame"))) TABLE frame_table[44] = {12,
                                                                     0,
                                                                     0,
                                                                     0,
                                                                     /* a common part */ 0,
                                                                     0,
                                                                     0,
                                                                     0,
                                                                     /* version */ 1,
                                                                     /* no augmentation */ 0,
                                                                     1,
                                                                     0x78,
                                                                     16,
                                                                     0,
                                                                     0,
                                                                     0,
                                                                     20,
                                                                     0,
                                                                     0,
                                                                     0,
                                                                     /* back to it */ 20,
                                                                     0,
                                                                     0,
                                                                     0,
                                                                     /* from */ 1,
                                                                     0,
                                                                     0,
                                                                     0,
                                                                     0,
                                                                     0,
                                                                     0,
                                                                     0,
                                                                     /* so many bytes */ 0xfe,
                                                                     0xff,
                                                                     0xff,
                                                                     0xff,
                                                                     0xff,
                                                                     0xff,
                                                                     0xff,
                                                                     0xff};
int frame_table_main(void) { return frame_table[0]; }
