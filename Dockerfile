# The gateway on Debian, without a shell script around it. Build: docker build -t mcpgate .
#
# Stdio servers need their runtimes: derive an image from this one that adds Node or Python (docs/operations.md).

FROM rust:1.95.0-slim-bookworm AS build
# The toolchain of the image, without the components that only developers need.
ENV RUSTUP_TOOLCHAIN=1.95.0
WORKDIR /build
COPY Cargo.toml Cargo.lock ./
COPY src src
COPY tests/support/bin tests/support/bin
ARG MCPGATE_REVISION=unknown
RUN cargo build --release --locked --bin mcpgate

FROM debian:bookworm-slim
# Certificates for servers and issuers behind https.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /build/target/release/mcpgate /usr/local/bin/mcpgate
# A number, so that a cluster can tell that it is not root.
USER 65532:65532
ENV HOME=/tmp
WORKDIR /tmp
# Callers; operators at 9090 only if admin.listen is opened, since it asks for no credential.
EXPOSE 8080
# Process 1 takes SIGTERM itself, and reaps the children it started with their groups.
ENTRYPOINT ["/usr/local/bin/mcpgate"]
CMD ["serve", "--config", "/etc/mcpgate/mcpgate.yaml"]
