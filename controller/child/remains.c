/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/child/remains.h"

#include "base/log.h"
#include "base/process/memory_budget.h"
#include "base/table.h"
#include "base/thread.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct one {
    size_t bytes; /* of the share of the caches */
    uint32_t tries;
    char key[]; /* and the text behind its NUL */
};

struct stw_remains {
    pthread_mutex_t lock;
    struct stw_table all;
};

static const char *key_of(const void *entry)
{
    return ((const struct one *)entry)->key;
}

static void free_one(void *entry)
{
    struct one *o = entry;
    if (o)
        stw_share_give_back(STW_SHARE_CACHES, o->bytes);
    free(o);
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
    if (!r)
        return;
    stw_table_release(&r->all, free_one);
    (void)pthread_mutex_destroy(&r->lock);
    free(r);
}

static struct one *make_one(const char *key, const char *text)
{
    size_t key_size = strlen(key) + 1, text_size = strlen(text) + 1;
    struct one *o = malloc(sizeof(*o) + key_size + text_size);
    if (!o)
        return NULL;
    o->tries = 0;
    o->bytes = sizeof(*o) + key_size + text_size;
    stw_share_add(STW_SHARE_CACHES, o->bytes);
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
        free_one(o);
        stw_log(STW_LOG_ERROR,
                "an object was deleted in spite of its finalizer; what was made for it is left",
                STW_STR("object", key));
        return;
    }
    free_one(old);
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
    stw_buf_adds(out, o->key + strlen(o->key) + 1);
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
    free_one(stw_table_remove(&r->all, key));
    return true;
}
