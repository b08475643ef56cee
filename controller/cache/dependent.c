/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/dependent.h"

#include "base/util.h"
#include "kube/owned.h"

#define INDEX "owner"

enum { OWNER_KIND, OWNER_NAME, OWNER_UID };

/* Absent: no kind of ours. */
static struct stw_json find_owner(const struct stw_controller *const *all, struct stw_json object)
{
    struct stw_json reference = stw_owner_find(object);
    for (; *all; all++)
        if (stw_reference_is_of(reference, (*all)->kind->group, (*all)->kind->kind))
            return reference;
    return STW_JSON_NONE;
}

static void add_raw(struct stw_buf *out, const char *before, struct stw_json value)
{
    size_t len;
    const char *raw = stw_json_raw(value, &len);
    stw_buf_adds(out, before);
    stw_buf_add(out, len > 0 ? raw : "null", len > 0 ? len : strlen("null"));
}

bool stw_dependent_project(const struct stw_operator *op, struct stw_json object,
                           struct stw_buf *out)
{
    struct stw_json owner = find_owner(op->controllers, object),
                    meta = stw_json_get(object, "metadata");
    if (!stw_json_there(owner))
        return false;
    add_raw(out, "{\"owner\":[", stw_json_get(owner, "kind"));
    add_raw(out, ",", stw_json_get(owner, "name"));
    add_raw(out, ",", stw_json_get(owner, "uid"));
    add_raw(out, "],\"name\":", stw_json_get(meta, "name"));
    add_raw(out, ",\"uid\":", stw_json_get(meta, "uid"));
    if (stw_json_there(stw_json_get(meta, "deletionTimestamp")))
        stw_buf_adds(out, ",\"gone\":true");
    return true;
}

void stw_dependent_index(void *ctx, struct stw_json projected, struct stw_buf *out)
{
    char uid[64];
    (void)ctx;
    struct stw_json owner = stw_json_get(projected, "owner");
    if (stw_json_strcpy(stw_json_at(owner, OWNER_UID), uid, sizeof(uid)) == 0)
        stw_index_add(out, INDEX, uid);
}

bool stw_dependent_is_of(struct stw_json projected, const char *owner_uid)
{
    return stw_json_is(stw_json_at(stw_json_get(projected, "owner"), OWNER_UID), owner_uid);
}

static void enqueue_owner(struct stw_manager *m, const char *key, const char *text)
{
    stw_autojson struct stw_json_doc doc = {0};
    char ns[STW_KEY_LEN], none[STW_KEY_LEN], kind[64], name[254], owner[STW_KEY_LEN];
    if (!text || stw_json_scan(&doc, text, strlen(text), NULL) != 0)
        return;
    struct stw_json list = stw_json_get(stw_json_root(&doc), "owner");
    if (stw_json_strcpy(stw_json_at(list, OWNER_KIND), kind, sizeof(kind)) != 0 ||
        stw_json_strcpy(stw_json_at(list, OWNER_NAME), name, sizeof(name)) != 0)
        return;
    stw_key_split(key, ns, none);
    stw_key_make(ns, name, owner);
    stw_manager_enqueue(m, kind, owner);
}

void stw_dependent_changed(struct stw_manager *m, const struct stw_watch *w, const char *key,
                           const char *old_text, const char *new_text)
{
    (void)w;
    enqueue_owner(m, key, old_text);
    enqueue_owner(m, key, new_text);
}

void stw_dependent_keys(const struct stw_run *run, const struct stw_watch *w, const char *owner_uid,
                        struct stw_buf *out)
{
    stw_autobuf struct stw_buf index = STW_BUF_INIT(256);
    stw_index_add(&index, INDEX, owner_uid);
    if (index.len == 0 || index.failed)
        return;
    index.data[index.len - 1] = '\0'; /* without the '\n' */
    stw_informer_keys(stw_run_cache(run, w), index.data, out);
}
