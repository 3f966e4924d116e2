import { hkdfSync } from 'node:crypto'
import { fileMark } from '../../base/files.ts'
import { readLinkSecretFile } from '../../base/domain/link-secret-file.ts'
import type { ServerLog } from '../http/problems.ts'

/** Returns the secrets of signed links: the first signs, each of them opens. */
export type LinkSecrets = () => readonly [Uint8Array, ...Uint8Array[]]

/** How often the file is looked at, milliseconds. */
const LOOK_MS = 1000

/**
 * Follows the file of `server.linkSecretFile`, which all readers of a fleet have: its first secret signs, each of them and
 * this mirror's own open, so that readers may change one after the other. A file that cannot be used is
 * logged, and the secrets in use stay. Without a file this mirror's own secret does both.
 */
export function createLinkSecrets(
  file: string | null,
  own: Buffer,
  { log, clock = () => performance.now() }: { log: ServerLog | null; clock?: () => number },
): LinkSecrets {
  const last = { secrets: [own] as readonly [Uint8Array, ...Uint8Array[]], mark: 'never seen', fault: '' }
  let lookedAt = -Infinity
  const look = (path: string): void => {
    const mark = fileMark(path)
    if (mark === last.mark) return
    last.mark = mark
    const [first, ...others] = secretsIn(path, warn)
    if (first === undefined) return
    if (last.secrets.length > 1) log?.info({}, 'server.linkSecretFile was read again: it changed')
    last.secrets = [first, ...others, own]
    last.fault = ''
  }
  const warn = (fault: string): void => {
    if (fault !== last.fault) log?.warn({}, `server.linkSecretFile ${fault}; the link secrets in use stay`)
    last.fault = fault
  }
  return () => {
    if (file === null || clock() - lookedAt < LOOK_MS) return last.secrets
    lookedAt = clock()
    look(file)
    return last.secrets
  }
}

function secretsIn(path: string, warn: (fault: string) => void): Buffer[] {
  const lines = readLinkSecretFile(path)
  if (typeof lines !== 'string') return lines.map(derive)
  warn(lines)
  return []
}

/** Derives the key, as the own secret's is: the text of a file may serve other purposes too. */
function derive(secret: string): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, '', 'patchmirror shared links', 32))
}
