/* SPDX-License-Identifier: Apache-2.0
 *
 * What the process may still do once it has started.  Should somebody take it over by way of what
 * it reads from the network, they find that it
 *  - cannot start a program, nor another process, nor make memory executable;
 *  - cannot trace, mount, load code into the kernel, change who it is, or open odd sockets
 *    (seccomp, on x86-64 and aarch64);
 *  - reads no files but below the folders that were named, writes none, and sends signals to nobody
 *    else (Landlock, Linux 5.13 and later).
 *
 * Both are the thread's that asks and of those that it makes: call it before there are any.  What
 * the kernel does not have is left out. */
#ifndef STW_BASE_SANDBOX_H
#define STW_BASE_SANDBOX_H

#include <stdbool.h>

struct stw_sandbox {
    /* Files, and folders with all below, that may be read; ended by NULL.  Those that do not exist
     * are passed over. */
    const char *const *read;
    const char *const *write; /* may be written as well; or NULL */
};

struct stw_sandbox_result {
    int landlock; /* its version; 0: not there */
    bool seccomp;
};

/* No core dumps, and none but the machine's administrator may look into the process: a limit and a
 * flag, as a core_pattern with a pipe does not look at the limit. */
void stw_sandbox_no_dumps(void);

void stw_sandbox_enter(const struct stw_sandbox *s, struct stw_sandbox_result *ret);

/* For an error of open(2): what else it may mean in here, or "". */
const char *stw_sandbox_hint(int error);

#endif
