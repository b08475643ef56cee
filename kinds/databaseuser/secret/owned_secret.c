/* SPDX-License-Identifier: Apache-2.0
 *
 * Secrets that a DatabaseUser owns: the one with its connection, and the one with a generated
 * password.  They have an ownerReference, so the API server's garbage collection deletes them with
 * the object.  A Secret with another owner, or with none, is neither read nor written. */
#include "kinds/databaseuser/secret/owned_secret.h"

#include "base/arena.h"
#include "base/base64.h"
#include "base/hex.h"
#include "base/log.h"
#include "base/process/fault.h"
#include "base/util.h"
#include "controller/manifest.h"
#include "controller/queue/guard.h"
#include "kinds/databaseuser/plan/twin.h"
#include "kinds/databaseuser/run_priv.h"
#include "kinds/databaseuser/secret/connection.h"
#include "kinds/databaseuser/secret/secret.h"
#include "kube/owned.h"
#include "kube/secret.h"
#include "kube/tree.h"

#include <openssl/rand.h>

#define CA_MAX_BYTES (256u << 10)
#define CONNECTION "connection" /* the component of the one Secret */

/* --- reading and writing */

static bool is_ours(const struct dbu *d, const struct stw_secret *s)
{
    char kind[64], name[254], uid[64] = "";
    return stw_owner_controller(stw_json_root(&s->doc), kind, name, uid) == 0 &&
           stw_streq(uid, d->object.uid);
}

/* 0: there and ours; 1: there is none; -1: `state` is set. */
static int read_owned(struct dbu *d, const char *name, struct stw_secret *ret,
                      enum dbu_owned_state *state, struct stw_error *err)
{
    *state = DBU_OWNED_FAILED;
    if (stw_run_get_secret(d->run, name, NULL, ret, err) != 0) {
        if (err->code != STW_ERR_NOT_FOUND)
            return -1;
        *err = (struct stw_error){0};
        return 1;
    }
    if (is_ours(d, ret))
        return 0;
    *state = DBU_OWNED_FOREIGN;
    return -1;
}

/* With twins: which login the connection has. */
static json_t *build_annotations(const struct dbu *d)
{
    char login[DBU_LOGIN_MAX], number[24], names[3][STW_OWN_NAME_LEN];
    if (!dbu_has_logins(&d->view))
        return NULL;
    dbu_login_make(d->spec.user, d->twins.turn.next, login);
    stw_format(number, sizeof(number), "%lld", (long long)d->twins.turn.rotation);
    stw_operator_text(d->run->op, DBU_LOGIN_ANNOTATION, names[0]);
    stw_operator_text(d->run->op, DBU_FINGERPRINT_ANNOTATION, names[1]);
    stw_operator_text(d->run->op, DBU_ROTATION_ANNOTATION, names[2]);
    return json_pack("{s:s,s:s,s:s}", names[0], login, names[1], d->fingerprint, names[2], number);
}

/* --- labels and annotations */

#define METADATA_MAPS 2
static const char *const metadata_maps[METADATA_MAPS] = {"labels", "annotations"};

static struct stw_json wanted_map(const struct dbu *d, size_t map)
{
    return map == 0 ? d->spec.connection.labels : d->spec.connection.annotations;
}

/* Removes from `map` the keys that the API server notes (managedFields) as set by steward, `ours`, or
 * by another client. */
static void remove_managed(const struct dbu *d, struct stw_json metadata, const char *in, bool ours,
                           json_t *map)
{
    char member[16];
    struct stw_json i, k, one, field;
    stw_format(member, sizeof(member), "f:%s", in);
    stw_json_foreach (stw_json_get(metadata, "managedFields"), i, one) {
        struct stw_json fields =
            stw_json_get(stw_json_get(stw_json_get(one, "fieldsV1"), "f:metadata"), member);
        if (stw_json_is(stw_json_get(one, "manager"), d->run->field_manager) != ours)
            continue;
        stw_json_foreach (fields, k, field) {
            stw_autofree char *key = stw_json_strdup(k);
            if (key && strncmp(key, "f:", 2) == 0)
                (void)json_object_del(map, key + 2);
        }
    }
}

/* What other clients have set: everything without the keys of steward alone. */
static json_t *read_kept(const struct dbu *d, struct stw_json was, const char *map)
{
    static const char *const own[] = {DBU_LOGIN_ANNOTATION, DBU_FINGERPRINT_ANNOTATION,
                                      DBU_ROTATION_ANNOTATION};
    json_t *kept = stw_tree_read(stw_json_get(was, map));
    if (!json_is_object(kept)) {
        json_decref(kept);
        return NULL;
    }
    json_auto_t *only_ours = json_copy(kept);
    remove_managed(d, was, map, false, only_ours);
    json_auto_t *not_ours = json_copy(kept);
    remove_managed(d, was, map, true, not_ours);
    const char *key;
    json_t *value;
    json_object_foreach (only_ours, key, value)
        if (!json_object_get(not_ours, key))
            (void)json_object_del(kept, key);
    for (size_t i = 0; i < STW_COUNT(own); i++) {
        char name[STW_OWN_NAME_LEN];
        stw_operator_text(d->run->op, own[i], name);
        (void)json_object_del(kept, name);
    }
    return kept;
}

/* Labels, annotations and finalizers of other clients stay; those of steward are as they are now. */
static void keep_metadata(const struct dbu *d, struct stw_json was, json_t *m)
{
    for (size_t i = 0; i < METADATA_MAPS; i++) {
        json_auto_t *kept = read_kept(d, was, metadata_maps[i]);
        (void)json_object_update(kept, json_object_get(m, metadata_maps[i]));
        if (json_object_size(kept) > 0)
            (void)json_object_set(m, metadata_maps[i], kept);
    }
    json_auto_t *finalizers = stw_tree_read(stw_json_get(was, "finalizers"));
    if (json_is_array(finalizers))
        (void)json_object_set(m, "finalizers", finalizers);
}

/* Of spec.connectionSecret; the rules refuse keys that steward sets. */
static void add_wanted_metadata(const struct dbu *d, json_t *m)
{
    for (size_t i = 0; i < METADATA_MAPS; i++) {
        json_auto_t *wanted = stw_tree_read(wanted_map(d, i));
        if (json_object_size(wanted) == 0)
            continue;
        (void)json_object_update(wanted, json_object_get(m, metadata_maps[i]));
        (void)json_object_set(m, metadata_maps[i], wanted);
    }
}

static bool has_metadata(const struct stw_secret *s, const json_t *manifest)
{
    struct stw_json live = stw_json_get(stw_json_root(&s->doc), "metadata");
    for (size_t i = 0; i < METADATA_MAPS; i++) {
        json_auto_t *map = stw_tree_read(stw_json_get(live, metadata_maps[i]));
        const json_t *wanted =
            json_object_get(json_object_get(manifest, "metadata"), metadata_maps[i]);
        if (json_object_size(map) != json_object_size(wanted) ||
            (json_object_size(map) > 0 && !json_equal(map, wanted)))
            return false;
    }
    return true;
}

/* `old` as it was read, empty for none. */
static json_t *build_manifest(const struct dbu *d, const char *name, const char *component,
                              const struct stw_secret *old, json_t *data)
{
    static const char *const pinned[] = {"resourceVersion", "uid"};
    const struct stw_naming naming = {.app = "databaseuser", .component = component, .image = ""};
    json_t *m = stw_manifest_metadata(d->run, &d->owner, &naming, name);
    struct stw_json was = stw_json_get(stw_json_root(&old->doc), "metadata");
    if (stw_streq(component, CONNECTION)) {
        json_auto_t *annotations = build_annotations(d);
        if (annotations)
            (void)json_object_set(m, "annotations", annotations);
        add_wanted_metadata(d, m);
    }
    for (size_t i = 0; i < STW_COUNT(pinned); i++) {
        stw_autofree char *text = stw_json_strdup(stw_json_get(was, pinned[i]));
        if (text)
            (void)json_object_set_new(m, pinned[i], json_string(text));
    }
    keep_metadata(d, was, m);
    return json_pack("{s:s,s:s,s:s,s:o,s:O}", "apiVersion", "v1", "kind", "Secret", "type",
                     "Opaque", "metadata", m, "data", data);
}

/* Creates it, or replaces the one that is `there`.  `object` may be NULL: no memory. */
static int write_owned(struct dbu *d, const char *name, bool there, const json_t *object,
                       struct stw_buf *answer, struct stw_error *err)
{
    stw_autobuf struct stw_buf path = STW_BUF_INIT(4096);
    if (stw_run_check_write(d->run, err) != 0)
        return -1;
    stw_resource_path(&stw_res_secret, d->run->ns, there ? name : NULL, NULL, &path);
    stw_buf_addf(&path, "?fieldManager=%s", d->run->field_manager);
    char *body = object ? json_dumps(object, JSON_COMPACT) : NULL;
    if (!body)
        return stw_fail_memory(err);
    struct stw_request request = {.method = there ? "PUT" : "POST",
                                  .path = stw_buf_str(&path),
                                  .body = body,
                                  .body_len = strlen(body),
                                  .secret = true};
    int rc = stw_client_do(d->run->client, &request, answer, err);
    stw_wipe_free(body);
    if (rc == 0)
        stw_fault_point("secret");
    if (rc == 0)
        stw_log(STW_LOG_INFO, "wrote a Secret", STW_STR("secret", name));
    return rc == 0 ? 0 : stw_error_wrap(err, "cannot write Secret \"%s\"", name);
}

static bool has_data(const struct stw_secret *s, json_t *data)
{
    json_auto_t *live = stw_tree_read(stw_json_get(stw_json_root(&s->doc), "data"));
    return live && json_equal(live, data);
}

static void read_version(const struct stw_json root, char ret[STW_RV_LEN])
{
    (void)stw_json_strcpy(stw_json_path(root, "metadata.resourceVersion"), ret, STW_RV_LEN);
}

/* --- the connection */

bool dbu_connection_wanted(const struct dbu *d)
{
    return d->spec.connection.name && *d->spec.connection.name;
}

static const char *first_database(const struct dbu *d)
{
    struct stw_json name = stw_json_get(stw_json_at(d->spec.grants, 0), "database");
    const char *text = stw_json_there(name) ? stw_arena_str(d->arena, name) : NULL;
    return text && !stw_streq(text, "*") ? text : "";
}

/* What the values depend on, without the password: its Secret's version stands for it. */
static void hash_inputs(struct dbu *d, const char *password_version, const char *ca,
                        char ret[DBU_INPUTS_LEN])
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(4u << 20);
    size_t len;
    const char *raw = stw_json_raw(stw_json_path(d->object.root, "spec.connectionSecret"), &len);
    stw_buf_add(&text, raw, len);
    stw_buf_addf(&text, "\n%s\n%lld\n%d\n%s\n%s\n%s\n%d\n%s\n%s\n%s", d->target->host,
                 (long long)d->target->port, (int)d->target->engine, dbu_login_name(d),
                 d->spec.password.name ? d->spec.password.name : "", d->spec.password.key,
                 d->spec.password.trim_newline, password_version, first_database(d), ca);
    struct stw_hash h = stw_hash_bytes(stw_buf_str(&text), text.len);
    stw_hex_encode((const unsigned char *)&h, sizeof(h), STW_HEX_LOWER, ret);
}

static int read_ca(const struct dbu *d, char **ret, struct stw_error *err)
{
    size_t len;
    *ret = NULL;
    if (!d->target->tls_ca_file)
        return 0;
    if (stw_read_file(d->target->tls_ca_file, CA_MAX_BYTES, ret, &len, err) != 0)
        return stw_error_wrap(err, "the CA of target \"%s\"", d->target->name);
    return 0;
}

bool dbu_connection_is_settled(struct dbu *d)
{
    char version[STW_RV_LEN], password[STW_RV_LEN], inputs[DBU_INPUTS_LEN];
    stw_autofree char *ca = NULL;
    struct stw_error err = {0};
    const json_t *was = json_object_get(d->object.status, "connectionSecret");
    if (!dbu_connection_wanted(d))
        return true;
    if (!stw_streq(stw_tree_text(was, "name"), d->spec.connection.name) ||
        !dbu_secret_version(d->run, d->spec.connection.name, version) ||
        !stw_streq(stw_tree_text(was, "resourceVersion"), version) ||
        !dbu_secret_version(d->run, d->spec.password.name, password) || read_ca(d, &ca, &err) != 0)
        return false;
    hash_inputs(d, password, ca ? ca : "", inputs);
    return stw_streq(stw_tree_text(was, "inputs"), inputs);
}

static void read_annotation(const struct dbu *d, const struct stw_secret *s, const char *name,
                            char *out, size_t size)
{
    char key[STW_OWN_NAME_LEN];
    struct stw_json all = stw_json_path(stw_json_root(&s->doc), "metadata.annotations");
    stw_operator_text(d->run->op, name, key);
    if (stw_json_strcpy(stw_json_get(all, key), out, size) != 0)
        *out = '\0';
}

static void read_secret_login(const struct dbu *d, const struct stw_secret *s,
                              struct dbu_secret_login *ret)
{
    char number[24];
    read_annotation(d, s, DBU_LOGIN_ANNOTATION, ret->login, sizeof(ret->login));
    read_annotation(d, s, DBU_FINGERPRINT_ANNOTATION, ret->fingerprint, sizeof(ret->fingerprint));
    read_annotation(d, s, DBU_ROTATION_ANNOTATION, number, sizeof(number));
    ret->rotation = strtoll(number, NULL, 10);
}

/* NULL: the password is only a part of texts. */
static const char *find_password_key(const struct dbu *d)
{
    const struct dbu_spec_connection *c = &d->spec.connection;
    struct stw_json key, value;
    if (stw_json_size(c->keys) == 0 && stw_json_size(c->template) == 0)
        return "password";
    stw_json_foreach (c->keys, key, value)
        if (stw_json_is(value, "password"))
            return stw_arena_str(d->arena, key);
    return NULL;
}

static json_t *build_data(struct dbu *d, const char *ca, struct stw_error *err)
{
    const struct dbu_connection_values values = {.target = d->target,
                                                 .user = dbu_login_name(d),
                                                 .password = stw_buf_str(&d->secret.value),
                                                 .database = first_database(d),
                                                 .ca = ca};
    return dbu_connection_data(&values, &d->spec.connection, err);
}

/* The Secret has the wanted password. */
static bool shows_wanted(struct dbu *d, const struct stw_secret *now)
{
    const struct stw_buf *want = &d->secret.value, *have = &d->published;
    stw_autofree char *ca = NULL;
    struct stw_error err = {0};
    if (d->secret.state != DBU_SECRET_FOUND)
        return false;
    if (have->len > 0)
        return want->len == have->len && memcmp(want->data, have->data, want->len) == 0;
    if (memchr(stw_buf_str(want), '\0', want->len) || read_ca(d, &ca, &err) != 0)
        return false;
    json_auto_t *data = build_data(d, ca ? ca : "", &err);
    return data && has_data(now, data);
}

enum dbu_owned_state dbu_connection_look(struct dbu *d, struct dbu_secret_login *ret)
{
    stw_autosecret struct stw_secret now = {0};
    enum dbu_owned_state state;
    struct stw_error err = {0};
    *ret = (struct dbu_secret_login){0};
    int rc = read_owned(d, d->spec.connection.name, &now, &state, &err);
    if (rc > 0)
        return DBU_OWNED_UNCHECKED;
    if (rc < 0) { /* said also when nothing is written in this run */
        d->connection.state = state;
        d->connection.err = err;
        return state;
    }
    read_secret_login(d, &now, ret);
    const char *key = find_password_key(d);
    stw_buf_done(&d->published);
    d->published = (struct stw_buf){.max = STW_RESPONSE_MAX_BYTES, .secret = true};
    if (key && stw_base64_json(stw_secret_entry(stw_json_root(&now.doc), key), &d->published) != 0)
        stw_buf_clear(&d->published);
    ret->shows_wanted = shows_wanted(d, &now);
    return DBU_OWNED_SYNCED;
}

/* The API server notes when each client last changed something. */
static void read_since(const struct dbu *d, struct stw_json secret, char ret[STW_TIME_LEN])
{
    struct stw_json key, one;
    stw_json_foreach (stw_json_path(secret, "metadata.managedFields"), key, one)
        if (stw_json_is(stw_json_get(one, "manager"), d->run->field_manager))
            (void)stw_json_strcpy(stw_json_get(one, "time"), ret, STW_TIME_LEN);
}

static int write_connection(struct dbu *d, const struct stw_secret *old, const char *ca)
{
    struct dbu_owned *c = &d->connection;
    stw_autobuf struct stw_buf answer = {.max = STW_RESPONSE_MAX_BYTES, .secret = true};
    stw_autojson struct stw_json_doc doc = {0};
    json_auto_t *data = build_data(d, ca, &c->err);
    if (!data)
        return -1;
    json_auto_t *object = build_manifest(d, d->spec.connection.name, CONNECTION, old, data);
    read_version(stw_json_root(&old->doc), c->version);
    read_since(d, stw_json_root(&old->doc), c->since);
    if (has_data(old, data) && has_metadata(old, object))
        return 0;
    char what[STW_KEY_LEN + 64];
    stw_format(what, sizeof(what), "secrets/%s/%s", d->run->ns, d->spec.connection.name);
    if (stw_guard_write(stw_run_guard(d->run), what, 0, stw_now_ms(d->run->clock),
                        STW_GUARD_PAUSE_MS) != STW_GUARD_GO)
        return stw_fail(&c->err, STW_ERR_CONFLICT,
                        "another client changes Secret \"%s\" again and again",
                        d->spec.connection.name);
    if (write_owned(d, d->spec.connection.name, stw_json_there(stw_json_root(&old->doc)), object,
                    &answer, &c->err) != 0 ||
        stw_json_scan(&doc, stw_buf_str(&answer), answer.len, &c->err) != 0)
        return -1;
    read_version(stw_json_root(&doc), c->version);
    read_since(d, stw_json_root(&doc), c->since);
    c->written = true;
    return 0;
}

void dbu_connection_ensure(struct dbu *d)
{
    struct dbu_owned *c = &d->connection;
    stw_autosecret struct stw_secret old = {0};
    stw_autofree char *ca = NULL;
    if (!dbu_connection_wanted(d) || d->secret.state != DBU_SECRET_FOUND)
        return;
    c->state = DBU_OWNED_FAILED;
    if (memchr(stw_buf_str(&d->secret.value), '\0', d->secret.value.len)) {
        (void)stw_fail(&c->err, STW_ERR_INVALID, "the password holds a NUL");
        return;
    }
    if (read_ca(d, &ca, &c->err) != 0 ||
        read_owned(d, d->spec.connection.name, &old, &c->state, &c->err) < 0 ||
        write_connection(d, &old, ca ? ca : "") != 0)
        return;
    hash_inputs(d, d->secret.resource_version, ca ? ca : "", c->inputs);
    c->state = DBU_OWNED_SYNCED;
    if (c->written)
        stw_object_event(d->run, &d->object, false, "ConnectionSecretWritten", "Write",
                         "wrote the connection to Secret \"%s\"", d->spec.connection.name);
}

/* --- a generated password */

bool dbu_password_is_generated(const struct stw_object *o)
{
    return stw_json_there(stw_json_path(o->root, "spec.password.generate"));
}

static unsigned class_of(char c)
{
    return c >= 'a' && c <= 'z' ? 1u : c >= 'A' && c <= 'Z' ? 2u : c >= '0' && c <= '9' ? 4u : 8u;
}

static unsigned classes_of(const char *text, size_t len)
{
    unsigned all = 0;
    for (size_t i = 0; i < len; i++)
        all |= class_of(text[i]);
    return all;
}

/* Each character is equally likely: bytes beyond the last multiple of the alphabet are dropped. */
static int draw(const char *alphabet, size_t count, char *out, size_t len)
{
    unsigned char bytes[64];
    size_t limit = 256 - 256 % count, n = 0;
    while (n < len) {
        if (RAND_priv_bytes(bytes, sizeof(bytes)) != 1)
            return -1;
        for (size_t i = 0; i < sizeof(bytes) && n < len; i++)
            if (bytes[i] < limit)
                out[n++] = alphabet[bytes[i] % count];
    }
    stw_wipe(bytes, sizeof(bytes));
    return 0;
}

int dbu_password_draw(const struct dbu_spec_generate *g, struct stw_buf *ret, struct stw_error *err)
{
    char text[DBU_LENGTH_MAX];
    size_t len = (size_t)g->length, count = strlen(g->alphabet);
    int rc = 0;
    if (len > sizeof(text) || count == 0 || count > 256)
        return stw_fail(err, STW_ERR_INVALID, "no password of this form can be generated");
    do /* policies ask for a character of each class */
        rc = draw(g->alphabet, count, text, len);
    while (rc == 0 && classes_of(text, len) != classes_of(g->alphabet, count));
    stw_buf_add(ret, text, len);
    stw_wipe(text, sizeof(text));
    return rc == 0 && !ret->failed ? 0 : stw_fail(err, STW_ERR_INTERNAL, "no random bytes");
}

static int generate(struct dbu *d, const struct stw_secret *old, struct stw_error *err)
{
    stw_autobuf struct stw_buf password = {.max = 256, .secret = true};
    stw_autobuf struct stw_buf text = {.max = 512, .secret = true};
    if (dbu_password_draw(&d->spec.password.generate, &password, err) != 0)
        return -1;
    stw_base64_encode(stw_buf_str(&password), password.len, &text);
    json_auto_t *data = json_pack("{s:s}", d->spec.password.key, stw_buf_str(&text));
    if (!data)
        return stw_fail_memory(err);
    json_auto_t *object = build_manifest(d, d->spec.password.name, "password", old, data);
    return write_owned(d, d->spec.password.name, stw_json_there(stw_json_root(&old->doc)), object,
                       NULL, err);
}

/* Only the password of the account is replaced: a newer one has to reach the server first. */
void dbu_password_renew(struct dbu *d)
{
    stw_autosecret struct stw_secret now = {0};
    enum dbu_owned_state state;
    struct stw_error err = {0};
    if (d->secret.state != DBU_SECRET_FOUND || !*d->fingerprint ||
        !stw_streq(d->fingerprint, stw_tree_text(d->object.status, "passwordFingerprint")))
        return;
    if (read_owned(d, d->spec.password.name, &now, &state, &err) != 0 ||
        generate(d, &now, &err) != 0)
        stw_log(STW_LOG_WARN, "a password that is due was not made yet",
                STW_STR("object", d->run->key), STW_STR("error", err.text));
    else
        dbu_password_ensure(d);
}

void dbu_password_ensure(struct dbu *d)
{
    struct dbu_secret *s = &d->secret;
    for (int tries = 0; tries < 2; tries++) {
        stw_autosecret struct stw_secret now = {0};
        enum dbu_owned_state state;
        dbu_secret_done(s);
        *s = (struct dbu_secret){.state = DBU_SECRET_ERROR};
        int rc = read_owned(d, d->spec.password.name, &now, &state, &s->err);
        if (rc < 0) {
            if (state == DBU_OWNED_FOREIGN)
                s->state = DBU_SECRET_FOREIGN;
            return;
        }
        if (rc == 0)
            dbu_secret_take(stw_json_root(&now.doc), d->spec.password.key, false, s);
        if (rc == 0 && s->state == DBU_SECRET_FOUND)
            return;
        dbu_secret_done(s);
        *s = (struct dbu_secret){.state = DBU_SECRET_ERROR};
        if (generate(d, &now, &s->err) != 0)
            return;
    }
    (void)stw_fail(&s->err, STW_ERR_CONFLICT, "Secret \"%s\" was changed meanwhile",
                   d->spec.password.name);
}
