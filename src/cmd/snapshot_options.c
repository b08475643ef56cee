/* SPDX-License-Identifier: Apache-2.0 */
#include "base/util.h"
#include "cmd/snapshot.h"
#include "kinds/kinds.h"
#include "operator/main/settings.h"
#include "store/credentials.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#define PEM_MAX_BYTES (1u << 20)
#define PASSWORD_MAX_BYTES 4096

#define OFFSET(member) .offset = offsetof(struct stw_snapshot_options, member)

const struct stw_flag stw_snapshot_flags[] = {
    {.name = "s3",
     .arg = "BUCKET/PATH",
     OFFSET(s3),
     .help = "snapshots in an object store: PATH is what their names begin with"},
    {.name = "s3-endpoint",
     .arg = "URL",
     OFFSET(s3_endpoint),
     .help = "an S3-compatible server (default AWS)"},
    {.name = "s3-region",
     .arg = "REGION",
     .def = "us-east-1",
     OFFSET(s3_region),
     .help = "region of the bucket"},
    {.name = "s3-path-style",
     .type = STW_FLAG_BOOL,
     .def = "false",
     OFFSET(s3_path_style),
     .help = "the bucket is in the path instead of in the host name"},
    {.name = "s3-ca",
     .arg = "FILE",
     OFFSET(s3_ca),
     .help = "CA of the server, PEM (default: the system's)"},
    {.name = "s3-sse",
     .arg = "AES256|aws:kms",
     OFFSET(s3_sse),
     .help = "how the server encrypts (default: as configured for the bucket)"},
    {.name = "credentials",
     .arg = "FILE",
     OFFSET(credentials),
     .help = "as ~/.aws/credentials (default: $AWS_ACCESS_KEY_ID, $AWS_SECRET_ACCESS_KEY and\n"
             "$AWS_SESSION_TOKEN, else $AWS_SHARED_CREDENTIALS_FILE, else unsigned requests)"},
    {.name = "folder",
     .arg = "FOLDER/NAME",
     OFFSET(folder),
     .help = "snapshots in a folder instead: NAME is what their names begin with"},
    {.name = "endpoints",
     .arg = "URL,URL",
     OFFSET(endpoints),
     .help =
         "save: members of one etcd cluster; a healthy one is asked, preferably not the leader"},
    {.name = "cacert", .arg = "FILE", OFFSET(cacert), .help = "save: CA of the members, PEM"},
    {.name = "cert", .arg = "FILE", OFFSET(cert), .help = "save: client certificate, PEM"},
    {.name = "key", .arg = "FILE", OFFSET(key), .help = "save: its key, PEM"},
    {.name = "user",
     .arg = "FOLDER",
     OFFSET(user),
     .help = "save: folder with the files username and password, as a mounted Secret has them"},
    {.name = "store-endpoints",
     .arg = "LIST",
     OFFSET(store_endpoints),
     .help =
         "addresses and hosts that --s3-endpoint and --endpoints may lead to, as `steward run`\n"
         "has it; for agents.  Without it any"},
    {.name = "timeout",
     .type = STW_FLAG_DURATION,
     .arg = "DURATION",
     .def = "0",
     .max = 86400000,
     OFFSET(timeout_ms),
     .help = "save: of the stream; 0: by the size of the database"},
    {.name = "exact",
     .type = STW_FLAG_BOOL,
     .def = "false",
     OFFSET(exact),
     .help = "save: under PATH itself, without revision and time; nothing is removed"},
    {.name = "no-verify",
     .type = STW_FLAG_BOOL,
     .def = "false",
     OFFSET(no_verify),
     .help = "save: only the size is looked up, what was written is not read back"},
    {.name = "newest",
     .type = STW_FLAG_BOOL,
     .def = "false",
     OFFSET(newest),
     .help = "fetch, verify: the newest whose name begins with PATH (default: PATH itself)"},
    {.name = "to",
     .arg = "FILE",
     OFFSET(to),
     .help = "fetch: where to; it appears when it is whole"},
    {.name = "sha256",
     .arg = "HEX",
     OFFSET(sha256),
     .help = "fetch, verify: what the SHA-256 of all of it has to be"},
    {.name = "max-backups",
     .type = STW_FLAG_INT,
     .arg = "N",
     .def = "0",
     OFFSET(max_backups),
     .help = "save, prune: how many are kept, the newest, of each etcd cluster; 0: all"},
    {.name = "max-age",
     .type = STW_FLAG_DURATION,
     .arg = "DURATION",
     .def = "0",
     OFFSET(max_age_ms),
     .help = "save, prune: older ones go; 0: none"},
    {.name = "keep", .arg = "KEY", OFFSET(keep), .help = "save, prune: one that is always kept"},
    {.name = "owner",
     .arg = "UID",
     OFFSET(owner),
     .help = "save: the EtcdBackup that the snapshot is made for, part of its name; save, prune:\n"
             "only its snapshots are counted and removed.  Without it those that name none"},
    {.name = "dry-run",
     .type = STW_FLAG_BOOL,
     .def = "false",
     OFFSET(dry_run),
     .help = "prune: only say what would be removed"},
    {.name = "output",
     .letter = 'o',
     .arg = "text|json",
     .def = "text",
     OFFSET(output),
     .help = "form of what is printed"},
    {.name = "result",
     .arg = "FILE",
     OFFSET(result),
     .help = "save, fetch, verify: also write the result there, as JSON; for agents, whose\n"
             "termination message it is"},
    {0},
};

static bool is_given(const char *text)
{
    return text && *text;
}

/* --- the store */

static int from_environment(struct stw_credentials *c)
{
    const char *access = getenv("AWS_ACCESS_KEY_ID"), *secret = getenv("AWS_SECRET_ACCESS_KEY");
    const char *token = getenv("AWS_SESSION_TOKEN");
    if (!is_given(access) || !is_given(secret) ||
        stw_format_whole(c->access_key, sizeof(c->access_key), "%s", access) != 0 ||
        stw_format_whole(c->secret_key, sizeof(c->secret_key), "%s", secret) != 0 ||
        stw_format_whole(c->session_token, sizeof(c->session_token), "%s", token ? token : "") != 0)
        return -1;
    return 0;
}

static int read_credentials(const struct stw_snapshot_options *o, struct stw_credentials *c,
                            struct stw_error *err)
{
    const char *path = o->credentials;
    char *text = NULL;
    size_t len = 0;
    if (!is_given(path) && from_environment(c) == 0)
        return 0;
    if (!is_given(path))
        path = getenv("AWS_SHARED_CREDENTIALS_FILE");
    if (!is_given(path))
        return 0;
    if (stw_read_file(path, STW_CREDENTIALS_MAX_BYTES, &text, &len, err) != 0)
        return -1;
    int rc = stw_credentials_parse(text, len, NULL, c, err);
    stw_wipe(text, len);
    free(text);
    return rc == 0 ? 0 : stw_error_wrap(err, "%s", path);
}

static int open_s3(struct stw_snapshot_work *w, struct stw_error *err)
{
    const struct stw_snapshot_options *o = &w->options;
    struct stw_credentials c = {0};
    stw_autofree char *ca = NULL, *bucket = NULL;
    const char *slash = strchr(o->s3, '/');
    size_t len;
    if (!slash || slash == o->s3 || !slash[1])
        return stw_fail(err, STW_ERR_INVALID, "--s3 must be BUCKET/PATH");
    w->path = strdup(slash + 1);
    bucket = strndup(o->s3, (size_t)(slash - o->s3));
    if (!w->path || !bucket)
        return stw_fail_memory(err);
    if ((is_given(o->s3_ca) && stw_read_file(o->s3_ca, PEM_MAX_BYTES, &ca, &len, err) != 0) ||
        read_credentials(o, &c, err) != 0)
        return -1;
    const struct stw_store_s3 config = {
        .endpoint = is_given(o->s3_endpoint) ? o->s3_endpoint : NULL,
        .region = o->s3_region,
        .bucket = bucket,
        .access_key = *c.access_key ? c.access_key : NULL,
        .secret_key = c.secret_key,
        .session_token = *c.session_token ? c.session_token : NULL,
        .ca = ca,
        .sse = is_given(o->s3_sse) ? o->s3_sse : NULL,
        .path_style = o->s3_path_style,
        .reach = w->reach,
    };
    int rc = stw_store_s3_create(&config, &w->store, err);
    stw_credentials_wipe(&c);
    return rc;
}

/* Like `mkdir -p`: on a new volume the folder does not exist yet. */
static int make_folders(char *path, struct stw_error *err)
{
    for (char *p = path + 1;; p++) {
        char c = *p;
        if (c != '/' && c != '\0')
            continue;
        *p = '\0';
        if (mkdir(path, 0700) != 0 && errno != EEXIST)
            return stw_fail(err, STW_ERR_INTERNAL, "cannot make the folder \"%s\": %s", path,
                            strerrordesc_np(errno));
        *p = c;
        if (c == '\0')
            return 0;
    }
}

static int open_folder(struct stw_snapshot_work *w, const char *path, bool make,
                       struct stw_error *err)
{
    const char *slash = strrchr(path, '/');
    stw_autofree char *folder =
        slash ? strndup(path, STW_MAX((size_t)(slash - path), (size_t)1)) : strdup(".");
    w->path = strdup(slash ? slash + 1 : path);
    if (!folder || !w->path)
        return stw_fail_memory(err);
    if (!*w->path)
        return stw_fail(err, STW_ERR_INVALID, "--folder must be FOLDER/NAME");
    if (make && make_folders(folder, err) != 0)
        return -1;
    return stw_store_folder_create(folder, &w->store, err);
}

int stw_snapshot_open_store(struct stw_snapshot_work *w, struct stw_error *err)
{
    const struct stw_snapshot_options *o = &w->options;
    if (is_given(o->store_endpoints) && !w->reach &&
        stw_reach_parse(o->store_endpoints, &w->reach, err) != 0)
        return stw_error_wrap(err, "--store-endpoints");
    if (is_given(o->s3) == is_given(o->folder))
        return stw_fail(err, STW_ERR_INVALID, "say where: one of --s3, --folder");
    return is_given(o->s3) ? open_s3(w, err)
                           : open_folder(w, o->folder, is_given(o->endpoints), err);
}

int stw_snapshot_open_file(struct stw_snapshot_work *w, const char *file, struct stw_error *err)
{
    return open_folder(w, file, false, err);
}

/* --- the etcd */

static int read_optional(const char *path, size_t max, char **ret, struct stw_error *err)
{
    size_t len;
    return is_given(path) ? stw_read_file(path, max, ret, &len, err) : 0;
}

/* Reads a line: files in Secrets often end with a newline. */
static int read_line(const char *folder, const char *name, char **ret, struct stw_error *err)
{
    stw_autofree char *path = NULL;
    size_t len;
    if (asprintf(&path, "%s/%s", folder, name) < 0)
        return stw_fail_memory(err);
    if (stw_read_file(path, PASSWORD_MAX_BYTES, ret, &len, err) != 0)
        return -1;
    (*ret)[strcspn(*ret, "\r\n")] = '\0';
    return 0;
}

static int make_etcd(struct stw_snapshot_work *w, struct stw_error *err)
{
    const struct stw_snapshot_options *o = &w->options;
    char *ca = NULL, *cert = NULL, *key = NULL, *user = NULL, *password = NULL;
    int rc = -1;
    if (read_optional(o->cacert, PEM_MAX_BYTES, &ca, err) == 0 &&
        read_optional(o->cert, PEM_MAX_BYTES, &cert, err) == 0 &&
        read_optional(o->key, PEM_MAX_BYTES, &key, err) == 0 &&
        (!is_given(o->user) || (read_line(o->user, "username", &user, err) == 0 &&
                                read_line(o->user, "password", &password, err) == 0))) {
        const struct stw_etcd_config config = {.op = &stw_operator_steward,
                                               .tls = {.ca = ca, .cert = cert, .key = key},
                                               .user = user,
                                               .password = password,
                                               .reach = w->reach};
        rc = stw_etcd_create(&config, &w->etcd, err);
    }
    free(ca);
    free(cert);
    stw_wipe_free(key);
    free(user);
    stw_wipe_free(password);
    return rc;
}

int stw_snapshot_open_etcd(struct stw_snapshot_work *w, struct stw_error *err)
{
    if (stw_list_split(w->options.endpoints, &w->urls, err) != 0)
        return -1;
    if (!w->urls)
        return stw_fail(err, STW_ERR_INVALID, "say which members to ask: --endpoints");
    for (size_t i = 0; w->urls[i]; i++) {
        if (i == STW_SNAPSHOT_ENDPOINTS_MAX)
            return stw_fail(err, STW_ERR_INVALID, "more than %d --endpoints",
                            STW_SNAPSHOT_ENDPOINTS_MAX);
        if (strncmp(w->urls[i], "https://", 8) == 0 && !is_given(w->options.cacert))
            return stw_fail(err, STW_ERR_INVALID, "%s needs --cacert", w->urls[i]);
        w->endpoints[w->endpoint_count++] = (struct stw_etcd_endpoint){.url = w->urls[i]};
    }
    return make_etcd(w, err);
}

void stw_snapshot_close(struct stw_snapshot_work *w)
{
    stw_etcd_destroy(w->etcd);
    stw_store_destroy(w->store);
    stw_reach_destroy(w->reach);
    stw_list_free(w->urls);
    free(w->path);
}
