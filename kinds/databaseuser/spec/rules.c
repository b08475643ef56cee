/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules on a DatabaseUser.  Rules that depend on the engine run only when the target is known.
 * Otherwise the controller runs them before it creates the account. */
#include "kinds/databaseuser/spec/spec_priv.h"

#include "base/util.h"
#include "kinds/common/product.h"
#include "schema/core.h"

#include <stdio.h>
#include <strings.h>

#define LABEL_PATH "metadata.labels[target]"
#define LABEL_MAX DBU_TARGET_MAX
#define USER_MAX 80 /* the longest of all engines */
#define PASSWORD_MIN 12

/* Strings of a decoded spec are NULL after an allocation failure. */
static bool is_same_word(const char *text, const char *word)
{
    return text && stw_streq(text, word);
}

/* --- the target */

/* Names the targets that the namespace may use, and none of the others. */
static void advise_on_targets(const struct dbu_scene *s, const struct stw_targets *all)
{
    stw_autobuf struct stw_buf names = STW_BUF_INIT(4096);
    size_t shown = 0, more = 0;
    const char *ns = s->a->ns;
    if (s->a->quiet || !ns || !*ns || stw_targets_count(all) == 0)
        return;
    for (size_t i = 0; i < stw_targets_count(all); i++) {
        const struct stw_target *t = stw_targets_at(all, i);
        if (!stw_target_accepts_namespace(t, ns))
            continue;
        if (shown == DBU_TARGETS_SHOWN) {
            more++;
            continue;
        }
        stw_buf_addf(&names, "%s%s", shown > 0 ? ", " : "", t->name);
        shown++;
    }
    s->f->failed |= names.failed;
    if (more > 0)
        stw_findings_warn(s->f, "namespace \"%s\" may use the targets %s and %zu more", ns,
                          stw_buf_str(&names), more);
    else if (shown > 0)
        stw_findings_warn(s->f, "namespace \"%s\" may use the target%s %s", ns,
                          shown > 1 ? "s" : "", stw_buf_str(&names));
    else
        stw_findings_warn(s->f, "no target accepts namespace \"%s\"", ns);
}

/* The target that the account was created on: from the status, or else from the old label. */
static bool made_on(const struct stw_admission *a, char ret[LABEL_MAX + 1])
{
    struct stw_json status = stw_json_get(a->old_object, "status");
    if (a->operation != STW_UPDATE || stw_json_size(stw_json_get(status, "account")) == 0)
        return false;
    if (stw_json_strcpy(stw_json_get(status, "target"), ret, LABEL_MAX + 1) == 0 && *ret)
        return true;
    return stw_json_strcpy(stw_json_path(a->old_object, "metadata.labels.target"), ret,
                           LABEL_MAX + 1) == 0;
}

static void check_target(const struct dbu_scene *s)
{
    char made[LABEL_MAX + 1] = "";
    if (made_on(s->a, made) && strcasecmp(made, s->target_name) != 0)
        dbu_add_finding(s, LABEL_PATH, STW_FORBIDDEN, NULL,
                        "target cannot change from \"%s\" to \"%s\": the account would be "
                        "left behind",
                        made, s->target_name);
    if (s->target && !stw_target_accepts_namespace(s->target, s->a->ns))
        dbu_add_finding(s, LABEL_PATH, STW_FORBIDDEN, NULL,
                        "target \"%s\" does not accept namespace \"%s\"", s->target_name,
                        s->a->ns ? s->a->ns : "");
    if (!s->target && stw_product_knows_targets(s->a->env))
        stw_findings_warn(s->f,
                          "target \"%s\" is not configured; the account is created when it is",
                          s->target_name);
}

/* The target of an object that the webhook gave no label. */
static bool use_default(const struct stw_admission *a, const struct stw_targets *all,
                        char ret[LABEL_MAX + 1])
{
    struct stw_json of = stw_json_there(a->old_object) ? a->old_object : a->object;
    const struct stw_target *t = dbu_target_without_label(all, stw_json_get(of, "status"));
    if (t)
        stw_format(ret, LABEL_MAX + 1, "%s", t->name);
    return t;
}

/* Copies the label, or the name of the default target, to `ret`; on failure adds a finding and
 * returns false. */
static bool read_label(const struct stw_admission *a, const struct stw_targets *all,
                       struct stw_findings *f, char ret[LABEL_MAX + 1])
{
    struct stw_json label = stw_json_path(a->object, "metadata.labels.target");
    *ret = '\0';
    if (!stw_json_there(label) && use_default(a, all, ret))
        return true;
    if (stw_json_there(label) && stw_json_type(label) != STW_JSON_STRING)
        stw_findings_at(f, LABEL_PATH, STW_INVALID, label, "must be a string");
    else if (stw_json_size(label) == 0)
        stw_findings_add(f, LABEL_PATH, STW_REQUIRED, NULL,
                         "label \"target\" must name a database target");
    else if (stw_json_strcpy(label, ret, LABEL_MAX + 1) != 0)
        stw_findings_at(f, LABEL_PATH, STW_INVALID, label, "must be at most %d characters",
                        LABEL_MAX);
    else
        return true;
    return false;
}

/* --- the account */

static void advise_on_reserved(const struct dbu_scene *s)
{
    stw_autobuf struct stw_buf engines = STW_BUF_INIT(256);
    for (enum stw_engine e = 0; e < STW_ENGINES; e++)
        if (stw_engine_reserves(e, s->user->user))
            stw_buf_addf(&engines, "%s%s", engines.len ? ", " : "", stw_engine_name(e));
    if (engines.len)
        stw_findings_warn(s->f, "\"%s\" is reserved on %s", s->user->user, stw_buf_str(&engines));
    s->f->failed |= engines.failed;
}

static void check_reserved(const struct dbu_scene *s)
{
    const char *user = s->user->user;
    if (!s->target || !s->engine)
        advise_on_reserved(s);
    else if (stw_engine_reserves(s->target->engine, user) ||
             strcasecmp(s->target->admin_user, user) == 0)
        dbu_add_finding(s, "spec.user", STW_FORBIDDEN, NULL, "\"%s\" is reserved on %s", user,
                        s->engine->name);
}

static void check_unique(const struct dbu_scene *s)
{
    char self[600], holder[512] = "";
    stw_autobuf struct stw_buf key = STW_BUF_INIT(4096);
    const struct stw_admission *a = s->a;
    const struct stw_lookup *lookup = a->env ? a->env->lookup : NULL;
    if (!lookup || !lookup->find || !*s->target_name)
        return;
    dbu_account_key(s->target_name, s->user->user, &key);
    stw_format(self, sizeof(self), "%s/%s", a->ns ? a->ns : "", a->name ? a->name : "");
    s->f->failed |= key.failed;
    if (!key.failed &&
        lookup->find(lookup->ctx, "databaseusers.account", stw_buf_str(&key), self, holder))
        dbu_add_finding(s, "spec.user", STW_FORBIDDEN, NULL,
                        "account already managed by DatabaseUser %s", holder);
}

/* Servers of the MySQL family take such quotes off when a client logs in, and look for the rest. */
static bool is_quoted(const char *name)
{
    size_t len = strlen(name);
    return len > 1 && name[0] == '\'' && name[len - 1] == '\'';
}

static void check_user(const struct dbu_scene *s)
{
    if (!s->user->user || !*s->user->user || dbu_check_user(s->user->user))
        return; /* the field table reports it */
    if (!dbu_check_name(s, "spec.user", s->user->user, s->engine ? s->engine->user_max : USER_MAX))
        return;
    if (s->engine && !s->engine->names_in_bytes && is_quoted(s->user->user))
        dbu_add_finding(s, "spec.user", STW_INVALID, s->user->user,
                        "must not be in single quotes on %s, whose servers take them off when "
                        "a client logs in",
                        s->engine->name);
    check_reserved(s);
    check_unique(s);
}

/* --- roles */

static void check_role(const struct dbu_scene *s, const char *path, const char *role)
{
    if (!dbu_check_name(s, path, role, s->engine->user_max))
        return;
    if (s->user->user && stw_streq(role, s->user->user))
        dbu_add_finding(s, path, STW_INVALID, role, DBU_OTHER_ROLE);
    else if (stw_engine_reserves_role(s->target, role, role) ||
             strcasecmp(s->target->admin_user, role) == 0)
        dbu_add_finding(s, path, STW_FORBIDDEN, NULL, "\"%s\" is reserved on %s", role,
                        s->engine->name);
    else if (s->a->ns && !stw_target_allows_role(s->target, s->a->ns, role))
        dbu_add_finding(s, path, STW_FORBIDDEN, NULL,
                        "target \"%s\" does not allow the role \"%s\" for namespace \"%s\"; "
                        "have it added to allowedRoles of the target",
                        s->target_name, role, s->a->ns);
}

static void check_roles(const struct dbu_scene *s)
{
    struct stw_json roles = s->user->roles;
    uint32_t count = stw_json_size(roles);
    if (count > DBU_ROLES_MAX)
        return; /* the field table reports it */
    for (uint32_t i = 0; i < count; i++) {
        char path[64], role[4 * USER_MAX + 1];
        bool again = false;
        stw_format(path, sizeof(path), "spec.roles[%u]", i);
        if (stw_json_strcpy(stw_json_at(roles, i), role, sizeof(role)) != 0 || !*role)
            continue; /* the field table reports it */
        for (uint32_t k = 0; k < i && !again; k++)
            again = stw_json_is(stw_json_at(roles, k), role);
        if (again)
            dbu_add_finding(s, path, STW_DUPLICATE, role, "%s", "");
        else if (s->engine && s->target)
            check_role(s, path, role);
    }
}

/* --- the plugin */

static void check_plugin(const struct dbu_scene *s)
{
    static const char path[] = "spec.authPlugin";
    const char *plugin = s->user->auth_plugin;
    stw_autobuf struct stw_buf allowed = STW_BUF_INIT(4096);
    if (!plugin || !*plugin || dbu_check_plugin(plugin) || !s->target || !s->engine)
        return; /* the field table reports it */
    if (!s->engine->auth_plugins[0]) {
        dbu_add_unsupported(s, path, plugin);
        return;
    }
    if (stw_target_allows_plugin(s->target, plugin))
        return;
    stw_engine_list_names(s->target->allowed_auth_plugins, &allowed);
    s->f->failed |= allowed.failed;
    if (allowed.len > 0)
        dbu_add_finding(s, path, STW_NOT_SUPPORTED, plugin,
                        "supported values: %s, the allowedAuthPlugins of target \"%s\"",
                        stw_buf_str(&allowed), s->target_name);
    else
        dbu_add_finding(s, path, STW_FORBIDDEN, NULL,
                        "target \"%s\" allows no plugin to be chosen; leave it out, or have "
                        "it added to allowedAuthPlugins of the target",
                        s->target_name);
}

/* --- hosts, TLS, limits */

static bool is_any_host(struct stw_json hosts)
{
    if (!stw_json_there(hosts))
        return true;
    return stw_json_size(hosts) == 1 && stw_json_is(stw_json_at(hosts, 0), "%");
}

static bool has_any_host(struct stw_json hosts)
{
    struct stw_json key, host;
    stw_json_foreach (hosts, key, host)
        if (stw_json_is(host, "%"))
            return true;
    return is_any_host(hosts);
}

/* Servers store hosts in lower case. */
static bool same_host(struct stw_json a, struct stw_json b)
{
    char x[256], y[256];
    return stw_json_strcpy(a, x, sizeof(x)) == 0 && stw_json_strcpy(b, y, sizeof(y)) == 0 &&
           strcasecmp(x, y) == 0;
}

/* MariaDB takes "10.0.0.0/8" for a name, from which no client can log in. */
static void check_networks(const struct dbu_scene *s)
{
    struct stw_json key, host;
    uint32_t i = 0;
    stw_json_foreach (s->user->hosts, key, host) {
        char text[256], path[64];
        stw_format(path, sizeof(path), "spec.hosts[%u]", i++);
        const char *slash =
            stw_json_strcpy(host, text, sizeof(text)) == 0 ? strchr(text, '/') : NULL;
        if (slash && !strchr(slash, '.'))
            stw_findings_at(s->f, path, STW_INVALID, host,
                            "%s has no prefix lengths; write the netmask, as in 10.0.0.0/255.0.0.0",
                            s->engine->name);
    }
}

static void check_hosts(const struct dbu_scene *s)
{
    struct stw_json hosts = s->user->hosts;
    uint32_t count = stw_json_size(hosts);
    if (count > DBU_HOSTS_MAX)
        return; /* the field table reports it */
    for (uint32_t i = 1; i < count; i++) {
        char path[64];
        bool again = false;
        for (uint32_t k = 0; k < i && !again; k++)
            again = same_host(stw_json_at(hosts, i), stw_json_at(hosts, k));
        stw_format(path, sizeof(path), "spec.hosts[%u]", i);
        if (again)
            stw_findings_at(s->f, path, STW_DUPLICATE, stw_json_at(hosts, i), "%s", "");
    }
    if (s->engine && !s->engine->has_hosts && !is_any_host(hosts))
        stw_findings_warn(s->f, "hosts is ignored on %s", s->engine->name);
    if (s->target && s->target->engine == STW_ENGINE_MARIADB)
        check_networks(s);
}

static bool requires_certificate(struct stw_json object)
{
    return stw_json_there(stw_json_path(object, "spec.requireCertificate"));
}

static void check_certificate(const struct dbu_scene *s)
{
    static const char path[] = "spec.requireCertificate";
    const struct dbu_spec_certificate *c = &s->user->certificate;
    if (!requires_certificate(s->a->object)) {
        if (requires_certificate(s->a->old_object))
            stw_findings_warn(s->f,
                              "without requireCertificate, the account requires on the server "
                              "what it does now; set it to {} to remove that");
        return;
    }
    if ((c->subject || c->issuer) && !is_same_word(s->user->require_tls, "X509"))
        dbu_add_finding(s, path, STW_FORBIDDEN, NULL, DBU_CERTIFICATE_NEEDS_X509);
    else if (s->engine && !s->engine->has_require_tls)
        dbu_add_unsupported(s, path, NULL);
}

static void check_tls(const struct dbu_scene *s)
{
    bool none = is_same_word(s->user->require_tls, "None");
    if (!s->engine)
        return;
    if (!none && s->user->require_tls && !s->engine->has_require_tls)
        dbu_add_unsupported(s, "spec.requireTLS", s->user->require_tls);
    if (none && s->engine->has_hosts && has_any_host(s->user->hosts))
        stw_findings_warn(s->f, "the account may log in from any host without TLS; narrow hosts or "
                                "set requireTLS");
}

static void check_limit(const struct dbu_scene *s, const char *path, int64_t value)
{
    char text[24];
    if (value == 0 || !s->engine || s->engine->has_hourly_limits)
        return;
    stw_format(text, sizeof(text), "%lld", (long long)value);
    stw_findings_add(s->f, path, STW_INVALID, text, "not supported on %s", s->engine->name);
}

static void check_limits(const struct dbu_scene *s)
{
    const struct dbu_spec_limits *l = &s->user->limits;
    check_limit(s, "spec.limits.maxQueriesPerHour", l->max_queries_per_hour);
    check_limit(s, "spec.limits.maxUpdatesPerHour", l->max_updates_per_hour);
    check_limit(s, "spec.limits.maxConnectionsPerHour", l->max_connections_per_hour);
}

static void check_until(const struct dbu_scene *s)
{
    if (s->user->valid_until && s->engine && s->engine->has_hosts)
        dbu_add_unsupported(s, "spec.validUntil", s->user->valid_until);
}

/* --- ownership and deletion */

static void check_reassign(const struct dbu_scene *s)
{
    static const char path[] = "spec.reassignOwnedTo";
    const char *role = s->user->reassign_owned_to;
    if (!role || !*role)
        return;
    if (s->engine && !s->engine->has_owned_objects)
        dbu_add_unsupported(s, path, role);
    else if (s->user->user && stw_streq(role, s->user->user))
        dbu_add_finding(s, path, STW_INVALID, role, DBU_OTHER_ROLE);
    else if (s->target && s->engine && stw_engine_reserves(s->target->engine, role))
        dbu_add_finding(s, path, STW_FORBIDDEN, NULL, "\"%s\" is reserved on %s", role,
                        s->engine->name);
    else if (s->target && s->a->ns && !stw_target_allows_owner(s->target, s->a->ns, role))
        dbu_add_finding(s, path, STW_FORBIDDEN, NULL,
                        "target \"%s\" does not allow \"%s\" as a new owner; leave it out, or "
                        "have it added to allowedOwners of the target",
                        s->target_name, role);
}

static void check_adoption(const struct dbu_scene *s)
{
    if (s->target && s->a->ns && s->user->user && is_same_word(s->user->adoption_policy, "Adopt") &&
        !stw_target_allows_adoption(s->target, s->a->ns, s->user->user))
        stw_findings_warn(s->f,
                          "adoptionPolicy is Adopt, and target \"%s\" does not allow the adoption "
                          "of \"%s\": an account that exists is left as it is",
                          s->target_name, s->user->user);
}

static void advise_on_deletion(const struct dbu_scene *s)
{
    if (is_same_word(s->user->deletion_policy, "Retain"))
        stw_findings_warn(s->f, "deletionPolicy is Retain: the account and its rights stay on the "
                                "server when this object is deleted");
    else if (is_same_word(s->user->deletion_policy, "Lock"))
        stw_findings_warn(s->f, "deletionPolicy is Lock: the account and its rights stay on the "
                                "server, locked, when this object is deleted");
}

/* --- the password */

static void advise_on_value(const struct dbu_scene *s, const struct stw_secret_facts *facts)
{
    const struct dbu_spec_password *p = &s->user->password;
    uint32_t len = p->trim_newline ? facts->bare_len : facts->len;
    if (facts->ends_in_newline && !p->trim_newline)
        stw_findings_warn(s->f,
                          "the value of key \"%s\" in Secret \"%s\" ends in a newline, which would "
                          "be part of the password; set spec.password.trimNewline to leave it out",
                          p->key, p->name);
    if (!facts->is_text)
        stw_findings_warn(
            s->f,
            "the value of key \"%s\" in Secret \"%s\" holds control characters or is not text",
            p->key, p->name);
    if (len == 0)
        stw_findings_warn(s->f,
                          "the value of key \"%s\" in Secret \"%s\" is empty; the account is "
                          "created when it is not",
                          p->key, p->name);
    else if (len < PASSWORD_MIN)
        stw_findings_warn(s->f, "the password in Secret \"%s\" is shorter than %d bytes", p->name,
                          PASSWORD_MIN);
}

static bool password_changed(const struct dbu_scene *s)
{
    const struct dbu_spec_password *now = &s->user->password, *was;
    if (!s->old)
        return true;
    was = &s->old->password;
    return !was->name || !was->key || !stw_streq(now->name, was->name) ||
           !stw_streq(now->key, was->key) || now->trim_newline != was->trim_newline;
}

/* Reading the Secret costs a request, so do it only when the reference is new or has changed. */
static void advise_on_password(const struct dbu_scene *s)
{
    struct stw_secret_facts facts = {0};
    const struct dbu_spec_password *p = &s->user->password;
    const struct stw_lookup *lookup = s->a->env ? s->a->env->lookup : NULL;
    if (s->a->quiet || s->f->error_count || !lookup || !lookup->secret || !s->a->ns || !p->name ||
        !p->key || !password_changed(s))
        return;
    if (lookup->secret(lookup->ctx, s->a->ns, p->name, p->key, &facts) != 0)
        return;
    if (!facts.secret_there)
        stw_findings_warn(s->f, "Secret \"%s\" not found; the account is created when it appears",
                          p->name);
    else if (!facts.key_there)
        stw_findings_warn(s->f,
                          "Secret \"%s\" has no key \"%s\"; the account is created when it appears",
                          p->name, p->key);
    else
        advise_on_value(s, &facts);
}

static bool is_generated(const struct dbu_scene *s)
{
    return stw_json_there(stw_json_path(s->a->object, "spec.password.generate"));
}

static void check_authentication(const struct dbu_scene *s)
{
    static const char *const fields[] = {"password", "rotation", "authPlugin"};
    struct stw_json spec = stw_json_get(s->a->object, "spec");
    bool iam = dbu_is_iam(s->user);
    if (s->old && dbu_is_iam(s->old) != iam)
        dbu_add_finding(s, "spec.authentication", STW_FORBIDDEN, NULL, DBU_AUTHENTICATION_STAYS);
    if (!iam && !stw_json_there(stw_json_get(spec, "password")))
        dbu_add_finding(s, "spec.password", STW_REQUIRED, NULL, DBU_PASSWORD_OR_IAM);
    for (size_t i = 0; iam && i < STW_COUNT(fields); i++) {
        char path[64];
        stw_format(path, sizeof(path), "spec.%s", fields[i]);
        if (stw_json_there(stw_json_get(spec, fields[i])))
            dbu_add_finding(s, path, STW_FORBIDDEN, NULL, DBU_NOT_WITH_IAM);
    }
    if (iam && s->target && !s->target->allow_iam)
        dbu_add_finding(s, "spec.authentication", STW_FORBIDDEN, NULL,
                        "target \"%s\" does not allow accounts without a password; have "
                        "allowIAM of the target set",
                        s->target_name);
}

static void check_password(const struct dbu_scene *s)
{
    const char *name = s->user->password.name;
    bool named = name && *name, generated = is_generated(s);
    struct stw_json password = stw_json_path(s->a->object, "spec.password");
    if (stw_json_type(password) != STW_JSON_OBJECT)
        return; /* the field table reports it */
    if (!generated && !stw_json_there(stw_json_get(password, "name")))
        stw_findings_add(s->f, "spec.password.name", STW_REQUIRED, NULL, DBU_NAME_OR_GENERATE);
    else if (generated && named)
        stw_findings_add(s->f, "spec.password.generate", STW_FORBIDDEN, NULL, DBU_ONE_PASSWORD);
    else if (generated && s->a->name && strlen(s->a->name) + strlen(DBU_PASSWORD_SUFFIX) > 253)
        stw_findings_add(s->f, "spec.password.generate", STW_FORBIDDEN, NULL,
                         "the name of the object is too long for a Secret with \"%s\" after it",
                         DBU_PASSWORD_SUFFIX);
    if (generated && s->user->password.trim_newline)
        stw_findings_add(s->f, "spec.password.trimNewline", STW_FORBIDDEN, NULL, DBU_NO_NEWLINE);
}

/* --- the connection */

static bool is_password_secret(const struct dbu_scene *s, const char *name)
{
    char generated[512];
    stw_format(generated, sizeof(generated), "%s%s", s->a->name ? s->a->name : "",
               DBU_PASSWORD_SUFFIX);
    return is_generated(s) ? stw_streq(name, generated) : stw_same(name, s->user->password.name);
}

static void check_connection_keys(const struct dbu_scene *s, const char *field, struct stw_json map,
                                  struct stw_json other)
{
    struct stw_json key, value;
    stw_json_foreach (map, key, value) {
        char text[254] = "", path[512];
        bool fits = stw_json_strcpy(key, text, sizeof(text)) == 0 && *text && !dbu_check_key(text);
        stw_format(path, sizeof(path), "spec.connectionSecret.%s[%s]", field, text);
        if (!fits)
            stw_findings_add(s->f, path, STW_INVALID, NULL,
                             "must be 1 to 253 letters, digits, '-', '_' and '.'");
        else if (stw_json_there(stw_json_get(other, text)))
            stw_findings_add(s->f, path, STW_DUPLICATE, NULL, "keys has it");
    }
}

/* Keys that controllers act on with rights of their own: an author of DatabaseUsers who may not write
 * Secrets would make them read this one, as a repository of Argo CD for example. */
static bool is_reserved_key(const struct stw_operator *op, const char *key)
{
    static const char *const domains[] = {"kubernetes.io", "k8s.io", "argocd.argoproj.io"};
    const char *slash = strchr(key, '/');
    size_t len = slash ? (size_t)(slash - key) : 0;
    if (op && len == strlen(op->domain) && memcmp(key, op->domain, len) == 0)
        return true;
    for (size_t i = 0; i < STW_COUNT(domains); i++) {
        size_t n = strlen(domains[i]);
        if (len >= n && memcmp(key + len - n, domains[i], n) == 0 &&
            (len == n || key[len - n - 1] == '.'))
            return true;
    }
    return false;
}

static void check_reserved_keys(const struct dbu_scene *s, const char *field, struct stw_json map)
{
    struct stw_json key, value;
    stw_json_foreach (map, key, value) {
        char text[320], path[384];
        if (stw_findings_spent(s->f))
            return;
        if (stw_json_strcpy(key, text, sizeof(text)) != 0 ||
            !is_reserved_key(s->a->env ? s->a->env->op : NULL, text))
            continue;
        stw_format(path, sizeof(path), "spec.connectionSecret.%s[%s]", field, text);
        stw_findings_add(s->f, path, STW_FORBIDDEN, NULL, DBU_RESERVED_KEY);
    }
}

static void check_connection(const struct dbu_scene *s)
{
    const struct dbu_spec_connection *c = &s->user->connection;
    const char *old = s->old ? s->old->connection.name : NULL;
    static const char path[] = "spec.connectionSecret.name";
    if (!c->name || !*c->name)
        return;
    if (is_password_secret(s, c->name))
        dbu_add_finding(s, path, STW_INVALID, c->name, DBU_OTHER_SECRET);
    if (old && *old && !stw_streq(old, c->name))
        dbu_add_finding(s, path, STW_FORBIDDEN, NULL, "field is immutable (was \"%s\")", old);
    check_connection_keys(s, "keys", c->keys, STW_JSON_NONE);
    check_connection_keys(s, "template", c->template, c->keys);
    check_reserved_keys(s, "labels", c->labels);
    check_reserved_keys(s, "annotations", c->annotations);
    stw_core_check_labels(c->labels, "spec.connectionSecret.labels", s->f);
    stw_core_check_annotations(c->annotations, "spec.connectionSecret.annotations", s->f);
}

/* --- rotation */

#define STRATEGY "spec.rotation.strategy"

static bool is_twins(const struct dbu_scene *s)
{
    const char *strategy = s->user->rotation.strategy;
    return is_same_word(strategy, "TwinAccounts") ||
           (is_same_word(strategy, "Auto") && s->target && s->target->engine != STW_ENGINE_MYSQL);
}

/* Applications must learn the login's name, which changes. */
static bool holds_user(const struct dbu_spec_connection *c)
{
    static const char *const with_user[] = {"user", "uri", "jdbcUrl"};
    struct stw_json key, value;
    if (stw_json_size(c->keys) == 0 && stw_json_size(c->template) == 0)
        return true;
    for (size_t i = 0; i < STW_COUNT(with_user); i++) {
        char in_braces[16];
        stw_format(in_braces, sizeof(in_braces), "{{%s}}", with_user[i]);
        stw_json_foreach (c->keys, key, value)
            if (stw_json_is(value, with_user[i]))
                return true;
        stw_json_foreach (c->template, key, value) {
            stw_autofree char *text = stw_json_strdup(value);
            if (text && strstr(text, in_braces))
                return true;
        }
    }
    return false;
}

static void check_twin_name(const struct dbu_scene *s, const char *suffix)
{
    char name[4 * USER_MAX + 8], self[600], holder[512] = "";
    stw_autobuf struct stw_buf key = STW_BUF_INIT(4096);
    const struct stw_lookup *lookup = s->a->env ? s->a->env->lookup : NULL;
    stw_format(name, sizeof(name), "%s%s", s->user->user, suffix);
    if (s->target && (stw_engine_reserves(s->target->engine, name) ||
                      strcasecmp(s->target->admin_user, name) == 0)) {
        dbu_add_finding(s, STRATEGY, STW_FORBIDDEN, NULL, "the login \"%s\" is reserved on %s",
                        name, s->engine->name);
        return;
    }
    if (!lookup || !lookup->find || !*s->target_name)
        return;
    dbu_account_key(s->target_name, name, &key);
    stw_format(self, sizeof(self), "%s/%s", s->a->ns ? s->a->ns : "", s->a->name ? s->a->name : "");
    s->f->failed |= key.failed;
    if (!key.failed &&
        lookup->find(lookup->ctx, "databaseusers.account", stw_buf_str(&key), self, holder))
        dbu_add_finding(s, STRATEGY, STW_FORBIDDEN, NULL,
                        "the login \"%s\" is the account of DatabaseUser %s", name, holder);
}

static void check_twins(const struct dbu_scene *s)
{
    const struct dbu_spec_connection *c = &s->user->connection;
    const char *user = s->user->user, *strategy = s->user->rotation.strategy;
    bool bytes = s->engine && s->engine->names_in_bytes;
    uint32_t most = s->engine ? s->engine->user_max : USER_MAX;
    if (!c->name)
        dbu_add_finding(s, "spec.connectionSecret", STW_REQUIRED, NULL, DBU_TWINS_NEED_CONNECTION);
    else if (!holds_user(c))
        dbu_add_finding(s, "spec.connectionSecret", STW_INVALID, NULL,
                        "keys or template must have user, uri or jdbcUrl, because "
                        "TwinAccounts changes the name of the login");
    if (!user || !*user || dbu_name_length(s, user) > most)
        return; /* reported by its own rule */
    if (dbu_name_length(s, user) + strlen(DBU_TWIN_A) > most) {
        dbu_add_finding(s, STRATEGY, STW_INVALID, strategy,
                        "spec.user must be at most %zu %s, because the logins have two more",
                        most - strlen(DBU_TWIN_A), bytes ? "bytes" : "characters");
        return;
    }
    check_twin_name(s, DBU_TWIN_A);
    check_twin_name(s, DBU_TWIN_B);
}

static void check_every(const struct dbu_scene *s)
{
    static const char path[] = "spec.rotation.every";
    const struct dbu_spec_rotation *r = &s->user->rotation;
    if (!r->every || !*r->every || dbu_check_every(r->every))
        return; /* the field table reports it */
    if (!is_generated(s))
        dbu_add_finding(s, path, STW_FORBIDDEN, NULL, DBU_EVERY_NEEDS_GENERATE);
    else if (!is_same_word(r->strategy, "InPlace") &&
             dbu_interval_s(r->every) <= r->overlap_seconds)
        dbu_add_finding(s, path, STW_INVALID, r->every, "must be longer than overlapSeconds");
}

static void check_rotation(const struct dbu_scene *s)
{
    const char *strategy = s->user->rotation.strategy;
    if (!stw_json_there(stw_json_path(s->a->object, "spec.rotation")))
        return;
    check_every(s);
    if (is_twins(s)) {
        check_twins(s);
        return;
    }
    if (!is_same_word(strategy, "Auto") && !is_same_word(strategy, "DualPassword"))
        return;
    if (s->target && s->target->engine != STW_ENGINE_MYSQL)
        dbu_add_finding(s, STRATEGY, STW_INVALID, strategy,
                        "needs two valid passwords at a time, which %s does not have; set "
                        "TwinAccounts or InPlace",
                        s->engine->name);
    else if (!s->user->connection.name)
        stw_findings_warn(s->f, "without connectionSecret, applications may read a new password "
                                "before it is set on the server");
}

/* --- all of it */

static void check_all(const struct dbu_scene *s)
{
    if (*s->target_name)
        check_target(s);
    check_user(s);
    check_authentication(s);
    check_password(s);
    check_connection(s);
    check_rotation(s);
    check_hosts(s);
    dbu_check_databases(s);
    dbu_check_grants(s);
    check_roles(s);
    check_plugin(s);
    check_tls(s);
    check_certificate(s);
    check_limits(s);
    check_until(s);
    dbu_check_settings(s);
    check_reassign(s);
    check_adoption(s);
    advise_on_deletion(s);
    advise_on_password(s);
}

void dbu_validate(const struct stw_admission *a, const void *spec, const void *old_spec,
                  struct stw_findings *f)
{
    char name[LABEL_MAX + 1];
    struct dbu_scene s = {.a = a, .user = spec, .old = old_spec, .target_name = name, .f = f};
    struct stw_targets *targets = stw_product_targets(a->env);
    if (read_label(a, targets, f, name))
        s.target = stw_targets_find(targets, name);
    s.engine = s.target ? stw_engine_info(s.target->engine) : NULL;
    if (!s.target || (a->ns && !stw_target_accepts_namespace(s.target, a->ns)))
        advise_on_targets(&s, targets);
    check_all(&s);
    stw_targets_unref(targets);
}

void dbu_advise_delete(const struct stw_admission *a, struct stw_findings *f)
{
    char account[256], target[LABEL_MAX + 1];
    struct stw_json status = stw_json_get(a->old_object, "status");
    struct stw_json policy = stw_json_path(a->old_object, "spec.deletionPolicy");
    dbu_advise_databases(a, f);
    if (stw_json_strcpy(stw_json_get(status, "account"), account, sizeof(account)) != 0 ||
        stw_json_strcpy(stw_json_get(status, "target"), target, sizeof(target)) != 0 || !*account)
        return;
    if (stw_json_is(policy, "Lock"))
        stw_findings_warn(f,
                          "deletionPolicy is Lock: account %s stays on target \"%s\", locked, with "
                          "its rights",
                          account, target);
    else if (stw_json_is(policy, "Retain"))
        stw_findings_warn(f,
                          "deletionPolicy is Retain: account %s stays on target \"%s\", with its "
                          "rights and its password",
                          account, target);
    else
        stw_findings_warn(f, "account %s is dropped from target \"%s\"", account, target);
}
