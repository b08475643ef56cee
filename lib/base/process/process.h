/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs another program and takes its standard output, with a deadline and a limit. */
#ifndef STW_BASE_PROCESS_H
#define STW_BASE_PROCESS_H

#include "base/buf.h"
#include "base/error.h"
#include "base/util.h"

#include <stdbool.h>
#include <stdint.h>

struct stw_process {
    const char *path; /* of the program; not searched for */
    char *const *argv, *const *envp;
    bool keep_stdin;  /* the program reads our standard input, else /dev/null */
    bool keep_stderr; /* the program writes to our standard error, else to /dev/null */
    bool own_group;   /* what it starts is ended with it at the deadline; a terminal's
                              * Ctrl-C then does not reach it */
    uint32_t timeout_ms;
};

/* `out` gets the output, up to its limit; no other descriptor of ours is inherited.  Returns 0 when
 * the program has ended, with its status for WIFEXITED etc. in `ret_status`; what it has started
 * and left running is not waited for.  Otherwise the program was ended by us or not started: -1
 * with STW_ERR_TIMEOUT, STW_ERR_TOO_LARGE, or STW_ERR_INTERNAL, and a text that follows the name of
 * the program: "did not end in 60 s". */
int stw_process_run(const struct stw_process *p, struct stw_buf *out, int *ret_status,
                    struct stw_error *err) STW_MUST_CHECK;

/* Finds a program by its name in the absolute folders of $PATH.  Returns 0, or -1. */
int stw_process_find(const char *name, char *out, size_t size) STW_MUST_CHECK;

#endif
