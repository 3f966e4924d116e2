import type { LoadedConfig } from '../config/load.ts'
import type { Config } from '../config/schema.ts'
import { MirrorError } from '../base/errors.ts'
import { VERSION } from '../base/version.ts'
import { SOURCES, SWITCHES, type SourceName, activeSources, isPrivateSource, isReader } from '../base/domain/sources.ts'
import { NEW_DATABASE } from '../store/database/faults.ts'
import { describeMissing } from '../store/database/unread.ts'
import { type Writes, openWrites } from '../store/writes.ts'
import type { Progress } from '../sync/context.ts'
import { type Runner, createRunner } from '../sync/runner.ts'
import { createUpstream } from '../upstream/surfaces.ts'
import { note, stoppable, warn } from './context.ts'
import { inTurn } from './own-turn.ts'
import type { Feature } from '../daemon/feature.ts'

/**
 * Checks source names given on the command line; none means all that the settings ask for. Throws `usage`, and `config`
 * for a source that the settings leave out.
 */
export function parseSources(names: readonly string[], config: Config): SourceName[] {
  const unknown = names.filter((name) => !SOURCES.some((source) => source === name))
  if (unknown.length > 0) {
    const known = SOURCES.join(', ')
    throw new MirrorError('usage', `unknown source ${unknown.join(', ')}; the sources are: ${known}`)
  }
  const active = activeSources(config)
  if (names.length === 0) return active
  const named = SOURCES.filter((source) => names.includes(source))
  const off = named.find((source) => !active.includes(source))
  if (off === undefined) return named
  const why = isPrivateSource(off) ? `: ${SWITCHES[off]}` : ''
  throw new MirrorError('config', `the source ${off} is switched off${why}`)
}

/** Throws `config` for a reader of a fleet: what it fetched itself would be replaced by the next generation, and never served. */
export function refuseReader(config: Pick<Config, 'fleet'>): void {
  if (!isReader(config)) return
  throw new MirrorError(
    'config',
    'fleet.role: reader: this mirror gets its data from fleet.url and never asks upstream. Run the command on the mirror that leads ' +
      '("patchmirror fleet status" names it)',
  )
}

/** Warns where the database was lost, before an empty one is made in its place. */
function warnOfNew(dataDir: string): void {
  const missing = describeMissing(dataDir)
  if (missing === null) return
  const back =
    'If it was moved, put it back in place of the new one; else restore a backup ("patchmirror restore FILE")'
  warn(`${missing}. A new one is made, and ${NEW_DATABASE}. ${back}`)
}

/**
 * Calls `work` with a runner of this process, stopped by a signal: a run in progress then ends without a
 * commit, and its row records that.
 */
export async function withRunner<T>(
  { config }: LoadedConfig,
  features: readonly Feature[],
  onProgress: (progress: Progress) => void,
  work: (runner: Runner, store: Writes) => Promise<T>,
): Promise<T> {
  refuseReader(config)
  for (const feature of features) await (await feature.commands?.())?.refuseRun?.(config)
  return stoppable(async (signal) => {
    warnOfNew(config.data.dir)
    const store = openWrites(config.data.dir)
    const upstream = createUpstream({ config, version: VERSION, now: Date.now, warn })
    try {
      const runner = createRunner({ config, store, upstream: () => upstream, now: Date.now, signal, onProgress })
      const wait = { config, store, signal, say: note }
      const inOrder: Runner = {
        run: (request) => inTurn(wait, request.dryRun !== true, () => runner.run(request)),
      }
      return await work(inOrder, store)
    } finally {
      await upstream.close()
      store.close()
    }
  })
}
