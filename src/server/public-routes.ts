import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Failures, ServerLog } from './http/problems.ts'
import { type MirrorOptions, createMirror } from './feeds/routes.ts'
import { FEEDS_ROOT } from '../base/domain/feed-paths.ts'

/** What the public paths are answered from. */
interface PublicParts extends MirrorOptions {
  readonly failures: Failures
  readonly dataDir: string
  readonly log: ServerLog | null
  readonly now: () => number
}

/** Paths that are read without a key. */
interface PublicPaths {
  /** Answers a request for one of its paths; false when it is for another. */
  answer(request: IncomingMessage, response: ServerResponse): boolean
  /** Called after the served snapshot was moved. */
  refresh(): void
  close(): void
}

/** Makes further public paths, beside upstream's feeds. */
export type FurtherPaths = (parts: PublicParts) => PublicPaths

/** Puts the mirror of the feeds and the further paths together. */
export function createPublicSide(parts: PublicParts, further: FurtherPaths | undefined): PublicPaths {
  const mirror = createMirror(parts)
  const more = further?.(parts)
  return {
    answer(request, response) {
      if (request.url?.startsWith(FEEDS_ROOT) !== true) return more?.answer(request, response) ?? false
      mirror(request, response)
      return true
    },
    refresh: () => more?.refresh(),
    close: () => more?.close(),
  }
}
