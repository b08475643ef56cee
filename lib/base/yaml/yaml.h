/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts YAML to JSON with libyaml's events: anchors and aliases (with a budget against expansion
 * bombs), several documents, merge keys.  Plain scalars are read as kubectl reads them (YAML 1.1
 * through sigs.k8s.io/yaml: yes/no/on/off are booleans, 0o17 and 017 octal, .inf refused, dates are
 * strings). */
#ifndef STW_BASE_YAML_H
#define STW_BASE_YAML_H

#include "base/buf.h"
#include "base/error.h"
#include "base/util.h"

#include <stddef.h>

/* Called for each document in turn: `index` from 0, `line` where it starts (from 1), `json` one
 * JSON text (borrowed).  A document without content is skipped.  A non-zero result stops reading,
 * and stw_yaml_each returns it. */
typedef int stw_yaml_fn(void *ctx, unsigned index, size_t line, const struct stw_buf *json);

/* `name` is for messages ("-" becomes "<stdin>"): "file.yaml:3:7: did not find expected key".  Also
 * reads JSON files.  Returns 0, -1 with `err`, or fn's value. */
int stw_yaml_each(const char *name, const char *text, size_t len, stw_yaml_fn *fn, void *ctx,
                  struct stw_error *err) STW_MUST_CHECK;

/* `marks`, if not NULL, records the position of each value of the last document: a map from field
 * path ("spec.ports[0].port") to line and column (from 1). */
struct stw_yaml_marks;
struct stw_yaml_marks *stw_yaml_marks_create(void) STW_MUST_CHECK;
void stw_yaml_marks_destroy(struct stw_yaml_marks *marks);
/* The mark of `path`, or of its nearest parent that has one.  Returns 0, or -1 when there is none.
 */
int stw_yaml_marks_find(struct stw_yaml_marks *marks, const char *path, size_t *ret_line,
                        size_t *ret_column);
int stw_yaml_each_marked(const char *name, const char *text, size_t len, stw_yaml_fn *fn, void *ctx,
                         struct stw_yaml_marks *marks, struct stw_error *err) STW_MUST_CHECK;

#endif
