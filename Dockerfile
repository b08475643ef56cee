# SPDX-License-Identifier: Apache-2.0
#
#   docker build -t steward:0.1.0 .        (or: buildah bud -t steward:0.1.0 .)

FROM debian:12-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends \
        gcc git libc6-dev libcurl4-openssl-dev libgnutls28-dev libjansson-dev libmariadb-dev \
        libmicrohttpd-dev libpq-dev libssl-dev libxxhash-dev libyaml-dev meson pkg-config \
        zlib1g-dev \
    && rm -rf /var/lib/apt/lists/*
COPY . /src
RUN meson setup /build /src --buildtype=release --prefix=/usr --strip -Dtests=disabled \
    && DESTDIR=/install meson install -C /build

FROM debian:12-slim
RUN apt-get update && apt-get install -y --no-install-recommends \
        ca-certificates libcurl4 libgnutls30 libjansson4 libmariadb3 libmicrohttpd12 libpq5 libssl3 \
        libyaml-0-2 tzdata zlib1g \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /install/usr/bin/steward /usr/bin/steward
USER 65532:65532
EXPOSE 9443 8080 8081
ENTRYPOINT ["/usr/bin/steward"]
CMD ["run"]
