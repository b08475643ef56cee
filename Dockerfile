# SPDX-License-Identifier: Apache-2.0
#
#   docker build -t steward:0.1.0 .        (or: scripts/image, which needs no registry)
#
# The last stage contains only the program, the libraries that it needs, CA certificates and time
# zones: no shell, no package manager.  /usr/share/sbom lists the packages of these files.

ARG BASE=debian:13-slim
FROM ${BASE} AS build
# Nothing is installed if the base has these already, like the base of scripts/image.
ARG PACKAGES="ca-certificates gcc git libc6-dev libcurl4-openssl-dev libexpat1-dev libgnutls28-dev \
        libjansson-dev libmariadb-dev libmicrohttpd-dev libpq-dev libsodium-dev libssl-dev \
        libxxhash-dev libyaml-dev meson pkg-config python3 tzdata zlib1g-dev"
RUN dpkg -s ${PACKAGES} >/dev/null 2>&1 \
    || { apt-get update && apt-get install -y --no-install-recommends ${PACKAGES}; }
# The commit that `steward version` prints if .git is not part of the context.
ARG COMMIT=unknown
COPY . /src
RUN git config --global --add safe.directory /src \
    && meson setup /build /src --buildtype=release --prefix=/usr --strip -Dtests=disabled -Dlibrary=false \
        -Dcommit="${COMMIT}" \
    && DESTDIR=/install meson install -C /build
RUN mkdir /rootfs \
    && python3 /src/scripts/lib/rootfs.py /install/usr/bin/steward /rootfs /sbom.json \
    && install -D -m 644 /sbom.json /rootfs/usr/share/sbom/steward.spdx.json

FROM scratch
COPY --from=build /rootfs/ /
ENV SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt
# What each thread keeps for itself after a burst of work: docs/decisions/glibc-malloc.md.
ENV GLIBC_TUNABLES=glibc.malloc.tcache_max=128
USER 65532:65532
EXPOSE 9443 8443 8081
ENTRYPOINT ["/usr/bin/steward"]
CMD ["run"]
