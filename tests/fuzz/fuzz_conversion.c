/* SPDX-License-Identifier: Apache-2.0
 *
 * The body of a ConversionReview.  The reply is valid JSON, it has all objects or none, and what was
 * converted by tables can be converted again: a tenant cannot make an object that no list can show. */
#include "support/convertible.h"
#include "webhook/conversion.h"

#include <stdlib.h>

static void check(bool condition)
{
    if (!condition)
        abort();
}

static void convert_again(struct stw_json object)
{
    stw_autobuf struct stw_buf out = STW_BUF_INIT((size_t)64 << 20);
    struct stw_error err = {0};
    check(stw_convert(&site_operator, &site_kind, object, "v1", &out, &err) == 0 ||
          err.code == STW_ERR_TOO_LARGE);
}

static void check_objects(struct stw_json objects, const char *version)
{
    struct stw_json key, object;
    stw_json_foreach (objects, key, object) {
        check(stw_json_size(stw_json_get(object, "apiVersion")) ==
              strlen("example.org/") + strlen(version));
        convert_again(object);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct stw_review_scratch scratch;
    stw_autojson struct stw_json_doc doc = {.more_depth = STW_JSON_MORE_DEPTH};
    stw_autobuf struct stw_buf reply = STW_BUF_INIT((size_t)64 << 20);
    struct stw_conversion_result result;
    struct stw_error err;
    int status =
        stw_conversion_handle(&(struct stw_conversion_review){&site_operator, site_operator.kinds,
                                                              (const char *)data, size},
                              &scratch, &reply, &result);
    check(status == 200 || status == 400 || status == 500);
    check(stw_conversion_memory((const char *)data, size) >= size);
    check(stw_json_scan(&doc, stw_buf_str(&reply), reply.len, &err) == 0);
    struct stw_json objects = stw_json_path(stw_json_root(&doc), "response.convertedObjects");
    if (result.converted)
        check(stw_json_size(objects) == result.objects);
    else
        check(stw_json_size(objects) == 0);
    if (result.version)
        check_objects(objects, result.version);
    return 0;
}
