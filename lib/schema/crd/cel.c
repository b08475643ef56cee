/* SPDX-License-Identifier: Apache-2.0
 *
 * Validation rules (x-kubernetes-validations) of a CRD for Kubernetes 1.29 and later.
 *
 * Rules over several fields are at the root of the schema, because CEL knows only there whether an
 * object is being created: its status is removed then, and is never absent afterwards.  Each rule
 * of state is printed twice.  The first one judges creation.  The second one uses the old object,
 * so that the API server runs it on updates only; it lets pass what the C ratchet lets pass.
 * optionalOldSelf would need Kubernetes 1.30. */
#include "base/util.h"
#include "schema/rule/kind_priv.h"

#include <assert.h>
#include <ctype.h>

#define RULE_MAX 65536
#define PATH_MAX_BYTES 1024

/* A path from the root of an object, as in the API server's fieldPath: ".spec.a.b". */
struct cel_place {
    char path[PATH_MAX_BYTES];
};

static struct cel_place find_place(const struct cel_place *up, const char *path)
{
    struct cel_place ret;
    stw_format(ret.path, sizeof(ret.path), "%.700s.%.300s", up->path, path);
    return ret;
}

/* Whether `root` ("self", "oldSelf") has the field.  Every object has a spec.  Optional steps
 * (self.?a) would be shorter, but CEL's cost estimate does not know the size of what they lead to.
 */
static void add_presence(struct stw_buf *out, const char *root, const struct cel_place *at)
{
    const char *end = at->path + strlen(".spec");
    stw_buf_addc(out, '(');
    while (*end) {
        end += 1 + strcspn(end + 1, ".");
        stw_buf_addf(out, "has(%s%.*s)%s", root, (int)(end - at->path), at->path,
                     *end ? " && " : "");
    }
    stw_buf_addc(out, ')');
}

/* --- texts with other names in them */

struct word {
    const char *from, *to;
};

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Copies `rule`, with each identifier that is in `words` (ended by NULL) replaced. */
static void replace_words(struct stw_buf *out, const char *rule, const struct word *words)
{
    for (const char *c = rule; *c;) {
        size_t len = 0;
        const struct word *w = words;
        while (is_name(c[len]))
            len++;
        while (w->from && !(len == strlen(w->from) && memcmp(c, w->from, len) == 0))
            w++;
        bool free_name = len && w->from && (c == rule || c[-1] != '.');
        if (free_name)
            stw_buf_adds(out, w->to);
        else
            stw_buf_add(out, c, len ? len : 1);
        c += len ? len : 1;
    }
}

/* `rule` about the object that `root` ("self", "oldSelf") has at `at`.  Without that object it is
 * true. */
static void add_rule_on(struct stw_buf *out, const char *rule, const char *root,
                        const struct cel_place *at)
{
    char spec[PATH_MAX_BYTES + 16];
    stw_format(spec, sizeof(spec), "%s%s", root, at->path);
    const struct word words[] = {{"self", spec}, {NULL, NULL}};
    stw_buf_addc(out, '(');
    if (strchr(at->path + 1, '.')) {
        stw_buf_addc(out, '!');
        add_presence(out, root, at);
        stw_buf_adds(out, " || ");
    }
    stw_buf_addc(out, '(');
    replace_words(out, rule, words);
    stw_buf_adds(out, "))");
}

/* --- one entry */

static const char *find_reason(enum stw_finding_code code)
{
    switch (code) {
    case STW_REQUIRED:
        return "FieldValueRequired";
    case STW_FORBIDDEN:
        return "FieldValueForbidden";
    case STW_DUPLICATE:
        return "FieldValueDuplicate";
    default:
        return "FieldValueInvalid";
    }
}

struct cel_entry {
    const char *rule, *message, *expression, *path;
    enum stw_finding_code code;
};

static void print_entry(struct stw_buf *out, int indent, const struct cel_entry *e)
{
    stw_buf_addf(out, "%*s-", indent, "");
    if (e->path) {
        stw_crd_string(out, 1, "fieldPath", e->path);
        stw_buf_addf(out, "%*s ", indent, "");
    }
    stw_crd_string(out, 1, "message", e->message);
    stw_crd_string(out, indent + 2, "messageExpression", e->expression);
    stw_crd_string(out, indent + 2, "reason", e->path ? find_reason(e->code) : NULL);
    stw_crd_string(out, indent + 2, "rule", e->rule);
}

/* --- rules of values */

void stw_cel_print_value(struct stw_buf *out, int indent, const struct stw_field *row)
{
    if (!row->cel)
        return;
    stw_buf_addf(out, "%*sx-kubernetes-validations:\n", indent, "");
    for (const struct stw_cel *c = row->cel; c->rule; c++)
        print_entry(out, indent, &(struct cel_entry){.rule = c->rule, .message = c->message});
}

/* --- immutable fields */

/* What the field was, in CEL.  The cost estimate allows it for strings only: the length of string(N)
 * is unknown to it. */
static void add_old_value(struct stw_buf *out, const struct cel_place *at)
{
    stw_buf_adds(out, "'field is immutable (was ' + (");
    add_presence(out, "oldSelf", at);
    stw_buf_addf(out, " ? '\"' + oldSelf%s + '\"' : 'not set') + ')'", at->path);
}

/* Absent and the default are the same. */
static void add_immutable_side(struct stw_buf *out, const char *root, const struct stw_field *row,
                               const struct cel_place *at)
{
    stw_buf_addc(out, '(');
    add_presence(out, root, at);
    stw_buf_addf(out, " ? %s%s : %s)", root, at->path, row->def);
}

/* Whether the value is the same in both objects; absent from both counts as the same. */
static void add_unchanged(struct stw_buf *out, const struct cel_place *at)
{
    stw_buf_addc(out, '(');
    add_presence(out, "self", at);
    stw_buf_adds(out, " ? ");
    add_presence(out, "oldSelf", at);
    stw_buf_addf(out, " && self%s == oldSelf%s : !", at->path, at->path);
    add_presence(out, "oldSelf", at);
    stw_buf_addc(out, ')');
}

static void print_immutable(struct stw_buf *out, int indent, const struct stw_field *row,
                            const struct cel_place *at)
{
    stw_autobuf struct stw_buf rule = STW_BUF_INIT(RULE_MAX), was = STW_BUF_INIT(RULE_MAX);
    if (row->def && !row->computed) {
        add_immutable_side(&rule, "self", row, at);
        stw_buf_adds(&rule, " == ");
        add_immutable_side(&rule, "oldSelf", row, at);
    } else {
        add_unchanged(&rule, at);
    }
    add_old_value(&was, at);
    print_entry(
        out, indent,
        &(struct cel_entry){.rule = stw_buf_str(&rule),
                            .message = "field is immutable",
                            .expression = row->type == STW_T_STRING ? stw_buf_str(&was) : NULL,
                            .path = at->path,
                            .code = STW_FORBIDDEN});
    out->failed |= rule.failed || was.failed;
}

static void print_immutables(struct stw_buf *out, int indent, const struct stw_field *rows,
                             const struct cel_place *up)
{
    for (const struct stw_field *row = rows; row->name; row++) {
        struct cel_place at = find_place(up, row->name);
        if (row->immutable)
            print_immutable(out, indent, row, &at);
        else if (row->type == STW_T_OBJECT)
            print_immutables(out, indent, row->fields, &at);
    }
}

/* --- rules of a kind */

static void print_transition(struct stw_buf *out, int indent, const struct stw_cel_rule *r,
                             const struct cel_place *up)
{
    static const struct word words[] = {
        {"self", "self.spec"}, {"oldSelf", "oldSelf.spec"}, {"oldObject", "oldSelf"}, {NULL, NULL}};
    stw_autobuf struct stw_buf rule = STW_BUF_INIT(RULE_MAX), text = STW_BUF_INIT(RULE_MAX);
    struct cel_place at = find_place(up, r->at);
    replace_words(&rule, r->rule, words);
    replace_words(&text, r->expression ? r->expression : "", words);
    print_entry(out, indent,
                &(struct cel_entry){.rule = stw_buf_str(&rule),
                                    .message = r->message,
                                    .expression = r->expression ? stw_buf_str(&text) : NULL,
                                    .path = at.path,
                                    .code = r->code});
    out->failed |= rule.failed || text.failed;
}

/* Whether some rule with the place and the code of `r` refuses the old object.  The C ratchet does
 * not tell such rules apart either. */
static void add_refused_before(struct stw_buf *rule, const struct stw_cel_rule *r,
                               const struct stw_cel_rule *all, const struct cel_place *up)
{
    stw_buf_addc(rule, '(');
    for (const struct stw_cel_rule *one = all, *last = NULL; one->at; one++) {
        if (one->type != r->type || one->within || one->code != r->code ||
            !stw_streq(one->at, r->at))
            continue;
        stw_buf_adds(rule, last ? " || !" : "!");
        add_rule_on(rule, one->rule, "oldSelf", up);
        last = one;
    }
    stw_buf_addc(rule, ')');
}

static void add_update_rule(struct stw_buf *rule, const struct stw_cel_rule *r,
                            const struct stw_cel_rule *all, const struct cel_place *up)
{
    struct cel_place at = find_place(up, r->at);
    add_rule_on(rule, r->rule, "self", up);
    stw_buf_adds(rule, " || (");
    if (r->type == STW_CEL_STATE) {
        add_unchanged(rule, &at);
        stw_buf_adds(rule, " && ");
    }
    add_refused_before(rule, r, all, up);
    stw_buf_addc(rule, ')');
}

static void print_state(struct stw_buf *out, int indent, const struct stw_cel_rule *r,
                        const struct stw_cel_rule *all, const struct cel_place *up)
{
    stw_autobuf struct stw_buf made = STW_BUF_INIT(RULE_MAX), text = STW_BUF_INIT(RULE_MAX),
                               changed = STW_BUF_INIT(RULE_MAX);
    struct cel_place at = find_place(up, r->at);
    char spec[PATH_MAX_BYTES + 8];
    stw_format(spec, sizeof(spec), "self%s", up->path);
    const struct word words[] = {{"self", spec}, {NULL, NULL}};
    stw_buf_adds(&made, "has(self.status) || ");
    add_rule_on(&made, r->rule, "self", up);
    add_update_rule(&changed, r, all, up);
    replace_words(&text, r->expression ? r->expression : "", words);
    struct cel_entry e = {.message = r->message,
                          .expression = r->expression ? stw_buf_str(&text) : NULL,
                          .path = at.path,
                          .code = r->code};
    e.rule = stw_buf_str(&made);
    print_entry(out, indent, &e);
    e.rule = stw_buf_str(&changed);
    print_entry(out, indent, &e);
    out->failed |= made.failed || text.failed || changed.failed;
}

static void print_rules(struct stw_buf *out, int indent, const struct stw_cel_rule *all,
                        const struct cel_place *up, bool with_transitions)
{
    for (const struct stw_cel_rule *r = all; r && r->at; r++) {
        struct cel_place at = find_place(up, r->at);
        if (r->within)
            print_rules(out, indent, r->within, &at, false);
        else if (r->type != STW_CEL_TRANSITION)
            print_state(out, indent, r, all, up);
        else if (with_transitions)
            print_transition(out, indent, r, up);
    }
}

void stw_cel_print_kind(struct stw_buf *out, int indent, const struct stw_kind *k)
{
    static const struct cel_place spec = {".spec"};
    stw_autobuf struct stw_buf all = STW_BUF_INIT(out->max);
    print_immutables(&all, indent, k->spec, &spec);
    print_rules(&all, indent, k->cel, &spec, true);
    out->failed |= all.failed;
    if (!all.len)
        return;
    stw_buf_addf(out, "%*sx-kubernetes-validations:\n", indent, "");
    stw_buf_add(out, all.data, all.len);
}
