/* SPDX-License-Identifier: Apache-2.0
 *
 * Preloaded into a running steward: on SIGUSR2 it tries, in that process, what an attacker would
 * who took it over, and writes "NAME ERRNO" for each attempt to the file $SANDBOX_PROBE_LOG, which
 * it opens before the sandbox.  An attempt that is not refused does no harm. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <unistd.h>

static int out = -1;
static char inside[512], outside[512], made[520];

static int note(const char *name, long result)
{
    char line[128];
    int n = snprintf(line, sizeof(line), "%s %d\n", name, result == -1 ? errno : 0);
    return n > 0 && write(out, line, (size_t)n) == n ? 0 : -1;
}

static long map(int protection)
{
    void *p = mmap(NULL, 4096, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? -1 : 0;
}

static void attempt(int number)
{
    char *const none[] = {NULL};
    int saved = errno, bad = 0;
    (void)number;
    bad |= note("execve", execve("/not/there", none, none));
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    bad |= note("fork", pid);
    bad |= note("ptrace", ptrace(PTRACE_ATTACH, 0, NULL, NULL));
    bad |= note("mount", mount("none", "/not/there", "tmpfs", 0, NULL));
    bad |= note("setuid", setuid(0));
    bad |= note("packet-socket", socket(AF_PACKET, SOCK_RAW, 0));
    bad |= note("tcp-socket", socket(AF_INET, SOCK_STREAM, 0));
    bad |= note("writable-code", map(PROT_WRITE | PROT_EXEC));
    bad |= note("memory", map(PROT_READ | PROT_WRITE));
    bad |= note("read-outside", open(outside, O_RDONLY | O_CLOEXEC));
    bad |= note("write-outside", open(outside, O_WRONLY | O_CLOEXEC));
    bad |= note("read-inside", open(inside, O_RDONLY | O_CLOEXEC));
    bad |= note("write-inside", open(inside, O_WRONLY | O_CLOEXEC));
    bad |= note("make", open(made, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    bad |= note("remove", unlink(inside));
    (void)note(bad ? "failed" : "end", 0);
    errno = saved;
}

static void remember(char *to, size_t size, const char *variable)
{
    const char *value = getenv(variable);
    (void)snprintf(to, size, "%s", value ? value : "");
}

__attribute__((constructor)) static void begin(void)
{
    const char *log = getenv("SANDBOX_PROBE_LOG");
    struct sigaction action = {.sa_handler = attempt};
    if (!log)
        return;
    remember(inside, sizeof(inside), "SANDBOX_PROBE_INSIDE");
    remember(outside, sizeof(outside), "SANDBOX_PROBE_OUTSIDE");
    (void)snprintf(made, sizeof(made), "%s.new", inside);
    out = open(log, O_WRONLY | O_APPEND | O_CLOEXEC);
    (void)sigaction(SIGUSR2, &action, NULL);
}
