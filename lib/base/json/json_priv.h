/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the files of the JSON reader: the scanner (scan.c), strings (string.c), the
 * search for duplicate keys (keys.c) and the accessors (json.c). */
#ifndef STW_BASE_JSON_PRIV_H
#define STW_BASE_JSON_PRIV_H

#include "base/json.h"

/* The error and its position; `what` is NULL if there is none. */
struct stw_json_fault {
    const char *what;
    size_t at; /* offset in the text */
};

/* Checks a string; `p` is after its opening quote.  Returns the position of its closing quote and
 * sets decoded length and escapes in `token`; NULL with the fault set when it is not a valid
 * string. */
const char *stw_json_scan_string(const char *text, const char *p, const char *end,
                                 struct stw_json_token *token, struct stw_json_fault *fault);

/* Iterates over the decoded bytes of a checked string.  Each call returns one run of plain bytes or
 * one decoded escape; 0 at the end.  `piece` points into the text or into `store`. */
struct stw_json_decoder {
    const char *p, *end;
    char store[4];
};
size_t stw_json_decode(struct stw_json_decoder *d, const char **piece);

/* A key's token, 0: free (a key is never token 0), and a part of its hash. */
struct stw_json_slot {
    uint32_t key, hash;
};

/* Memory kept from one scan to the next. */
struct stw_json_scratch {
    struct stw_json_slot *slots;
    size_t cap;
    uint64_t seed;           /* from the kernel, so that clients cannot provoke hash collisions */
    struct stw_buf rooms[2]; /* decoded keys, two at a time */
};
void stw_json_scratch_destroy(struct stw_json_scratch *s);

/* Looks for two members of the same name in a finished object.  Returns 0, 1 and the token of the
 * second one, or -1 when out of memory. */
int stw_json_find_duplicate(struct stw_json_doc *doc, uint32_t object, uint32_t *ret_key);

#endif
