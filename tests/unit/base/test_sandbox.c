/* SPDX-License-Identifier: Apache-2.0
 *
 * A child enters the sandbox and tries what an attacker would who took over the process. */
#include "base/process/sandbox.h"

#include "base/process/sandbox_priv.h"
#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cmocka.h>

static char inside[64] = "/tmp/steward-inside-XXXXXX", outside[64] = "/tmp/steward-outside-XXXXXX",
            writable[64] = "/tmp/steward-writable-XXXXXX";

static int in(const char *folder, const char *name, int flags)
{
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    return open(path, flags | O_CLOEXEC, 0600);
}

static int read_inside(void)
{
    return in(inside, "file", O_RDONLY);
}
static int read_outside(void)
{
    return in(outside, "file", O_RDONLY);
}
static int list_outside(void)
{
    return open(outside, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}
static int write_inside(void)
{
    return in(inside, "file", O_WRONLY);
}
static int make_inside(void)
{
    return in(inside, "new", O_WRONLY | O_CREAT);
}
static int remove_inside(void)
{
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/file", inside);
    return unlink(path);
}
static int make_and_remove_where_it_may(void)
{
    char path[128];
    int fd = in(writable, "new", O_WRONLY | O_CREAT);
    (void)snprintf(path, sizeof(path), "%s/new", writable);
    return fd < 0 || write(fd, "x", 1) != 1 ? -1 : unlink(path);
}
static int write_null(void)
{
    return open("/dev/null", O_WRONLY | O_CLOEXEC);
}
static int run_a_program(void)
{
    return execl("/bin/true", "true", NULL);
}
static int fork_a_process(void)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    return pid;
}
static int make_a_process(void)
{
    long pid = syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
    if (pid == 0)
        _exit(0);
    return (int)pid;
}
static int trace(void)
{
    return (int)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
}
static int look_into_the_parent(void)
{
    return (int)syscall(SYS_process_vm_readv, getppid(), NULL, 0, NULL, 0, 0);
}
static int kill_the_parent(void)
{
    return kill(getppid(), 0);
}
static int mount_something(void)
{
    return mount("none", "/tmp", "tmpfs", 0, NULL);
}
static int unshare_something(void)
{
    return unshare(CLONE_NEWUSER);
}
/* The bare system call affects only this thread.  setuid() of the C library changes all threads,
 * and a sanitizer's thread was started before the sandbox was entered. */
static int become_root(void)
{
    return (int)syscall(SYS_setuid, 0);
}
static int load_bpf(void)
{
    return (int)syscall(SYS_bpf, 0, NULL, 0);
}
static int use_io_uring(void)
{
    return (int)syscall(SYS_io_uring_setup, 1, NULL);
}
static int packet_socket(void)
{
    return socket(AF_PACKET, SOCK_RAW, 0);
}
static int crypto_socket(void)
{
    return socket(AF_ALG, SOCK_SEQPACKET, 0);
}
static int tcp_socket(void)
{
    return socket(AF_INET, SOCK_STREAM, 0);
}
static int name_service_socket(void)
{
    return socket(AF_NETLINK, SOCK_RAW, 0);
}
static int writable_code(void)
{
    return mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                0) == MAP_FAILED
               ? -1
               : 0;
}
static int code_out_of_data(void)
{
    void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? 0 : mprotect(p, 4096, PROT_READ | PROT_EXEC);
}
static int memory_file(void)
{
    return (int)syscall(SYS_memfd_create, "x", 0);
}
static int pages_elsewhere(void)
{
    return (int)syscall(SYS_remap_file_pages, NULL, 0, 0, 0, 0);
}
static int shared_code(void)
{
    return (int)syscall(SYS_shmat, -1, NULL, 0100000 /* SHM_EXEC */);
}
static int shared_memory(void)
{
    return (int)syscall(SYS_shmget, 0, 4096, 01600);
}
static int data_stays_data(void)
{
    void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? -1 : mprotect(p, 4096, PROT_READ);
}
static void *nothing(void *arg)
{
    return arg;
}
static int a_thread(void)
{
    pthread_t t;
    errno = pthread_create(&t, NULL, nothing, NULL);
    return errno ? -1 : pthread_join(t, NULL);
}

enum by { NOBODY, FENCE, FILTER, FILTER_UNSANITIZED };

static const struct {
    const char *what;
    int (*attempt)(void);
    enum by by; /* what refuses it */
    int error;
} cases[] = {
    {"reading inside", read_inside, NOBODY, 0},
    {"reading outside", read_outside, FENCE, EACCES},
    {"listing outside", list_outside, FENCE, EACCES},
    {"writing inside", write_inside, FENCE, EACCES},
    {"making a file", make_inside, FENCE, EACCES},
    {"removing a file", remove_inside, FENCE, EACCES},
    {"making a file where it may", make_and_remove_where_it_may, NOBODY, 0},
    {"writing to nowhere", write_null, NOBODY, 0},
    {"execve", run_a_program, FILTER_UNSANITIZED, EPERM},
    {"fork", fork_a_process, FILTER_UNSANITIZED, EPERM},
    {"clone", make_a_process, FILTER_UNSANITIZED, EPERM},
    {"ptrace", trace, FILTER_UNSANITIZED, EPERM},
    {"process_vm_readv", look_into_the_parent, FILTER_UNSANITIZED, EPERM},
    {"mount", mount_something, FILTER, EPERM},
    {"unshare", unshare_something, FILTER, EPERM},
    {"setuid", become_root, FILTER, EPERM},
    {"bpf", load_bpf, FILTER, EPERM},
    {"io_uring", use_io_uring, FILTER, EPERM},
    {"memfd_create", memory_file, FILTER, EPERM},
    {"remap_file_pages", pages_elsewhere, FILTER, EPERM},
    {"shmat", shared_code, FILTER, EPERM},
    {"shmget", shared_memory, FILTER, EPERM},
    {"a packet socket", packet_socket, FILTER, EAFNOSUPPORT},
    {"a crypto socket", crypto_socket, FILTER, EAFNOSUPPORT},
    {"a TCP socket", tcp_socket, NOBODY, 0},
    {"a netlink socket", name_service_socket, NOBODY, 0},
    {"writable code", writable_code, FILTER, EACCES},
    {"code out of data", code_out_of_data, FILTER, EACCES},
    {"data", data_stays_data, NOBODY, 0},
    {"a thread", a_thread, NOBODY, 0},
};

static bool has_fence(void)
{
    return syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION) > 0;
}

static bool applies(enum by by)
{
#ifdef STW_SANITIZED
    if (by == FILTER_UNSANITIZED)
        return false;
#endif
    return by != FENCE || has_fence();
}

static struct stw_sandbox_result enter(void)
{
    const char *read[] = {inside, "/etc", "/usr/lib", "/lib", "/not/there", NULL};
    const char *write[] = {"/dev/null", writable, NULL};
    struct stw_sandbox_result is;
    stw_sandbox_enter(&(struct stw_sandbox){.read = read, .write = write}, &is);
    return is;
}

/* Runs `what(i)` in a child that exits with its result.  Returns the wait status. */
static int in_child(int (*what)(size_t i), size_t i)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0)
        _exit(what(i));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

/* The errno of the attempt, 0 if it succeeded. */
static int attempt_inside(size_t i)
{
    (void)enter();
    errno = 0;
    return cases[i].attempt() < 0 ? errno : 0;
}

static void test_sandbox_allows_and_refuses_calls(void **state)
{
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        if (!applies(cases[i].by))
            continue;
        int status = in_child(attempt_inside, i);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != cases[i].error)
            fail_msg("%s: status %x, not error %d", cases[i].what, (unsigned)status,
                     cases[i].error);
    }
}

static int says_what_it_is(size_t i)
{
    struct stw_sandbox_result is = enter();
    bool hint = strstr(stw_sandbox_hint(EACCES), "--sandbox=off") != NULL;
    (void)i;
    return is.seccomp && (is.landlock > 0) == has_fence() && hint == has_fence() &&
                   *stw_sandbox_hint(ENOENT) == '\0' && prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1
               ? 0
               : 1;
}

static void test_sandbox_hint_explains_a_refusal(void **state)
{
    (void)state;
    assert_string_equal(stw_sandbox_hint(EACCES), "");
    assert_int_equal(in_child(says_what_it_is, 0), 0);
}

/* Landlock restricts signals since Linux 6.12. */
static int cannot_signal_the_parent(size_t i)
{
    struct stw_sandbox_result is = enter();
    (void)i;
    return is.landlock < 6 || (kill_the_parent() < 0 && errno == EPERM) ? 0 : 1;
}

static void test_sandbox_refuses_signals_to_other_processes(void **state)
{
    (void)state;
    assert_int_equal(in_child(cannot_signal_the_parent, 0), 0);
}

static int is_not_dumped(size_t i)
{
    struct rlimit limit = {1, 1};
    (void)i;
    stw_sandbox_no_dumps();
    return prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0 && getrlimit(RLIMIT_CORE, &limit) == 0 &&
                   limit.rlim_max == 0
               ? 0
               : 1;
}

static void test_sandbox_prevents_core_dumps(void **state)
{
    (void)state;
    assert_int_equal(in_child(is_not_dumped, 0), 0);
}

static int make_folders(void **state)
{
    char *const folders[] = {inside, outside, writable};
    (void)state;
    for (size_t i = 0; i < STW_COUNT(folders); i++) {
        if (!mkdtemp(folders[i]))
            return -1;
        int fd = in(folders[i], "file", O_WRONLY | O_CREAT);
        if (fd < 0 || close(fd) != 0)
            return -1;
    }
    return 0;
}

static int remove_folders(void **state)
{
    const char *const folders[] = {inside, outside, writable};
    char path[128];
    (void)state;
    for (size_t i = 0; i < STW_COUNT(folders); i++) {
        (void)snprintf(path, sizeof(path), "%s/file", folders[i]);
        (void)unlink(path);
        (void)rmdir(folders[i]);
    }
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sandbox_allows_and_refuses_calls),
        cmocka_unit_test(test_sandbox_hint_explains_a_refusal),
        cmocka_unit_test(test_sandbox_refuses_signals_to_other_processes),
        cmocka_unit_test(test_sandbox_prevents_core_dumps),
    };
    return cmocka_run_group_tests(tests, make_folders, remove_folders);
}
