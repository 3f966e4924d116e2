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
# Two arenas, whose free ends go back to the system: threads that end leave less memory behind in the allocator.
ENV NODE_ENV=production \
    MALLOC_ARENA_MAX=2 \
    MALLOC_TRIM_THRESHOLD_=131072 \
    MALLOC_MMAP_THRESHOLD_=2097152 \
    PATCHMIRROR_DATA_DIR=/data \
    PATCHMIRROR_SERVER_HOST=0.0.0.0
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
  CMD ["node", "/app/dist/main.js", "health"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["node", "/app/dist/main.js"]
CMD ["serve"]
