/* SPDX-License-Identifier: Apache-2.0 */
#include "base/process/process.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define TICK_MS 20 /* between two looks at the child where the kernel has no pidfd (before 5.3) */
#define CHUNK 4096

struct child {
    const struct stw_process *p;
    struct stw_buf *out;
    pid_t pid;
    int pipe, pidfd;
    uint64_t deadline_ms;
    bool eof;
};

static int fill_actions(const struct stw_process *p, int pipe, posix_spawn_file_actions_t *a)
{
    int bad = posix_spawn_file_actions_adddup2(a, pipe, STDOUT_FILENO);
    if (!p->keep_stdin)
        bad |= posix_spawn_file_actions_addopen(a, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (!p->keep_stderr)
        bad |= posix_spawn_file_actions_addopen(a, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    return bad | posix_spawn_file_actions_addclosefrom_np(a, STDERR_FILENO + 1);
}

/* The program starts with the default signals: ours are blocked in some threads. */
static int fill_attributes(const struct stw_process *p, posix_spawnattr_t *a)
{
    sigset_t none, all;
    short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    if (p->own_group)
        flags |= POSIX_SPAWN_SETPGROUP;
    return posix_spawnattr_setflags(a, flags) | posix_spawnattr_setsigmask(a, &none) |
           posix_spawnattr_setsigdefault(a, &all) | posix_spawnattr_setpgroup(a, 0);
}

/* Returns 0 or an errno. */
static int spawn(const struct stw_process *p, int pipe, pid_t *ret)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int rc = posix_spawn_file_actions_init(&actions);
    if (rc != 0)
        return rc;
    rc = posix_spawnattr_init(&attributes);
    if (rc == 0) {
        rc = fill_actions(p, pipe, &actions) | fill_attributes(p, &attributes);
        rc = rc != 0 ? ENOMEM : posix_spawn(ret, p->path, &actions, &attributes, p->argv, p->envp);
        (void)posix_spawnattr_destroy(&attributes);
    }
    (void)posix_spawn_file_actions_destroy(&actions);
    return rc;
}

static void end_program(const struct child *r)
{
    (void)kill(r->p->own_group ? -r->pid : r->pid, SIGKILL);
    while (waitpid(r->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
}

/* Reads what is there.  -1: more than the limit. */
static int take_output(struct child *r, struct stw_error *err)
{
    char chunk[CHUNK];
    int rc = 0;
    while (rc == 0 && !r->eof) {
        ssize_t n = read(r->pipe, chunk, sizeof(chunk));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            break; /* EAGAIN */
        r->eof = n == 0;
        stw_buf_add(r->out, chunk, (size_t)n);
        if (r->out->failed)
            rc = stw_fail(err, STW_ERR_TOO_LARGE, "printed more than %zu bytes", r->out->max);
    }
    stw_wipe(chunk, sizeof(chunk));
    return rc;
}

/* 1: it has ended, 0: not yet. */
static int look_at_child(const struct child *r, int *ret_status)
{
    pid_t pid = waitpid(r->pid, ret_status, WNOHANG);
    if (pid == r->pid)
        return 1;
    if (pid < 0 && errno == ECHILD) { /* SIGCHLD is ignored: there is no status */
        *ret_status = 0;
        return 1;
    }
    return 0;
}

static void await_event(const struct child *r, uint64_t now_ms)
{
    uint64_t left = STW_MIN(r->deadline_ms - now_ms, UINT64_C(60000));
    struct pollfd fds[] = {{.fd = r->eof ? -1 : r->pipe, .events = POLLIN},
                           {.fd = r->pidfd, .events = POLLIN}};
    (void)poll(fds, STW_COUNT(fds), r->pidfd < 0 ? TICK_MS : (int)left);
}

static int collect(struct child *r, int *ret_status, struct stw_error *err)
{
    for (;;) {
        uint64_t now = stw_now_ms(&stw_clock_system);
        bool ended = look_at_child(r, ret_status) == 1; /* before the last read */
        int rc = take_output(r, err);
        if (ended)
            return rc;
        if (rc == 0 && now >= r->deadline_ms)
            rc = stw_fail(err, STW_ERR_TIMEOUT, "did not end in %u s",
                          (r->p->timeout_ms + 999) / 1000);
        if (rc != 0) {
            end_program(r);
            return -1;
        }
        await_event(r, now);
    }
}

int stw_process_run(const struct stw_process *p, struct stw_buf *out, int *ret_status,
                    struct stw_error *err)
{
    int ends[2];
    struct child r = {.p = p, .out = out, .pidfd = -1};
    if (pipe2(ends, O_CLOEXEC) != 0)
        return stw_fail(err, STW_ERR_INTERNAL, "cannot be started: %s", strerrordesc_np(errno));
    r.pipe = ends[0];
    r.deadline_ms = stw_now_ms(&stw_clock_system) + p->timeout_ms;
    int rc = spawn(p, ends[1], &r.pid);
    (void)close(ends[1]);
    if (rc != 0) {
        (void)close(r.pipe);
        return stw_fail(err, STW_ERR_INTERNAL, "cannot be started: %s", strerrordesc_np(rc));
    }
    (void)fcntl(r.pipe, F_SETFL, O_NONBLOCK);
    r.pidfd = (int)syscall(SYS_pidfd_open, r.pid, 0);
    rc = collect(&r, ret_status, err);
    if (r.pidfd >= 0)
        (void)close(r.pidfd);
    (void)close(r.pipe);
    return rc;
}

static bool is_program(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* The current folder is never searched: what is there may be another user's. */
int stw_process_find(const char *name, char *out, size_t size)
{
    const char *list = getenv("PATH");
    stw_autofree char *copy = list ? strdup(list) : NULL;
    char *rest = NULL;
    for (char *folder = copy ? strtok_r(copy, ":", &rest) : NULL; folder;
         folder = strtok_r(NULL, ":", &rest))
        if (folder[0] == '/' && stw_format_whole(out, size, "%s/%s", folder, name) == 0 &&
            is_program(out))
            return 0;
    return -1;
}
