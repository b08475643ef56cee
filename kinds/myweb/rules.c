/* SPDX-License-Identifier: Apache-2.0
 *
 * The rules of MyWeb that neither its schema nor CEL can state. */
#include "kinds/myweb/spec.h"

#include "base/util.h"
#include "kinds/common/product.h"
#include "schema/core.h"
#include "schema/rule/check.h"

#include <stdio.h>

#define PAGE_LARGE (200 * 1024) /* larger pages get a warning */
#define APPLY_ANNOTATION_MAX                                                                       \
    262144 /* bytes of all annotations: apimachinery's TotalAnnotationSizeLimitB */

const char *myweb_check_mount_path(const char *path)
{
    bool has_name = false;
    if (path[0] != '/')
        return MYWEB_PATH_RELATIVE;
    if (strchr(path, ':'))
        return MYWEB_PATH_COLON;
    for (const char *at = path; *at;) {
        at += strspn(at, "/");
        size_t len = strcspn(at, "/");
        if (len == 2 && memcmp(at, "..", 2) == 0)
            return MYWEB_PATH_UP;
        has_name |= len > 0 && !(len == 1 && *at == '.');
        at += len;
    }
    return has_name ? NULL : MYWEB_PATH_ROOT;
}

void myweb_default_more(const struct stw_admission *a, struct stw_json spec, struct stw_defaults *d)
{
    (void)a;
    if (!stw_json_there(stw_json_get(spec, "resources")))
        stw_default_add(d, "/spec/resources", MYWEB_RESOURCES);
}

struct port_range {
    int32_t min, max;
};

static struct port_range port_range(const struct stw_env *env)
{
    const struct stw_product *p = env ? env->product : NULL;
    if (!p || (p->node_port_min == 0 && p->node_port_max == 0))
        return (struct port_range){30000, 32767};
    return (struct port_range){p->node_port_min, p->node_port_max};
}

/* The end of the lower part of the range, from which the API server allocates no port by itself as
 * long as others are free: min(max(16, size/32), 128) ports (KEP-3668). */
static int32_t static_band_end(struct port_range r)
{
    int32_t size = r.max - r.min + 1;
    if (size <= 16)
        return r.max;
    return r.min + STW_MIN(STW_MAX(16, size / 32), 128) - 1;
}

/* Whether another object of an index has this port. */
static bool is_port_held(const struct stw_admission *a, const char *index, int64_t port,
                         char holder[512])
{
    char key[24], self[600];
    const struct stw_lookup *lookup = a->env ? a->env->lookup : NULL;
    if (!lookup || !lookup->find)
        return false;
    stw_format(key, sizeof(key), "%lld", (long long)port);
    stw_format(self, sizeof(self), "%s/%s", a->ns ? a->ns : "", a->name ? a->name : "");
    return lookup->find(lookup->ctx, index, key, self, holder);
}

static void add_port_error(struct stw_findings *f, enum stw_finding_code code, int64_t port,
                           const char *message)
{
    char value[24];
    stw_format(value, sizeof(value), "%lld", (long long)port);
    stw_findings_add(f, "spec.nodePortNumber", code, value, "%s", message);
}

/* Warnings about a port that may still work; only when the port is new. */
static void advise_on_port(const struct stw_admission *a, int64_t port, struct port_range r,
                           struct stw_findings *f)
{
    char holder[512] = "";
    int32_t end = static_band_end(r);
    if (is_port_held(a, "services.nodePort", port, holder))
        stw_findings_warn(f, "node port %lld is in use by Service %s", (long long)port, holder);
    if (port > end)
        stw_findings_warn(f,
                          "node port %lld may be given to a Service that asks for no specific "
                          "port; %d-%d are kept for ports chosen by hand",
                          (long long)port, r.min, end);
}

static void check_port(const struct stw_admission *a, int64_t port, bool is_new,
                       struct stw_findings *f)
{
    char holder[512] = "", text[600];
    struct port_range r = port_range(a->env);
    if (port == 0)
        return;
    if (port < r.min || port > r.max) {
        stw_format(text, sizeof(text), "must be 0 or between %d and %d", r.min, r.max);
        add_port_error(f, STW_INVALID, port, text);
        return;
    }
    if (is_port_held(a, "mywebs.nodePort", port, holder)) {
        stw_format(text, sizeof(text), "node port %lld is taken by MyWeb %s", (long long)port,
                   holder);
        add_port_error(f, STW_FORBIDDEN, port, text);
        return;
    }
    if (is_new)
        advise_on_port(a, port, r, f);
}

/* --- files */

static const char *find_name_fault(const char *name)
{
    if (stw_streq(name, "index.html"))
        return "is set by steward from spec.pageContentHtml";
    if (!*name || strlen(name) > 253)
        return "must have 1 to 253 characters";
    return stw_core_check_key(name);
}

static void check_file(struct stw_json key, struct stw_findings *f)
{
    char name[256] = "", path[300];
    const char *fault;
    if (stw_json_strcpy(key, name, sizeof(name)) != 0)
        stw_json_cut(key, name, sizeof(name));
    fault = stw_json_size(key) != strlen(name) ? "must have 1 to 253 characters"
                                               : find_name_fault(name);
    stw_format(path, sizeof(path), "spec.files[%s]", name);
    if (fault)
        stw_findings_add(f, path, stw_streq(name, "index.html") ? STW_FORBIDDEN : STW_INVALID, NULL,
                         "%s", fault);
}

static void check_files(const struct myweb_spec *web, struct stw_findings *f)
{
    struct stw_json key, value;
    size_t total = stw_json_size(web->page);
    stw_json_foreach (web->files, key, value) {
        if (stw_findings_spent(f))
            return;
        total += stw_json_size(key) + stw_json_size(value);
        check_file(key, f);
    }
    if (total > MYWEB_PAGE_MAX && stw_json_size(web->files) > 0)
        stw_findings_add(f, "spec.files", STW_INVALID, NULL,
                         "must be at most %d bytes in total with the page", MYWEB_PAGE_MAX);
}

/* Sizes are in bytes after decoding; the field table refuses pages that are too long. */
static void advise_on_page(struct stw_json page, struct stw_findings *f)
{
    uint32_t size = stw_json_size(page);
    if (size == 0)
        stw_findings_warn(f, "page is empty");
    else if (size > PAGE_LARGE && size <= MYWEB_PAGE_MAX)
        stw_findings_warn(f,
                          "page has %u bytes: kubectl apply keeps a copy in an annotation, and "
                          "annotations hold at most %d bytes; use kubectl apply --server-side",
                          size, APPLY_ANNOTATION_MAX);
}

bool myweb_is_inside(const struct myweb_spec *web)
{
    return web->service_type && stw_streq(web->service_type, MYWEB_CLUSTER_IP);
}

void myweb_validate(const struct stw_admission *a, const void *spec, const void *old_spec,
                    struct stw_findings *f)
{
    const struct myweb_spec *web = spec, *old = old_spec;
    if (web->node_port != 0 && myweb_is_inside(web))
        add_port_error(f, STW_FORBIDDEN, web->node_port, MYWEB_NEEDS_NODE_PORT);
    else
        check_port(a, web->node_port, !old || old->node_port != web->node_port, f);
    advise_on_page(web->page, f);
    if (!f->oversize)
        check_files(web, f);
    stw_core_check_resources(web->resources, "spec.resources", f);
    stw_warn_of_namesake(a, "apps", "App", f);
}
