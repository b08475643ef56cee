/* SPDX-License-Identifier: Apache-2.0
 *
 * "Did you mean": the known word that is most like a misspelt one.  One offer costs at most 64 x 64
 * steps, and callers bound the number of offers, so that no input makes it slow. */
#ifndef STW_BASE_GUESS_H
#define STW_BASE_GUESS_H

#include <stddef.h>

#define STW_GUESS_MAX_BYTES 63 /* longer words get no guess */

struct stw_guess {
    const char *word; /* borrowed */
    size_t len;
    const char *best; /* borrowed from the offers; NULL: none is like it */
    unsigned distance;
};

void stw_guess_init(struct stw_guess *g, const char *word);
/* Keeps `known` if it is nearer than all before it.  A difference in case counts less than another
 * letter; two letters swapped count as one difference.  Words that differ in more than a third of
 * their letters, or in more than three, are not alike. */
void stw_guess_offer(struct stw_guess *g, const char *known);

#endif
