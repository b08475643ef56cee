/* SPDX-License-Identifier: Apache-2.0
 *
 * Landlock by direct system calls, as the C library has no wrappers.  The filter is in
 * sandbox_calls.c. */
#include "base/process/sandbox.h"

#include "base/process/sandbox_priv.h"
#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* Flags of Landlock versions newer than the build's header (values from Linux 6.15). */
#define ACCESS_REFER (1ULL << 13)
#define ACCESS_TRUNCATE (1ULL << 14)
#define ACCESS_IOCTL_DEV (1ULL << 15)
#define SCOPE_ABSTRACT_UNIX_SOCKET (1ULL << 0)
#define SCOPE_SIGNAL (1ULL << 1)

#define READ_RIGHTS (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define FILE_RIGHTS                                                                                \
    (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_READ_FILE |   \
     ACCESS_TRUNCATE | ACCESS_IOCTL_DEV)
#define FIRST_RIGHTS (ACCESS_REFER - 1) /* all of version 1 */

struct ruleset {
    uint64_t access_fs, access_net, scoped;
};

static atomic_bool fenced;

void stw_sandbox_no_dumps(void)
{
    (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

static uint64_t rights_of(int version)
{
    uint64_t rights = FIRST_RIGHTS;
    rights |= version >= 2 ? ACCESS_REFER : 0;
    rights |= version >= 3 ? ACCESS_TRUNCATE : 0;
    rights |= version >= 5 ? ACCESS_IOCTL_DEV : 0;
#ifdef STW_SANITIZED
    rights &= ~(uint64_t)LANDLOCK_ACCESS_FS_EXECUTE; /* the sanitizer's symbolizer */
#endif
    return rights;
}

static size_t size_of(int version)
{
    return version >= 6   ? sizeof(struct ruleset)
           : version >= 4 ? offsetof(struct ruleset, scoped)
                          : offsetof(struct ruleset, access_net);
}

static void allow_path(int rules, const char *path, uint64_t rights)
{
    struct stat st;
    int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &st) == 0) {
        struct landlock_path_beneath_attr beneath = {
            .allowed_access = S_ISDIR(st.st_mode) ? rights : rights & FILE_RIGHTS, .parent_fd = fd};
        (void)syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0);
    }
    /* A rule is bound to an inode; procfs creates new inodes unless the old ones are held open. */
    if (fd >= 0 && strncmp(path, "/proc/", 6) != 0)
        (void)close(fd);
}

static int apply_landlock_rules(const struct stw_sandbox *s)
{
    long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    if (version < 1)
        return 0;
    struct ruleset set = {.access_fs = rights_of((int)version),
                          .scoped = SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL};
    stw_autoclose int rules =
        (int)syscall(SYS_landlock_create_ruleset, &set, size_of((int)version), 0);
    if (rules < 0)
        return 0;
    for (const char *const *p = s->read; p && *p; p++)
        allow_path(rules, *p, READ_RIGHTS);
    for (const char *const *p = s->write; p && *p; p++)
        allow_path(rules, *p, set.access_fs & ~(uint64_t)LANDLOCK_ACCESS_FS_EXECUTE);
    return syscall(SYS_landlock_restrict_self, rules, 0) == 0 ? (int)version : 0;
}

void stw_sandbox_enter(const struct stw_sandbox *s, struct stw_sandbox_result *ret)
{
    *ret = (struct stw_sandbox_result){0};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return; /* Landlock and seccomp both need it */
    ret->landlock = apply_landlock_rules(s);
    ret->seccomp = stw_sandbox_filter() == 0;
    atomic_store(&fenced, ret->landlock > 0);
}

const char *stw_sandbox_hint(int error)
{
    return error == EACCES && atomic_load(&fenced) ? " (or it is outside of the folders that the "
                                                     "program reads since it started: start it "
                                                     "again, or with --sandbox=off)"
                                                   : "";
}
