/* SPDX-License-Identifier: Apache-2.0
 *
 * Restricts the process after it has started.  If an attacker takes it over through data from the
 * network, the process
 *  - cannot start a program or another process, or make memory executable;
 *  - cannot trace, mount, load code into the kernel, change its credentials, or open sockets of
 *    other families (seccomp, on x86-64 and aarch64);
 *  - reads and writes no files except those in the two lists below, and sends signals to no other
 *    process (Landlock, Linux 5.13 and later).
 *
 * Both apply to the calling thread and the threads it creates: call this before there are others.
 * What the kernel does not support is left out. */
#ifndef STW_BASE_SANDBOX_H
#define STW_BASE_SANDBOX_H

#include <stdbool.h>

struct stw_sandbox {
    /* Files, and folders with all below, that may be read; ends with NULL.  Missing ones are
     * skipped. */
    const char *const *read;
    const char *const *write; /* may also be written; or NULL */
};

struct stw_sandbox_result {
    int landlock; /* its version; 0: not available */
    bool seccomp;
};

/* Disables core dumps, and only the machine's administrator may inspect the process.  Sets a limit
 * and a flag, as a core_pattern with a pipe ignores the limit. */
void stw_sandbox_no_dumps(void);

void stw_sandbox_enter(const struct stw_sandbox *s, struct stw_sandbox_result *ret);

/* For an errno of open(2): what else it may mean inside the sandbox, or "". */
const char *stw_sandbox_hint(int error);

#endif
