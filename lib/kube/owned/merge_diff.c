/* SPDX-License-Identifier: Apache-2.0
 *
 * The JSON merge patch (RFC 7396) between two values. */
#include "kube/client.h"

static void diff_objects(const json_t *from, const json_t *to, json_t *patch);

static void diff_member(const char *key, const json_t *from, const json_t *to, json_t *patch)
{
    if (json_equal(from, to))
        return;
    if (!json_is_object(from) || !json_is_object(to)) {
        (void)json_object_set(patch, key, (json_t *)(uintptr_t)to); /* shared */
        return;
    }
    json_t *inner = json_object();
    diff_objects(from, to, inner);
    (void)json_object_set_new(patch, key, inner);
}

static void diff_objects(const json_t *from, const json_t *to, json_t *patch)
{
    /* json_object_foreach does not accept const; nothing here writes to either. */
    json_t *a = (json_t *)(uintptr_t)from, *b = (json_t *)(uintptr_t)to;
    const char *key;
    json_t *value;
    json_object_foreach (a, key, value)
        if (!json_object_get(to, key))
            (void)json_object_set_new(patch, key, json_null());
    json_object_foreach (b, key, value)
        diff_member(key, json_object_get(from, key), value, patch);
}

json_t *stw_merge_diff(const json_t *from, const json_t *to)
{
    json_t *patch = json_object();
    diff_objects(from, to, patch);
    if (json_object_size(patch) > 0)
        return patch;
    json_decref(patch);
    return NULL;
}
