/* SPDX-License-Identifier: Apache-2.0
 *
 * Structured log lines: a constant message and typed keys.  One write(2) per line, so lines of
 * different threads never mix.  Keys are those common in Kubernetes (controller, namespace, name,
 * reconcileID, ...).  No call logs an object or a body, so that secrets are not logged. */
#ifndef STW_BASE_LOG_H
#define STW_BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>

/* Lowest first. */
enum stw_log_level { STW_LOG_DEBUG, STW_LOG_INFO, STW_LOG_WARN, STW_LOG_ERROR, STW_LOG_LEVELS };
enum stw_log_format { STW_LOG_JSON, STW_LOG_TEXT };

struct stw_log_field {
    const char *key;
    enum { STW_FIELD_STR, STW_FIELD_INT, STW_FIELD_BOOL, STW_FIELD_SECONDS } type;
    const char *str; /* NULL: the field is left out */
    int64_t num;     /* INT, BOOL; microseconds for SECONDS */
};

/* Fields of stw_log. */
#define STW_STR(k, v) ((struct stw_log_field){.key = (k), .type = STW_FIELD_STR, .str = (v)})
#define STW_INT(k, v)                                                                              \
    ((struct stw_log_field){.key = (k), .type = STW_FIELD_INT, .num = (int64_t)(v)})
#define STW_BOOL(k, v) ((struct stw_log_field){.key = (k), .type = STW_FIELD_BOOL, .num = (v)})
#define STW_SECONDS(k, us)                                                                         \
    ((struct stw_log_field){.key = (k), .type = STW_FIELD_SECONDS, .num = (us)})

/* Writes a line, if the level is on: stw_log(STW_LOG_INFO, "listening", STW_STR("address", a),
 * STW_INT("port", p)).  The message is a constant; texts are borrowed for the call and cut when they
 * are long.  Never pass a secret.  A line that cannot be written is lost; on any thread. */
#define stw_log(level, ...)                                                                        \
    do {                                                                                           \
        if (stw_log_on(level))                                                                     \
            stw_log_pick_(level, __VA_ARGS__);                                                     \
    } while (0)
#define stw_log_pick_(level, msg, ...)                                                             \
    stw_log_write(level, msg, (const struct stw_log_field[]){__VA_ARGS__ __VA_OPT__(, ){0}})

void stw_log_setup(enum stw_log_format format, enum stw_log_level level, int fd);
enum stw_log_level stw_log_set_level(enum stw_log_level level); /* returns the previous one */
bool stw_log_on(enum stw_log_level level);
void stw_log_write(enum stw_log_level level, const char *msg, const struct stw_log_field *fields);

/* Sets the keys that every line of this thread carries until the next call: a list that ends with a
 * NULL key and must outlive its use.  NULL removes them. */
void stw_log_context(const struct stw_log_field *fields);

int stw_log_level_parse(const char *text, enum stw_log_level *ret);   /* debug|info|warn|error */
int stw_log_format_parse(const char *text, enum stw_log_format *ret); /* json|text */

#endif
