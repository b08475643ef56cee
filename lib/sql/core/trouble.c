/* SPDX-License-Identifier: Apache-2.0 */
#include "sql/core/engine.h"

#include "base/util.h"

#include <errno.h>
#include <stdio.h>

#define MESSAGE_MAX 200

bool stw_sql_is_transient(enum stw_sql_trouble t)
{
    return t == STW_SQL_CONNECT || t == STW_SQL_CIRCUIT_OPEN || t == STW_SQL_LOCKED ||
           t == STW_SQL_BUSY || t == STW_SQL_LOOKUP || t == STW_SQL_READ_ONLY;
}

int stw_fault_set(struct stw_fault *f, enum stw_sql_trouble trouble, enum stw_sql_step step,
                  const char *fmt, ...)
{
    va_list ap;
    f->trouble = trouble;
    f->step = step;
    va_start(ap, fmt);
    (void)stw_vfail(&f->err, stw_sql_is_transient(trouble) ? STW_ERR_UNAVAILABLE : STW_ERR_INVALID,
                    fmt, ap);
    va_end(ap);
    return -1;
}

const char *stw_sql_connect_cause(int error)
{
    switch (error) {
    case ECONNREFUSED:
        return "connection refused: no server listens there; see whether it runs, and the host and "
               "port of the target";
    case ETIMEDOUT:
        return "timed out: no answer came; see firewalls and network policies on the way, and the "
               "load of the server";
    case ECONNRESET:
    case EPIPE:
        return "connection reset: the server, or a proxy before it, ended it before the login; see "
               "its log";
    case EHOSTUNREACH:
    case ENETUNREACH:
        return "no route to the host: see the host of the target, and the network of steward's pod";
    default:
        return NULL;
    }
}

bool stw_sql_is_wide(const char *name)
{
    for (; name && *name; name++)
        if ((unsigned char)*name >= 0x80)
            return true;
    return false;
}

/* The first quotation mark; the apostrophe of a word such as "can't" is none. */
static size_t find_quote(const char *message)
{
    size_t at = strcspn(message, "'\"`");
    while (message[at] == '\'' && at > 0 && message[at - 1] == 'n' && message[at + 1] == 't' &&
           message[at + 2] == ' ')
        at += 1 + strcspn(message + at + 1, "'\"`");
    return at;
}

void stw_clean_message(const char *message, char *out, size_t out_size)
{
    size_t n = 0, end = find_quote(message);
    const char *near = strcasestr(message, " near ");
    bool cut = message[end] != '\0' || (near && (size_t)(near - message) < end);
    if (near && (size_t)(near - message) < end)
        end = (size_t)(near - message);
    for (; n < end && n + 5 < out_size && n < MESSAGE_MAX; n++)
        out[n] = message[n] >= ' ' && message[n] < 0x7f ? message[n] : '?';
    while (n > 0 && out[n - 1] == ' ')
        n--;
    memcpy(out + n, cut ? " ..." : "", cut ? 5 : 1);
}
