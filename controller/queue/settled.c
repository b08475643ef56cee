/* SPDX-License-Identifier: Apache-2.0
 *
 * Large objects that are as their last run left them: a resync does not read them from the API server
 * only to see that. */
#include "controller/manager/manager_priv.h"

static struct stw_hash hash_text(const struct stw_buf *text)
{
    return stw_hash_bytes(stw_buf_str(text), text->len);
}

void stw_settled_note(const struct stw_run *run, const struct stw_buf *text)
{
    char what[STW_REMAINS_KEY_LEN];
    stw_remains_key(run->controller, run->key, what);
    stw_memo_put(run->manager->memo, what, hash_text(text), (struct stw_digests){0});
}

bool stw_settled_is(const struct stw_worker_pool *pool, const char *key)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(STW_RESPONSE_MAX_BYTES);
    char what[STW_REMAINS_KEY_LEN];
    struct stw_digests none;
    stw_remains_key(pool->controller, key, what);
    return stw_informer_get(pool->own->informer, key, &text, NULL) == 0 &&
           stw_memo_get(pool->manager->memo, what, hash_text(&text), &none);
}
