/* SPDX-License-Identifier: Apache-2.0
 *
 * Resolves conflicts of objects over one account: the current owner keeps it; without an owner the
 * older object gets it, and the other one stays passive.  Also enforces the maximum number of
 * accounts on a target. */
#include "base/util.h"
#include "controller/claim.h"
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

static bool find_holder(struct dbuser *d)
{
    stw_autobuf struct stw_buf index = STW_BUF_INIT(2048);
    char key[STW_KEY_LEN];
    stw_buf_adds(&index, "account:");
    stw_databaseuser_account_key(d->label, d->spec.user, &index);
    if (!stw_claim_find(d->run, &d->object, stw_buf_str(&index), comes_before, key))
        return false;
    stw_name_to(d->run->key, key, d->holder, sizeof(d->holder));
    return true;
}

/* Loads the objects only if there are more of them than accounts allowed. */
static bool is_full(const struct dbuser *d)
{
    stw_autobuf struct stw_buf index = STW_BUF_INIT(2048), keys = STW_BUF_INIT(KEYS_MAX);
    int64_t objects = 0, accounts = 0;
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
        if (!stw_streq(key, d->run->key) && stw_object_load_key(d->run, key, &other) == 0)
            accounts += is_account_owner(&other);
    }
    return accounts >= d->target->max_users;
}

void dbu_claim(struct dbuser *d)
{
    d->claim = find_holder(d) ? DBU_CLAIM_TAKEN : is_full(d) ? DBU_CLAIM_FULL : DBU_CLAIM_OURS;
}
