/* SPDX-License-Identifier: Apache-2.0
 *
 * What the value of an option or an operand may be, for the completion of shells and of kubectl. */
#ifndef STW_OPERATOR_COMPLETION_H
#define STW_OPERATOR_COMPLETION_H

#include "base/buf.h"
#include "base/operator.h"
#include "operator/flags.h"

enum stw_shape {
    STW_SHAPE_ANY,
    STW_SHAPE_WORDS,
    STW_SHAPE_KIND,
    STW_SHAPE_FILE,
    STW_SHAPE_FOLDER,
};

/* From the placeholder of the help: "text|json" is a choice, "FILE" a file. */
enum stw_shape stw_shape_of(const char *placeholder);
const char *stw_placeholder_of(const struct stw_flag *f);
/* The words of a choice, or the kinds, separated by spaces. */
void stw_shape_words(const struct stw_operator *op, const char *placeholder, struct stw_buf *out);

/* The program as kubectl_complete-NAME: `words` are those after "kubectl NAME", the last one
 * is to be completed.  Prints candidates in the protocol of kubectl: one a line, with a description
 * after a tab, and at the end ":" with a directive.  Returns the exit status. */
int stw_complete(const struct stw_operator *op, int count, char **words);

#endif
