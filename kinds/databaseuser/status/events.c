/* SPDX-License-Identifier: Apache-2.0
 *
 * Events and logs about changes that a run made on the server: what has changed, but never a
 * value. */
#include "kinds/databaseuser/status/events.h"

#include "base/log.h"
#include "base/util.h"
#include "kinds/databaseuser/account.h"
#include "kinds/databaseuser/plan/rotation.h"
#include "kinds/databaseuser/plan/twin.h"
#include "kinds/databaseuser/run_priv.h"
#include "kube/tree.h"

/* The last run found everything as this generation wants it, so any difference now was made by
 * another client. */
static bool was_settled(const struct stw_object *o)
{
    const json_t *ready = stw_condition_find(json_object_get(o->status, "conditions"), STW_READY);
    return stw_condition_is(ready, STW_TRUE) &&
           json_integer_value(json_object_get(ready, "observedGeneration")) == o->generation;
}

/* The password changed because the Secret changed. */
static bool is_rotated(const struct dbu *d)
{
    return d->report.password_changed && dbu_password_is_new(d);
}

static void add_word(struct stw_buf *out, bool say, const char *word)
{
    if (!say)
        return;
    stw_buf_adds(out, out->len > 0 ? ", " : "");
    stw_buf_adds(out, word);
}

static void list_changes(const struct dbu *d, struct stw_buf *out)
{
    const struct stw_account_report *r = &d->report;
    add_word(out, r->password_changed && !is_rotated(d), "password");
    add_word(out, r->plugin_changed, "plugin");
    add_word(out, r->hosts_changed, "hosts");
    add_word(out, r->options_changed, "TLS or limits");
    add_word(out, r->grants_given > 0, "rights given");
    add_word(out, r->grants_revoked > 0, "rights revoked");
}

static const struct {
    const char *reason, *action, *before, *after;
} news[] = {
    {"DriftRepaired", "Repair", "", " had been dropped and was created again"},
    {"Created", "Create", "created ", ""},
    {"Adopted", "Adopt", "took over ", ""},
    {"PasswordRotated", "Rotate", "", " has the new password of its Secret"},
    {"OldPasswordDiscarded", "Rotate", "the old password of ", " is no longer valid"},
};
enum { RESTORED, CREATED, ADOPTED, ROTATED, DISCARDED };

static void report_account_event(const struct dbu *d, int what, const char *account)
{
    stw_object_event(d->run, &d->object, false, news[what].reason, news[what].action,
                     "%saccount \"%s\" on target \"%s\"%s", news[what].before, account,
                     d->target->name, news[what].after);
    stw_log(STW_LOG_INFO, "wrote an account", STW_STR("what", news[what].reason),
            STW_STR("target", d->target->name));
}

static void tell_changes(const struct dbu *d, const char *account)
{
    stw_autobuf struct stw_buf words = STW_BUF_INIT(256);
    bool drift = was_settled(&d->object);
    list_changes(d, &words);
    if (words.len == 0)
        return;
    stw_object_event(d->run, &d->object, false, drift ? "DriftRepaired" : "Updated",
                     drift ? "Repair" : "Update",
                     drift ? "account \"%s\" had been changed and was repaired: %s"
                           : "updated account \"%s\": %s",
                     account, stw_buf_str(&words));
    stw_log(STW_LOG_INFO, drift ? "repaired an account" : "updated an account",
            STW_STR("target", d->target->name), STW_STR("fields", stw_buf_str(&words)));
}

/* A rollout that hangs stops the rotation: once, until that has changed. */
static void tell_stuck(const struct dbu *d)
{
    const json_t *was =
        stw_condition_find(json_object_get(d->object.status, "conditions"), "RotationComplete");
    if (!dbu_rotation_is_stuck(d) || stw_streq(stw_condition_reason(was), DBU_NOT_RESTARTED))
        return;
    stw_object_event(d->run, &d->object, true, DBU_NOT_RESTARTED, "Rotate",
                     "the older credential stays valid: %s", d->readers.first);
}

void dbu_tell(const struct dbu *d)
{
    stw_autobuf struct stw_buf account = STW_BUF_INIT(1024);
    const struct stw_account_report *r = &d->report;
    dbu_account_text(d, &account);
    const char *name = stw_buf_str(&account);
    tell_stuck(d);
    dbu_twins_tell(d);
    if (dbu_twins_change(d))
        return;
    if (r->created)
        report_account_event(d, dbu_is_created(&d->object) ? RESTORED : CREATED, name);
    else if (r->adopted)
        report_account_event(d, ADOPTED, name);
    else
        tell_changes(d, name);
    if (r->old_discarded)
        report_account_event(d, DISCARDED, name);
    if (!r->created && is_rotated(d))
        report_account_event(d, ROTATED, name);
}
