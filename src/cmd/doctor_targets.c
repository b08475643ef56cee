/* SPDX-License-Identifier: Apache-2.0
 *
 * The database targets, for `steward doctor`. */
#include "cmd/doctor_targets.h"

#include "base/util.h"
#include "cmd/targets.h"
#include "controller/lookup_lists.h"
#include "kinds/databaseuser/spec.h"
#include "operator/doctor/doctor.h"
#include "operator/main/names.h"

/* Whether the admin password exists. Its value is not read. */
static bool check_password(struct doctor *d, const struct stw_target *t)
{
    struct stw_secret_facts facts = {0};
    if (!t->secret_name ||
        stw_secret_look(d->remote.client, d->ns, t->secret_name, t->secret_key, &facts) != 0)
        return true; /* a file in the pod, or access denied */
    if (facts.key_there)
        return true;
    stw_checkup_add(&d->report, STW_CHECK_FAIL, "database target",
                    doctor_advice(d,
                                  "kubectl -n %s create secret generic %s --from-file=%s=PASSWORD_"
                                  "FILE",
                                  d->ns, t->secret_name, t->secret_key),
                    "\"%s\": Secret %s/%s %s%s", t->name, d->ns, t->secret_name,
                    facts.secret_there ? "has no key " : "is not there",
                    facts.secret_there ? t->secret_key : "");
    return false;
}

static void check_targets(struct doctor *d, struct stw_targets *targets)
{
    size_t good = 0, count = stw_targets_count(targets);
    for (size_t i = 0; i < count; i++)
        good += check_password(d, stw_targets_at(targets, i));
    if (good == count)
        stw_checkup_add(&d->report, STW_CHECK_OK, "database targets", NULL,
                        "%zu in ConfigMap %s/" STW_CONFIG_MAP, count, d->ns);
    if (count == 0)
        return;
    stw_doctor_servers(d, targets);
    stw_doctor_users(d, targets);
}

static bool has_users(const struct stw_operator *op)
{
    for (size_t i = 0; op->kinds[i]; i++)
        if (op->kinds[i] == &stw_kind_databaseuser)
            return true;
    return false;
}

void stw_doctor_targets(struct doctor *d)
{
    dbu_autotargetfile struct dbu_target_file file = {0};
    struct stw_error err = {0};
    if (!has_users(d->op))
        return;
    if (stw_installed_targets(&d->remote, d->ns, &file, &err) == 0)
        check_targets(d, file.targets);
    else if (file.error_count)
        stw_checkup_add(&d->report, STW_CHECK_FAIL, "database targets",
                        doctor_advice(d, "kubectl -n %s edit configmap " STW_CONFIG_MAP, d->ns),
                        "ConfigMap %s/" STW_CONFIG_MAP
                        " is wrong, so that steward keeps the targets it had: %s",
                        d->ns, err.text);
    else if (err.code == STW_ERR_NOT_FOUND)
        stw_checkup_add(&d->report, STW_CHECK_WARN, "database targets",
                        "kubectl apply -k config/manager",
                        "ConfigMap %s/" STW_CONFIG_MAP " is not there", d->ns);
    else
        doctor_unread(d, "database targets", &err);
}
