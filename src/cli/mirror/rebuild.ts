import type { Feature } from '../../daemon/feature.ts'
import { renameSync, rmSync } from 'node:fs'
import type { LoadedConfig } from '../../config/load.ts'
import type { Config } from '../../config/schema.ts'
import { MirrorError, messageOf } from '../../base/errors.ts'
import { makeFolder, syncFolder } from '../../base/files.ts'
import { counted } from '../../base/text.ts'
import { toIso } from '../../base/time.ts'
import { VERSION } from '../../base/version.ts'
import { type SourceName, SOURCES, activeSources, maySync } from '../../base/domain/sources.ts'
import { acquireLock } from '../../store/database/lock.ts'
import { databasePath, openWriter } from '../../store/database/open.ts'
import { type Salvage, asideOf, beginRepair, keptAs, moveLog, putRepaired, salvageInto } from '../../store/salvage.ts'
import { repairedPath, repairingDir } from '../../store/database/unfinished.ts'
import { createUpstream } from '../../upstream/surfaces.ts'
import { print, warn } from '../context.ts'
import { createProgress } from '../progress.ts'
import { withRunner } from '../runner.ts'
import { closing } from '../../base/closing.ts'
import { withReads } from '../../store/reads.ts'
import { describe, runsExitCode } from './sync.ts'
import { boundedUpstream } from '../../upstream/bounded.ts'

/** Moves a database aside that holds nothing which this mirror cannot do without; a daemon makes a new one. */
export function moveDamaged(dataDir: string, path: string): void {
  const lock = acquireLock(dataDir, 'serve')
  try {
    const aside = asideOf(path)
    renameSync(path, aside)
    moveLog(path, aside)
    print(`the damaged ${path} is kept as ${aside}; the daemon makes a new one`)
  } finally {
    lock.release()
  }
}

/**
 * Moves a mirror.db with damaged structure aside, keeps what can be read of what nothing else brings back, and mirrors everything
 * again; without an upstream it names the bundle that is needed. Throws, with nothing changed, while the upstream does not answer.
 * Returns the exit code.
 */
export async function rebuildMirror(loaded: LoadedConfig, features: readonly Feature[]): Promise<number> {
  const { config } = loaded
  if (maySync(config)) await refuseWithoutService(loaded)
  else await refuseUnfilled(config, features)
  const lock = acquireLock(config.data.dir, 'serve')
  try {
    const kept = replaceDatabase(config)
    for (const line of describeSalvage(kept)) print(line)
    return await mirrorSources(loaded, features, activeSources(config))
  } finally {
    lock.release()
  }
}

/** Goes on with a repair that was interrupted: mirrors what is left. Returns the exit code. */
export async function continueRepair(
  loaded: LoadedConfig,
  features: readonly Feature[],
  left: readonly SourceName[],
): Promise<number> {
  print('a repair was interrupted after it had kept what could be read: it goes on')
  const { dir } = loaded.config.data
  const lock = acquireLock(dir, 'serve')
  try {
    rmSync(repairingDir(dir), { recursive: true, force: true })
    const active = activeSources(loaded.config)
    return await mirrorSources(
      loaded,
      features,
      active.filter((source) => left.includes(source)),
    )
  } finally {
    lock.release()
  }
}

async function mirrorSources(
  loaded: LoadedConfig,
  features: readonly Feature[],
  sources: readonly SourceName[],
): Promise<number> {
  return maySync(loaded.config) ? mirrorAgain(loaded, features, sources) : awaitBundle(loaded)
}

/** Longest time until the service answers, milliseconds. */
const ANSWER_MS = 30_000
const INDEX = '/external/osv/all.json'

/** Throws while the service does not answer: what can still be read is served until it can be mirrored again. */
async function refuseWithoutService({ config }: LoadedConfig): Promise<void> {
  const limits = boundedUpstream(config.upstream, ANSWER_MS)
  const upstream = createUpstream({
    config: { ...config, upstream: limits },
    version: VERSION,
    now: Date.now,
    warn,
  })
  const deadline = AbortSignal.timeout(ANSWER_MS)
  const headers = { accept: 'application/json' }
  try {
    const session = upstream.client('public').open(deadline, 'ops')
    const { body } = await session.openBody(INDEX, headers, deadline)
    for await (const _start of body) break // leaving the loop ends the body
  } catch (error) {
    const why = error instanceof MirrorError ? error.code : 'upstream_unreachable'
    throw new MirrorError(why, `${messageOf(error)}. ${UNCHANGED}`, { cause: error })
  } finally {
    await upstream.close()
  }
}

/** Does the same where a feature is to fill the mirror again. */
async function refuseUnfilled(config: Config, features: readonly Feature[]): Promise<void> {
  try {
    for (const feature of features) await (await feature.commands?.())?.refuseRepair?.(config)
  } catch (error) {
    if (!(error instanceof MirrorError)) throw error
    throw new MirrorError(error.code, `${messageOf(error)}. ${UNCHANGED}`, { cause: error })
  }
}

const UNCHANGED =
  'Nothing was repaired or moved, since nothing could be mirrored again: what can be read is served on. ' +
  'Run this command again when the service answers, or restore a backup.'

/**
 * Makes the new database beside the damaged one, then puts it in its place. A process that is killed leaves the one, or what
 * `finishReplacing` goes on with.
 */
function replaceDatabase({ data: { dir }, ...config }: Config): Salvage {
  const staging = repairingDir(dir)
  rmSync(staging, { recursive: true, force: true })
  makeFolder(staging)
  const db = openWriter(staging)
  const kept = closing(db, () => {
    const salvage = salvageInto(db, databasePath(dir), Date.now())
    beginRepair(db, sourcesToMirror(config), salvage)
    db.pragma('wal_checkpoint(TRUNCATE)')
    return salvage
  })
  renameSync(databasePath(staging), repairedPath(dir)) // from here on no process opens the damaged one
  syncFolder(staging)
  print(keptAs(putRepaired(dir)))
  return kept
}

/** Returns what a repair mirrors again; a bundle has any of them. */
function sourcesToMirror(config: Omit<Config, 'data'>): readonly SourceName[] {
  return maySync(config) ? activeSources(config) : SOURCES
}

async function mirrorAgain(
  loaded: LoadedConfig,
  features: readonly Feature[],
  sources: readonly SourceName[],
): Promise<number> {
  print(`mirroring again: ${sources.join(', ')}`)
  const display = createProgress(false)
  const reports = await withRunner(loaded, features, display.show, async (runner) => {
    const common = { kind: 'repair', trigger: 'command' } as const
    const done = []
    for (const source of sources) done.push(await runner.run({ ...common, source }))
    return done
  })
  display.finish()
  for (const report of reports) print(describe(report))
  return runsExitCode(reports)
}

/** Names what fills a mirror without upstream again. Nothing is mirrored until then, which is exit code 3. */
function awaitBundle({ config: { bundle, data, fleet } }: LoadedConfig): number {
  if (fleet.url !== null) {
    print('start the daemon: it takes everything from its fleet (fleet.url)')
    return 3
  }
  const last = withReads(data.dir, ({ ledger }) => ledger.readLastImport())
  const which =
    last === null
      ? 'a full bundle'
      : `a full bundle of mirror ${last.mirror}, number ${last.sequence} or later (number ${last.sequence} is as of ${toIso(last.asOf)})`
  const where =
    bundle.inbox === null
      ? 'patchmirror bundle import FILE'
      : `bring it to ${bundle.inbox} (bundle.inbox) and start the daemon, or patchmirror bundle import FILE`
  print(`there is no upstream here: this mirror waits for ${which}`)
  print(`  ${where}`)
  print('  the mirror that has an upstream makes it: patchmirror bundle export FILE')
  return 3
}

function describeSalvage(salvage: Salvage): string[] {
  const { keys, secret, identity, bundles, dates, changes } = salvage
  const kept = [
    ...(keys === 'none' ? [] : [counted(salvage.keyCount, 'local key')]),
    ...(secret ? ['the secret that signs links'] : []),
    ...(identity ? ['the identity of this mirror in bundles'] : []),
    ...(dates === 'none' ? [] : [DATES[dates]]),
    ...(changes === 'none' ? [] : [CHANGES[changes]]),
  ]
  const begun = [
    'the runs and their decisions',
    'superseded versions of records',
    'changes of findings',
    ...(identity ? [] : ['the identity of this mirror in bundles']),
    ...(dates === 'whole' ? [] : ['the other dates of records']),
    ...(changes === 'whole' ? [] : [LOST_CHANGES[changes]]),
  ]
  const list = new Intl.ListFormat('en-GB')
  return [
    kept.length === 0 ? 'nothing of the old database could be read' : `kept: ${list.format(kept)}`,
    ...lostKeys(salvage),
    ...(secret ? [] : ['the secret of links could not be read: links given out before do not open']),
    ...(bundles === 'whole' ? [] : [LOST_BUNDLES[bundles]]),
    `begun again: ${list.format(begun)}`,
  ]
}

const DATES = { whole: 'the dates of records', part: 'the dates of some records' }
const CHANGES = { whole: 'the change log', part: 'a part of the change log' }
const LOST_CHANGES = { none: 'the change log', part: 'the rest of the change log' }
const LOST_BUNDLES = {
  none: 'which bundles were exported and imported could not be read',
  part: 'some of the bundles that were exported and imported could not be read',
}

function lostKeys({ keys }: Salvage): string[] {
  if (keys === 'whole') return []
  const which = keys === 'part' ? 'some local keys could not be read' : 'no local key could be read'
  return [`${which}: for those that do not open any more, make new ones ("patchmirror keys create")`]
}
