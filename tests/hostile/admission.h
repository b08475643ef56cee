/* SPDX-License-Identifier: Apache-2.0
 *
 * Objects through the webhooks, and what must hold for each answer. */
#ifndef STW_TESTS_HOSTILE_ADMISSION_H
#define STW_TESTS_HOSTILE_ADMISSION_H

#include "base/buf.h"
#include "schema/kind.h"

/* Ends the process, which then names the object. */
#define hostile_fail(...) hostile_fail_at(__FILE__, __LINE__, __VA_ARGS__)
void hostile_fail_at(const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 3, 4), noreturn));
/* Standard error; a command that runs in this process writes its own into a file. */
extern int hostile_stderr;
#define HOSTILE_EXPECT(condition)                                                                  \
    do {                                                                                           \
        if (!(condition))                                                                          \
            hostile_fail("not so: %s", #condition);                                                \
    } while (0)

struct hostile_tally {
    uint32_t read, accepted, converted; /* objects that are JSON; that are valid; of them */
};

/* `old` is another hostile object, for updates. */
void hostile_admit(const struct stw_kind *k, const struct stw_env *env,
                   const struct stw_buf *object, const struct stw_buf *old,
                   struct hostile_tally *tally);
/* The object as one of a kind with several versions, from one to another and back. */
void hostile_convert(const struct stw_buf *object, uint32_t number, struct hostile_tally *tally);
/* Whether a text is the path of a field. */
bool hostile_is_path(const char *text);

#endif
