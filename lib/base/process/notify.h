/* SPDX-License-Identifier: Apache-2.0
 *
 * Reports changes in a folder: those by a mount (whose `..data` link is swapped), an editor or a
 * copy.  It is only a hint to check earlier.  Folders that cannot be watched, and files that are
 * links to elsewhere, need polling. */
#ifndef STW_BASE_NOTIFY_H
#define STW_BASE_NOTIFY_H

#include "base/error.h"
#include "base/util.h"

struct stw_notify {
    int fd; /* readable when something has changed; -1: none */
};
#define STW_NOTIFY_INIT ((struct stw_notify){.fd = -1})

/* Starts the watch, or restarts it after another folder has replaced the watched one. */
int stw_notify_folder(struct stw_notify *n, const char *path, struct stw_error *err) STW_MUST_CHECK;
void stw_notify_drain(struct stw_notify *n); /* discards pending events */
void stw_notify_done(struct stw_notify *n);

#endif
