/* SPDX-License-Identifier: Apache-2.0
 *
 * Resolves conflicts of objects over one account: the current owner keeps it; without an owner the
 * older object gets it, and the other one stays passive.  Also enforces the maximum number of
 * accounts on a target. */
#include "kinds/databaseuser/claims.h"

#include "base/util.h"
#include "controller/claim.h"
#include "controller/status.h"
#include "kinds/databaseuser/run_priv.h"

#include <stdio.h>

#define KEYS_MAX (64u << 20)

static bool is_account_owner(const struct stw_object *o)
{
    return json_is_true(json_object_get(o->status, "owned"));
}

/* An object that is being deleted holds its account until the account is gone. */
static bool is_account_holder(const struct stw_object *o)
{
    return !o->deleting || stw_json_size(stw_json_path(o->root, "metadata.finalizers")) > 0;
}

static bool comes_before(const struct stw_object *other, const struct stw_object *own, bool older)
{
    if (!is_account_holder(other))
        return false;
    bool owner = is_account_owner(other);
    return owner == is_account_owner(own) ? older : owner;
}

static bool find_holder(struct dbu *d)
{
    stw_autobuf struct stw_buf index = STW_BUF_INIT(2048);
    char key[STW_KEY_LEN];
    stw_buf_adds(&index, "account:");
    dbu_account_key(d->label, d->spec.user, &index);
    if (!stw_claim_find(d->run, &d->object, stw_buf_str(&index), comes_before, key))
        return false;
    stw_name_to(d->run->key, key, d->holder, sizeof(d->holder));
    return true;
}

/* Comes to no account, and not because of the maximum. */
static bool is_stalled(const struct stw_object *o)
{
    const json_t *c = stw_condition_find(json_object_get(o->status, "conditions"), "Stalled");
    return stw_condition_is(c, STW_TRUE) && !stw_streq(stw_condition_reason(c), STW_REASON_QUOTA);
}

/* Objects that were created at the same time are reconciled at the same time: an older one has its place
 * before it has its account.  Loads the objects only if there are more of them than accounts allowed. */
static bool is_full(const struct dbu *d)
{
    stw_autobuf struct stw_buf index = STW_BUF_INIT(2048), keys = STW_BUF_INIT(KEYS_MAX);
    int64_t objects = 0, before = 0;
    size_t at = 0;
    if (d->target->max_users == 0 || is_account_owner(&d->object))
        return false;
    stw_buf_adds(&index, "target:");
    stw_buf_adds_lower(&index, d->label);
    stw_informer_keys(stw_run_cache(d->run, d->run->controller->own), stw_buf_str(&index), &keys);
    for (size_t i = 0; i < keys.len; i++)
        objects += keys.data[i] == '\n';
    if (objects <= d->target->max_users)
        return false;
    for (const char *key; (key = stw_keys_next(&keys, &at));) {
        stw_autoobject struct stw_object other = {0};
        if (stw_streq(key, d->run->key) || stw_object_load_key(d->run, key, &other) != 0)
            continue;
        int order = strcmp(other.created, d->object.created);
        bool older = order < 0 || (order == 0 && strcmp(key, d->run->key) < 0);
        before +=
            is_account_owner(&other) || (older && is_account_holder(&other) && !is_stalled(&other));
    }
    return before >= d->target->max_users;
}

void dbu_claim(struct dbu *d)
{
    d->claim = find_holder(d) ? DBU_CLAIM_TAKEN : is_full(d) ? DBU_CLAIM_FULL : DBU_CLAIM_OURS;
}
