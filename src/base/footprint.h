/* SPDX-License-Identifier: Apache-2.0
 *
 * Resident memory that is not needed any more. */
#ifndef STW_BASE_FOOTPRINT_H
#define STW_BASE_FOOTPRINT_H

/* Lets go of the pages of the program and its libraries that are never written (code, constants,
 * what the dynamic linker has read), and of the free pages of the heap.  What is used again comes
 * back from the page cache, page by page.  Any thread, while others run; costs about a
 * millisecond. */
void stw_footprint_shrink(void);
/* The free pages of the heap only, behind work that has needed many. */
void stw_footprint_trim(void);

#endif
