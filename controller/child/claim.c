/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/claim.h"

#include "base/util.h"

#include <stdio.h>

#define KEYS_MAX (64u << 20)

static bool is_active_and_older(const struct stw_object *other, const struct stw_object *own,
                                bool older)
{
    (void)own;
    return older && !other->deleting;
}

bool stw_claim_find(const struct stw_run *run, const struct stw_object *own, const char *index_key,
                    stw_claim_fn *before, char ret_key[STW_KEY_LEN])
{
    stw_autobuf struct stw_buf keys = STW_BUF_INIT(KEYS_MAX);
    size_t at = 0;
    stw_informer_keys(stw_run_cache(run, run->controller->own), index_key, &keys);
    for (const char *key; (key = stw_keys_next(&keys, &at));) {
        stw_autoobject struct stw_object other = {0};
        if (stw_streq(key, run->key) || stw_object_load_key(run, key, &other) != 0)
            continue;
        int order = strcmp(other.created, own->created); /* RFC 3339 in UTC sorts as text */
        bool older = order < 0 || (order == 0 && strcmp(key, run->key) < 0);
        if (!(before ? before : is_active_and_older)(&other, own, older))
            continue;
        stw_format(ret_key, STW_KEY_LEN, "%s", key);
        return true;
    }
    return false;
}
