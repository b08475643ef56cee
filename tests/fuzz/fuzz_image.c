/* SPDX-License-Identifier: Apache-2.0
 *
 * Image references and names: nothing is read past the end, and what is accepted contains only
 * characters that are allowed in a path, a header or a label. */
#include "base/util.h"
#include "schema/names.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char image_chars[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "/:@._-[]";
static const char name_chars[] = "abcdefghijklmnopqrstuvwxyz0123456789-.";

static void check(const char *text)
{
    char tag[200];
    stw_image_tag(text, tag, sizeof(tag));
    if (stw_is_image(text) && text[strspn(text, image_chars)] != '\0')
        abort();
    if (stw_is_image(text) && !stw_image_floats(text) && !*tag && !strchr(text, '@'))
        abort();
    if (stw_is_dns1123_subdomain(text) && text[strspn(text, name_chars)] != '\0')
        abort();
    if (stw_is_dns1035_label(text) && !stw_is_dns1123_label(text))
        abort();
    if (stw_is_dns1123_label(text) && !stw_is_dns1123_subdomain(text))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    stw_autofree char *text = malloc(size + 1);
    if (!text)
        return 0;
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    check(text);
    return 0;
}
