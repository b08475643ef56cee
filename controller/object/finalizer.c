/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/finalizer.h"

#include "controller/object/finalizer_priv.h"
#include "kube/tree.h"

#include <assert.h>

/* The list without `finalizer`; if `wanted`, it is then appended. */
static json_t *new_list(const struct stw_object *o, const char *finalizer, bool wanted)
{
    struct stw_json key, one;
    json_t *list = json_array();
    stw_json_foreach (stw_finalizer_list(o), key, one) {
        if (!stw_json_is(one, finalizer))
            (void)json_array_append_new(list, stw_tree_read(one));
    }
    if (wanted)
        (void)json_array_append_new(list, json_string(finalizer));
    return list;
}

static int patch_finalizers(struct stw_run *run, const struct stw_object *o, json_t *list,
                            struct stw_buf *answer, struct stw_error *err)
{
    json_auto_t *body = json_pack("{s:{s:s,s:o}}", "metadata", "resourceVersion",
                                  o->resource_version, "finalizers", list);
    if (!body)
        return stw_fail_memory(err);
    return stw_kube_merge_patch(run->client,
                                STW_PLACE(run->controller->resource, run->ns, run->name), body,
                                run->field_manager, answer, err);
}

/* Stores the returned object in the cache, and its resourceVersion in `o`. */
static void take_answer(struct stw_run *run, struct stw_object *o, const struct stw_buf *answer)
{
    stw_autojson struct stw_json_doc doc = {0};
    stw_informer_saw(stw_run_cache(run, run->controller->own), answer, NULL);
    if (stw_json_scan(&doc, stw_buf_str(answer), answer->len, NULL) == 0)
        (void)stw_json_strcpy(stw_json_path(stw_json_root(&doc), "metadata.resourceVersion"),
                              o->resource_version, sizeof(o->resource_version));
}

int stw_finalizer_add(struct stw_run *run, struct stw_object *o, const char *finalizer,
                      struct stw_error *err)
{
    stw_autobuf struct stw_buf answer = STW_BUF_INIT(STW_RESPONSE_MAX_BYTES);
    assert(finalizer && *finalizer);
    if (stw_finalizer_has(o, finalizer))
        return 0;
    if (patch_finalizers(run, o, new_list(o, finalizer, true), &answer, err) != 0)
        return -1;
    take_answer(run, o, &answer);
    return 1;
}

int stw_finalizer_remove(struct stw_run *run, struct stw_object *o, const char *finalizer,
                         struct stw_error *err)
{
    stw_autobuf struct stw_buf answer = STW_BUF_INIT(STW_RESPONSE_MAX_BYTES);
    struct stw_error e = {0};
    assert(finalizer && *finalizer);
    if (!stw_finalizer_has(o, finalizer))
        return 0;
    if (patch_finalizers(run, o, new_list(o, finalizer, false), &answer, &e) != 0 &&
        e.code != STW_ERR_NOT_FOUND) {
        *err = e;
        return -1;
    }
    if (e.code == STW_OK && stw_finalizer_has_others(o, finalizer))
        take_answer(run, o, &answer);
    else
        stw_informer_saw_delete(stw_run_cache(run, run->controller->own), run->key,
                                o->resource_version);
    return 1;
}
