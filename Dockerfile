# The gateway on Debian, without a shell script around it. Build: docker build -t mcpgate --target mcpgate .
#
# Targets: mcpgate (HTTP servers, and binaries that you add), mcpgate-node (npx), mcpgate-python (uvx), mcpgate-full
# (both, the default), and symbols (debug information of the binary, to export). docs/operations.md has more.
# Where a binary was built already: --build-arg BINARY=prebuilt takes target/image/mcpgate and compiles nothing.

ARG BINARY=built
ARG RUST_BASE=rust:1.95.0-slim-bookworm
ARG BASE=debian:trixie-slim

FROM ${RUST_BASE} AS build
# The toolchain of the image, without the components that only developers need. The C library is linked in, so that
# the binary also runs in images of another system, where the chart brings it to stdio servers.
ENV RUSTUP_TOOLCHAIN=1.95.0 RUSTFLAGS="-C target-feature=+crt-static"
WORKDIR /build
COPY Cargo.toml Cargo.lock ./
COPY src src
COPY benches benches
COPY tests/support/bin tests/support/bin
ARG MCPGATE_REVISION=unknown
# A target of its own keeps those flags away from what only runs while it is built.
RUN host="$(rustc --print host-tuple)" \
    && cargo build --release --locked --bin mcpgate --target "$host" \
    && mv "target/$host/release/mcpgate" /build/mcpgate \
    && objcopy --only-keep-debug mcpgate mcpgate.debug \
    && objcopy --strip-debug --add-gnu-debuglink=mcpgate.debug mcpgate

FROM scratch AS built
COPY --from=build /build/mcpgate /mcpgate

FROM scratch AS prebuilt
COPY target/image/mcpgate /mcpgate

# hadolint ignore=DL3006
FROM ${BINARY} AS binary

FROM scratch AS symbols
COPY --from=build /build/mcpgate.debug /

FROM ${BASE} AS mcpgate
# Certificates for servers and issuers behind https.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/* \
    && install --directory --owner=65532 --group=65532 --mode=0700 /var/lib/mcpgate
COPY --from=binary /mcpgate /usr/local/bin/mcpgate
# The exact versions of the crates, beside what dpkg knows of Debian's packages: what a scanner looks for.
COPY Cargo.lock /usr/share/doc/mcpgate/Cargo.lock
# A number, so that a cluster can tell that it is not root.
USER 65532:65532
ENV HOME=/tmp XDG_STATE_HOME=/var/lib
WORKDIR /tmp
# Callers; operators at 9090 only if admin.listen is opened, since it asks for no credential.
EXPOSE 8080
# As process 1 it hands SIGTERM on and reaps what its servers leave behind.
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/local/bin/mcpgate"]
CMD ["serve", "--config", "/etc/mcpgate/mcpgate.yaml"]
ARG MCPGATE_VERSION=0.1.0
ARG MCPGATE_REVISION=unknown
ARG MCPGATE_SOURCE=unknown
LABEL org.opencontainers.image.title="mcpgate" \
    org.opencontainers.image.description="A gateway for the Model Context Protocol: many servers behind one URL" \
    org.opencontainers.image.licenses="Apache-2.0" \
    org.opencontainers.image.version="${MCPGATE_VERSION}" \
    org.opencontainers.image.revision="${MCPGATE_REVISION}" \
    org.opencontainers.image.source="${MCPGATE_SOURCE}"

FROM mcpgate AS mcpgate-node
# hadolint ignore=DL3002
USER 0:0
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends nodejs npm \
    && rm -rf /var/lib/apt/lists/*
USER 65532:65532

FROM mcpgate AS mcpgate-python
# hadolint ignore=DL3002
USER 0:0
ARG UV_VERSION=0.13.9
# uvx, as most Python servers are started; its cache is under /tmp like that of npx.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends python3 python3-pip python3-venv \
    && rm -rf /var/lib/apt/lists/* \
    && python3 -m pip install --break-system-packages --no-cache-dir "uv==${UV_VERSION}"
USER 65532:65532

FROM mcpgate-node AS mcpgate-full
# hadolint ignore=DL3002
USER 0:0
ARG UV_VERSION=0.13.9
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends python3 python3-pip python3-venv \
    && rm -rf /var/lib/apt/lists/* \
    && python3 -m pip install --break-system-packages --no-cache-dir "uv==${UV_VERSION}"
USER 65532:65532
