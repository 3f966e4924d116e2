import { parentPort, workerData } from 'node:worker_threads'
import type { PinRequest } from '../../server/reading/request.ts'
import { sha256Hex } from '../../base/digest.ts'
import { MirrorError } from '../../base/errors.ts'
import { openThreadReads } from '../../store/reads.ts'
import { answerCalls } from '../../base/threads/calls.ts'
import { collectWhenIdle } from '../../base/threads/idle-memory.ts'
import { createMatcher } from './matcher.ts'
import { readInputSbom } from '../../documents/sboms/read.ts'
import type { MatchData, MatchMessage, MatchReply } from './route.ts'

/** Largest answer, bytes of its findings and of what was not judged. */
const MAX_BYTES = 32 * 2 ** 20
/** Longest time that the SBOM of one request is judged, milliseconds. */
const MAX_MS = 30_000

function main(port: NonNullable<typeof parentPort>): void {
  collectWhenIdle()
  const { config } = workerData as MatchData
  let opened: ReturnType<typeof open> | null = null
  const open = () => {
    const shortReads = openThreadReads(config.data.dir)
    return { shortReads, matcher: createMatcher(config, shortReads) }
  }
  const reply = async (message: MatchMessage | PinRequest): Promise<MatchReply> => {
    const { shortReads, matcher } = (opened ??= open())
    if ('pin' in message) {
      shortReads.repin(message.pin)
      return { moved: true }
    }
    const { now, served, catalog, distro } = message
    const check = createLimit()
    const bytes = Buffer.from(message.body.buffer)
    const sbom = { ...readInputSbom(bytes), digest: sha256Hex(bytes) }
    const request = { now, served, catalog, check, distro, maxBytes: MAX_BYTES }
    const result = await matcher.match(sbom, request)
    const { id, asOf, stale } = result.snapshot
    const body = new TextEncoder().encode(JSON.stringify(result))
    return { body, snapshot: { id, asOf, stale } }
  }
  answerCalls(port, reply)
}

/** Creates the check that ends the work when it takes too long. */
function createLimit(): () => void {
  const until = performance.now() + MAX_MS
  return () => {
    if (performance.now() > until)
      throw new MirrorError(
        'bad_request',
        `the SBOM takes longer than ${MAX_MS / 1000} seconds to judge: split it, or use "patchmirror match"`,
      )
  }
}

if (parentPort !== null) main(parentPort)
