import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Config } from '../config/schema.ts'
import { createBucket } from './bucket.ts'
import type { ServerLog } from './failure.ts'
import { type MirrorOptions, createMirror } from './mirror.ts'
import { MIRRORED } from './paths.ts'
import { type ViewsMaker, createViewsInUse } from './views.ts'

/** What the server was given that the public paths depend on. */
export interface PublicSettings {
  readonly config: Pick<Config, 'views'>
  readonly dataDir: string
  readonly log: ServerLog | null
  readonly viewsMaker?: ViewsMaker
}

/** Everything that is read without a key: upstream's feeds, and what is made of them for scanners. */
export interface PublicSide {
  /** Answers a request for one of its paths; false when it is for another. */
  answer(request: IncomingMessage, response: ServerResponse): boolean
  /** Takes the newest views; after the moment was moved. */
  refresh(): void
  close(): void
}

/** Puts the mirror of the feeds and the bucket together. */
export function createPublicSide(parts: MirrorOptions, settings: PublicSettings): PublicSide {
  const { dataDir, config, log, viewsMaker } = settings
  const mirror = createMirror(parts)
  const views = createViewsInUse(dataDir, viewsMaker ?? null, log)
  const bucket = createBucket({ ...parts, views, enabled: config.views.bucket })
  return {
    answer(request, response) {
      if (request.url?.startsWith(MIRRORED) !== true) return bucket(request, response)
      mirror(request, response)
      return true
    },
    refresh: () => views.refresh(),
    close: () => views.close(),
  }
}
