# The dashboard with its database in /var/lib/goodput: see docs/operate/container.md.
# To build the same image again, name the base by its digest: --build-arg BASE=python:3.13-slim@sha256:...
ARG BASE=python:3.13-slim
FROM ${BASE} AS build
RUN pip install --no-cache-dir uv==0.13.9
WORKDIR /src
COPY pyproject.toml uv.lock README.md LICENSE ./
COPY app app
COPY ingest ingest
COPY queries queries
COPY sample_data sample_data
COPY docs docs
# extras such as lake or ray, separated by commas
ARG EXTRAS=""
# the versions of uv.lock, their hashes checked; compiled, since the root file system may be read-only
ENV UV_PROJECT_ENVIRONMENT=/opt/goodput UV_PYTHON_DOWNLOADS=never
SHELL ["/bin/bash", "-c"]
RUN uv sync --locked --no-cache --no-default-groups --no-editable --compile-bytecode --link-mode copy \
    ${EXTRAS:+--extra ${EXTRAS//,/ --extra }}

FROM ${BASE}
LABEL org.opencontainers.image.title="Goodput" \
    org.opencontainers.image.description="Where every GPU-hour of a cluster went" \
    org.opencontainers.image.licenses="Apache-2.0"
# a build of the ledger allocates many small pieces: jemalloc takes less time for them
# versions are not pinned, since Debian keeps no older ones
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends libjemalloc2 \
    && rm -rf /var/lib/apt/lists/* \
    && groupadd --gid 10001 goodput \
    && useradd --uid 10001 --gid 10001 --create-home --home-dir /var/lib/goodput goodput
COPY --from=build /opt/goodput /opt/goodput
# freed memory returns to the system after ten seconds, as in deploy/systemd/goodput.service
ENV PATH=/opt/goodput/bin:$PATH \
    LD_PRELOAD=libjemalloc.so.2 \
    _RJEM_MALLOC_CONF=background_thread:true,dirty_decay_ms:10000,muzzy_decay_ms:10000 \
    DUCKDB_JE_MALLOC_CONF=background_thread:true,dirty_decay_ms:10000,muzzy_decay_ms:10000
# goodput; numbers, so that a host can tell that it is not root
USER 10001:10001
WORKDIR /var/lib/goodput
VOLUME /var/lib/goodput
EXPOSE 8501
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8501/healthz', timeout=8)"]
# without [access] nobody signs in: publish the port to this machine only
CMD ["goodput", "serve", "--address", "0.0.0.0", "--port", "8501", "--insecure"]
