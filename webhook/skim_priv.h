/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the ends of JSON values without memory, so that a large text can be read in parts and its
 * memory be charged before it is used. Only strings and brackets are looked at: each part must still
 * be scanned (base/json.h), which is strict. */
#ifndef STW_WEBHOOK_SKIM_PRIV_H
#define STW_WEBHOOK_SKIM_PRIV_H

#include <stdbool.h>
#include <stddef.h>

struct stw_piece {
    const char *at; /* NULL: none */
    size_t len;
};

/* The most memory that stw_json_scan takes for this text. */
size_t stw_skim_memory(struct stw_piece text);
/* The first member of this name of an object; the name is compared as it is written. None if the
 * text is not an object or ends before the member does. */
struct stw_piece stw_skim_member(struct stw_piece object, const char *name);

/* Iterates over a list: `at` begins as the list. Returns 1 with the next element, 0 at the end, or
 * -1: the text is not a list. */
int stw_skim_element(struct stw_piece *at, struct stw_piece *ret);

#endif
