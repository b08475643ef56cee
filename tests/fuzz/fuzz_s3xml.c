/* SPDX-License-Identifier: Apache-2.0
 *
 * XML as an object store returns it, and the report of an agent: for any input, names and texts
 * stay within their limits. */
#include "base/util.h"
#include "kinds/etcdbackup/snapshot.h"
#include "store/xml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int each(void *ctx, const char *parent, const char *name, const char *text,
                struct stw_error *err)
{
    size_t *count = ctx;
    (void)err;
    if (!*name || strlen(name) > STW_XML_NAME_MAX || strlen(parent) > STW_XML_NAME_MAX ||
        (text && strlen(text) > STW_XML_TEXT_MAX))
        abort();
    (*count)++;
    return 0;
}

/* A report that was read, written and read again is the same. */
static void report(const char *text, size_t len)
{
    struct stw_buf once = STW_BUF_INIT(1u << 20);
    struct eb_snapshot *a = calloc(2, sizeof(*a)), *b = a ? a + 1 : NULL;
    if (a && eb_snapshot_read(text, len, a) == 0) {
        eb_snapshot_write(a, &once);
        if (!once.failed &&
            (eb_snapshot_read(once.data, once.len, b) != 0 || a->fault != b->fault ||
             a->revision != b->revision || !stw_streq(a->sha256, b->sha256)))
            abort();
    }
    stw_buf_done(&once);
    free(a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t count = 0;
    struct stw_error err = {0};
    if (size > (1u << 20))
        return 0;
    if (stw_xml_walk((const char *)data, size, each, &count, &err) == 0) {
        if (count == 0)
            abort();
    } else if (!*err.text) {
        abort();
    }
    report((const char *)data, size);
    return 0;
}
