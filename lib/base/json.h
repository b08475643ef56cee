/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads JSON without building a tree: one strict pass over the text checks all of it and produces
 * an array of tokens that point into the text.  Rules, informers and decoders walk the tokens.
 *
 * Strict means: RFC 8259 grammar, valid UTF-8, no lone surrogates, finite numbers, no duplicate keys
 * even if spelled with escapes, no text after the end.  tests/fuzz/fuzz_json compares it with
 * jansson.  What Go's encoder writes, and so the API server, is always accepted:
 *   - the escape \u0000 stays in the text; a string that has it becomes no C string;
 *   - an integer outside of int64 is a STW_JSON_REAL, as in Go;
 *   - a container below STW_JSON_MAX_DEPTH levels is checked, and becomes one STW_JSON_DEEP, whose
 *     contents no accessor shows.  So recursion over a document is bounded.  More levels than
 *     STW_JSON_NESTING_MAX are rejected.
 *
 * A document borrows the text; the text must outlive it.  One thread at a time. */
#ifndef STW_BASE_JSON_H
#define STW_BASE_JSON_H

#include "base/buf.h"
#include "base/error.h"
#include "base/util.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum stw_json_type {
    STW_JSON_ABSENT = 0, /* not a value: the result of a look-up that found none */
    STW_JSON_NULL,
    STW_JSON_FALSE,
    STW_JSON_TRUE,
    STW_JSON_INT,
    STW_JSON_REAL,
    STW_JSON_STRING,
    STW_JSON_ARRAY,
    STW_JSON_OBJECT,
    STW_JSON_DEEP, /* an object or array below STW_JSON_MAX_DEPTH levels: only its raw text */
};

struct stw_json_token {
    uint32_t start;  /* offset of the value's first byte; of a string: after the quote */
    uint32_t end;    /* offset after its last byte; of a string: of the closing quote */
    uint32_t next;   /* index of the token after this value and its contents */
    uint32_t size;   /* members, elements, or the decoded bytes of a string */
    uint8_t type;    /* enum stw_json_type */
    uint8_t escaped; /* string contains a backslash: text differs from value */
    uint8_t nul;     /* string contains a NUL character */
};

/* Levels of objects and lists in each other that are read. */
#define STW_JSON_MAX_DEPTH 128
/* Levels that are accepted.  Go's decoder, and so the API server, accepts 10,000 in what it is sent,
 * and puts some around that in a review, a list or an event. */
#define STW_JSON_NESTING_MAX 10064
#define STW_JSON_MORE_DEPTH 4 /* the most for `more_depth` of a document */

/* A zero-initialised document is empty and valid; a scan reuses its memory. */
struct stw_json_doc {
    const char *text;
    size_t len;
    struct stw_json_token *tokens;
    uint32_t count, cap;
    uint32_t max; /* limit of values and keys, else STW_ERR_TOO_LARGE; 0: no limit */
    /* The text comes from a JSON writer, ours or the API server's.  These never repeat a key, so
     * duplicates are not checked.  Of two members of the same name the first is found. */
    bool trusted;
    bool deep;                        /* a value is STW_JSON_DEEP */
    uint8_t more_depth;               /* containers around the values that do not count as depth */
    struct stw_json_scratch *scratch; /* of the scanner: duplicate detection */
};

/* Scans a text of up to UINT32_MAX - 1 bytes; the top value must be an object or an array.  On
 * failure the document is empty and the error (STW_ERR_INVALID, or STW_ERR_TOO_LARGE for depth and
 * for more values than `max`) gives the problem with line, column and byte offset. */
int stw_json_scan(struct stw_json_doc *doc, const char *text, size_t len, struct stw_error *err);
/* The same, but other text may follow the value: `ret_len` is where the value ends.  A text that is
 * truncated inside the value is an error. */
int stw_json_scan_first(struct stw_json_doc *doc, const char *text, size_t len, size_t *ret_len,
                        struct stw_error *err) STW_MUST_CHECK;
/* Finds where an object or array ends, by its brackets and strings alone.  The text arrives in pieces, begins
 * with the opening bracket, and need not be valid JSON otherwise. */
struct stw_json_skim {
    uint32_t depth;
    bool in_string, escaped;
};
/* Returns the bytes up to the end of the value, or `len` if that is not in this piece. */
size_t stw_json_skim(struct stw_json_skim *s, const char *text, size_t len, bool *ret_ended);
void stw_json_done(struct stw_json_doc *doc);
#define stw_autojson __attribute__((cleanup(stw_json_done)))

/* A place in a document, passed by value.  Every call accepts an absent node and returns absent. */
struct stw_json {
    const struct stw_json_doc *doc;
    uint32_t at;
};
#define STW_JSON_NONE ((struct stw_json){NULL, 0})

struct stw_json stw_json_root(const struct stw_json_doc *doc);
enum stw_json_type stw_json_type(struct stw_json v);
static inline bool stw_json_there(struct stw_json v) /* present and not null */
{
    return stw_json_type(v) > STW_JSON_NULL;
}
uint32_t stw_json_size(struct stw_json v); /* members, elements, decoded string bytes, else 0 */

struct stw_json stw_json_get(struct stw_json object, const char *key);
struct stw_json stw_json_path(struct stw_json v, const char *dotted); /* "spec.template.spec" */
struct stw_json stw_json_at(struct stw_json array, uint32_t index);

/* Iterates over an object (key and value) or an array (key is absent):
 *     struct stw_json key, value;
 *     stw_json_foreach (object, key, value) ... */
struct stw_json stw_json_first(struct stw_json container, struct stw_json *ret_key);
struct stw_json stw_json_after(struct stw_json container, struct stw_json value,
                               struct stw_json *ret_key);
#define stw_json_foreach(container, key, value)                                                    \
    for ((value) = stw_json_first((container), &(key)); stw_json_type(value) != STW_JSON_ABSENT;   \
         (value) = stw_json_after((container), (value), &(key)))

bool stw_json_is(struct stw_json string, const char *text);
bool stw_json_equal(struct stw_json a, struct stw_json b); /* by value; member order is ignored */
/* Orders strings by their decoded bytes, shorter ones first; returns < 0, 0 or > 0.  What is not a
 * string, such as an absent node, sorts before all strings and is equal to its like. */
int stw_json_compare(struct stw_json a, struct stw_json b);
/* The number of values and keys in it, itself included: the cost of walking all of it. */
uint32_t stw_json_weight(struct stw_json v);
/* Whether a string contains a NUL character, so that it cannot become a C string. */
bool stw_json_has_nul(struct stw_json string);
/* Whether a value of any depth in it cannot be read: STW_JSON_DEEP.  Linear, as the next. */
bool stw_json_has_deep(struct stw_json v);
/* Whether an object of any depth in it has a key with a NUL character. */
bool stw_json_has_nul_key(struct stw_json v);
/* Appends the decoded bytes of a string, which may contain NUL. */
void stw_json_str(struct stw_json string, struct stw_buf *out);
/* Decoded copy into a fixed buffer.  Returns 0, or -1 when it is not a string, contains NUL or does
 * not fit. */
int stw_json_strcpy(struct stw_json string, char *out, size_t out_size);
/* Decoded copy, cut at `size` - 1 bytes, NUL shown as '?'; empty when it is not a string. */
void stw_json_cut(struct stw_json string, char *out, size_t size);
/* Caller frees; NULL: not a string, contains NUL, no memory. */
char *stw_json_strdup(struct stw_json string);
int stw_json_int(struct stw_json v, int64_t *ret); /* 0, or -1 when it is not an integer */
bool stw_json_bool(struct stw_json v, bool fallback);
/* The bytes of the value as in the text (strings with their quotes). */
const char *stw_json_raw(struct stw_json v, size_t *ret_len);

#endif
