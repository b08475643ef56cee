/* SPDX-License-Identifier: Apache-2.0
 *
 * To be told when something in a folder changes: what a mount (whose `..data` link is swapped), an
 * editor or a copy does to it.  A hint only, to look earlier: folders that cannot be watched, and
 * files that are links to elsewhere, are for a poll. */
#ifndef STW_BASE_NOTIFY_H
#define STW_BASE_NOTIFY_H

#include "base/error.h"

struct stw_notify {
    int fd; /* readable when something has changed; -1: none */
};
#define STW_NOTIFY_INIT ((struct stw_notify){.fd = -1})

/* Begins to watch, or again after another folder took the place of the one that was there. */
int stw_notify_folder(struct stw_notify *n, const char *path, struct stw_error *err);
void stw_notify_drain(struct stw_notify *n); /* forgets what was reported */
void stw_notify_done(struct stw_notify *n);

#endif
