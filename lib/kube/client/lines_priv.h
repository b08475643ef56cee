/* SPDX-License-Identifier: Apache-2.0
 *
 * Splits a byte stream into lines, independent of the pieces in which it arrives. */
#ifndef STW_KUBE_LINES_PRIV_H
#define STW_KUBE_LINES_PRIV_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

/* A watch event contains one object: at most 1.5 MiB by etcd's default, somewhat more with its
 * escapes. */
#define STW_LINE_MAX_BYTES (8u << 20)

struct stw_lines {
    struct stw_buf partial; /* the start of a line whose end has not arrived yet */
    bool cut;               /* there was more of it */
};

/* `line` has no newline at its end and is borrowed.  Of a line over the limit it is the start, up to
 * the limit (`cut`).  A non-zero result stops the feed. */
typedef int stw_line_fn(void *ctx, const char *line, size_t len, bool cut);

void stw_lines_init(struct stw_lines *l, size_t max_bytes);
void stw_lines_done(struct stw_lines *l);
void stw_lines_reset(struct stw_lines *l); /* for another stream */
/* Calls `fn` for each line that ends within `data`; blank lines are skipped.  Returns 0, the
 * non-zero result of fn, or -1 when out of memory. */
int stw_lines_feed(struct stw_lines *l, const char *data, size_t len, stw_line_fn *fn, void *ctx);

#endif
