/* SPDX-License-Identifier: Apache-2.0
 *
 * Releases resident memory that is no longer needed. */
#ifndef STW_BASE_FOOTPRINT_H
#define STW_BASE_FOOTPRINT_H

/* Drops the pages of the program and its libraries that are never written (code, constants, data
 * read by the dynamic linker) and the free pages of the heap.  A page that is used again comes back
 * from the page cache.  May be called from any thread while others run; takes about a
 * millisecond. */
void stw_footprint_shrink(void);
/* Drops only the pages of the program and its libraries: after a request that is the only one for a
 * while.  Takes about 0.1 ms. */
void stw_footprint_drop_code(void);
/* Drops only the free pages of the heap, after work that needed many. */
void stw_footprint_trim(void);

#endif
