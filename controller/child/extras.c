/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/child/extras_priv.h"

#include "base/util.h"
#include "kube/informer.h"
#include "kube/owned.h"

#include <stdio.h>

#define NAMED_MAX 3U

struct extras {
    struct stw_buf *out;
    unsigned found;
    void (*add)(struct extras *x, const char *path, const char *key);
};

static const json_t *find_map(const json_t *desired, const char *path)
{
    const json_t *at = desired;
    for (size_t len; at && *path; path += len + (path[len] == '.')) {
        char part[64];
        len = strcspn(path, ".");
        stw_format(part, sizeof(part), "%.*s", (int)len, path);
        at = json_object_get(at, part);
    }
    return json_is_object(at) ? at : NULL;
}

/* `want` is a hash table: another client may have added very many keys to live_map. */
static void find_extras(struct extras *x, const json_t *want, const char *path,
                        struct stw_json live_map)
{
    struct stw_json key, value;
    stw_json_foreach (live_map, key, value) {
        stw_autofree char *name = stw_json_strdup(key);
        if (!name || json_object_get(want, name))
            continue;
        x->found++;
        x->add(x, path, name);
    }
}

static unsigned each_extra(struct extras *x, const json_t *desired, struct stw_json live,
                           bool all_data)
{
    const char *path;
    for (unsigned i = 0; (path = stw_owned_whole(i, all_data)); i++) {
        const json_t *want = find_map(desired, path);
        struct stw_json map = stw_json_path(live, path);
        if (want && stw_json_type(map) == STW_JSON_OBJECT)
            find_extras(x, want, path, map);
    }
    return x->found;
}

static void add_part(struct stw_buf *pointer, const char *text, size_t len)
{
    stw_buf_addc(pointer, '/');
    for (size_t i = 0; i < len; i++)
        if (text[i] == '~' || text[i] == '/')
            stw_buf_adds(pointer, text[i] == '~' ? "~0" : "~1");
        else
            stw_buf_addc(pointer, text[i]);
}

static void add_removal(struct extras *x, const char *path, const char *key)
{
    stw_autobuf struct stw_buf pointer = STW_BUF_INIT(4096);
    if (x->found > STW_CHILD_EXTRAS_MAX)
        return;
    for (size_t len; *path; path += len + (path[len] == '.')) {
        len = strcspn(path, ".");
        add_part(&pointer, path, len);
    }
    add_part(&pointer, key, strlen(key));
    stw_buf_adds(x->out, ",{\"op\":\"remove\",\"path\":");
    stw_buf_json_strz(x->out, stw_buf_str(&pointer));
    stw_buf_addc(x->out, '}');
}

unsigned stw_child_remove_extras(const json_t *desired, struct stw_json live, bool all_data,
                                 struct stw_buf *patch)
{
    struct extras x = {.out = patch, .add = add_removal};
    (void)each_extra(&x, desired, live, all_data);
    return STW_MIN(x.found, STW_CHILD_EXTRAS_MAX);
}

static void add_name(struct extras *x, const char *path, const char *key)
{
    if (x->found <= NAMED_MAX)
        stw_buf_addf(x->out, "%s%s.%s", x->found > 1 ? ", " : "", path, key);
}

unsigned stw_child_name_extras(const json_t *desired, struct stw_json live, bool all_data,
                               struct stw_buf *out)
{
    struct extras x = {.out = out, .add = add_name};
    if (each_extra(&x, desired, live, all_data) > NAMED_MAX)
        stw_buf_addf(out, " and %u more", x.found - NAMED_MAX);
    return x.found;
}

void stw_child_begin_patch(struct stw_buf *patch, struct stw_json live, const char *uid)
{
    char rv[STW_RV_LEN] = "";
    (void)stw_json_strcpy(stw_json_path(live, "metadata.resourceVersion"), rv, sizeof(rv));
    stw_buf_adds(patch, "[{\"op\":\"test\",\"path\":\"/metadata/uid\",\"value\":");
    stw_buf_json_strz(patch, uid);
    stw_buf_adds(patch, "},{\"op\":\"test\",\"path\":\"/metadata/resourceVersion\",\"value\":");
    stw_buf_json_strz(patch, rv);
    stw_buf_addc(patch, '}');
}
