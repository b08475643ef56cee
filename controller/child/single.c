/* SPDX-License-Identifier: Apache-2.0
 *
 * Children beyond the rows: of any name and number. */
#include "controller/child.h"

#include "base/util.h"
#include "controller/child/child_priv.h"
#include "kube/tree.h"

static const char *name_of(const json_t *desired)
{
    return stw_tree_text(json_object_get(desired, "metadata"), "name");
}

enum stw_child_state stw_child_write(struct stw_run *run, const struct stw_owner *owner,
                                     const struct stw_watch *w, const json_t *desired,
                                     struct stw_error *err)
{
    struct stw_child c = {.watch = w, .name = name_of(desired), .desired = desired};
    *err = (struct stw_error){0};
    if (!desired) {
        (void)stw_child_fail_desired(w->resource, err);
        return STW_CHILD_FAILED;
    }
    stw_children_check_adoption(run, owner, &c, 1);
    stw_child_ensure(run, owner, &c);
    *err = c.err;
    if (c.state == STW_CHILD_HOT_LOOP)
        (void)stw_fail(err, STW_ERR_CONFLICT,
                       "%s \"%s\" is rewritten by another client again "
                       "and again",
                       w->resource->kind, c.name);
    stw_child_done(&c);
    return c.state;
}

/* What an object of this name is for the owner. */
static enum stw_child_state judge_owner(const struct stw_watch *w, const struct stw_owner *owner,
                                        const char *name, const char *uid, bool terminating,
                                        struct stw_error *err)
{
    bool ours = stw_streq(uid, owner->uid);
    if (ours && !terminating)
        return STW_CHILD_SYNCED;
    (void)stw_fail(err, STW_ERR_EXISTS,
                   ours ? "%s \"%s\" is being deleted"
                        : "%s \"%s\" exists and has another owner, or none; it is not touched",
                   w->resource->kind, name);
    return ours ? STW_CHILD_TERMINATING : STW_CHILD_FOREIGN;
}

/* One of this name that the cache does not have: an earlier run made it, or another client. */
static enum stw_child_state look_at_server(struct stw_run *run, const struct stw_owner *owner,
                                           const struct stw_watch *w, const char *name,
                                           struct stw_error *err)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(STW_RESPONSE_MAX_BYTES);
    stw_autojson struct stw_json_doc doc = {0};
    char uid[64] = "";
    *err = (struct stw_error){0};
    if (stw_kube_get(run->client, w->resource, owner->ns, name, &text, err) != 0 ||
        stw_json_scan(&doc, stw_buf_str(&text), text.len, err) != 0)
        return STW_CHILD_FAILED;
    struct stw_json root = stw_json_root(&doc);
    (void)stw_owner_controller(root, NULL, NULL, uid);
    stw_informer_saw(stw_run_cache(run, w), &text, NULL);
    return judge_owner(w, owner, name, uid,
                       stw_json_there(stw_json_path(root, "metadata.deletionTimestamp")), err);
}

enum stw_child_state stw_child_create_once(struct stw_run *run, const struct stw_owner *owner,
                                           const struct stw_watch *w, const json_t *desired,
                                           struct stw_error *err)
{
    stw_autobuf struct stw_buf answer = STW_BUF_INIT(STW_RESPONSE_MAX_BYTES);
    struct stw_child_live live;
    const char *name = name_of(desired);
    char key[STW_KEY_LEN];
    *err = (struct stw_error){0};
    if (!desired) {
        (void)stw_child_fail_desired(w->resource, err);
        return STW_CHILD_FAILED;
    }
    stw_key_make(owner->ns, name, key);
    if (stw_child_cached(run, w, key, &live) == 0)
        return judge_owner(w, owner, name, live.owner_uid, live.terminating, err);
    if (stw_kube_create(run->client, w->resource, owner->ns, desired, &answer, err) == 0) {
        stw_informer_saw(stw_run_cache(run, w), &answer, NULL);
        return STW_CHILD_CREATED;
    }
    return err->code == STW_ERR_EXISTS ? look_at_server(run, owner, w, name, err)
                                       : STW_CHILD_FAILED;
}
