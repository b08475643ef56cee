/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/main/confine.h"

#include "base/log.h"
#include "base/process/sandbox.h"
#include "base/util.h"
#include "kube/kubeconfig.h"

#include <libgen.h>
#include <limits.h>
#include <stdio.h>

#define PATHS_MAX 256

/* What libraries read: host names, CAs, database client libraries and their plug-ins, time zones,
 * CPU counts. */
static const char *const system_paths[] = {
    "/etc",
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/usr/share",
    "/usr/local",
    "/run/secrets",
    "/run/systemd/resolve",
    "/run/resolvconf",
    "/run/NetworkManager",
    "/proc/self",
    "/proc/stat",
    "/sys/devices/system/cpu",
    "/sys/fs/cgroup",
    "/dev/null",
    "/dev/urandom",
    "/dev/random",
};

/* Lists of folders or files, separated by ':'. */
static const char *const variables[] = {"LD_LIBRARY_PATH", "TZDIR", "SSL_CERT_FILE",
                                        "SSL_CERT_DIR"};

/* Each names a file that may be replaced. */
static const char *const file_variables[] = {"OTEL_EXPORTER_OTLP_CERTIFICATE",
                                             "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE"};

static const char *const writable[] = {"/dev/null", NULL};

struct paths {
    const char *list[PATHS_MAX + 1];
    size_t count;
};

/* `path` is copied. */
static void add_path(struct paths *p, const char *path)
{
    if (p->count < PATHS_MAX && *path)
        p->list[p->count++] = strdup(path);
}

static void add_folder_of(struct paths *p, const char *path)
{
    stw_autofree char *copy = strdup(path);
    if (copy)
        add_path(p, dirname(copy));
}

/* The folder in which a file may be replaced, and that of its real path. */
static void add_file(struct paths *p, const char *path)
{
    char real[PATH_MAX];
    if (!path || !*path)
        return;
    add_folder_of(p, path);
    if (realpath(path, real))
        add_folder_of(p, real);
}

/* The same for a folder with a certificate. */
static void add_certificate(struct paths *p, const char *folder)
{
    char file[PATH_MAX];
    if (!folder || !*folder)
        return;
    add_path(p, folder);
    if (stw_format_whole(file, sizeof(file), "%s/tls.key", folder) == 0)
        add_file(p, file);
}

static void add_variable(struct paths *p, const char *name)
{
    const char *value = getenv(name);
    stw_autofree char *copy = value ? strdup(value) : NULL;
    char *rest = NULL;
    for (char *one = copy ? strtok_r(copy, ":", &rest) : NULL; one;
         one = strtok_r(NULL, ":", &rest))
        add_path(p, one);
}

static void add_kubeconfig(struct paths *p, const struct stw_kubeconfig *k)
{
    if (!k)
        return;
    const char *const files[] = {k->ca_path, k->cert_path, k->key_path, k->token_path};
    for (size_t i = 0; i < STW_COUNT(files); i++)
        add_file(p, files[i]);
}

static void add_extra_file(void *ctx, const char *path)
{
    add_file(ctx, path);
}

static void collect_paths(struct paths *p, const struct stw_settings *s,
                          const struct stw_host *host)
{
    for (size_t i = 0; i < STW_COUNT(system_paths); i++)
        add_path(p, system_paths[i]);
    for (size_t i = 0; i < STW_COUNT(variables); i++)
        add_variable(p, variables[i]);
    add_file(p, "/etc/resolv.conf");
    add_file(p, s->config);
    add_certificate(p, s->webhook_cert_path);
    add_certificate(p, s->metrics_cert_path);
    add_file(p, s->webhook_client_ca);
    for (size_t i = 0; i < STW_COUNT(file_variables); i++)
        add_file(p, getenv(file_variables[i]));
    add_kubeconfig(p, host->kubeconfig);
    stw_host_files(host, add_extra_file, p);
}

/* Files that tests make it write (base/process/fault.h), and `writable`. */
static void add_test_files(struct paths *p)
{
#ifdef STW_FAULT_POINTS
    const char *path = getenv("STEWARD_FAULT_LOG");
    if (path)
        add_folder_of(p, path);
#endif
    for (size_t i = 0; writable[i]; i++)
        add_path(p, writable[i]);
}

static void paths_done(struct paths *p)
{
    while (p->count > 0)
        free((void *)(uintptr_t)p->list[--p->count]);
}

void stw_confine(const struct stw_settings *s, const struct stw_host *host)
{
    struct paths read = {0}, write = {0};
    struct stw_sandbox_result is;
    if (stw_streq(s->sandbox, "off"))
        return;
    collect_paths(&read, s, host);
    add_test_files(&write);
    stw_sandbox_enter(&(struct stw_sandbox){.read = read.list, .write = write.list}, &is);
    paths_done(&read);
    paths_done(&write);
    stw_log(is.landlock && is.seccomp ? STW_LOG_INFO : STW_LOG_WARN,
            is.landlock && is.seccomp ? "sandbox entered"
                                      : "the kernel lacks a part of the sandbox",
            STW_INT("landlock", is.landlock), STW_BOOL("seccomp", is.seccomp));
}
