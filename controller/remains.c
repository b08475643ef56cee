/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/remains.h"

#include "base/json.h"
#include "base/log.h"
#include "base/table.h"
#include "base/thread.h"
#include "controller/packed.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX (8u << 20)

struct one {
    uint32_t tries;
    size_t text_at; /* in `key` */
    char key[];     /* and the text */
};

struct stw_remains {
    pthread_mutex_t lock;
    struct stw_table all;
};

static const char *key_of(const void *entry)
{
    return ((const struct one *)entry)->key;
}

struct stw_remains *stw_remains_create(void)
{
    struct stw_remains *r = calloc(1, sizeof(*r));
    if (!r)
        return NULL;
    r->all = STW_TABLE_INIT(key_of);
    (void)pthread_mutex_init(&r->lock, NULL);
    return r;
}

void stw_remains_destroy(struct stw_remains *r)
{
    uint32_t at = 0;
    if (!r)
        return;
    for (void *one; (one = stw_table_next(&r->all, &at));)
        free(one);
    stw_table_done(&r->all);
    (void)pthread_mutex_destroy(&r->lock);
    free(r);
}

bool stw_remains_are(const char *text, const char *finalizer)
{
    stw_autobuf struct stw_buf unpacked = STW_BUF_INIT(TEXT_MAX);
    stw_autojson struct stw_json_doc doc = {.trusted = true};
    struct stw_json key, one;
    if (stw_unpack_scan(text, strlen(text), &unpacked, &doc) != 0)
        return false;
    struct stw_json metadata = stw_json_get(stw_json_root(&doc), "metadata");
    if (stw_json_there(stw_json_get(metadata, "deletionTimestamp")))
        return false;
    stw_json_foreach (stw_json_get(metadata, "finalizers"), key, one)
        if (stw_json_is(one, finalizer))
            return true;
    return false;
}

static struct one *make_one(const char *key, const char *text)
{
    size_t key_size = strlen(key) + 1, text_size = strlen(text) + 1;
    struct one *o = malloc(sizeof(*o) + key_size + text_size);
    if (!o)
        return NULL;
    o->tries = 0;
    o->text_at = key_size;
    memcpy(o->key, key, key_size);
    memcpy(o->key + key_size, text, text_size);
    return o;
}

void stw_remains_keep(struct stw_remains *r, const char *key, const char *text)
{
    void *old = NULL;
    STW_LOCKED(&r->lock);
    struct one *o = stw_table_size(&r->all) < STW_REMAINS_MAX ? make_one(key, text) : NULL;
    if (!o || stw_table_put(&r->all, o, &old) != 0) {
        free(o);
        stw_log(STW_LOG_ERROR,
                "an object was deleted in spite of its finalizer; what was made for it is left",
                STW_STR("object", key));
        return;
    }
    free(old);
    stw_log(STW_LOG_WARN,
            "an object was deleted in spite of its finalizer: its deletion is run now",
            STW_STR("object", key));
}

int stw_remains_get(struct stw_remains *r, const char *key, struct stw_buf *out)
{
    STW_LOCKED(&r->lock);
    const struct one *o = stw_table_get(&r->all, key);
    if (!o)
        return -1;
    stw_buf_adds(out, o->key + o->text_at);
    return out->failed ? -1 : 0;
}

bool stw_remains_tried(struct stw_remains *r, const char *key, bool done)
{
    STW_LOCKED(&r->lock);
    struct one *o = stw_table_get(&r->all, key);
    if (!o)
        return true;
    if (!done && ++o->tries < STW_REMAINS_TRIES_MAX)
        return false;
    if (!done)
        stw_log(STW_LOG_ERROR, "the deletion is given up; what was made for the object is left",
                STW_STR("object", key));
    free(stw_table_remove(&r->all, key));
    return true;
}
