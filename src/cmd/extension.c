/* SPDX-License-Identifier: Apache-2.0
 *
 * What steward's kinds share (kinds/common/product.h), and the options for it. */
#include "operator/extension.h"

#include "base/log.h"
#include "base/tzfile.h"
#include "base/util.h"
#include "base/visible.h"
#include "cmd/build.h"
#include "cmd/doctor_targets.h"
#include "cmd/endpoints.h"
#include "cmd/own_image.h"
#include "cmd/steward.h"
#include "cmd/targets.h"
#include "kinds/common/product.h"
#include "kinds/etcdbackup/reconcile.h"
#include "kinds/etcdbackup/spec.h"
#include "kinds/etcdrestore/spec.h"
#include "kube/kubeconfig.h"
#include "operator/main/names.h"
#include "registry/registry.h"
#include "schema/zones.h"

#include <expat.h>
#include <sodium.h>
#include <stdio.h>
#include <unistd.h>

#define OWN_IMAGE_MS 20000

/* --- options */

struct steward_options {
    char *node_port_range, *agent_image, *store_endpoints, *image_registries;
    char *targets_file; /* of validate and audit */
};

#define AT(member) .offset = offsetof(struct steward_options, member)

#define NODE_PORT_RANGE                                                                            \
    {                                                                                              \
        .name = "node-port-range", .arg = "MIN-MAX", .def = "30000-32767", AT(node_port_range),    \
        .help = "as the API server's --service-node-port-range"                                    \
    }
#define CONFIG_HELP                                                                                \
    {                                                                                              \
        .name = "config",                                                                          \
        .help =                                                                                    \
            "YAML file with any of these options in camelCase (metricsBindAddress: \":8080\");\n"  \
            "what is given on the command line wins.  Its list `targets`, the database servers\n"  \
            "for DatabaseUsers, and its logLevel are read again whenever they change"              \
    }
#define LOG_LEVEL_HELP                                                                             \
    {                                                                                              \
        .name = "log-level",                                                                       \
        .help = "lowest level that is logged; in the file, it can be changed while steward runs"   \
    }

static const struct stw_extra_flag flags[] = {
    {"run", NULL, CONFIG_HELP},
    {"run",
     "namespaces",
     {.name = "agent-image",
      .arg = "IMAGE",
      AT(agent_image),
      .help = "steward's own image, for the pods that work on volumes: backups onto a volume, and\n"
              "restores (default: in a pod, the image of this pod)"}},
    {"run",
     "agent-image",
     {.name = "store-endpoints",
      .arg = "LIST",
      .def = "*",
      AT(store_endpoints),
      .help =
          "where s3.endpoint and etcdEndpoints of objects may lead: addresses, CIDRs, hosts and\n"
          "*.domains separated by commas, \"!\" before what is excluded; \"*\": every address but\n"
          "loopback, link-local, multicast, reserved ones and the API server's"}},
    {"run",
     "store-endpoints",
     {.name = "image-registries",
      .arg = "LIST",
      AT(image_registries),
      .help =
          "registries that are asked for the digests of tags, for onlyIfChanged of Erus, as\n"
          "[NAME=][http://]HOST[:PORT] separated by commas; NAME is the domain in images, or\n"
          "\"default\" for images without one.  No other host is contacted; empty: none is asked"}},
    {"run", "health-probe-bind-address", NODE_PORT_RANGE},
    {"run", NULL, LOG_LEVEL_HELP},
    {"webhook", NULL, CONFIG_HELP},
    {"webhook", "health-probe-bind-address", NODE_PORT_RANGE},
    {"webhook", NULL, LOG_LEVEL_HELP},
    {"validate", "namespace", NODE_PORT_RANGE},
    {"validate",
     "node-port-range",
     {.name = "config",
      .arg = "FILE",
      AT(targets_file),
      .help = "the configuration file of `steward run`; of it, `targets` is read"}},
    {"audit", "quiet", NODE_PORT_RANGE},
    {"audit",
     "node-port-range",
     {.name = "config",
      .arg = "FILE",
      AT(targets_file),
      .help = "configuration file of `steward run`; of it, the database `targets` are read.\n"
              "Without it they come from the ConfigMap " STW_CONFIG_MAP " of the installation"}},
    {"doctor", "upgrade", NODE_PORT_RANGE},
    {0},
};

static const char validate_usage[] =
    "Usage: steward validate [OPTIONS] FILE|FOLDER|-...\n"
    "       steward validate [OPTIONS] [-R] -f FILE|FOLDER|-...\n\n"
    "Gives each object in YAML or JSON files the verdict of the API server and of the admission "
    "webhook,\n"
    "without a cluster.  Folders are searched for *.yaml, *.yml and *.json, those of -f without\n"
    "subfolders unless there is -R, as by kubectl; - is standard input.  Lists are taken apart.\n"
    "As with `kubectl apply`, unknown fields are errors, and so are a kind and "
    "a\n"
    "version that steward's groups do not have.  Kinds of other groups are skipped with a note.  "
    "Rules\n"
    "that look at other objects of the cluster are not applied.  With --config, DatabaseUsers are\n"
    "compared with the `targets` of that file.  With --old, an object that is there is checked as "
    "the\n"
    "change that it makes: immutable fields, storage that shrinks, versions that go back.\n\n"
    "  kustomize build overlays/prod | steward validate -\n"
    "  helm template mychart | steward validate -o junit - > report.xml\n"
    "  kubectl get mywebs -A -o yaml > now.yaml; steward validate --old now.yaml new/\n\n"
    "Exit status: 0 all accepted, 1 something was refused, 2 something could not be read, there "
    "was "
    "no\n"
    "object at all, or the options are wrong.\n";

static const char audit_usage[] =
    "Usage: steward audit [OPTIONS] [KIND]\n\n"
    "Reads the objects of steward's kinds that are stored in a cluster and gives each the verdict\n"
    "that the admission webhook would give it today, if it were a new object: rules become\n"
    "stricter, and the webhook may have been away.  Nothing is written.  Rules that look at other\n"
    "objects (node ports, accounts, Secrets) apply as in admission; of two objects that claim\n"
    "one thing, both are reported.\n\n"
    "It needs the rights to list those kinds, Services and Deployments, and to get the Secrets "
    "that\n"
    "DatabaseUsers name: an administrator's, or those of steward's own account.\n\n"
    "Exit status: 0 all would be accepted, 1 something would be refused, 2 something could not be\n"
    "read.  Warnings are shown and change nothing.\n";

static const char doctor_usage[] =
    "Usage: steward doctor [OPTIONS]\n\n"
    "Checks an installation, with the rights of the kubeconfig, from anywhere: API server and\n"
    "clock, CRDs, the Deployment, webhook configurations and their certificate, Service,\n"
    "endpoints and NetworkPolicies, the rights of steward's account, the Lease, the database\n"
    "targets.  It logs in to the server of each target with the admin's password, for at most 20 "
    "s\n"
    "together, and says what answers, which rights the admin lacks, and which accounts and "
    "databases\n"
    "no object has any more.  Each line says what was seen and, below, what to do next.  Nothing "
    "is\n"
    "changed, and no secret is shown.\n\n"
    "Exit status: 0 all was checked and nothing failed, 1 something failed, 2 something could not\n"
    "be checked (the line \"not checked\" names it), called wrongly, or no API server.\n";

static const struct stw_extra_usage usages[] = {
    {"validate", validate_usage},
    {"audit", audit_usage},
    {"doctor", doctor_usage},
    {0},
};

static const char *const file_keys[] = {"targets", NULL};

static int parse_port_range(const char *text, int32_t *ret_min, int32_t *ret_max,
                            struct stw_error *err)
{
    char low[16];
    int64_t min, max;
    const char *dash = strchr(text, '-');
    size_t len = dash ? (size_t)(dash - text) : sizeof(low);
    if (len >= sizeof(low))
        goto bad;
    memcpy(low, text, len);
    low[len] = '\0';
    if (stw_parse_int(low, 1, 65535, &min) != 0 || stw_parse_int(dash + 1, min, 65535, &max) != 0)
        goto bad;
    *ret_min = (int32_t)min;
    *ret_max = (int32_t)max;
    return 0;
bad:
    return stw_fail(err, STW_ERR_INVALID,
                    "node port range \"%s\" is not two ports such as 30000-32767", text);
}

/* --- what the kinds share */

struct steward_state {
    struct stw_product product;
    struct dbu_target_store *store; /* run, webhook */
    struct dbu_target_file file;    /* validate, audit, doctor */
    struct stw_reach *reach;
    struct stw_registries *registries;
    char *own_image;
};

static bool is_command(const struct stw_host *h, const struct stw_command *c)
{
    return h->command == c;
}

static int open_registries(const struct stw_host *h, struct stw_registries **ret,
                           struct stw_error *err)
{
    const struct steward_options *o = h->options;
    if (!o->image_registries || !*o->image_registries)
        return 0;
    return stw_registries_create(o->image_registries, ret, err) == 0
               ? 0
               : stw_error_wrap(err, "--image-registries");
}

static int check_options(const struct stw_host *h, struct stw_error *err)
{
    const struct steward_options *o = h->options;
    struct stw_registries *registries = NULL;
    bool serves = is_command(h, &stw_command_run) || is_command(h, &stw_command_webhook);
    int32_t min, max;
    if (open_registries(h, &registries, err) != 0)
        return -1;
    stw_registries_destroy(registries);
    if (parse_port_range(o->node_port_range, &min, &max, err) == 0)
        return 0;
    return serves ? stw_error_wrap(err, "--node-port-range") : -1;
}

/* `webhook` without a configuration file knows no targets, and skips the rules about them. */
static int open_store(struct stw_host *h, struct steward_state *s, struct stw_error *err)
{
    struct dbu_target_store_config config = {
        .path = h->config, .metrics = h->metrics, .text = h->reread, .text_ctx = h->reread_ctx};
    if (is_command(h, &stw_command_webhook) && (!h->config || !*h->config))
        return 0;
    if (dbu_target_store_create(&config, &s->store, err) != 0)
        return -1;
    s->product.targets = dbu_target_store_get;
    s->product.targets_ctx = s->store;
    if (is_command(h, &stw_command_run))
        s->product.target_store = s->store;
    return 0;
}

static void use_target_file(struct steward_state *s)
{
    s->product.targets = s->file.targets ? stw_targets_now : NULL;
    s->product.targets_ctx = s->file.targets;
}

static int open_file(struct stw_host *h, struct steward_state *s, struct stw_error *err)
{
    const struct steward_options *o = h->options;
    if (!o->targets_file || !*o->targets_file)
        return 0;
    if (dbu_target_file_read(o->targets_file, &s->file, err) != 0) {
        size_t len = s->file.errors.len; /* without the last newline */
        stw_buf_addf(&h->lines, "--config:\n%.*s", len ? (int)len - 1 : (int)strlen(err->text),
                     len ? stw_buf_str(&s->file.errors) : err->text);
        return -1;
    }
    use_target_file(s);
    return 0;
}

static int open_shared(struct stw_host *h, struct stw_error *err)
{
    const struct steward_options *o = h->options;
    struct steward_state *s = calloc(1, sizeof(*s));
    if (!s)
        return stw_fail_memory(err);
    h->state = s;
    h->product = &s->product;
    s->product.zones = stw_zones_create(stw_tz_read);
    if (parse_port_range(o->node_port_range, &s->product.node_port_min, &s->product.node_port_max,
                         err) != 0)
        return -1;
    if (is_command(h, &stw_command_run) || is_command(h, &stw_command_webhook))
        return open_store(h, s, err);
    return open_file(h, s, err);
}

static void list_files(const struct stw_host *h, void (*add)(void *ctx, const char *path),
                       void *ctx)
{
    const struct steward_state *s = h->state;
    struct stw_targets *targets = s && s->store ? dbu_target_store_get(s->store) : NULL;
    for (size_t i = 0; targets && i < stw_targets_count(targets); i++) {
        add(ctx, stw_targets_at(targets, i)->password_file);
        add(ctx, stw_targets_at(targets, i)->tls_ca_file);
        add(ctx, stw_targets_at(targets, i)->certificate_file);
        add(ctx, stw_targets_at(targets, i)->key_file);
    }
    stw_targets_unref(targets);
}

/* Whether a kind starts pods of this image; their rules have EB_RULE_OWN_POD. */
static bool runs_pods(const struct stw_operator *op)
{
    for (size_t i = 0; op->kinds[i]; i++)
        if (op->kinds[i] == &stw_kind_etcdbackup || op->kinds[i] == &stw_kind_etcdrestore)
            return true;
    return false;
}

/* In a pod without --agent-image: the image of this pod. It is needed only for backups to volumes
 * and for restores, so steward also runs without it. */
static void find_own_image(struct stw_host *h, struct steward_state *s)
{
    const struct steward_options *o = h->options;
    struct stw_error err = {0};
    char host[256] = "";
    bool has_image = o->agent_image && *o->agent_image;
    if (has_image || !runs_pods(h->op) || !h->reconcile ||
        !stw_streq(h->kubeconfig->source, "in-cluster"))
        return;
    (void)gethostname(host, sizeof(host) - 1);
    if (stw_own_image(h->client, h->ns, host, OWN_IMAGE_MS, &s->own_image, &err) == 0)
        stw_log(STW_LOG_INFO, "pods that work on volumes run this one's image",
                STW_STR("image", s->own_image));
    else
        stw_log(STW_LOG_WARN,
                "no image for pods that work on volumes: --agent-image is not given, and this pod "
                "cannot be looked at",
                STW_STR("error", err.text));
}

static int connect_run(struct stw_host *h, struct steward_state *s, struct stw_error *err)
{
    const struct steward_options *o = h->options;
    find_own_image(h, s);
    if (stw_endpoints_allow(o->store_endpoints, h->kubeconfig->server, &s->reach, err) != 0)
        return -1;
    if (open_registries(h, &s->registries, err) != 0)
        return -1;
    s->product.reach = s->reach;
    s->product.registries = s->registries;
    s->product.agent_image = s->own_image ? s->own_image : o->agent_image;
    s->product.etcd_backups = &eb_of_cluster;
    return 0;
}

/* Without --config, the targets of the installation. */
static int connect_audit(struct stw_host *h, struct steward_state *s, struct stw_error *err)
{
    const struct steward_options *o = h->options;
    if (o->targets_file && *o->targets_file)
        return 0;
    int rc = stw_installed_targets(h->remote, h->ns, &s->file, err);
    if (rc != 0 && s->file.error_count)
        return rc;
    if (rc != 0)
        stw_print_line(stderr,
                       "steward %s: DatabaseUsers are not compared with the database targets "
                       "(--config): %s",
                       h->command->name, err->text);
    use_target_file(s);
    return 0;
}

static int connect_shared(struct stw_host *h, struct stw_error *err)
{
    return is_command(h, &stw_command_run) ? connect_run(h, h->state, err)
                                           : connect_audit(h, h->state, err);
}

static int start_store(struct stw_host *h, struct stw_error *err)
{
    struct steward_state *s = h->state;
    return s->store ? dbu_target_store_start(s->store, err) : 0;
}

static void stop_store(struct stw_host *h)
{
    struct steward_state *s = h->state;
    if (s)
        dbu_target_store_stop(s->store);
}

static void close_shared(struct stw_host *h)
{
    struct steward_state *s = h->state;
    if (!s)
        return;
    dbu_target_store_destroy(s->store);
    dbu_target_file_done(&s->file);
    stw_zones_destroy(s->product.zones);
    stw_reach_destroy(s->reach);
    stw_registries_destroy(s->registries);
    free(s->own_image);
    free(s);
    h->state = NULL;
    h->product = NULL;
}

/* --- the table */

static const char *expat_version(void)
{
    return strrchr(XML_ExpatVersion(), '_') + 1; /* "expat_2.7.1" */
}

static const struct stw_library libraries[] = {
    {"expat", expat_version},
    {"libsodium", sodium_version_string},
    {0},
};

static void (*const checks[])(struct doctor *d) = {stw_doctor_targets, NULL};

const struct stw_extension stw_steward_extension = {
    .commit = STW_COMMIT,
    .manifests = "config/default",
    .libraries = libraries,
    .options_size = sizeof(struct steward_options),
    .flags = flags,
    .usages = usages,
    .file_keys = file_keys,
    .check = check_options,
    .open = open_shared,
    .files = list_files,
    .connect = connect_shared,
    .start = start_store,
    .stop = stop_store,
    .close = close_shared,
    .checks = checks,
};
