/* SPDX-License-Identifier: Apache-2.0
 *
 * What the reflectors report to their informer. */
#include "base/thread.h"
#include "base/util.h"
#include "kube/cache/reflector_priv.h"

#include <assert.h>

void stw_informer_ended(struct stw_informer *inf)
{
    STW_LOCKED(&inf->lock);
    assert(inf->running > 0);
    inf->running--;
    pthread_cond_broadcast(&inf->ended);
}

void stw_informer_set_problem(struct stw_reflector *r, const char *text, bool forbidden)
{
    STW_LOCKED(&r->inf->lock);
    stw_format(r->problem, sizeof(r->problem), "%s", text);
    r->forbidden = forbidden;
    r->failed += *text != '\0';
}

int64_t stw_informer_last_seen_us(const struct stw_informer *inf)
{
    int64_t oldest = inf->reflectors[0].seen_us;
    for (unsigned i = 1; i < inf->reflector_count; i++)
        oldest = STW_MIN(oldest, inf->reflectors[i].seen_us);
    return oldest;
}

void stw_informer_note(struct stw_reflector *r, bool list)
{
    struct stw_informer *inf = r->inf;
    STW_LOCKED(&inf->lock);
    memcpy(r->seen_rv, r->rv, sizeof(r->seen_rv));
    r->seen_us = stw_wall_us(inf->clock);
    r->lists += list;
    stw_series_set(inf->last_event, (double)stw_informer_last_seen_us(inf) / 1e6);
}

void stw_informer_changed(struct stw_informer *inf, const char *key, const char *old_text,
                          const char *new_text)
{
    if (inf->config.changed)
        inf->config.changed(inf->config.ctx, key, old_text, new_text);
}

void stw_informer_gauges(struct stw_informer *inf)
{
    size_t bytes;
    uint32_t count = stw_cache_count(&inf->cache, &bytes);
    stw_series_set(inf->objects, count);
    stw_series_set(inf->bytes, (double)bytes);
    stw_series_set(inf->skipped, stw_unreadable_count(&inf->unreadable));
}

int stw_informer_identify(struct stw_json object, struct stw_object_id *id)
{
    char ns[STW_KEY_LEN] = "", name[STW_KEY_LEN];
    struct stw_json meta = stw_json_get(object, "metadata");
    (void)stw_json_strcpy(stw_json_get(meta, "namespace"), ns, 254);
    if (stw_json_strcpy(stw_json_get(meta, "name"), name, 254) < 0 || name[0] == '\0' ||
        stw_json_strcpy(stw_json_get(meta, "resourceVersion"), id->rv, sizeof(id->rv)) < 0)
        return -1;
    stw_key_make(ns, name, id->key);
    return 0;
}

int stw_informer_read(struct stw_informer *inf, struct stw_json object, struct stw_object_id *id,
                      struct stw_buf *text, struct stw_version *ret)
{
    if (stw_informer_identify(object, id) != 0)
        return -1;
    stw_buf_clear(text);
    inf->config.project(inf->config.ctx, object, text);
    bool keep = text->len > 0 && !text->failed;
    *ret = (struct stw_version){
        .key = id->key, .rv = id->rv, .text = keep ? text->data : NULL, .text_len = text->len};
    return 0;
}
