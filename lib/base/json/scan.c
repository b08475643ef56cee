/* SPDX-License-Identifier: Apache-2.0
 *
 * The one strict pass.  No recursion: open containers are on a stack of fixed depth, and the walk
 * goes value -> what follows it -> value until the stack is empty. */
#include "base/json/json_priv.h"
#include "base/plain_priv.h"
#include "base/util.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

struct scan {
    struct stw_json_doc *doc;
    const char *p, *end;
    uint32_t depth;
    uint32_t open[STW_JSON_MAX_DEPTH + STW_JSON_MORE_DEPTH]; /* tokens of the containers around p */
    struct stw_json_fault fault;
    enum stw_err code;
    uint32_t room;      /* token count at which grow_tokens() is called */
    uint32_t duplicate; /* token of a repeated key */
    bool more;          /* other text may follow the value */
};

enum scan_step { STEP_VALUE, STEP_KEY, STEP_AFTER, STEP_END, STEP_FAILED };

static enum scan_step refuse_at(struct scan *s, const char *at, const char *what)
{
    s->fault.what = what;
    s->fault.at = (size_t)(at - s->doc->text);
    s->code = STW_ERR_INVALID;
    return STEP_FAILED;
}

static enum scan_step refuse_at_cursor(struct scan *s, const char *what)
{
    return refuse_at(s, s->p, s->p == s->end ? "the text ends too early" : what);
}

static enum scan_step no_memory(struct scan *s)
{
    s->fault.what = "out of memory";
    s->code = STW_ERR_INTERNAL;
    return STEP_FAILED;
}

static inline void skip_blanks(struct scan *s)
{
    const char *p = s->p, *end = s->end;
    if (p < end && p[0] > ' ') /* usually there are none */
        return;
    while (p < end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t'))
        p++;
    s->p = p;
}

/* Called when the token array is full or doc->max is reached. */
static bool grow_tokens(struct scan *s)
{
    struct stw_json_doc *doc = s->doc;
    if (doc->max && doc->count >= doc->max) {
        (void)refuse_at(s, s->p, "the text holds too many values");
        s->code = STW_ERR_TOO_LARGE;
        return false;
    }
    if (doc->count < doc->cap) { /* reuse the memory of an earlier text */
        s->room = doc->max ? STW_MIN(doc->cap, doc->max) : doc->cap;
        return true;
    }
    /* A token takes at least one byte of text, so the text also bounds the array. */
    uint32_t few = (uint32_t)STW_MIN(STW_MAX(doc->len / 12, (size_t)16), (size_t)4096);
    uint32_t cap = doc->cap ? doc->cap * 2 : few;
    if (doc->cap > UINT32_MAX / 2) {
        (void)no_memory(s);
        return false;
    }
    if (doc->max)
        cap = STW_MIN(cap, doc->max);
    struct stw_json_token *tokens = reallocarray(doc->tokens, cap, sizeof(*tokens));
    if (!tokens) {
        (void)no_memory(s);
        return false;
    }
    doc->tokens = tokens;
    doc->cap = cap;
    s->room = cap;
    return true;
}

/* Adds a token for the value that starts at p; NULL with the fault set on failure. */
static inline struct stw_json_token *push_token(struct scan *s, enum stw_json_type type)
{
    struct stw_json_doc *doc = s->doc;
    if (__builtin_expect(doc->count >= s->room, 0) && !grow_tokens(s))
        return NULL;
    struct stw_json_token *t = &doc->tokens[doc->count++];
    t->start = (uint32_t)(s->p - doc->text);
    t->end = t->start;
    t->next = doc->count;
    t->size = 0;
    t->type = (uint8_t)type;
    t->escaped = t->nul = 0;
    return t;
}

/* Reads a string from its opening quote; `then` is the next step. */
static inline enum scan_step take_string(struct scan *s, enum scan_step then)
{
    s->p++;
    struct stw_json_token *t = push_token(s, STW_JSON_STRING);
    if (!t)
        return STEP_FAILED;
    const unsigned char *begin = (const unsigned char *)s->p;
    const unsigned char *plain = stw_skip_plain(begin, (const unsigned char *)s->end);
    if (plain < (const unsigned char *)s->end && *plain == '"') { /* no escapes, ASCII */
        t->size = (uint32_t)(plain - begin);
        t->end = t->start + t->size;
        s->p = (const char *)plain + 1;
        return then;
    }
    const char *quote = stw_json_scan_string(s->doc->text, s->p, s->end, t, &s->fault);
    if (!quote) {
        s->code = STW_ERR_INVALID;
        return STEP_FAILED;
    }
    t->end = (uint32_t)(quote - s->doc->text);
    s->p = quote + 1;
    return then;
}

static enum scan_step take_word(struct scan *s, enum stw_json_type type, const char *word,
                                size_t len)
{
    if ((size_t)(s->end - s->p) < len || memcmp(s->p, word, len) != 0)
        return refuse_at(s, s->p, "a value is expected here");
    struct stw_json_token *t = push_token(s, type);
    if (!t)
        return STEP_FAILED;
    s->p += len;
    t->end = (uint32_t)(s->p - s->doc->text);
    return STEP_AFTER;
}

static inline bool is_digit(const char *p, const char *end)
{
    return p < end && *p >= '0' && *p <= '9';
}

static inline const char *skip_digits(const char *p, const char *end)
{
    while (is_digit(p, end))
        p++;
    return p;
}

/* Whether an integer fits int64, by its digits. */
static bool fits_int64(const char *p, const char *end)
{
    bool negative = *p == '-';
    const char *limit = negative ? "9223372036854775808" : "9223372036854775807";
    size_t len;

    p += negative;
    len = (size_t)(end - p);
    return len < 19 || (len == 19 && memcmp(p, limit, 19) <= 0);
}

/* The value of a decimal exponent.  Stops beyond 2^40: no text has that many digits. */
static int64_t exponent_of(const char *p, const char *end)
{
    const int64_t limit = INT64_C(1) << 40;
    bool negative = p < end && *p == '-';
    int64_t v = 0;

    p += p < end && (*p == '-' || *p == '+');
    for (; p < end && v < limit; p++)
        v = v * 10 + (*p - '0');
    return negative ? -v : v;
}

/* Whether a real number rounds to a finite double.  Its digits are normalised to 0.DDD x 10^n; only
 * n = 309 is near enough to the limit to need strtod.  The limit, 2^1024 - 2^970, has 309 digits,
 * so digits after those cannot change the result. */
static bool is_finite(const char *p, const char *end)
{
    char digits[309 + 8] = "0.";
    size_t n = 2;
    int64_t scale = 0;
    bool fraction = false;

    for (p += *p == '-'; p < end && *p != 'e' && *p != 'E'; p++) {
        if (*p == '.') {
            fraction = true;
            continue;
        }
        bool leading_zero = n == 2 && *p == '0';
        if (!leading_zero && n < 2 + 309)
            digits[n++] = *p;
        scale += leading_zero ? -(int64_t)fraction : !fraction;
    }
    if (n == 2)
        return true; /* zero */
    if (p < end)
        scale += exponent_of(p + 1, end);
    if (scale != 309)
        return scale < 309;
    memcpy(digits + n, "e309", 5);
    return isfinite(strtod(digits, NULL));
}

static enum scan_step finish_number(struct scan *s, enum stw_json_type type, const char *behind)
{
    struct stw_json_token *t = push_token(s, type);
    if (!t)
        return STEP_FAILED;
    t->end = (uint32_t)(behind - s->doc->text);
    s->p = behind;
    return STEP_AFTER;
}

static enum scan_step take_number(struct scan *s)
{
    const char *p = s->p + (*s->p == '-'), *end = s->end;
    bool real = false;

    if (!is_digit(p, end))
        return refuse_at(s, p, "a minus sign is not followed by a digit");
    if (*p == '0' && is_digit(p + 1, end))
        return refuse_at(s, p, "a number must not begin with 0");
    p = skip_digits(p, end);
    if (p < end && *p == '.') {
        real = true;
        if (!is_digit(++p, end))
            return refuse_at(s, p, "a decimal point is not followed by a digit");
        p = skip_digits(p, end);
    }
    if (p < end && (*p == 'e' || *p == 'E')) {
        real = true;
        p++;
        p += p < end && (*p == '+' || *p == '-');
        if (!is_digit(p, end))
            return refuse_at(s, p, "an exponent has no digits");
        p = skip_digits(p, end);
    }
    real = real || !fits_int64(s->p, p);
    if (real && !is_finite(s->p, p))
        return refuse_at(s, s->p, "a number is too large");
    return finish_number(s, real ? STW_JSON_REAL : STW_JSON_INT, p);
}

/* Closes the innermost container; p is past its bracket. */
static enum scan_step close_container(struct scan *s)
{
    struct stw_json_doc *doc = s->doc;
    uint32_t at = s->open[--s->depth];
    struct stw_json_token *t = &doc->tokens[at];

    t->end = (uint32_t)(s->p - doc->text);
    t->next = doc->count;
    if (t->type == STW_JSON_OBJECT && t->size > 1 && !doc->trusted) {
        int found = stw_json_find_duplicate(doc, at, &s->duplicate);
        if (found < 0)
            return no_memory(s);
        if (found > 0)
            return refuse_at(s, doc->text + doc->tokens[s->duplicate].start - 1, "duplicate key");
    }
    return s->depth > 0 ? STEP_AFTER : STEP_END;
}

static inline enum scan_step take_value(struct scan *s);
static inline enum scan_step take_key(struct scan *s);

/* The open containers below STW_JSON_MAX_DEPTH. */
struct deep {
    uint32_t depth;
    bool object[STW_JSON_NESTING_MAX]; /* of each level: an object, else an array */
};

static enum scan_step take_deep_value(struct scan *s, struct deep *d)
{
    skip_blanks(s);
    if (s->p == s->end || (*s->p != '{' && *s->p != '['))
        return take_value(s);
    if (s->depth + d->depth == STW_JSON_NESTING_MAX) {
        (void)refuse_at(s, s->p, "nested too deeply");
        s->code = STW_ERR_TOO_LARGE;
        return STEP_FAILED;
    }
    bool object = *s->p++ == '{';
    d->object[d->depth++] = object;
    skip_blanks(s);
    if (s->p < s->end && *s->p == (object ? '}' : ']'))
        return STEP_AFTER;
    return object ? STEP_KEY : STEP_VALUE;
}

static enum scan_step take_after_deep(struct scan *s, struct deep *d)
{
    assert(d->depth > 0);
    bool object = d->object[d->depth - 1];
    skip_blanks(s);
    if (s->p < s->end && *s->p == ',') {
        s->p++;
        return object ? STEP_KEY : STEP_VALUE;
    }
    if (s->p == s->end || *s->p != (object ? '}' : ']'))
        return refuse_at_cursor(s, object ? "a comma or a closing brace is expected here"
                                          : "a comma or a closing bracket is expected here");
    s->p++;
    return --d->depth == 0 ? STEP_END : STEP_AFTER;
}

/* A container with all in it becomes one token.  It is checked as the others are, except for
 * duplicate keys.  Not inlined: its stack is for the rare case. */
__attribute__((noinline)) static enum scan_step take_deep(struct scan *s)
{
    struct deep d;
    struct stw_json_doc *doc = s->doc;
    enum scan_step step = STEP_VALUE;
    uint32_t at = doc->count;
    if (!push_token(s, STW_JSON_DEEP))
        return STEP_FAILED;
    doc->deep = true;
    d.depth = 0;
    while (step != STEP_END && step != STEP_FAILED) {
        step = step == STEP_VALUE ? take_deep_value(s, &d)
               : step == STEP_KEY ? take_key(s)
                                  : take_after_deep(s, &d);
        doc->count = at + 1; /* without the scalars */
    }
    doc->tokens[at].end = (uint32_t)(s->p - doc->text);
    return step == STEP_END ? STEP_AFTER : STEP_FAILED;
}

static enum scan_step open_container(struct scan *s, enum stw_json_type type, char closing)
{
    if (s->depth == (uint32_t)STW_JSON_MAX_DEPTH + s->doc->more_depth)
        return take_deep(s);
    if (!push_token(s, type))
        return STEP_FAILED;
    s->open[s->depth++] = s->doc->count - 1;
    s->p++;
    skip_blanks(s);
    if (s->p < s->end && *s->p == closing) {
        s->p++;
        return close_container(s);
    }
    return type == STW_JSON_OBJECT ? STEP_KEY : STEP_VALUE;
}

static inline enum scan_step take_value(struct scan *s)
{
    skip_blanks(s);
    if (s->p == s->end)
        return refuse_at_cursor(s, "");
    switch (*s->p) {
    case '"':
        return take_string(s, STEP_AFTER);
    case '{':
        return open_container(s, STW_JSON_OBJECT, '}');
    case '[':
        return open_container(s, STW_JSON_ARRAY, ']');
    case 't':
        return take_word(s, STW_JSON_TRUE, "true", 4);
    case 'f':
        return take_word(s, STW_JSON_FALSE, "false", 5);
    case 'n':
        return take_word(s, STW_JSON_NULL, "null", 4);
    default:
        if (*s->p == '-' || (*s->p >= '0' && *s->p <= '9'))
            return take_number(s);
        return refuse_at_cursor(s, "a value is expected here");
    }
}

static inline enum scan_step take_key(struct scan *s)
{
    skip_blanks(s);
    if (s->p == s->end || *s->p != '"')
        return refuse_at_cursor(s, "a key in double quotes is expected here");
    if (take_string(s, STEP_VALUE) == STEP_FAILED)
        return STEP_FAILED;
    skip_blanks(s);
    if (s->p == s->end || *s->p != ':')
        return refuse_at_cursor(s, "a colon is expected after a key");
    s->p++;
    return STEP_VALUE;
}

static inline enum scan_step take_after(struct scan *s)
{
    struct stw_json_token *t = &s->doc->tokens[s->open[s->depth - 1]];
    bool object = t->type == STW_JSON_OBJECT;

    t->size++;
    skip_blanks(s);
    if (s->p < s->end && *s->p == ',') {
        s->p++;
        return object ? STEP_KEY : STEP_VALUE;
    }
    if (s->p < s->end && *s->p == (object ? '}' : ']')) {
        s->p++;
        return close_container(s);
    }
    return refuse_at_cursor(s, object ? "a comma or a closing brace is expected here"
                                      : "a comma or a closing bracket is expected here");
}

static int walk_values(struct scan *s)
{
    enum scan_step step = STEP_VALUE;
    skip_blanks(s);
    if (s->p == s->end || (*s->p != '{' && *s->p != '['))
        step = refuse_at_cursor(s, "an object or an array is expected here");
    for (;;) {
        switch (step) {
        case STEP_VALUE:
            step = take_value(s);
            break;
        case STEP_KEY:
            step = take_key(s);
            break;
        case STEP_AFTER:
            step = take_after(s);
            break;
        case STEP_END:
            if (s->more)
                return 0;
            skip_blanks(s);
            if (s->p == s->end)
                return 0;
            step = refuse_at_cursor(s, "there is more text after the end of the value");
            break;
        case STEP_FAILED:
            return -1;
        }
    }
}

/* The start of a key for a message, at most 40 bytes; bytes other than printable ASCII become
 * '?'. */
static void describe_key(const struct scan *s, char out[48])
{
    const struct stw_json_token *t = &s->doc->tokens[s->duplicate];
    size_t n = 0;
    for (uint32_t i = t->start; i < t->end && n < 40; i++) {
        char c = s->doc->text[i];
        out[n++] = c >= 0x20 && c < 0x7F ? c : '?';
    }
    memcpy(out + n, t->end - t->start > 40 ? "..." : "\0\0\0", 4);
}

/* Lines end at '\n'; columns count characters, not bytes. */
static int format_scan_error(struct scan *s, struct stw_error *err)
{
    const char *text = s->doc->text;
    size_t line = 1, column = 1;
    char key[48] = "";

    if (s->code == STW_ERR_INTERNAL)
        return stw_fail(err, s->code, "cannot read the JSON text: %s", s->fault.what);
    for (size_t i = 0; i < s->fault.at; i++) {
        column += ((unsigned char)text[i] & 0xC0) != 0x80;
        if (text[i] == '\n') {
            line++;
            column = 1;
        }
    }
    if (s->duplicate)
        describe_key(s, key);
    return stw_fail(err, s->code, "invalid JSON at line %zu column %zu (byte %zu): %s%s%s%s", line,
                    column, s->fault.at, s->fault.what, s->duplicate ? " \"" : "", key,
                    s->duplicate ? "\"" : "");
}

static int scan_text(struct scan *s, const char *text, size_t len, struct stw_error *err)
{
    struct stw_json_doc *doc = s->doc;
    s->p = text;
    s->end = text + len;
    doc->text = text;
    doc->len = len;
    doc->count = 0;
    doc->deep = false;
    if (len >= UINT32_MAX) {
        doc->text = NULL;
        doc->len = 0;
        return stw_fail(err, STW_ERR_TOO_LARGE, "the JSON text is larger than 4 GiB");
    }
    int rc = walk_values(s);
    if (rc != 0) {
        if (err)
            (void)format_scan_error(s, err);
        doc->text = NULL;
        doc->len = 0;
        doc->count = 0;
    }
    return rc;
}

int stw_json_scan(struct stw_json_doc *doc, const char *text, size_t len, struct stw_error *err)
{
    struct scan s = {.doc = doc};
    return scan_text(&s, text, len, err);
}

int stw_json_scan_first(struct stw_json_doc *doc, const char *text, size_t len, size_t *ret_len,
                        struct stw_error *err)
{
    struct scan s = {.doc = doc, .more = true};
    int rc = scan_text(&s, text, len, err);
    if (rc == 0)
        *ret_len = doc->len = (size_t)(s.p - text);
    return rc;
}

size_t stw_json_skim(struct stw_json_skim *s, const char *text, size_t len, bool *ret_ended)
{
    const unsigned char *p = (const unsigned char *)text, *end = p + len;
    bool ended = false;
    while (p < end && !ended) {
        if (s->in_string && !s->escaped) {
            p = stw_skip_plain(p, end);
            if (p == end)
                break;
        }
        unsigned char c = *p++;
        if (s->in_string) {
            s->in_string = c != '"' || s->escaped;
            s->escaped = c == '\\' && !s->escaped;
        } else if (c == '"') {
            s->in_string = true;
        } else if (c == '{' || c == '[') {
            s->depth++;
        } else if (c == '}' || c == ']') {
            s->depth -= s->depth > 0;
            ended = s->depth == 0;
        }
    }
    *ret_ended = ended;
    return (size_t)((const char *)p - text);
}
