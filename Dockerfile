# Two stages: the first has what building needs, the second only what running needs.
FROM node:24-slim AS build
WORKDIR /app
COPY package.json package-lock.json ./
# The image brings its own Node, so the `node` package that serves developers is left out.
RUN npm ci --ignore-scripts --omit=optional
COPY tsconfig.json tsconfig.build.json ./
COPY src ./src
COPY config ./config
RUN npm run build

FROM build AS dependencies
# better-sqlite3 ships its compiled library in the package; nothing is compiled here.
RUN npm ci --omit=dev --ignore-scripts

FROM node:24-slim
# jemalloc returns freed memory to the system after a tenth of a second, by a thread of its own where the program's are idle; glibc keeps most of what a
# first sync frees. Node's threads start without its snapshot, of which each would have a copy: 7 MB less for each, up to 10 ms more for its start.
RUN apt-get update && apt-get install -y --no-install-recommends libjemalloc2 && rm -rf /var/lib/apt/lists/*
ENV NODE_ENV=production \
    LD_PRELOAD=libjemalloc.so.2 \
    NODE_OPTIONS=--no-node-snapshot \
    MALLOC_CONF=background_thread:true,narenas:2,dirty_decay_ms:100,muzzy_decay_ms:0,lg_tcache_max:12 \
    PATCHMIRROR_DATA_DIR=/data \
    PATCHMIRROR_SERVER_LISTEN=0.0.0.0:8080
WORKDIR /app
COPY --from=dependencies /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
COPY package.json LICENSE CHANGELOG.md ./
COPY config ./config
RUN mkdir /data && chown node:node /data
USER node
VOLUME /data
EXPOSE 8080
HEALTHCHECK --interval=30s --timeout=6s --start-period=20s \
  CMD ["node", "--node-snapshot", "/app/dist/main.js", "status", "--live"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["node", "/app/dist/main.js"]
CMD ["serve"]
