/* SPDX-License-Identifier: Apache-2.0 */
#include "kinds/myweb/spec.h"

#include "base/util.h"
#include "kinds/common/product.h"
#include "schema/check.h"
#include "schema/core.h"
#include "schema/names.h"
#include "schema/rows.h"

#include <stdio.h>

#define PAGE_MAX 921600 /* a ConfigMap is limited to 1 MiB in total */
#define FILES_MAX 100
#define PAGE_LARGE (200 * 1024) /* larger pages get a warning */
#define APPLY_ANNOTATION_MAX                                                                       \
    262144 /* bytes of all annotations: apimachinery's TotalAnnotationSizeLimitB */

/* check_mount_path in CEL. */
static const struct stw_cel cel_mount_path[] = {
    {"self.startsWith('/')", "must be an absolute path"},
    {"!self.contains(':')", "must not contain ':'"},
    {"!self.matches(r'(^|/)\\.\\.(/|$)')", "must not contain '..'"},
    {"self.matches(r'[^/.]|/\\.[^/]')", "must not be the root of the file system"},
    {0},
};

static const char *check_mount_path(const char *path)
{
    bool has_name = false;
    if (path[0] != '/')
        return "must be an absolute path";
    if (strchr(path, ':'))
        return "must not contain ':'";
    for (const char *at = path; *at;) {
        at += strspn(at, "/");
        size_t len = strcspn(at, "/");
        if (len == 2 && memcmp(at, "..", 2) == 0)
            return "must not contain '..'";
        has_name |= len > 0 && !(len == 1 && *at == '.');
        at += len;
    }
    return has_name ? NULL : "must not be the root of the file system";
}

static const char *const pull_policies[] = {"Always", "IfNotPresent", "Never", NULL};
static const char *const content_updates[] = {"Roll", "Live", NULL};

static const char *const service_types[] = {"NodePort", STW_MYWEB_CLUSTER_IP, NULL};

static const struct stw_field tls_fields[] = {
    STW_INGRESS_TLS_SECRET(struct stw_myweb),
    {0},
};

static const struct stw_field ingress_fields[] = {
    STW_INGRESS_HOST(struct stw_myweb),
    STW_INGRESS_CLASS(struct stw_myweb),
    {.name = "tls", .type = STW_T_OBJECT, .help = "HTTPS for the host.", .fields = tls_fields},
    {0},
};

static const struct stw_field spec_fields[] = {
    STW_ROW_IMAGE(struct stw_myweb, image,
                  "Image of a web server that serves the files below mountPath."),
    {.name = "nodePortNumber",
     STW_FIELD(STW_T_INT, struct stw_myweb, node_port),
     .help = "Port on every node that leads to the page; 0 lets the API server choose one.",
     .def = "0",
     .has_range = true,
     .rule_range = true,
     .min = 0,
     .max = 65535,
     .format = "int32"},
    {.name = "serviceType",
     STW_FIELD(STW_T_STRING, struct stw_myweb, service_type),
     .help = "NodePort: the page is on a port of every node. ClusterIP: only pods and an Ingress "
             "reach it.",
     .def = "\"NodePort\"",
     .values = service_types},
    {.name = "ingress",
     .type = STW_T_OBJECT,
     .help = "An Ingress for the page; when absent, there is none.",
     .fields = ingress_fields},
    {.name = "pageContentHtml",
     STW_FIELD(STW_T_TEXT, struct stw_myweb, page),
     .help = "The page, served as index.html; empty when absent; at most 921600 bytes.",
     STW_RANGE(0, PAGE_MAX)},
    {.name = "files",
     STW_FIELD(STW_T_MAP, struct stw_myweb, files),
     .help = "More files beside the page, by name; at most 100, and 921600 bytes with the page.",
     STW_RANGE(0, FILES_MAX),
     .item = &stw_core_text_item},
    {.name = "imagePullPolicy",
     STW_FIELD(STW_T_STRING, struct stw_myweb, pull_policy),
     .help = "When a node pulls the image, as in a Pod; when absent, Always for the tag latest, "
             "else IfNotPresent.",
     .values = pull_policies},
    {.name = "replicas",
     STW_FIELD(STW_T_INT, struct stw_myweb, replicas),
     .help = "How many pods serve the page.",
     .def = "1",
     STW_RANGE(0, 100),
     .format = "int32"},
    {.name = "containerPort",
     STW_FIELD(STW_T_INT, struct stw_myweb, container_port),
     .help = "Port on which the web server in the image listens.",
     .def = "80",
     STW_RANGE(1, 65535),
     .format = "int32"},
    {.name = "mountPath",
     STW_FIELD(STW_T_STRING, struct stw_myweb, mount_path),
     .help = "Folder in the container where the page appears; it hides what the image has there.",
     .def = "\"/usr/share/nginx/html\"",
     STW_RANGE(1, 1024),
     .pattern = "^/[^:]+$",
     .check = check_mount_path,
     .cel = cel_mount_path},
    {.name = "contentUpdate",
     STW_FIELD(STW_T_STRING, struct stw_myweb, content_update),
     .help =
         "What a changed page does: Roll replaces the pods one by one; Live leaves them running "
         "and shows the page when the kubelet refreshes the volume, within about a minute.",
     .def = "\"Roll\"",
     .values = content_updates},
    {.name = "resources",
     STW_FIELD(STW_T_RAW, struct stw_myweb, resources),
     .help = "Resources of the container, as in a Pod; when absent, requests of 10m CPU and 16Mi "
             "memory.",
     .fields = stw_core_resources},
    STW_ROW_PULL_SECRETS(struct stw_myweb, image_pull_secrets),
    {.name = "securityContext",
     STW_FIELD(STW_T_RAW, struct stw_myweb, security_context),
     .help = "Security options of the container, as in a Pod.",
     .known = stw_core_security_context},
    {0},
};

static const struct stw_field status_fields[] = {
    {.name = "completed",
     .type = STW_T_BOOL,
     .help =
         "Whether ConfigMap, Deployment and Service are as this generation wants them, the pods "
         "are available and the node port is allocated."},
    {.name = "nodePort", .type = STW_T_INT, .format = "int32", .help = "Node port in use."},
    {.name = "contentHash", .type = STW_T_STRING, .help = "Hash of the page that is served."},
    {.name = "availableReplicas", .type = STW_T_INT, .format = "int32", .help = "Available pods."},
    {.name = "url",
     .type = STW_T_STRING,
     .help =
         "Where the page is: of the Ingress; or after the address of any node, \":<nodePort>\"; "
         "or in the cluster."},
    STW_ROW_REPAIRS,
    STW_ROW_LAST_REPAIR,
    STW_ROW_TEMPLATES,
    {0},
};

static const struct stw_column columns[] = {
    {.name = "Image", .type = "string", .json_path = ".spec.image"},
    {.name = "NodePort", .type = "integer", .json_path = ".status.nodePort"},
    {.name = "Completed", .type = "boolean", .json_path = ".status.completed"},
    STW_COLUMN_READY,
    STW_COLUMN_AGE,
    {0},
};

static void default_more(const struct stw_admission *a, struct stw_json spec,
                         struct stw_defaults *d)
{
    (void)a;
    if (!stw_json_there(stw_json_get(spec, "resources")))
        stw_default_add(d, "/spec/resources", STW_MYWEB_RESOURCES);
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

static void check_files(const struct stw_myweb *web, struct stw_findings *f)
{
    struct stw_json key, value;
    size_t total = stw_json_size(web->page);
    stw_json_foreach (web->files, key, value) {
        if (stw_findings_spent(f))
            return;
        total += stw_json_size(key) + stw_json_size(value);
        check_file(key, f);
    }
    if (total > PAGE_MAX && stw_json_size(web->files) > 0)
        stw_findings_add(f, "spec.files", STW_INVALID, NULL,
                         "must be at most %d bytes in total with the page", PAGE_MAX);
}

/* Sizes are in bytes after decoding; the field table refuses pages that are too long. */
static void advise_on_page(struct stw_json page, struct stw_findings *f)
{
    uint32_t size = stw_json_size(page);
    if (size == 0)
        stw_findings_warn(f, "page is empty");
    else if (size > PAGE_LARGE && size <= PAGE_MAX)
        stw_findings_warn(f,
                          "page has %u bytes: kubectl apply keeps a copy in an annotation, and "
                          "annotations hold at most %d bytes; use kubectl apply --server-side",
                          size, APPLY_ANNOTATION_MAX);
}

bool stw_myweb_is_inside(const struct stw_myweb *web)
{
    return web->service_type && stw_streq(web->service_type, STW_MYWEB_CLUSTER_IP);
}

static void validate_myweb(const struct stw_admission *a, const void *spec, const void *old_spec,
                           struct stw_findings *f)
{
    const struct stw_myweb *web = spec, *old = old_spec;
    if (web->node_port != 0 && stw_myweb_is_inside(web))
        add_port_error(f, STW_FORBIDDEN, web->node_port, "needs serviceType NodePort");
    else
        check_port(a, web->node_port, !old || old->node_port != web->node_port, f);
    advise_on_page(web->page, f);
    if (!f->oversize)
        check_files(web, f);
    stw_core_check_resources(web->resources, "spec.resources", f);
    stw_warn_of_namesake(a, "apps", "App", f);
}

/* Of these rules, what CEL can express.  The range of node ports is an option of steward. */
static const struct stw_cel_rule rules[] = {
    STW_CEL_RESOURCES("has(self.resources)", "self.resources", "resources"),
    {.at = "nodePortNumber",
     .code = STW_FORBIDDEN,
     .rule = "self.nodePortNumber == 0 || self.serviceType == 'NodePort'",
     .message = "needs serviceType NodePort"},
    {0},
};

static const char *const short_names[] = {"web", NULL};
static const char *const categories[] = {"all", NULL};

const struct stw_kind stw_kind_myweb = {
    .group = "operator.k8s-summit.org",
    .version = "v1",
    .kind = "MyWeb",
    .plural = "mywebs",
    .namespaced = true,
    .singular = "myweb",
    .short_names = short_names,
    .categories = categories,
    .help =
        "MyWeb serves one page of HTML from a web server's image, on a port of every node or by "
        "an Ingress.",
    .spec = spec_fields,
    .spec_size = sizeof(struct stw_myweb),
    .status = status_fields,
    .cel = rules,
    .columns = columns,
    .operations = STW_CREATE | STW_UPDATE,
    .dns1035_name = true,
    .name_max = 63,
    .default_more = default_more,
    .validate = validate_myweb,
};
