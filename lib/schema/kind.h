/* SPDX-License-Identifier: Apache-2.0
 *
 * The kind table: the definition of each custom kind.  The webhooks, the housekeeping, the command
 * line, the RBAC rules and the docs all read it.  Pure: no I/O and no clock; rules get outside
 * state through struct stw_env. */
#ifndef STW_SCHEMA_KIND_H
#define STW_SCHEMA_KIND_H

#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"
#include "base/operator.h"
#include "base/resource.h"
#include "base/util.h"
#include "schema/field.h"
#include "schema/finding.h"

#include <stdbool.h>
#include <stdint.h>

/* The operation of an admission request. */
enum stw_operation { STW_CREATE = 1, STW_UPDATE = 2, STW_DELETE = 4, STW_CONNECT = 8 };

/* Facts about a value in a Secret, never the value itself. */
struct stw_secret_facts {
    bool secret_there, key_there;
    bool ends_in_newline, is_text; /* no control characters except a newline at the end */
    uint32_t len, bare_len;        /* bytes, with and without that newline (\n or \r\n) */
};

/* Annotations that switch something on with "true", for stw_operator_text. */
#define STW_PAUSED "{domain}/paused"
#define STW_ADOPT "{domain}/adopt"
#define STW_ADOPTED_BY "{domain}/adopted-by" /* of a child: "Kind/name/uid" */
/* Of a Deployment: when its refused pods were retried, and for what (controller/child/refused.c). */
#define STW_PODS_RETRIED "{domain}/pods-retried-at"
#define STW_FORCE_DELETE "{domain}/force-delete"
/* Any change of an object runs it at once; this annotation is for changing nothing else. */
#define STW_RECONCILE_AT "{domain}/reconcile-at"
/* Holds, for each version, what the version of the object cannot express. */
#define STW_CONVERSION "{domain}/conversion"
/* Consent to a pod template that a new version of the program wants: the first digits of its digest,
 * or "always". */
#define STW_UPDATE_TEMPLATE "{domain}/update-template"
#define STW_UPDATE_ALWAYS "always"
#define STW_TEMPLATE_ID_LEN 12

struct stw_product; /* what the kinds of this program share (kinds/common/product.h) */

/* Lookups of other objects.  They are answered from caches, so they may lag.  NULL where there is
 * no cluster; each function may be NULL too. */
struct stw_lookup {
    void *ctx;
    /* Whether an object other than `self` ("namespace/name") is under `key` in a named index, such
     * as ("mywebs.nodePort", "30100"); its "namespace/name" goes to `ret_holder` (512 bytes). */
    bool (*find)(void *ctx, const char *index, const char *key, const char *self, char *ret_holder);
    /* 1: an object ("deployments", "namespace/name") exists, 0: it does not, -1: unknown. */
    int (*has)(void *ctx, const char *plural, const char *key);
    /* Facts about a value in a Secret.  0, or -1: it could not be read. */
    int (*secret)(void *ctx, const char *ns, const char *name, const char *key,
                  struct stw_secret_facts *ret);
};

/* The outside state that rules may use. */
struct stw_env {
    const struct stw_operator *op;     /* whose annotations objects may have; NULL: none */
    const struct stw_lookup *lookup;   /* or NULL */
    const struct stw_product *product; /* or NULL; passed through */
};

struct stw_kind;

/* One admission request.  Nodes are borrowed. */
struct stw_admission {
    const struct stw_kind *kind;
    enum stw_operation operation;
    const char *ns, *name; /* of the request; the object's own may be empty (generateName) */
    struct stw_json object, old_object;
    const struct stw_env *env;
    bool quiet;   /* warnings are not shown: those that cost a lookup may be left out */
    bool offline; /* no API server has checked the UPDATE: what it refuses is refused here */
};

struct stw_column {
    const char *name, *type, *json_path, *format,
        *help; /* type "string", "integer", "boolean", "date" */
    int priority;
};

/* The scale subresource: JSON paths such as ".spec.replicas". */
struct stw_scale {
    const char *spec_replicas, *status_replicas, *selector;
};

/* Memory that decoded specs point into; freed as a whole. */
struct stw_arena;
struct stw_arena *stw_arena_create(void) STW_MUST_CHECK;
void stw_arena_destroy(struct stw_arena *a);
static inline void stw_arena_destroyp(struct stw_arena **a)
{
    stw_arena_destroy(*a);
}
#define stw_autoarena __attribute__((cleanup(stw_arena_destroyp)))

struct stw_defaults;

/* How a rule judges an UPDATE. */
enum stw_cel_rule_type {
    /* What was refused before and has the same value at `at` stays allowed, as in C. */
    STW_CEL_STATE,
    /* The same for a rule over the entries of a list or map: what was refused before stays allowed,
     * because CEL cannot tell which entry it was. */
    STW_CEL_ENTRIES,
    STW_CEL_TRANSITION, /* compares with the old object, and judges nothing else */
};

/* A rule over several fields in CEL, for the CRD of Kubernetes 1.29 and later.  It stands beside
 * the C rule in the file of the kind's rules, and never refuses what the C rule accepts.
 *
 * `self` is the spec, `oldSelf` the old spec, `oldObject` the old object (both only in transition
 * rules).  Objects and fields without a default may be absent. */
struct stw_cel_rule {
    const char *at; /* of the field in the error, below the spec; NULL ends a list */
    const char *rule;
    const char *message;
    const char *expression; /* a text with values in it, in CEL; or NULL */
    enum stw_cel_rule_type type;
    enum stw_finding_code code;
    const struct stw_cel_rule *within; /* these rules of state, for the object at `at`; or NULL */
};

/* A field that has another place in another version; both from the root: "spec.host".  Names in a
 * path have no dots.  NULL ends a table. */
struct stw_move {
    const char *own, *other; /* in the kind's own version; in the other version */
};

struct stw_conversion;

/* A served version of a kind besides its own (kind->version), in which rules and controllers see
 * all objects.  Conversion follows from the tables of both versions: a field with the same name and
 * type is copied, one in `moves` is moved, and what the target version cannot express is kept in the
 * annotation STW_CONVERSION, from where it returns.  See schema/conversion.h. */
struct stw_kind_version {
    const char *name;                 /* "v1alpha1"; NULL ends a table */
    bool stored;                      /* the API server stores this version, not the kind's own */
    const char *deprecated;           /* a warning for its clients, below 256 bytes; or NULL */
    const struct stw_field *spec;     /* for schema and conversion; offsets are not used */
    const struct stw_field *status;   /* NULL: as the kind's own */
    const struct stw_column *columns; /* NULL: as the kind's own */
    const struct stw_scale *scale;    /* NULL: as the kind's own */
    const struct stw_move *moves;     /* or NULL */
    /* What tables cannot state; or NULL.  Called first: what it sets or drops is left alone by the
     * tables.  -1 fails the whole request of the API server, even a list, so admission refuses
     * objects for which it fails.  Pure: the same object always gives the same result. */
    int (*convert)(struct stw_json object, bool to_own, struct stw_conversion *c,
                   struct stw_error *err);
};

struct stw_kind {
    union {
        struct stw_resource resource;
        struct {
            STW_RESOURCE_MEMBERS;
        };
    };
    const char *singular;
    const struct stw_kind_version *versions; /* other served versions; or NULL */
    const char *const *short_names;          /* NULL-terminated */
    const char *const *categories;           /* in addition to the operator's name; or NULL */
    const char *help;                        /* description of the kind */
    const struct stw_field *spec;            /* table of the spec struct */
    size_t spec_size;                        /* of that struct */
    const struct stw_field *status;   /* for the schema; beside the common fields of every kind */
    const struct stw_cel_rule *cel;   /* rules over several fields; or NULL */
    const struct stw_column *columns; /* ended by a NULL name; or NULL */
    const struct stw_scale *scale;    /* or NULL */
    /* Labels that are part of the desired state, as the spec is: an UPDATE that changes one is
     * treated as one that changes the spec.  NULL-terminated; or NULL. */
    const char *const *spec_labels;
    unsigned operations; /* enum stw_operation bits that the validating webhook handles */
    /* Keeps an object until its resources elsewhere are gone; or NULL.  The webhook adds it to new
     * objects, and the controller needs deleting(), which removes it. */
    const char *finalizer;
    bool finalizer_later; /* not every object needs it: default_more() and the controller add it */
    bool dns1035_name;    /* a Service gets the object's name */
    uint32_t name_max;    /* longest metadata.name; 0: 253 */

    /* Defaults that need more than a constant (may be NULL); adds with stw_default_add. */
    void (*default_more)(const struct stw_admission *a, struct stw_json spec,
                         struct stw_defaults *d);
    /* Rules beyond the table.  `spec` is decoded, with defaults; `old_spec` is NULL on CREATE.
     * Paths are under "spec."; the caller does the ratcheting. */
    void (*validate)(const struct stw_admission *a, const void *spec, const void *old_spec,
                     struct stw_findings *f);
    /* Warnings on a DELETE (may be NULL); old_object is the object being deleted.  Called by a
     * webhook of its own, which fails open, so it cannot block a deletion. */
    void (*advise_delete)(const struct stw_admission *a, struct stw_findings *f);
};

/* Whether the tables of a kind are right: names, each default, the place of each field in the struct of
 * the spec, paths in rules of CEL, columns and moves, the finalizer.  -1: the error names the kind, the
 * field and what is wrong.  stw_operator_check_tables() calls it for each kind.  On any thread. */
int stw_kind_check(const struct stw_kind *k, struct stw_error *err) STW_MUST_CHECK;

/* Decodes spec (with defaults) into `ret_spec` of kind->spec_size bytes; strings are in the arena,
 * nodes in the document.  Fields of a wrong type keep their default; the call then returns -1 with
 * the first such finding as error text (STW_ERR_INVALID). */
int stw_kind_decode(const struct stw_kind *k, struct stw_json spec, struct stw_arena *arena,
                    void *ret_spec, struct stw_error *err) STW_MUST_CHECK;

/* The same for the struct of any table, such as one element of a list; `ret` must be zeroed.  -1:
 * some field has a wrong type, or no memory. */
int stw_fields_decode(const struct stw_field *fields, struct stw_json object,
                      struct stw_arena *arena, void *ret);

/* Called for each default that is absent from the object, in order: JSON pointer ("/spec/replicas")
 * and JSON value.  An absent parent is added before its members.  Values of a wrong type are not
 * touched. */
typedef void stw_default_fn(void *ctx, const char *pointer, const char *json);
struct stw_defaults {
    stw_default_fn *add;
    void *ctx;
};
void stw_kind_default(const struct stw_admission *a, struct stw_defaults *d);
static inline void stw_default_add(struct stw_defaults *d, const char *pointer, const char *json)
{
    d->add(d->ctx, pointer, json);
}

/* Checks an object completely: metadata, table and rules, ratcheting, immutability, annotations,
 * unknown fields (as warnings).  In the order of the API server: all errors, then warnings. */
void stw_kind_validate(const struct stw_admission *a, struct stw_findings *f);
/* The same for objects of any served version, where no API server has converted them: the object is
 * checked against the schema of its version, and then, with the old object, in the kind's own
 * version.  Defaults of the schema are not applied before the conversion.  Needs env->op. */
void stw_kind_validate_served(const struct stw_admission *a, struct stw_findings *f);

/* `MyWeb.operator.k8s-summit.org "web" is invalid: <finding>` or `...: [<finding>, <finding>]` */
void stw_kind_denial(const struct stw_admission *a, const struct stw_findings *f,
                     struct stw_buf *out);

/* The address of the conversion webhook, in the CRD of a kind with several versions: a URL, or else a
 * Service.  Texts may have the marks of stw_operator_text. */
struct stw_crd_options {
    bool rules;                      /* as stw_kind_crd_rules */
    const char *url;                 /* whole, with the path; or NULL */
    const char *service, *ns, *path; /* service NULL: the CRD lacks the address */
};
void stw_kind_crd_print(const struct stw_operator *op, const struct stw_kind *k,
                        const struct stw_crd_options *o, struct stw_buf *out);

/* The CustomResourceDefinition (apiextensions.k8s.io/v1) as YAML, without the address of the
 * conversion webhook. */
void stw_kind_crd(const struct stw_operator *op, const struct stw_kind *k, struct stw_buf *out);
/* The same with validation rules and more limits, for Kubernetes 1.29 and later. */
void stw_kind_crd_rules(const struct stw_operator *op, const struct stw_kind *k,
                        struct stw_buf *out);

#endif
