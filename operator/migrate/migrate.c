/* SPDX-License-Identifier: Apache-2.0
 *
 * `migrate`: writes each object of a kind again, unchanged, so that the API server stores it in the
 * version that it stores now; then removes the former versions from status.storedVersions. */
#include "operator/installed/stored_versions.h"

#include "base/util.h"
#include "base/visible.h"
#include "kube/pages.h"
#include "operator/command.h"
#include "operator/extension.h"
#include "operator/flags.h"
#include "operator/installed/kind_choice.h"
#include "operator/installed/remote.h"
#include "operator/main/program.h"
#include "schema/kind.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

#define MIGRATE_MANAGER "{operator}-migrate"
#define PROGRESS_EVERY 1000

static const char usage[] =
    "Usage: {operator} migrate [--yes] [OPTIONS]\n\n"
    "After a CRD has got another storage version, the objects that exist stay stored in the former "
    "one,\n"
    "and the CRD cannot lose that version.  This writes each object again without a change, so "
    "that "
    "the\n"
    "API server stores it in the present version, and then removes the former versions from\n"
    "status.storedVersions.  Without --yes nothing is written, only printed.\n\n"
    "Run it a minute after the CRD was changed: until then an API server may still store the "
    "former "
    "version.\n\n"
    "Exit status: 0 done or printed, 1 something could not be done, 2 called wrongly or no "
    "answer.\n";

struct migrate_options {
    char *kubeconfig, *context, *kinds;
    bool yes;
};

static const struct stw_flag flags[] = {
    {.name = "yes",
     .type = STW_FLAG_BOOL,
     .def = "false",
     .offset = offsetof(struct migrate_options, yes),
     .help = "do it"},
    STW_FLAGS_KINDS(struct migrate_options, "these kinds only (default all)"),
    STW_REMOTE_FLAGS(struct migrate_options),
    {0},
};

struct migration {
    const struct stw_remote *remote;
    const struct stw_kind *kind;
    char manager[STW_OWN_NAME_LEN];
    bool yes;
    uint64_t objects, failed;
};

/* The resourceVersion and the uid that were read: a write of another client in between has stored
 * the object in the present version, too. */
static json_t *make_precondition(struct stw_json metadata)
{
    char version[64], uid[64];
    stw_json_cut(stw_json_get(metadata, "resourceVersion"), version, sizeof(version));
    stw_json_cut(stw_json_get(metadata, "uid"), uid, sizeof(uid));
    return json_pack("{s:{s:s,s:s}}", "metadata", "resourceVersion", version, "uid", uid);
}

static int rewrite_object(void *ctx, struct stw_json object)
{
    struct migration *m = ctx;
    char ns[254], name[254];
    struct stw_error err = {0};
    struct stw_json metadata = stw_json_get(object, "metadata");
    stw_json_cut(stw_json_get(metadata, "namespace"), ns, sizeof(ns));
    stw_json_cut(stw_json_get(metadata, "name"), name, sizeof(name));
    m->objects++;
    if (!m->yes)
        return 0;
    if (m->objects % PROGRESS_EVERY == 0)
        stw_print_line(stderr, "%s: %" PRIu64 " objects ...", m->kind->kind, m->objects);
    json_auto_t *patch = make_precondition(metadata);
    int rc = patch
                 ? stw_kube_merge_patch(m->remote->client, STW_PLACE(&m->kind->resource, ns, name),
                                        patch, m->manager, NULL, &err)
                 : stw_fail_memory(&err);
    if (rc == 0 || err.code == STW_ERR_NOT_FOUND || err.code == STW_ERR_CONFLICT)
        return 0;
    m->failed++;
    stw_print_line(stderr, "%s %s/%s: %s", m->kind->kind, ns, name, err.text);
    return 0;
}

/* Only if the CRD is as it was read: with the same storage version. */
static int forget_old_versions(const struct migration *m, struct stw_json crd, const char *name,
                               const struct stw_stored *stored, struct stw_error *err)
{
    json_auto_t *patch = make_precondition(stw_json_get(crd, "metadata"));
    const struct stw_place at = {.resource = &stw_res_crd, .name = name, .sub = "status"};
    if (!patch || json_object_set_new(patch, "status",
                                      json_pack("{s:[s]}", "storedVersions", stored->now)) != 0)
        return stw_fail_memory(err);
    if (stw_kube_merge_patch(m->remote->client, &at, patch, m->manager, NULL, err) == 0)
        return 0;
    return stw_error_wrap(err, "status.storedVersions of %s", name);
}

static int migrate_kind(struct migration *m, struct stw_error *err)
{
    stw_autoanswer struct stw_answer crd = {0};
    struct stw_pages q = {.resource = &m->kind->resource};
    struct stw_stored stored;
    struct stw_error e = {0};
    char name[512];
    stw_format(name, sizeof(name), "%s.%s", m->kind->plural, m->kind->group);
    if (stw_remote_get(m->remote, &stw_res_crd, NULL, name, &crd, &e) != 0) {
        *err = e;
        if (e.code != STW_ERR_NOT_FOUND)
            return stw_error_wrap(err, "%s", name);
        stw_print_line(stdout, "%s: there is no CRD", m->kind->kind);
        return 0;
    }
    stw_stored_read(crd.root, &stored);
    if (!*stored.old) {
        stw_print_line(stdout, "%s: all objects are stored as %s", m->kind->kind, stored.now);
        return 0;
    }
    if (stw_pages_each_after(m->remote->client, &q, rewrite_object, m, err) != 0)
        return stw_error_wrap(err, "cannot list %s", m->kind->plural);
    if (!m->yes) {
        stw_print_line(stdout,
                       "%s: objects may be stored as %s; %" PRIu64 " would be written again as %s",
                       m->kind->kind, stored.old, m->objects, stored.now);
        return 0;
    }
    if (m->failed)
        return stw_fail(err, STW_ERR_INVALID,
                        "%s: %" PRIu64 " of %" PRIu64 " objects could not be written again; "
                        "status.storedVersions stays as it is",
                        m->kind->kind, m->failed, m->objects);
    if (forget_old_versions(m, crd.root, name, &stored, err) != 0)
        return -1;
    stw_print_line(stdout,
                   "%s: %" PRIu64
                   " objects are stored as %s; %s is removed from status.storedVersions",
                   m->kind->kind, m->objects, stored.now, stored.old);
    return 0;
}

static int migrate_all(const struct stw_operator *op, const struct migrate_options *o,
                       const struct stw_remote *remote)
{
    int status = STW_EXIT_OK;
    for (const struct stw_kind *const *k = op->kinds; *k; k++) {
        struct migration m = {.remote = remote, .kind = *k, .yes = o->yes};
        struct stw_error err = {0};
        stw_operator_text(op, MIGRATE_MANAGER, m.manager);
        if (migrate_kind(&m, &err) == 0)
            continue;
        stw_print_line(stderr, "%s migrate: %s", stw_program_name(), err.text);
        status = STW_EXIT_REFUSED;
    }
    return fflush(stdout) == 0 ? status : STW_EXIT_REFUSED;
}

static int run_migrate(const struct stw_call *call, void *settings, int count, char **operands)
{
    const struct migrate_options *o = settings;
    struct stw_remote remote = {.op = call->op};
    struct stw_error err = {0};
    int status = STW_EXIT_USAGE;
    (void)operands;
    if (count)
        return stw_usage_error("migrate", "it takes options only");
    if (stw_remote_open(&remote, o->kubeconfig, o->context, &err) == 0)
        status = migrate_all(call->op, o, &remote);
    else
        stw_print_line(stderr, "%s migrate: %s", stw_program_name(), err.text);
    stw_remote_done(&remote);
    return status;
}

static int start_migrate(const struct stw_call *call)
{
    struct migrate_options options = {0};
    return stw_flags_run(call, &options, run_migrate);
}

const struct stw_command stw_command_migrate = {
    .name = "migrate",
    .summary = "store objects in the present version of their kind",
    .usage = usage,
    .flags = flags,
    .run = start_migrate,
};
