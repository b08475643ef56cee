/* SPDX-License-Identifier: Apache-2.0
 *
 * The workload: one GET reads it, one server-side apply of annotations restarts it.  What a
 * selector matches is read by one list. */
#include "kinds/eru/target.h"

#include "base/process/fault.h"
#include "base/util.h"
#include "kinds/eru/inputs.h"
#include "kinds/eru/rollouts.h"
#include "kinds/eru/run_priv.h"
#include "kinds/eru/runtime.h"
#include "kinds/eru/state.h"
#include "kinds/eru/workloads.h"
#include "kube/pages.h"
#include "kube/tree.h"

#include <stdio.h>

/* --- reading */

static int read_workload(struct eru *e, struct stw_error *err)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(STW_RESPONSE_MAX_BYTES);
    stw_autojson struct stw_json_doc doc = {0};
    char index[ERU_INDEX_LEN];
    eru_workload_index(e, index);
    eru_rollouts_track(eru_runtime_rollouts(e->run->state), index,
                       true); /* before the read, so that no change is missed */
    e->target = (struct eru_target){0};
    if (stw_kube_get(e->run->client, e->workload->resource, e->run->ns, e->spec.deployment, &text,
                     err) != 0) {
        if (err->code != STW_ERR_NOT_FOUND)
            return -1;
        *err = (struct stw_error){0};
        return 0;
    }
    if (stw_json_scan(&doc, stw_buf_str(&text), text.len, err) != 0)
        return -1;
    if (eru_target_read(e->workload, stw_json_root(&doc), &e->target) != 0)
        return stw_fail(err, STW_ERR_INTERNAL, "the answer is not a %s", e->workload->kind);
    return 0;
}

/* --- stamping */

static int read_written(struct eru *e, const struct stw_buf *answer)
{
    stw_autojson struct stw_json_doc doc = {0};
    struct eru_target now;
    if (stw_json_scan(&doc, stw_buf_str(answer), answer->len, NULL) != 0 ||
        eru_target_read(e->workload, stw_json_root(&doc), &now) != 0)
        return -1;
    e->target = now;
    return 0;
}

static int stamp_workload(struct eru *e, const char *name, const char *text, struct stw_error *err)
{
    stw_autobuf struct stw_buf answer = STW_BUF_INIT(STW_RESPONSE_MAX_BYTES);
    json_auto_t *patch = json_pack(
        "{s:s,s:s,s:{s:s,s:s,s:s,s:s},s:{s:{s:{s:{s:s,s:s*}}}}}", "apiVersion", "apps/v1", "kind",
        e->workload->kind, "metadata", "name", name, "namespace", e->run->ns, "uid", e->target.uid,
        "resourceVersion", e->target.resource_version, "spec", "template", "metadata",
        "annotations", ERU_STAMP, text, ERU_INPUTS, *e->inputs ? e->inputs : NULL);
    if (!patch)
        return stw_fail_memory(err);
    if (stw_kube_apply(e->run->client, STW_PLACE(e->workload->resource, e->run->ns, name), patch,
                       e->run->field_manager, &answer, err) != 0)
        return -1;
    stw_fault_point("stamp");
    stw_informer_saw(stw_run_cache(e->run, e->watch), &answer, NULL);
    return read_written(e, &answer) == 0
               ? 0
               : stw_fail(err, STW_ERR_INTERNAL, "the answer is not a %s", e->workload->kind);
}

/* --- a selector */

#define LISTED_MAX 1000 /* objects that are read to find those of the status */

/* Of these, as many match as may at most: one of them may have megabytes, and each run reads all. */
#define UNREADABLE_MAX ERU_MATCHES_MAX

struct listing {
    struct eru *e;
    struct eru_found_list *list;
    size_t seen;
};

static bool is_wanted(const json_t *only, const char *name)
{
    size_t i;
    const json_t *one;
    json_array_foreach (only, i, one)
        if (stw_streq(stw_tree_text(one, "name"), name))
            return true;
    return !only;
}

/* Non-zero: there are more than are read. */
static int take_workload(void *ctx, struct stw_json object)
{
    struct listing *l = ctx;
    struct eru_found_list *list = l->list;
    struct stw_json meta = stw_json_get(object, "metadata");
    struct eru_found *found = &list->all[list->count];
    char created[STW_TIME_LEN] = "";
    int64_t us = 0;
    *found = (struct eru_found){0};
    list->more = ++l->seen > LISTED_MAX;
    if (list->more ||
        stw_json_strcpy(stw_json_get(meta, "name"), found->name, sizeof(found->name)) != 0 ||
        !is_wanted(list->only, found->name) ||
        eru_target_read(l->e->workload, object, &found->target) != 0 || !found->target.there)
        return list->more;
    list->more = list->count == ERU_MATCHES_MAX;
    if (list->more)
        return 1;
    (void)stw_json_strcpy(stw_json_get(meta, "creationTimestamp"), created, sizeof(created));
    (void)stw_time_parse(created, &us);
    found->created = us / 1000000;
    list->count++;
    return 0;
}

/* It costs only itself: the others are restarted.  Non-zero: there are more than are read. */
static int note_unreadable(void *ctx, const char *key, const char *place, const char *why)
{
    struct listing *l = ctx;
    struct eru_found_list *list = l->list;
    const char *slash = key ? strchr(key, '/') : NULL;
    (void)why;
    if (!list->unreadable)
        list->unreadable = json_array();
    list->more = ++l->seen > LISTED_MAX || json_array_size(list->unreadable) == UNREADABLE_MAX ||
                 json_array_append_new(list->unreadable, json_string(slash ? slash + 1 : place));
    return list->more;
}

static int list_workloads(struct eru *e, struct eru_found_list *list, struct stw_error *err)
{
    stw_autobuf struct stw_buf query = STW_BUF_INIT(65536);
    struct listing l = {.e = e, .list = list};
    list->all = calloc(ERU_MATCHES_MAX + 1, sizeof(*list->all));
    eru_selector_query(&e->spec.selector, &query);
    if (!list->all || query.failed)
        return stw_fail_memory(err);
    struct stw_pages pages = {.resource = e->workload->resource,
                              .ns = e->run->ns,
                              .label_selector = stw_buf_str(&query),
                              .unreadable = note_unreadable};
    return stw_pages_each(e->run->client, &pages, take_workload, &l, err) < 0 ? -1 : 0;
}

static bool has_own(struct eru *e, const char *name)
{
    stw_autobuf struct stw_buf index = STW_BUF_INIT(2048), keys = STW_BUF_INIT(65536);
    stw_buf_addf(&index, "%s:%s/%s", e->workload->index, e->run->ns, name);
    stw_informer_keys(stw_run_cache(e->run, e->run->controller->own), stw_buf_str(&index), &keys);
    return keys.len > 0 || keys.failed;
}

/* --- the last change of the schedule */

static bool sets_schedule(struct stw_json entry)
{
    static const char *const fields[] = {"f:schedule", "f:timeZone", "f:enabled"};
    struct stw_json spec = stw_json_get(stw_json_get(entry, "fieldsV1"), "f:spec");
    for (size_t i = 0; i < STW_COUNT(fields); i++)
        if (stw_json_there(stw_json_get(spec, fields[i])))
            return true;
    return false;
}

/* By metadata.managedFields; now, if they do not have it. */
static int64_t changed_at(struct eru *e)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(STW_RESPONSE_MAX_BYTES);
    stw_autojson struct stw_json_doc doc = {0};
    struct stw_json key, entry;
    struct stw_error err = {0};
    int64_t latest = ERU_NEVER, now = e->now_us / 1000000;
    if (stw_kube_get(e->run->client, &stw_kind_eru.resource, e->run->ns, e->run->name, &text,
                     &err) != 0 ||
        stw_json_scan(&doc, stw_buf_str(&text), text.len, &err) != 0)
        return now;
    stw_json_foreach (stw_json_path(stw_json_root(&doc), "metadata.managedFields"), key, entry) {
        char time[STW_TIME_LEN];
        int64_t us;
        if (sets_schedule(entry) &&
            stw_json_strcpy(stw_json_get(entry, "time"), time, sizeof(time)) == 0 &&
            stw_time_parse(time, &us) == 0)
            latest = STW_MAX(latest, us / 1000000);
    }
    return latest == ERU_NEVER ? now : latest;
}

static int64_t took_ms(struct eru *e, int64_t written_ms)
{
    char index[ERU_INDEX_LEN];
    eru_workload_index(e, index);
    return eru_rollouts_took_ms(eru_runtime_rollouts(e->run->state), index,
                                e->state.rollout.instant, written_ms);
}

const struct eru_ops eru_ops = {
    .look = read_workload,
    .stamp = stamp_workload,
    .inputs = eru_inputs_read,
    .list = list_workloads,
    .has_own = has_own,
    .changed_at = changed_at,
    .took_ms = took_ms,
};
