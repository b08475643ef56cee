/* SPDX-License-Identifier: Apache-2.0
 *
 * The report of `steward doctor`: for each check the result, and the next step. */
#ifndef STW_OPERATOR_CHECKUP_H
#define STW_OPERATOR_CHECKUP_H

#include "base/operator.h"

#include <stdbool.h>
#include <stdio.h>

enum stw_check_level { STW_CHECK_OK, STW_CHECK_WARN, STW_CHECK_FAIL, STW_VERDICTS };

struct stw_checkup {
    const struct stw_operator *op; /* for names in the texts */
    FILE *out;
    bool json;
    unsigned count[STW_VERDICTS];
    unsigned unchecked; /* checks that could not be made */
};

void stw_checkup_begin(struct stw_checkup *c);
/* `advice` is a sentence or a command to paste, or NULL; the format describes the result. */
void stw_checkup_add(struct stw_checkup *c, enum stw_check_level verdict, const char *check,
                     const char *advice, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
/* Prints the summary; returns the exit status: 1 if a check failed, else 2 if one could not be made. */
int stw_checkup_end(struct stw_checkup *c);

#endif
