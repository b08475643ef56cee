/* SPDX-License-Identifier: Apache-2.0 */
#include "store/xml.h"

#include "base/util.h"

#include <expat.h>
#include <malloc.h>
#include <stdbool.h>

#define CHUNK_BYTES ((size_t)16 << 10) /* expat copies what it gets */
/* Of expat, for one answer.  A page of 1000 keys needs less than a tenth.  The limit is for an
 * answer with a tag of megabytes or a million different names, which expat keeps all. */
#define MEMORY_MAX ((size_t)1 << 20)

struct xml_walk {
    XML_Parser parser;
    stw_xml_fn *each;
    void *ctx;
    struct stw_error *err;
    bool stopped; /* the error is set; expat may still call handlers */
    unsigned depth;
    struct {
        char name[STW_XML_NAME_MAX + 1];
        bool has_children;
    } open[STW_XML_DEPTH_MAX];
    char text[STW_XML_TEXT_MAX + 1]; /* since the last tag */
    size_t text_len;
};

/* --- expat's memory */

/* What expat has allocated in this thread: its allocator has no argument for a context. */
static _Thread_local size_t allocated;

static void *reallocate(void *old, size_t size)
{
    size_t others = allocated - malloc_usable_size(old);
    void *p = size > MEMORY_MAX || others > MEMORY_MAX - size ? NULL : realloc(old, size);
    if (p)
        allocated = others + malloc_usable_size(p);
    return p;
}

static void *allocate(size_t size)
{
    return reallocate(NULL, size);
}

static void release(void *p)
{
    allocated -= malloc_usable_size(p);
    free(p);
}

/* --- handlers */

static void stop_parser(struct xml_walk *w)
{
    w->stopped = true;
    (void)XML_StopParser(w->parser, XML_FALSE);
}

static int fail_invalid(struct stw_error *err, const char *what)
{
    return stw_fail(err, STW_ERR_INVALID, "the answer is not the XML of S3: %s", what);
}

static void refuse_xml(struct xml_walk *w, const char *what)
{
    if (w->stopped)
        return;
    (void)fail_invalid(w->err, what);
    stop_parser(w);
}

/* Before the internal subset is read: no declaration of an entity takes effect. */
static void refuse_dtd(void *ctx, const XML_Char *name, const XML_Char *system_id,
                       const XML_Char *public_id, int has_subset)
{
    (void)name;
    (void)system_id;
    (void)public_id;
    (void)has_subset;
    refuse_xml(ctx, "it has a DTD");
}

static void refuse_cdata(void *ctx)
{
    refuse_xml(ctx, "it has CDATA");
}

static void open_element(void *ctx, const XML_Char *qualified, const XML_Char **attributes)
{
    struct xml_walk *w = ctx;
    const char *colon = strrchr(qualified, ':'), *name = colon ? colon + 1 : qualified;
    size_t len = strlen(name);
    (void)attributes; /* S3 uses them only for namespaces */
    if (w->depth == STW_XML_DEPTH_MAX)
        refuse_xml(w, "elements are nested too deep");
    else if (len == 0 || len > STW_XML_NAME_MAX)
        refuse_xml(w, "an element has no name, or a long one");
    if (w->stopped)
        return;
    if (w->depth > 0)
        w->open[w->depth - 1].has_children = true;
    memcpy(w->open[w->depth].name, name, len + 1);
    w->open[w->depth].has_children = false;
    w->depth++;
    w->text_len = 0;
}

static void close_element(void *ctx, const XML_Char *qualified)
{
    struct xml_walk *w = ctx;
    (void)qualified; /* expat has compared it with that of the open element */
    if (w->stopped)
        return;
    unsigned me = --w->depth;
    w->text[w->text_len] = '\0';
    if (w->each(w->ctx, me > 0 ? w->open[me - 1].name : "", w->open[me].name,
                w->open[me].has_children ? NULL : w->text, w->err) != 0)
        stop_parser(w);
    w->text_len = 0;
}

static void add_text(void *ctx, const XML_Char *text, int len)
{
    struct xml_walk *w = ctx;
    if ((size_t)len > STW_XML_TEXT_MAX - w->text_len)
        refuse_xml(w, "a text is too long");
    if (w->stopped)
        return;
    memcpy(w->text + w->text_len, text, (size_t)len);
    w->text_len += (size_t)len;
}

/* --- the walk */

static XML_Parser make_parser(void)
{
    static const XML_Memory_Handling_Suite memory = {allocate, reallocate, release};
    XML_Parser p = XML_ParserCreate_MM("UTF-8", &memory, NULL);
    if (!p)
        return NULL;
    XML_SetElementHandler(p, open_element, close_element);
    XML_SetCharacterDataHandler(p, add_text);
    XML_SetStartDoctypeDeclHandler(p, refuse_dtd);
    XML_SetStartCdataSectionHandler(p, refuse_cdata);
    return p;
}

static int feed_parser(struct xml_walk *w, const char *text, size_t len)
{
    enum XML_Status status = XML_STATUS_OK;
    size_t at = 0;
    do {
        size_t n = STW_MIN(len - at, CHUNK_BYTES);
        status = XML_Parse(w->parser, text + at, (int)n, at + n == len);
        at += n;
    } while (status == XML_STATUS_OK && at < len);
    if (status == XML_STATUS_OK)
        return 0;
    enum XML_Error code = XML_GetErrorCode(w->parser);
    if (!w->stopped)
        (void)fail_invalid(w->err, code == XML_ERROR_NO_MEMORY ? "it needs too much memory"
                                                               : XML_ErrorString(code));
    return -1;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

int stw_xml_walk(const char *text, size_t len, stw_xml_fn *each, void *ctx, struct stw_error *err)
{
    struct xml_walk w = {.parser = make_parser(), .each = each, .ctx = ctx, .err = err};
    if (!w.parser)
        return stw_fail(err, STW_ERR_INTERNAL, "out of memory");
    XML_SetUserData(w.parser, &w);
    /* A store that takes long for an answer sends blanks before it. */
    for (; len > 0 && is_blank(*text); len--)
        text++;
    int rc;
    if (len > STW_XML_BYTES_MAX)
        rc = fail_invalid(err, "it is too long");
    else if (memchr(text, '\0', len)) /* also UTF-16, which expat would recognise */
        rc = fail_invalid(err, "it holds a NUL");
    else
        rc = feed_parser(&w, text, len);
    XML_ParserFree(w.parser);
    return rc;
}
