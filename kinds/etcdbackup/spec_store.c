/* SPDX-License-Identifier: Apache-2.0
 *
 * Where snapshots are stored; the same for EtcdBackup and EtcdRestore. */
#include "base/util.h"
#include "kinds/etcdbackup/spec_rules.h"
#include "kinds/etcdcluster/spec/rules.h"
#include "schema/core.h"
#include "schema/names.h"
#include "schema/rule/check.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <strings.h>

const char *eb_check_storage_type(const char *type)
{
    static const char *const others[] = {"ABS", "GCS", "OSS"};
    for (size_t i = 0; i < STW_COUNT(others); i++)
        if (stw_streq(type, others[i]))
            return "not supported in this version; use S3 with an S3-compatible endpoint";
    return NULL;
}

static bool is_plain(const char *text)
{
    for (; *text; text++)
        if (*text == ' ' || iscntrl((unsigned char)*text))
            return false;
    return true;
}

/* Only a scheme, a host and a port. */
static bool is_url(const char *url)
{
    const char *host = strncmp(url, "http://", 7) == 0    ? url + 7
                       : strncmp(url, "https://", 8) == 0 ? url + 8
                                                          : NULL;
    size_t len = host ? strcspn(host, "/") : 0;
    return len > 0 && strcspn(host, "?#\\") >= len && is_plain(url) &&
           (!host[len] || !host[len + 1]);
}

void eb_check_url(const char *path, const char *url, const char *example, struct stw_findings *f)
{
    stw_autobuf struct stw_buf json = STW_BUF_INIT(64 * 1024);
    if (strchr(url, '@')) { /* the value is not shown: it has credentials */
        stw_findings_add(f, path, STW_INVALID, NULL, "%s", EB_NO_CREDENTIALS);
    } else if (!is_url(url)) {
        stw_buf_json_strz(&json, url);
        stw_findings_add(f, path, STW_INVALID, stw_buf_str(&json), "must be a URL such as %s",
                         example);
    }
}

/* "bucket/key", without keys that some servers map to another place. */
const char *eb_check_path(const char *path)
{
    size_t bucket = strspn(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                 "0123456789.-_");
    if (bucket == 0 || path[0] == '.' || path[bucket] != '/' || !path[bucket + 1] ||
        path[bucket + 1] == '/' || !is_plain(path))
        return EB_PATH_FORM;
    return NULL;
}

const char *eb_check_region(const char *region)
{
    return region[strspn(region, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                 "0123456789-_")]
               ? EB_REGION_FORM
               : NULL;
}

/* A relative path that never goes upwards. */
const char *eb_check_folder(const char *path)
{
    if (path[0] == '/' || !is_plain(path))
        return EB_FOLDER_FORM;
    for (const char *part = path; part; part = strchr(part, '/')) {
        part += *part == '/';
        size_t len = strcspn(part, "/");
        if ((len == 2 && strncmp(part, "..", 2) == 0) || (len == 1 && *part == '.') ||
            (len == 0 && *part))
            return EB_FOLDER_FORM;
    }
    return NULL;
}

/* --- rules */

void eb_check_store(const char *field, const char *type, bool s3, bool pvc, struct stw_findings *f)
{
    const struct {
        const char *type, *block;
        bool there;
    } stores[] = {{"S3", "s3", s3}, {"PVC", "pvc", pvc}};
    char path[32];
    if (!stw_streq(type, "S3") && !stw_streq(type, "PVC"))
        return; /* the field table reports it */
    for (size_t i = 0; i < STW_COUNT(stores); i++) {
        bool wanted = stw_streq(type, stores[i].type);
        stw_format(path, sizeof(path), "spec.%s", stores[i].block);
        if (wanted && !stores[i].there)
            stw_findings_add(f, path, STW_REQUIRED, NULL, "%s is required when %s is %s",
                             stores[i].block, field, type);
        else if (!wanted && stores[i].there)
            stw_findings_add(f, path, STW_FORBIDDEN, NULL, "may not be set when %s is %s", field,
                             type);
    }
}

void eb_check_s3(const struct stw_admission *a, const struct eb_spec_s3 *now,
                 const struct eb_spec_s3 *old, const char *then, struct stw_findings *f)
{
    static const char *const keys[] = {"credentials", NULL};
    if (now->endpoint && *now->endpoint)
        eb_check_url("spec.s3.endpoint", now->endpoint, "https://s3.example.com:9000", f);
    if (now->endpoint && strncmp(now->endpoint, "http://", 7) == 0)
        stw_findings_warn(f, "spec.s3.endpoint is plain HTTP: others on the network can read and "
                             "change what is stored");
    if (now->aws_secret && (!old || !stw_same(now->aws_secret, old->aws_secret)))
        ec_advise_on_secret(a, now->aws_secret, keys, then, f);
}

static void check_block(const struct stw_admission *a, const char *block, struct stw_findings *f)
{
    const struct stw_path spec = {.name = "spec"}, at = {.up = &spec, .name = block};
    struct stw_field fixed[8] = {0};
    const struct stw_field *row = a->kind->spec;
    while (row->name && !stw_streq(row->name, block))
        row++;
    assert(row->fields);
    row = row->fields;
    for (size_t i = 0; row[i].name && i + 1 < STW_COUNT(fixed); i++) {
        fixed[i] = row[i];
        fixed[i].immutable = !stw_streq(row[i].name, "awsSecret");
    }
    stw_check_immutable(&at, fixed, stw_json_get(stw_json_get(a->object, "spec"), block),
                        stw_json_get(stw_json_get(a->old_object, "spec"), block), f);
}

void eb_check_same_store(const struct stw_admission *a, struct stw_findings *f)
{
    check_block(a, "s3", f);
    check_block(a, "pvc", f);
}

/* --- the place */

/* "HTTPS://Host:443/" and "https://host" are the same endpoint. */
static void add_endpoint(const char *url, struct stw_buf *out)
{
    bool secure = strncasecmp(url, "https://", 8) == 0;
    const char *host = strstr(url, "://");
    host = host ? host + 3 : url;
    size_t len = strcspn(host, "/");
    const char *port = secure ? ":443" : ":80";
    size_t port_len = strlen(port);
    if (len > port_len && strncmp(host + len - port_len, port, port_len) == 0)
        len -= port_len;
    for (size_t i = 0; i < len; i++)
        stw_buf_addc(out, (char)tolower((unsigned char)host[i]));
}

bool eb_spec_place(struct stw_json backup, const char *ns, struct stw_buf *out)
{
    struct stw_json spec = stw_json_get(backup, "spec");
    bool volume = stw_json_is(stw_json_get(spec, "storageType"), "PVC");
    struct stw_json block = stw_json_get(spec, volume ? "pvc" : "s3");
    stw_autofree char *path = stw_json_strdup(stw_json_get(block, "path"));
    stw_autofree char *where =
        stw_json_strdup(stw_json_get(block, volume ? "claimName" : "endpoint"));
    if (!path || (volume && !where))
        return false;
    stw_buf_adds(out, volume ? "pvc:" : "s3:");
    if (volume)
        stw_buf_addf(out, "%s/%s", ns, where);
    else if (where)
        add_endpoint(where, out);
    stw_buf_addf(out, "|%s", path);
    return !out->failed;
}
