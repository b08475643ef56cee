/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines of the log: built and written by log.c, queued by log_writer.c. */
#ifndef STW_BASE_LOG_PRIV_H
#define STW_BASE_LOG_PRIV_H

#include "base/log.h"

#include <stddef.h>

#define STW_LOG_LINE_MAX ((size_t)16 * 1024)

struct stw_log_line {
    char data[STW_LOG_LINE_MAX];
    size_t len;
    bool full; /* something did not fit: nothing more is added */
};

void stw_log_line_build(struct stw_log_line *l, enum stw_log_level level, const char *msg,
                        const struct stw_log_field *fields);
/* Writes these bytes on the caller's thread, which may block.  False: an error, the rest is lost. */
bool stw_log_put(const char *data, size_t len);
int stw_log_fd(void);

#endif
