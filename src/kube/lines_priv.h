/* SPDX-License-Identifier: Apache-2.0
 *
 * Cuts a byte stream into lines, however the network cut it into pieces. */
#ifndef STW_KUBE_LINES_PRIV_H
#define STW_KUBE_LINES_PRIV_H

#include "base/buf.h"

#include <stddef.h>

/* A watch event holds one object: at most 1.5 MiB in etcd's default, some more with its escapes. */
#define STW_LINE_MAX_BYTES (8u << 20)

struct stw_lines {
    struct stw_buf partial; /* the start of a line whose end is still to come */
};

/* `line` has no newline at its end and is borrowed.  Non-zero ends the feeding. */
typedef int stw_line_fn(void *ctx, const char *line, size_t len);

void stw_lines_init(struct stw_lines *l, size_t max_bytes);
void stw_lines_done(struct stw_lines *l);
void stw_lines_reset(struct stw_lines *l); /* for another stream */
/* Calls `fn` for each line that ends within `data`; blank lines are passed over.  Returns 0, the
 * non-zero of fn, or -1 when a line is over the cap. */
int stw_lines_feed(struct stw_lines *l, const char *data, size_t len, stw_line_fn *fn, void *ctx);

#endif
