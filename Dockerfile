# SPDX-License-Identifier: Apache-2.0
#
#   docker build -t steward:0.1.0 .        (or: scripts/image, which needs no registry)
#   docker build --platform linux/arm64 -t steward:0.1.0 .
#
# The last stage contains only the program, the libraries that it needs, CA certificates and time
# zones: no shell, no package manager.  /usr/share/sbom lists the packages of these files.

ARG BASE=debian:13-slim
# It runs on the build machine; an image of another architecture is cross-compiled.
FROM --platform=$BUILDPLATFORM ${BASE} AS build
ARG TARGETARCH
COPY scripts/lib/image-packages.sh /
# Nothing is installed if the base has these already, like the base of scripts/image.
RUN own=$(dpkg --print-architecture) && packages=$(/image-packages.sh "$own" "${TARGETARCH:-$own}") \
    && { dpkg -s ${packages} >/dev/null 2>&1 \
    || { dpkg --add-architecture "${TARGETARCH:-$own}" && apt-get update \
        && apt-get install -y --no-install-recommends ${packages}; }; }
# The commit that `steward version` prints if .git is not part of the context, and its time.
ARG COMMIT=unknown
ARG SOURCE_DATE_EPOCH=0
COPY . /src
RUN own=$(dpkg --print-architecture) && [ "${TARGETARCH:-$own}" = "$own" ] \
        || cross=--cross-file=/src/scripts/lib/cross/$TARGETARCH.ini; \
    git config --global --add safe.directory /src \
    && meson setup /build /src --buildtype=release --prefix=/usr --strip -Dtests=disabled -Dlibrary=false \
        -Dcommit="${COMMIT}" ${cross:-} \
    && DESTDIR=/install meson install -C /build
RUN mkdir /rootfs \
    && python3 /src/scripts/lib/rootfs.py /install/usr/bin/steward /rootfs /sbom.json \
    && install -D -m 644 /sbom.json /rootfs/usr/share/sbom/steward.spdx.json

FROM scratch
COPY --from=build /rootfs/ /
ENV SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt
# What each thread keeps for itself after a burst of work: docs/decisions/glibc-malloc.md.
ENV GLIBC_TUNABLES=glibc.malloc.tcache_max=128:glibc.malloc.tcache_count=32
USER 65532:65532
EXPOSE 9443 8443 8081
ENTRYPOINT ["/usr/bin/steward"]
CMD ["run"]
