/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts the spec of a DatabaseUser to the account that the SQL module will create.  No I/O. */
#include "kinds/databaseuser/account.h"

#include "base/util.h"
#include "kinds/databaseuser/run_priv.h"
#include "kinds/databaseuser/secret/secret.h"
#include "kube/tree.h"
#include "sql/target/dialect.h"

#include <assert.h>

static const char *const grants_policies[] = {[STW_GRANTS_MANAGED] = "Managed",
                                              [STW_GRANTS_EXACT] = "Exact",
                                              [STW_GRANTS_ADDITIVE] = "Additive"};
static_assert(STW_COUNT(grants_policies) == STW_GRANTS_POLICIES, "one name for each policy");
static const char *const tls_modes[] = {[STW_ACCOUNT_TLS_NONE] = "None",
                                        [STW_ACCOUNT_TLS_SSL] = "SSL",
                                        [STW_ACCOUNT_TLS_X509] = "X509"};
static_assert(STW_COUNT(tls_modes) == STW_ACCOUNT_TLS_MODES, "one name for each mode");

/* The index of an enum value in its table; validation has checked that it is there. */
static int place_of(const char *const *words, size_t count, const char *word)
{
    for (size_t i = 0; word && i < count; i++)
        if (stw_streq(words[i], word))
            return (int)i;
    return 0;
}

/* Copies a list of strings, ended by NULL, into one block. */
static char **copy_list(struct stw_json list)
{
    struct stw_json key, one;
    size_t bytes = 0, n = 0;
    stw_json_foreach (list, key, one) {
        bytes += stw_json_size(one) + 1U;
        n++;
    }
    char **ret = malloc((n + 1) * sizeof(*ret) + bytes);
    if (!ret)
        return NULL;
    char *at = (char *)(ret + n + 1);
    n = 0;
    stw_json_foreach (list, key, one) {
        size_t room = stw_json_size(one) + 1U;
        if (stw_json_strcpy(one, at, room) != 0)
            continue;
        ret[n++] = at;
        at += room;
    }
    ret[n] = NULL;
    return ret;
}

/* The same; the desired state owns the copy. */
static const char *const *add_list(struct dbu_desired *w, struct stw_json list)
{
    char **copy = copy_list(list);
    if (copy)
        w->blocks[w->block_count++] = copy;
    return (const char *const *)copy;
}

static int add_grants(const struct dbu *d, struct dbu_desired *w)
{
    struct stw_json key, one;
    stw_json_foreach (d->spec.grants, key, one) {
        struct dbu_spec_grant g = {0};
        if (stw_fields_decode(dbu_grant_fields, one, d->arena, &g) != 0)
            return -1;
        const char *const *privileges = add_list(w, g.privileges);
        bool columns = stw_json_size(g.columns) > 0;
        const char *const *names = columns ? add_list(w, g.columns) : NULL;
        if (!privileges || (columns && !names))
            return -1;
        w->grants[w->account.grant_count++] = (struct stw_grant){.database = g.database,
                                                                 .schema = g.schema,
                                                                 .table = g.table,
                                                                 .routine = g.routine,
                                                                 .columns = names,
                                                                 .privileges = privileges,
                                                                 .grant_option = g.grant_option};
    }
    w->account.grants = w->grants;
    return 0;
}

static int add_hosts(const struct dbu *d, struct dbu_desired *w)
{
    static const char *const anywhere[] = {"%", NULL};
    w->account.hosts = anywhere;
    if (stw_json_size(d->spec.hosts) > 0)
        w->account.hosts = add_list(w, d->spec.hosts);
    return w->account.hosts ? 0 : -1;
}

static int add_roles(const struct dbu *d, struct dbu_desired *w)
{
    static const char *const of_iam[] = {STW_IAM_ROLE, NULL};
    size_t count = stw_json_size(d->spec.roles);
    bool iam = w->account.iam && d->target && d->target->engine == STW_ENGINE_POSTGRESQL;
    if (count == 0) {
        w->account.roles = iam ? of_iam : NULL;
        return 0;
    }
    if (!(w->account.roles = add_list(w, d->spec.roles)))
        return -1;
    if (!iam)
        return 0;
    const char **all = calloc(count + 2, sizeof(*all));
    if (!all)
        return -1;
    w->blocks[w->block_count++] = all;
    all[0] = STW_IAM_ROLE;
    for (size_t i = 0; i < count && w->account.roles[i]; i++)
        all[i + 1] = w->account.roles[i];
    w->account.roles = all;
    return 0;
}

bool dbu_wants_adoption(const struct dbu *d)
{
    return d->object.adopt || stw_same(d->spec.adoption_policy, "Adopt");
}

/* The arena of the run has the strings. */
static int add_settings(const struct dbu *d, struct dbu_desired *w)
{
    struct stw_json key, one;
    if (!stw_json_there(d->spec.settings))
        return 0;
    struct stw_setting *all = calloc(DBU_SETTINGS_MAX, sizeof(*all));
    if (!all)
        return -1;
    w->blocks[w->block_count++] = all;
    stw_json_foreach (d->spec.settings, key, one) {
        struct dbu_spec_setting s = {0};
        if (w->account.setting_count == DBU_SETTINGS_MAX ||
            stw_fields_decode(dbu_setting_fields, one, d->arena, &s) != 0)
            return -1;
        all[w->account.setting_count++] =
            (struct stw_setting){.name = s.name, .value = s.value, .database = s.database};
    }
    w->account.settings = all;
    return 0;
}

int dbu_desired_make(const struct dbu *d, struct dbu_desired *ret, struct stw_error *err)
{
    const struct dbu_spec *spec = &d->spec;
    size_t grants = stw_json_size(spec->grants);
    *ret = (struct dbu_desired){
        .account = {
            .user = spec->user,
            .grants_policy = (enum stw_grants_policy)place_of(
                grants_policies, STW_COUNT(grants_policies), spec->grants_policy),
            .require_tls =
                (enum stw_require_tls)place_of(tls_modes, STW_COUNT(tls_modes), spec->require_tls),
            .certificate = {.given = stw_json_there(
                                stw_json_path(d->object.root, "spec.requireCertificate")),
                            .subject = spec->certificate.subject,
                            .issuer = spec->certificate.issuer},
            .max_user_connections = spec->limits.max_user_connections,
            .max_queries_per_hour = spec->limits.max_queries_per_hour,
            .max_updates_per_hour = spec->limits.max_updates_per_hour,
            .max_connections_per_hour = spec->limits.max_connections_per_hour,
            .auth_plugin = spec->auth_plugin,
            .iam = dbu_is_iam(spec),
            .reassign_owned_to = spec->reassign_owned_to,
            .valid_until = spec->valid_until,
            .target = d->target,
            .ns = d->run->ns,
            .owner = d->run->key,
            .owner_uid = d->object.uid,
            .cluster = d->cluster,
            .settled = d->settled,
            .adopt = dbu_wants_adoption(d),
        }};
    if (d->secret.state == DBU_SECRET_FOUND && !ret->account.iam)
        ret->account.password =
            (struct stw_sql_secret){.data = d->secret.value.data, .len = d->secret.value.len};
    ret->grants = calloc(grants + 1, sizeof(*ret->grants));
    /* Privileges and columns of each, hosts, two of roles, settings. */
    ret->blocks = calloc(2 * grants + 4, sizeof(*ret->blocks));
    if (ret->grants && ret->blocks && add_grants(d, ret) == 0 && add_hosts(d, ret) == 0 &&
        add_roles(d, ret) == 0 && add_settings(d, ret) == 0)
        return 0;
    dbu_desired_done(ret);
    return stw_fail_memory(err);
}

void dbu_desired_add_published(const struct dbu *d, struct stw_account *a)
{
    const struct stw_buf *have = &d->published, *want = &d->secret.value;
    bool same = a->password.data && have->len == want->len &&
                memcmp(have->data, want->data, want->len) == 0;
    if (d->view.strategy == DBU_DUAL_PASSWORD && have->len > 0 && !same)
        a->published = (struct stw_sql_secret){.data = have->data, .len = have->len};
}

void dbu_desired_limit_to_membership(struct stw_account *a, const char *owner)
{
    a->grants = NULL;
    a->grant_count = 0;
    a->roles = NULL;
    a->acts_as = owner;
}

void dbu_desired_done(struct dbu_desired *w)
{
    for (size_t i = 0; w->blocks && i < w->block_count; i++)
        free(w->blocks[i]);
    free(w->blocks);
    free(w->grants);
    *w = (struct dbu_desired){0};
}

/* --- names */

void dbu_account_text(const struct dbu *d, struct stw_buf *out)
{
    struct stw_json first = stw_json_at(d->spec.hosts, 0);
    stw_buf_adds(out, d->spec.user ? d->spec.user : "");
    if (d->target && d->target->engine == STW_ENGINE_POSTGRESQL)
        return;
    stw_buf_addc(out, '@');
    if (stw_json_there(first))
        stw_json_str(first, out);
    else
        stw_buf_addc(out, '%');
}

void dbu_made_user(const struct stw_object *o, char out[DBU_NAME_MAX])
{
    const char *account = stw_tree_text(o->status, "account");
    const char *host = json_string_value(json_array_get(json_object_get(o->status, "hosts"), 0));
    size_t len = strlen(account), host_len = host ? strlen(host) : 0;
    if (host_len > 0 && len > host_len && account[len - host_len - 1] == '@' &&
        stw_streq(account + len - host_len, host))
        len -= host_len + 1;
    len = STW_MIN(len, (size_t)DBU_NAME_MAX - 1);
    memcpy(out, account, len);
    out[len] = '\0';
}

bool dbu_is_created(const struct stw_object *o)
{
    return *stw_tree_text(o->status, "account") != '\0';
}
