/* SPDX-License-Identifier: Apache-2.0 */
#include "sql/target/target.h"

#include "base/arena.h"
#include "base/util.h"
#include "schema/names.h"
#include "schema/rule/check.h"
#include "sql/target/dialect.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <strings.h>

#define TARGETS_MAX 1000
#define LABEL_MAX 63
#define HOST_MAX 253
#define VALUE_SHOWN 256 /* bytes of a value; more than a finding shows */
#define VALUE_MAX_BYTES (6 * VALUE_SHOWN + 3)
#define PATTERNS_MAX 1000
#define PATTERN_MAX_BYTES 16384 /* HOST_MAX bytes, all of which may be {namespace} */
#define PLUGINS_MAX 16
#define SETTINGS_MAX 50
#define PLUGIN_MAX 64
#define NAMESPACE "{namespace}"

struct stw_targets {
    atomic_uint refs;
    struct stw_arena *arena; /* owns all strings and lists */
    struct stw_target *all;
    size_t count;
};

/* --- one target as written */

struct secret {
    const char *name, *key;
};

struct admin {
    const char *user, *database, *password_file, *certificate_file, *key_file;
    struct secret secret;
};

struct tls {
    const char *mode, *ca_file;
};

struct written {
    const char *name, *engine, *host;
    int64_t port;
    struct admin admin;
    struct tls tls;
    struct stw_json allowed_namespaces, allowed_privileges, allowed_databases, allow_adoption,
        allowed_owners, allowed_roles, allowed_auth_plugins, allow_create, allowed_extensions,
        allowed_settings;
    bool allow_all_databases, allow_iam, is_default;
    int64_t max_users, max_connections, connect_timeout, statement_timeout, ping;
};

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

/* The name must be valid as the value of an object's label `target`. */
static const char *check_target_name(const char *s)
{
    size_t len = strlen(s);
    bool fits = len > 0 && s[strspn(s, LETTERS "-._")] == '\0' && strspn(s, LETTERS) > 0 &&
                strspn(s + len - 1, LETTERS) == 1;
    return fits ? NULL
                : "must consist of letters, digits, '-', '_' and '.', and must start and end with "
                  "a letter or a digit, as the values of labels";
}

/* Names and addresses only: client libraries interpret other characters, such as '/' and ','. */
static const char *check_host(const char *s)
{
    return s[strspn(s, LETTERS "-._:")] ? "must be the name or the address of a host" : NULL;
}

static const char *check_text(const char *s)
{
    for (; *s; s++)
        if ((unsigned char)*s < 0x20 || *s == 0x7f)
            return "must not hold control characters";
    return NULL;
}

static const char *check_path(const char *s)
{
    return s[0] == '/' ? check_text(s) : "must be an absolute path";
}

static const char *check_key(const char *s)
{
    return s[strspn(s, LETTERS "-._")] ? "must consist of letters, digits, '-', '_' and '.'" : NULL;
}

static const char *check_namespace(const char *s)
{
    return stw_is_dns1123_label(s) ? NULL : "must be the name of a namespace";
}

static const char *check_pattern(const char *s)
{
    const char *bad = check_text(s);
    while (!bad && (s = strpbrk(s, "{}"))) {
        if (strncmp(s, NAMESPACE, strlen(NAMESPACE)) != 0)
            return "braces must be part of \"" NAMESPACE "\"";
        s += strlen(NAMESPACE);
    }
    return bad;
}

#define WRITTEN(type, member) STW_FIELD(type, struct written, member)
static const struct stw_field secret_rows[] = {
    {.name = "name",
     STW_FIELD(STW_T_STRING, struct secret, name),
     .required = true,
     .check = stw_check_dns1123_subdomain},
    {.name = "key",
     STW_FIELD(STW_T_STRING, struct secret, key),
     .def = "\"password\"",
     .has_range = true,
     .min = 1,
     .max = HOST_MAX,
     .check = check_key},
    {0},
};

static const struct stw_field admin_rows[] = {
    {.name = "user",
     STW_FIELD(STW_T_STRING, struct admin, user),
     .required = true,
     .has_range = true,
     .min = 1,
     .max = 80,
     .check = check_text},
    {.name = "database",
     STW_FIELD(STW_T_STRING, struct admin, database),
     .has_range = true,
     .min = 1,
     .max = 63,
     .check = check_text},
    {.name = "passwordSecret",
     STW_FIELD(STW_T_OBJECT, struct admin, secret),
     .type_text = "must be an object {name, key} that names a Secret in steward's namespace",
     .fields = secret_rows},
    {.name = "passwordFile",
     STW_FIELD(STW_T_STRING, struct admin, password_file),
     .has_range = true,
     .min = 1,
     .max = 4095,
     .check = check_path},
    {.name = "certificateFile",
     STW_FIELD(STW_T_STRING, struct admin, certificate_file),
     .has_range = true,
     .min = 1,
     .max = 4095,
     .check = check_path},
    {.name = "keyFile",
     STW_FIELD(STW_T_STRING, struct admin, key_file),
     .has_range = true,
     .min = 1,
     .max = 4095,
     .check = check_path},
    {0},
};

/* In the order of enum stw_tls_mode. */
static const char *const tls_modes[] = {"Disable", "Require", "VerifyCA", "VerifyFull", NULL};
static_assert(STW_COUNT(tls_modes) == STW_TLS_MODES + 1, "one name for each mode, and NULL");

static const struct stw_field tls_rows[] = {
    {.name = "mode",
     STW_FIELD(STW_T_STRING, struct tls, mode),
     .def = "\"VerifyFull\"",
     .values = tls_modes},
    {.name = "caFile",
     STW_FIELD(STW_T_STRING, struct tls, ca_file),
     .has_range = true,
     .min = 1,
     .max = 4095,
     .check = check_path},
    {0},
};

/* In the order of enum stw_engine. */
static const char *const engine_names[] = {"mysql", "mariadb", "postgresql", NULL};
static_assert(STW_COUNT(engine_names) == STW_ENGINES + 1, "one name for each engine, and NULL");

static const struct stw_field namespace_row = {
    .name = "", .type = STW_T_STRING, .required = true, .check = check_namespace};
static const struct stw_field pattern_row = {.name = "",
                                             .type = STW_T_STRING,
                                             .required = true,
                                             .has_range = true,
                                             .min = 1,
                                             .max = HOST_MAX,
                                             .check = check_pattern};
static const struct stw_field privilege_row = {.name = "", .type = STW_T_STRING, .required = true};

static const struct stw_field plugin_row = {.name = "",
                                            .type = STW_T_STRING,
                                            .required = true,
                                            .has_range = true,
                                            .min = 1,
                                            .max = PLUGIN_MAX};
static const struct stw_field setting_row = {
    .name = "", .type = STW_T_STRING, .required = true, .has_range = true, .min = 1, .max = 63};

static const struct stw_field rows[] = {
    {.name = "name",
     WRITTEN(STW_T_STRING, name),
     .required = true,
     .has_range = true,
     .min = 1,
     .max = LABEL_MAX,
     .check = check_target_name},
    {.name = "engine", WRITTEN(STW_T_STRING, engine), .required = true, .values = engine_names},
    {.name = "host",
     WRITTEN(STW_T_STRING, host),
     .required = true,
     .has_range = true,
     .min = 1,
     .max = HOST_MAX,
     .check = check_host},
    {.name = "port", WRITTEN(STW_T_INT, port), .has_range = true, .min = 1, .max = 65535},
    {.name = "admin",
     WRITTEN(STW_T_OBJECT, admin),
     .required = true,
     .type_text = "must be an object {user, passwordSecret}, {user, passwordFile} or {user, "
                  "certificateFile, keyFile}",
     .fields = admin_rows},
    {.name = "tls", WRITTEN(STW_T_OBJECT, tls), .fields = tls_rows},
    {.name = "allowedNamespaces",
     WRITTEN(STW_T_LIST, allowed_namespaces),
     .has_range = true,
     .max = 1000,
     .item = &namespace_row},
    {.name = "allowedPrivileges",
     WRITTEN(STW_T_LIST, allowed_privileges),
     .has_range = true,
     .max = 100,
     .item = &privilege_row},
    {.name = "allowedDatabases",
     WRITTEN(STW_T_LIST, allowed_databases),
     .has_range = true,
     .max = PATTERNS_MAX,
     .item = &pattern_row},
    {.name = "allowAdoption",
     WRITTEN(STW_T_LIST, allow_adoption),
     .has_range = true,
     .max = PATTERNS_MAX,
     .item = &pattern_row},
    {.name = "allowedOwners",
     WRITTEN(STW_T_LIST, allowed_owners),
     .has_range = true,
     .max = PATTERNS_MAX,
     .item = &pattern_row},
    {.name = "allowedRoles",
     WRITTEN(STW_T_LIST, allowed_roles),
     .has_range = true,
     .max = PATTERNS_MAX,
     .item = &pattern_row},
    {.name = "allowedAuthPlugins",
     WRITTEN(STW_T_LIST, allowed_auth_plugins),
     .has_range = true,
     .max = PLUGINS_MAX,
     .item = &plugin_row},
    {.name = "allowCreateDatabases",
     WRITTEN(STW_T_LIST, allow_create),
     .has_range = true,
     .max = PATTERNS_MAX,
     .item = &pattern_row},
    {.name = "allowedExtensions",
     WRITTEN(STW_T_LIST, allowed_extensions),
     .has_range = true,
     .max = PATTERNS_MAX,
     .item = &pattern_row},
    {.name = "allowedSettings",
     WRITTEN(STW_T_LIST, allowed_settings),
     .has_range = true,
     .max = SETTINGS_MAX,
     .item = &setting_row},
    {.name = "allowAllDatabases", WRITTEN(STW_T_BOOL, allow_all_databases), .def = "false"},
    {.name = "allowIAM", WRITTEN(STW_T_BOOL, allow_iam), .def = "false"},
    {.name = "default", WRITTEN(STW_T_BOOL, is_default), .def = "false"},
    {.name = "maxUsers",
     WRITTEN(STW_T_INT, max_users),
     .def = "0",
     .has_range = true,
     .max = INT32_MAX},
    {.name = "maxConnections",
     WRITTEN(STW_T_INT, max_connections),
     .def = "4",
     .has_range = true,
     .min = 1,
     .max = 64},
    {.name = "connectTimeoutSeconds",
     WRITTEN(STW_T_INT, connect_timeout),
     .def = "5",
     .has_range = true,
     .min = 1,
     .max = 60},
    {.name = "statementTimeoutSeconds",
     WRITTEN(STW_T_INT, statement_timeout),
     .def = "10",
     .has_range = true,
     .min = 1,
     .max = 600},
    {.name = "pingSeconds", WRITTEN(STW_T_INT, ping), .def = "15", .has_range = true, .max = 3600},
    {0},
};

/* --- from the written form to struct stw_target */

struct parser {
    struct stw_targets *targets;
    struct stw_findings *f;
};

static int64_t place_of(const char *const *list, const char *word)
{
    for (int64_t i = 0; word && list[i]; i++)
        if (stw_streq(list[i], word))
            return i;
    return -1;
}

/* A NULL-terminated list of strings; NULL when there is none. */
static const char *const *copy_list(struct parser *p, struct stw_json list)
{
    struct stw_json key, item;
    size_t count = 0;
    if (!stw_json_there(list))
        return NULL;
    const char **ret = stw_arena_alloc(p->targets->arena, (stw_json_size(list) + 1) * sizeof(*ret));
    p->f->failed |= !ret;
    stw_json_foreach (list, key, item)
        if (ret && stw_json_type(item) == STW_JSON_STRING) {
            ret[count] = stw_arena_str(p->targets->arena, item);
            p->f->failed |= !ret[count];
            count++;
        }
    if (ret)
        ret[count] = NULL;
    return ret;
}

static void fill_target(struct parser *p, const struct written *w, struct stw_target *t)
{
    int64_t engine = place_of(engine_names, w->engine), mode = place_of(tls_modes, w->tls.mode);
    *t = (struct stw_target){
        .name = w->name ? w->name : "",
        .engine = engine < 0 ? STW_ENGINE_MYSQL : (enum stw_engine)engine,
        .host = w->host ? w->host : "",
        .port = w->port,
        .admin_user = w->admin.user ? w->admin.user : "",
        .admin_database = w->admin.database,
        .secret_name = w->admin.secret.name,
        .secret_key = w->admin.secret.name ? w->admin.secret.key : NULL,
        .password_file = w->admin.password_file,
        .certificate_file = w->admin.certificate_file,
        .key_file = w->admin.key_file,
        .tls_mode = mode < 0 ? STW_TLS_VERIFY_FULL : (enum stw_tls_mode)mode,
        .tls_ca_file = w->tls.ca_file,
        .allowed_namespaces = copy_list(p, w->allowed_namespaces),
        .allowed_privileges = copy_list(p, w->allowed_privileges),
        .allowed_databases = copy_list(p, w->allowed_databases),
        .allow_adoption = copy_list(p, w->allow_adoption),
        .allowed_owners = copy_list(p, w->allowed_owners),
        .allowed_roles = copy_list(p, w->allowed_roles),
        .allowed_auth_plugins = copy_list(p, w->allowed_auth_plugins),
        .allow_create = copy_list(p, w->allow_create),
        .allowed_extensions = copy_list(p, w->allowed_extensions),
        .allowed_settings = copy_list(p, w->allowed_settings),
        .allow_all_databases = w->allow_all_databases,
        .allow_iam = w->allow_iam,
        .is_default = w->is_default,
        .max_users = w->max_users,
        .max_connections = w->max_connections,
        .connect_timeout_seconds = w->connect_timeout,
        .ping_seconds = w->ping,
        .statement_timeout_seconds = w->statement_timeout,
    };
    if (t->port == 0)
        t->port = stw_engine_info(t->engine)->port;
    if (t->engine == STW_ENGINE_POSTGRESQL && !t->admin_database)
        t->admin_database = "postgres";
}

/* --- rules beyond the table */

static void path_to(char *out, size_t size, size_t index, const char *field)
{
    stw_format(out, size, "targets[%zu].%s", index, field);
}

static void check_credentials(struct parser *p, size_t index, struct stw_json admin,
                              enum stw_tls_mode mode)
{
    char path[64];
    bool secret = stw_json_there(stw_json_get(admin, "passwordSecret"));
    bool file = stw_json_there(stw_json_get(admin, "passwordFile"));
    bool certificate = stw_json_there(stw_json_get(admin, "certificateFile"));
    bool key = stw_json_there(stw_json_get(admin, "keyFile"));
    if (stw_json_type(admin) != STW_JSON_OBJECT)
        return;
    path_to(path, sizeof(path), index, "admin");
    if (certificate != key)
        stw_findings_add(p->f, path, STW_INVALID, NULL, "set both of certificateFile, keyFile");
    else if (certificate && mode == STW_TLS_DISABLE)
        stw_findings_add(p->f, path, STW_INVALID, NULL,
                         "certificateFile needs TLS, and tls.mode is Disable");
    if (secret && file)
        stw_findings_add(p->f, path, STW_INVALID, NULL,
                         "set only one of passwordSecret, passwordFile");
    else if (!secret && !file && !certificate && !key)
        stw_findings_add(p->f, path, STW_INVALID, NULL,
                         "set one of passwordSecret, passwordFile, or certificateFile and keyFile");
}

static void check_privileges(struct parser *p, size_t index, const struct stw_target *t)
{
    for (size_t i = 0; t->allowed_privileges && t->allowed_privileges[i]; i++) {
        char path[96];
        stw_autobuf struct stw_buf value = STW_BUF_INIT(VALUE_MAX_BYTES), all = STW_BUF_INIT(4096);
        const char *name = t->allowed_privileges[i];
        if (stw_streq(name, "GRANT OPTION") || stw_engine_privilege(t->engine, name))
            continue;
        stw_format(path, sizeof(path), "targets[%zu].allowedPrivileges[%zu]", index, i);
        stw_buf_json_str(&value, name, strnlen(name, VALUE_SHOWN));
        stw_engine_list_privileges(t->engine, ~0U, &all);
        stw_findings_add(p->f, path, STW_NOT_SUPPORTED, stw_buf_str(&value),
                         "supported values: %s, \"GRANT OPTION\"", stw_buf_str(&all));
        p->f->failed |= value.failed || all.failed;
    }
}

static void check_plugins(struct parser *p, size_t index, const struct stw_target *t)
{
    const struct stw_engine_info *engine = stw_engine_info(t->engine);
    for (size_t i = 0; t->allowed_auth_plugins && t->allowed_auth_plugins[i]; i++) {
        char path[96];
        stw_autobuf struct stw_buf value = STW_BUF_INIT(VALUE_MAX_BYTES), all = STW_BUF_INIT(4096);
        const char *name = t->allowed_auth_plugins[i];
        if (!*name || !engine->auth_plugins[0] || stw_engine_has_plugin(t->engine, name))
            continue;
        stw_format(path, sizeof(path), "targets[%zu].allowedAuthPlugins[%zu]", index, i);
        stw_buf_json_str(&value, name, strnlen(name, VALUE_SHOWN));
        stw_engine_list_names(engine->auth_plugins, &all);
        stw_findings_add(p->f, path, STW_NOT_SUPPORTED, stw_buf_str(&value),
                         "supported values: %s; only plugins that check the password of the "
                         "account can be allowed",
                         stw_buf_str(&all));
        p->f->failed |= value.failed || all.failed;
    }
}

static void check_settings(struct parser *p, size_t index, const struct stw_target *t)
{
    for (size_t i = 0; t->allowed_settings && t->allowed_settings[i]; i++) {
        char path[96];
        stw_autobuf struct stw_buf value = STW_BUF_INIT(VALUE_MAX_BYTES);
        const char *name = t->allowed_settings[i];
        if (!*name || !stw_engine_reserves_setting(name))
            continue;
        stw_format(path, sizeof(path), "targets[%zu].allowedSettings[%zu]", index, i);
        stw_buf_json_str(&value, name, strnlen(name, VALUE_SHOWN));
        stw_findings_add(p->f, path, STW_INVALID, stw_buf_str(&value),
                         "must be the name of a setting in lower case, and not one that changes "
                         "whose rights a session has, loads libraries, or changes what is logged");
        p->f->failed |= value.failed;
    }
}

static void check_engine_fields(struct parser *p, size_t index, const struct stw_target *t)
{
    char path[64];
    const struct stw_engine_info *engine = stw_engine_info(t->engine);
    if (t->admin_database && !engine->has_schemas) {
        path_to(path, sizeof(path), index, "admin.database");
        stw_findings_add(p->f, path, STW_INVALID, NULL, "not supported on %s", engine->name);
    }
    if (t->allow_all_databases && !engine->has_all_databases) {
        path_to(path, sizeof(path), index, "allowAllDatabases");
        stw_findings_add(p->f, path, STW_INVALID, NULL, "not supported on %s", engine->name);
    }
    if (t->allowed_owners && !engine->has_owned_objects) {
        path_to(path, sizeof(path), index, "allowedOwners");
        stw_findings_add(p->f, path, STW_INVALID, NULL, "not supported on %s", engine->name);
    }
    if (t->allowed_auth_plugins && !engine->auth_plugins[0]) {
        path_to(path, sizeof(path), index, "allowedAuthPlugins");
        stw_findings_add(p->f, path, STW_INVALID, NULL, "not supported on %s", engine->name);
    }
    if (t->allowed_settings && !engine->has_schemas) {
        path_to(path, sizeof(path), index, "allowedSettings");
        stw_findings_add(p->f, path, STW_INVALID, NULL, "not supported on %s", engine->name);
    }
    if (t->allowed_extensions && !engine->has_schemas) {
        path_to(path, sizeof(path), index, "allowedExtensions");
        stw_findings_add(p->f, path, STW_INVALID, NULL, "not supported on %s", engine->name);
    }
}

static void check_duplicate(struct parser *p, size_t index, const struct stw_target *t)
{
    char path[64];
    for (size_t i = 0; i < index && *t->name; i++) {
        stw_autobuf struct stw_buf value = STW_BUF_INIT(VALUE_MAX_BYTES);
        if (strcasecmp(p->targets->all[i].name, t->name) != 0)
            continue;
        path_to(path, sizeof(path), index, "name");
        stw_buf_json_str(&value, t->name, strnlen(t->name, VALUE_SHOWN));
        stw_findings_add(p->f, path, STW_DUPLICATE, stw_buf_str(&value),
                         "targets are compared without case");
        p->f->failed |= value.failed;
        return;
    }
}

static void check_default(struct parser *p, size_t index, const struct stw_target *t)
{
    char path[64];
    for (size_t i = 0; i < index && t->is_default; i++) {
        if (!p->targets->all[i].is_default)
            continue;
        path_to(path, sizeof(path), index, "default");
        stw_findings_add(p->f, path, STW_INVALID, "true",
                         "only one target can be the default, and targets[%zu] is", i);
        return;
    }
}

static void advise_on_tls(struct parser *p, const struct stw_target *t)
{
    if (t->tls_mode == STW_TLS_DISABLE)
        stw_findings_warn(p->f, "target \"%s\": without TLS, passwords can be read on the network",
                          t->name);
    else if (t->tls_mode == STW_TLS_REQUIRE)
        stw_findings_warn(
            p->f,
            "target \"%s\": TLS mode Require does not check the server's identity; VerifyFull does",
            t->name);
}

/* --- the list */

static void parse_one(struct parser *p, const struct stw_path *at, struct stw_json v)
{
    struct written w = {0};
    struct stw_target *t = &p->targets->all[at->index];
    stw_check_fields(at, rows, v, p->targets->arena, p->f);
    (void)stw_fields_decode(rows, v, p->targets->arena, &w); /* wrong types are reported already */
    fill_target(p, &w, t);
    check_credentials(p, at->index, stw_json_get(v, "admin"), t->tls_mode);
    if (place_of(engine_names, w.engine) >= 0) {
        check_privileges(p, at->index, t);
        check_settings(p, at->index, t);
        check_plugins(p, at->index, t);
        check_engine_fields(p, at->index, t);
    }
    check_duplicate(p, at->index, t);
    check_default(p, at->index, t);
    advise_on_tls(p, t);
}

static void parse_all(struct parser *p, struct stw_json list)
{
    const struct stw_path top = {.name = "targets"};
    struct stw_path at = {.up = &top};
    struct stw_json key, v;
    stw_json_foreach (list, key, v) {
        if (stw_json_type(v) == STW_JSON_OBJECT) {
            parse_one(p, &at, v);
        } else {
            char path[64];
            stw_format(path, sizeof(path), "targets[%u]", at.index);
            p->targets->all[at.index].name = "";
            stw_findings_add(p->f, path, STW_INVALID, NULL, "must be an object");
        }
        at.index++;
    }
}

static struct stw_targets *create_targets(size_t count)
{
    struct stw_targets *t = calloc(1, sizeof(*t));
    if (!t)
        return NULL;
    atomic_init(&t->refs, 1);
    t->arena = stw_arena_create();
    t->all = calloc(count + 1, sizeof(*t->all));
    t->count = count;
    if (t->arena && t->all)
        return t;
    stw_targets_unref(t);
    return NULL;
}

int stw_targets_parse(struct stw_json list, struct stw_targets **ret, struct stw_findings *f)
{
    size_t count = stw_json_there(list) ? stw_json_size(list) : 0;
    bool strict = f->strict;
    if (stw_json_there(list) && stw_json_type(list) != STW_JSON_ARRAY) {
        stw_findings_add(f, "targets", STW_INVALID, NULL, "must be a list");
        return -1;
    }
    if (count > TARGETS_MAX) {
        stw_findings_add(f, "targets", STW_INVALID, NULL, "must be at most %d entries",
                         TARGETS_MAX);
        return -1;
    }
    struct parser p = {.targets = create_targets(count), .f = f};
    f->failed |= !p.targets;
    f->strict = true; /* a misspelt key may be one that should have restricted access */
    if (p.targets)
        parse_all(&p, list);
    f->strict = strict;
    if (f->failed || f->error_count > 0) {
        stw_targets_unref(p.targets);
        return -1;
    }
    *ret = p.targets;
    return 0;
}

struct stw_targets *stw_targets_ref(struct stw_targets *t)
{
    if (t)
        atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
    return t;
}

struct stw_targets *stw_targets_now(void *targets)
{
    return stw_targets_ref(targets);
}

void stw_targets_unref(struct stw_targets *t)
{
    if (!t || atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) != 1)
        return;
    stw_arena_destroy(t->arena);
    free(t->all);
    free(t);
}

const struct stw_target *stw_targets_find(const struct stw_targets *t, const char *name)
{
    for (size_t i = 0; t && i < t->count; i++)
        if (strcasecmp(t->all[i].name, name) == 0)
            return &t->all[i];
    return NULL;
}

const struct stw_target *stw_targets_default(const struct stw_targets *t)
{
    for (size_t i = 0; t && i < t->count; i++)
        if (t->all[i].is_default)
            return &t->all[i];
    return NULL;
}

size_t stw_targets_count(const struct stw_targets *t)
{
    return t ? t->count : 0;
}

const struct stw_target *stw_targets_at(const struct stw_targets *t, size_t i)
{
    return t && i < t->count ? &t->all[i] : NULL;
}

/* --- permissions of a namespace */

void stw_target_put_pattern(const char *pattern, const char *ns, struct stw_buf *out)
{
    for (const char *at; (at = strstr(pattern, NAMESPACE)); pattern = at + strlen(NAMESPACE)) {
        stw_buf_add(out, pattern, (size_t)(at - pattern));
        stw_buf_adds(out, ns);
    }
    stw_buf_adds(out, pattern);
}

/* '*' matches any number of characters: after a mismatch the last '*' takes one more. */
static bool is_glob_match(const char *pattern, const char *text)
{
    const char *star = NULL, *retry = NULL;
    while (*text) {
        if (*pattern == '*') {
            star = pattern++;
            retry = text;
        } else if (*pattern == *text) {
            pattern++;
            text++;
        } else if (star) {
            pattern = star + 1;
            text = ++retry;
        } else {
            return false;
        }
    }
    return pattern[strspn(pattern, "*")] == '\0';
}

static bool is_allowed(const char *const *patterns, const char *ns, const char *name)
{
    bool found = false;
    for (; patterns && *patterns && !found; patterns++) {
        stw_autobuf struct stw_buf pattern = STW_BUF_INIT(PATTERN_MAX_BYTES);
        if (!ns && strstr(*patterns, NAMESPACE))
            continue;
        stw_target_put_pattern(*patterns, ns, &pattern);
        found = !pattern.failed && is_glob_match(stw_buf_str(&pattern), name);
    }
    return found;
}

bool stw_target_accepts_namespace(const struct stw_target *t, const char *ns)
{
    if (!t->allowed_namespaces)
        return true;
    for (const char *const *allowed = t->allowed_namespaces; *allowed; allowed++)
        if (ns && stw_streq(*allowed, ns))
            return true;
    return false;
}

const char *const *stw_target_databases(const struct stw_target *t)
{
    static const char *const own[] = {NAMESPACE, NAMESPACE "-*", NAMESPACE "_*", NULL};
    return t->allowed_databases ? t->allowed_databases : own;
}

bool stw_target_allows_database(const struct stw_target *t, const char *ns, const char *database)
{
    return is_allowed(stw_target_databases(t), ns, database);
}

bool stw_target_allows_adoption(const struct stw_target *t, const char *ns, const char *user)
{
    return is_allowed(t->allow_adoption, ns, user);
}

bool stw_target_allows_owner(const struct stw_target *t, const char *ns, const char *role)
{
    return is_allowed(t->allowed_owners, ns, role);
}

bool stw_target_allows_role(const struct stw_target *t, const char *ns, const char *role)
{
    return is_allowed(t->allowed_roles, ns, role);
}

bool stw_target_allows_plugin(const struct stw_target *t, const char *plugin)
{
    for (const char *const *p = t->allowed_auth_plugins; p && *p; p++)
        if (stw_streq(*p, plugin))
            return true;
    return false;
}

const char *const stw_target_settings[] = {"application_name",
                                           "datestyle",
                                           "default_transaction_isolation",
                                           "default_transaction_read_only",
                                           "idle_in_transaction_session_timeout",
                                           "lock_timeout",
                                           "search_path",
                                           "statement_timeout",
                                           "timezone",
                                           NULL};

bool stw_target_allows_setting(const struct stw_target *t, const char *setting)
{
    const char *const *list = t->allowed_settings ? t->allowed_settings : stw_target_settings;
    for (; *list; list++)
        if (stw_streq(*list, setting))
            return !stw_engine_reserves_setting(setting);
    return false;
}

bool stw_target_allows_create(const struct stw_target *t, const char *ns, const char *database)
{
    return is_allowed(t->allow_create, ns, database);
}

bool stw_target_allows_extension(const struct stw_target *t, const char *ns, const char *extension)
{
    return is_allowed(t->allowed_extensions, ns, extension);
}

bool stw_target_lists_privilege(const struct stw_target *t, const char *privilege)
{
    for (const char *const *p = t->allowed_privileges; p && *p; p++)
        if (stw_streq(*p, privilege))
            return true;
    return false;
}

bool stw_target_allows_privilege(const struct stw_target *t, const char *privilege)
{
    const struct stw_engine_privilege *p = stw_engine_privilege(t->engine, privilege);
    return t->allowed_privileges ? stw_target_lists_privilege(t, privilege) : !p || !p->listed;
}

bool stw_target_has_password(const struct stw_target *t)
{
    return t->secret_name || t->password_file;
}

bool stw_target_same_login(const struct stw_target *a, const struct stw_target *b)
{
    return a->engine == b->engine && a->port == b->port && a->tls_mode == b->tls_mode &&
           stw_same(a->host, b->host) && stw_same(a->admin_user, b->admin_user) &&
           stw_same(a->admin_database, b->admin_database) &&
           stw_same(a->secret_name, b->secret_name) && stw_same(a->secret_key, b->secret_key) &&
           stw_same(a->password_file, b->password_file) &&
           stw_same(a->certificate_file, b->certificate_file) &&
           stw_same(a->key_file, b->key_file) && stw_same(a->tls_ca_file, b->tls_ca_file) &&
           a->max_connections == b->max_connections &&
           a->connect_timeout_seconds == b->connect_timeout_seconds &&
           a->statement_timeout_seconds == b->statement_timeout_seconds;
}
