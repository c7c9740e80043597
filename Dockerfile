# The collector with its dashboard. The hook program is built as well, because `hookspan` contains it, but hooks run
# where Cursor runs: install them there with `hookspan install`. Base images are named by tag and not by digest; see
# SECURITY.md.
FROM rust:1.95-slim-trixie AS build
WORKDIR /src
RUN apt-get update \
    && apt-get install --no-install-recommends --yes build-essential \
    && rm -rf /var/lib/apt/lists/*
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    cargo build --release --locked --package hookspan \
    && cp target/release/hookspan /hookspan

FROM debian:trixie-slim
# Root certificates for destinations on the internet. The program needs nothing else.
RUN apt-get update \
    && apt-get install --no-install-recommends --yes ca-certificates \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 1000 --create-home --shell /usr/sbin/nologin hookspan \
    && install --directory --owner=hookspan --group=hookspan --mode=0700 /state
COPY --from=build /hookspan /usr/local/bin/hookspan
USER 1000:1000
ENV HOOKSPAN_DIR=/state
VOLUME ["/state"]
EXPOSE 4329
STOPSIGNAL SIGTERM
ENTRYPOINT ["hookspan"]
# Without TLS, because only the host may reach the port: publish it on 127.0.0.1, or put a proxy with TLS in front of
# it.
CMD ["serve", "--listen", "0.0.0.0:4329", "--insecure"]
