/* SPDX-License-Identifier: Apache-2.0 */
#include "store/xml.h"

#include "base/util.h"

#include <stdbool.h>

struct xml_walk {
    const char *at, *end;
    stw_xml_fn *each;
    void *ctx;
    struct stw_error *err;
    unsigned depth;
    struct {
        char name[STW_XML_NAME_MAX + 1];
        bool has_children;
    } open[STW_XML_DEPTH_MAX];
    char text[STW_XML_TEXT_MAX + 1]; /* since the last tag */
    size_t text_len;
    bool begun; /* a root has been seen */
};

static int refuse_xml(struct xml_walk *w, const char *what)
{
    return stw_fail(w->err, STW_ERR_INVALID, "the answer is not the XML of S3: %s", what);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool is_at_text(const struct xml_walk *w, const char *with)
{
    size_t len = strlen(with);
    return (size_t)(w->end - w->at) >= len && memcmp(w->at, with, len) == 0;
}

/* Moves past the next `what`; -1: there is none. */
static int skip_behind(struct xml_walk *w, const char *what)
{
    const char *found = memmem(w->at, (size_t)(w->end - w->at), what, strlen(what));
    if (!found)
        return refuse_xml(w, "it is cut off");
    w->at = found + strlen(what);
    return 0;
}

/* --- texts */

static int add_byte(struct xml_walk *w, char c)
{
    if (w->text_len == STW_XML_TEXT_MAX)
        return refuse_xml(w, "a text is too long");
    w->text[w->text_len++] = c;
    return 0;
}

static char tail_byte(uint32_t c)
{
    return (char)(0x80 | (c & 0x3f));
}

static int add_utf8(struct xml_walk *w, uint32_t c)
{
    if (c == 0 || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
        return refuse_xml(w, "a character reference names no character");
    if (c < 0x80)
        return add_byte(w, (char)c);
    if (c < 0x800)
        return -(add_byte(w, (char)(0xc0 | c >> 6)) || add_byte(w, tail_byte(c)));
    if (c < 0x10000)
        return -(add_byte(w, (char)(0xe0 | c >> 12)) || add_byte(w, tail_byte(c >> 6)) ||
                 add_byte(w, tail_byte(c)));
    return -(add_byte(w, (char)(0xf0 | c >> 18)) || add_byte(w, tail_byte(c >> 12)) ||
             add_byte(w, tail_byte(c >> 6)) || add_byte(w, tail_byte(c)));
}

static int digit_of(char c, unsigned base)
{
    int d = c >= '0' && c <= '9'   ? c - '0'
            : c >= 'a' && c <= 'f' ? c - 'a' + 10
            : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                   : 99;
    return d < (int)base ? d : -1;
}

static int read_number(struct xml_walk *w, const char *p, const char *semicolon)
{
    unsigned base = *p == 'x' ? 16 : 10;
    uint32_t value = 0;
    p += base == 16;
    if (p == semicolon || semicolon - p > 7)
        return refuse_xml(w, "a character reference names no character");
    for (; p < semicolon; p++) {
        int d = digit_of(*p, base);
        if (d < 0)
            return refuse_xml(w, "a character reference names no character");
        value = value * base + (uint32_t)d;
    }
    return add_utf8(w, value);
}

static int read_reference(struct xml_walk *w)
{
    static const struct {
        const char *name;
        char c;
    } names[] = {{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}};
    const char *semicolon = memchr(w->at, ';', (size_t)STW_MIN(w->end - w->at, 12));
    for (size_t i = 0; i < STW_COUNT(names); i++)
        if (is_at_text(w, names[i].name)) {
            w->at += strlen(names[i].name);
            return add_byte(w, names[i].c);
        }
    if (!semicolon || semicolon - w->at < 3 || w->at[1] != '#')
        return refuse_xml(w, "it has an entity that S3 does not use");
    const char *digits = w->at + 2;
    w->at = semicolon + 1;
    return read_number(w, digits, semicolon);
}

static int read_text(struct xml_walk *w)
{
    char c = *w->at;
    if (c == '&')
        return w->depth == 0 ? refuse_xml(w, "there is text outside of all elements")
                             : read_reference(w);
    w->at++;
    if (w->depth == 0)
        return is_blank(c) ? 0 : refuse_xml(w, "there is text outside of all elements");
    return c == '\0' ? refuse_xml(w, "it holds a NUL") : add_byte(w, c);
}

/* --- elements */

static bool is_name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.' || c == ':';
}

/* Reads a name without its namespace prefix. */
static int read_name(struct xml_walk *w, char out[STW_XML_NAME_MAX + 1])
{
    const char *from = w->at;
    while (w->at < w->end && is_name_byte(*w->at)) {
        if (*w->at == ':')
            from = w->at + 1;
        w->at++;
    }
    size_t len = (size_t)(w->at - from);
    if (len == 0 || len > STW_XML_NAME_MAX)
        return refuse_xml(w, "an element has no name, or a long one");
    memcpy(out, from, len);
    out[len] = '\0';
    return 0;
}

/* Skips attributes, which S3 uses only for namespaces.  `*ret_empty`: "<x/>". */
static int skip_attributes(struct xml_walk *w, bool *ret_empty)
{
    char quote = '\0', before = '\0';
    for (; w->at < w->end; before = *w->at++) {
        char c = *w->at;
        if (quote)
            quote = c == quote ? '\0' : quote;
        else if (c == '"' || c == '\'')
            quote = c;
        else if (c == '<')
            return refuse_xml(w, "a tag is not closed");
        else if (c == '>') {
            w->at++;
            *ret_empty = before == '/';
            return 0;
        }
    }
    return refuse_xml(w, "it is cut off");
}

static int close_element(struct xml_walk *w)
{
    unsigned me = --w->depth;
    bool leaf = !w->open[me].has_children;
    w->text[w->text_len] = '\0';
    int rc = w->each(w->ctx, me > 0 ? w->open[me - 1].name : "", w->open[me].name,
                     leaf ? w->text : NULL, w->err);
    w->text_len = 0;
    return rc;
}

static int read_open(struct xml_walk *w)
{
    bool empty = false;
    w->at++;
    if (w->depth == STW_XML_DEPTH_MAX)
        return refuse_xml(w, "elements are nested too deep");
    if (w->depth == 0 && w->begun)
        return refuse_xml(w, "there are two outermost elements");
    if (w->depth > 0)
        w->open[w->depth - 1].has_children = true;
    w->begun = true;
    w->open[w->depth].has_children = false;
    if (read_name(w, w->open[w->depth].name) != 0 || skip_attributes(w, &empty) != 0)
        return -1;
    w->depth++;
    w->text_len = 0;
    return empty ? close_element(w) : 0;
}

static int read_close(struct xml_walk *w)
{
    char name[STW_XML_NAME_MAX + 1];
    w->at += 2;
    if (read_name(w, name) != 0)
        return -1;
    while (w->at < w->end && is_blank(*w->at))
        w->at++;
    if (w->at == w->end || *w->at != '>')
        return refuse_xml(w, "a tag is not closed");
    w->at++;
    if (w->depth == 0 || !stw_streq(w->open[w->depth - 1].name, name))
        return refuse_xml(w, "elements do not end where they should");
    return close_element(w);
}

static int read_next_token(struct xml_walk *w)
{
    if (*w->at != '<')
        return read_text(w);
    if (is_at_text(w, "<?"))
        return skip_behind(w, "?>");
    if (is_at_text(w, "<!--"))
        return skip_behind(w, "-->");
    if (is_at_text(w, "<!"))
        return refuse_xml(w, "it has a DTD or CDATA");
    return is_at_text(w, "</") ? read_close(w) : read_open(w);
}

int stw_xml_walk(const char *text, size_t len, stw_xml_fn *each, void *ctx, struct stw_error *err)
{
    struct xml_walk w = {.at = text, .end = text + len, .each = each, .ctx = ctx, .err = err};
    if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        w.at += 3;
    while (w.at < w.end)
        if (read_next_token(&w) != 0)
            return -1;
    if (w.depth > 0)
        return refuse_xml(&w, "it is cut off");
    return w.begun ? 0 : refuse_xml(&w, "it is empty");
}
