/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the JSON reader share: the scanner (json_scan.c), strings (json_string.c), the
 * search for duplicate keys (json_keys.c) and the accessors (json.c). */
#ifndef STW_BASE_JSON_PRIV_H
#define STW_BASE_JSON_PRIV_H

#include "base/json.h"

/* What was wrong and where; `what` is NULL while all is well. */
struct stw_json_fault {
    const char *what;
    size_t at; /* offset in the text */
};

/* Checks a string from behind its opening quote.  Returns where its closing quote is and fills
 * decoded length and escapes in; NULL with the fault set when it is not a valid string. */
const char *stw_json_scan_string(const char *text, const char *p, const char *end,
                                 struct stw_json_token *token, struct stw_json_fault *fault);

/* Walks the decoded bytes of a checked string: one run of plain bytes, or one decoded escape, a
 * call.  A `piece` points into the text or into `store`; 0 at the end. */
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
    uint64_t seed;           /* from the kernel, so that nobody can aim at the hash */
    struct stw_buf rooms[2]; /* decoded keys, two at a time */
};
void stw_json_scratch_destroy(struct stw_json_scratch *s);

/* Looks for two members of the same name in a finished object.  Returns 0, 1 and the token of the
 * second one, or -1 when there is no memory. */
int stw_json_find_duplicate(struct stw_json_doc *doc, uint32_t object, uint32_t *ret_key);

#endif
