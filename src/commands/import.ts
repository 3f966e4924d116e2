import { applyBundle } from '../bundle/apply.ts'
import type { ImportReport, SourceReport } from '../bundle/import-types.ts'
import { type Bundle, openBundle } from '../bundle/open.ts'
import { groupFiles } from '../bundle/part-files.ts'
import type { OnProgress } from '../bundle/progress.ts'
import { refusalOf } from '../bundle/refusals.ts'
import { trustOf } from '../bundle/trust.ts'
import type { Config } from '../config/schema.ts'
import { messageOf } from '../errors.ts'
import { goOffline } from '../offline.ts'
import { openWrites } from '../store/writes.ts'
import { createBundleProgress } from './progress.ts'
import { type GlobalOptions, print, settings } from './settings.ts'

/** Options of `patchmirror import`. */
export interface ImportCommandOptions extends GlobalOptions {
  dryRun?: boolean
  allowRollback?: boolean
  allowUnsigned?: boolean
  offline?: boolean
  json?: boolean
}

/** What became of one bundle of several. */
type Outcome = { file: string } & ({ report: ImportReport } | { refused: string })

/**
 * `patchmirror import FILE…`: 0 when all is there, 1 when a bundle was refused. Several bundles are taken in the order of
 * their sequence, whatever order they are given in.
 */
export async function importCommand(
  files: readonly string[],
  options: ImportCommandOptions,
): Promise<number> {
  if (options.offline === true) goOffline()
  const { config } = settings(options, false)
  const display = createBundleProgress(options.json === true)
  const bundles = await openAll(files, config, options)
  try {
    const outcomes = await applyAll(bundles, config, options, display.show)
    display.finish()
    if (options.json === true) print(JSON.stringify(outcomes, null, 2))
    else for (const outcome of outcomes) print(describe(outcome))
    return outcomes.every((outcome) => 'report' in outcome) ? 0 : 1
  } finally {
    display.finish()
    for (const { bundle } of bundles) await bundle.close()
  }
}

interface Opened {
  file: string
  bundle: Bundle
}

/** All of them are opened before the first is applied: a damaged one among them is seen at once. */
async function openAll(
  files: readonly string[],
  config: Config,
  { allowUnsigned = false }: ImportCommandOptions,
): Promise<Opened[]> {
  const trust = trustOf(config, { allowUnsigned, now: Date.now })
  const opened: Opened[] = []
  try {
    for (const group of groupFiles(files)) {
      const bundle = await openBundle(group, trust)
      const file = group[0] ?? ''
      opened.push({ file, bundle })
      if (bundle.key === null)
        process.stderr.write(
          `patchmirror: WARNING: ${file} is UNSIGNED: nobody vouches for what is in it, anybody could have made it\n`,
        )
    }
  } catch (error) {
    for (const { bundle } of opened) await bundle.close()
    throw error
  }
  return opened.sort((one, other) => sequenceOf(one) - sequenceOf(other))
}

function sequenceOf({ bundle }: Opened): number {
  return bundle.manifest.sequence
}

/** One that does not go with what is held leaves the others their chance: a full one may follow a delta that does not fit. */
async function applyAll(
  bundles: readonly Opened[],
  config: Config,
  { dryRun = false, allowRollback = false }: ImportCommandOptions,
  progress: OnProgress,
): Promise<Outcome[]> {
  const store = openWrites(config.data.dir)
  const outcomes: Outcome[] = []
  try {
    for (const { file, bundle } of bundles) {
      const given = { config, store, bundle, file, dryRun, allowRollback, progress }
      try {
        const report = await applyBundle({ ...given, trigger: 'command', now: Date.now })
        outcomes.push({ file, report })
      } catch (error) {
        if (refusalOf(error) === null || bundles.length === 1) throw error
        outcomes.push({ file, refused: messageOf(error) })
      }
    }
    return outcomes
  } finally {
    store.close()
  }
}

function describe(outcome: Outcome): string {
  if ('refused' in outcome) return `${outcome.file} is refused: ${outcome.refused}`
  const { report } = outcome
  const { sequence, kind, mirror, digest, key, sources } = report
  const what = `bundle ${sequence} (${kind}) of mirror ${mirror}`
  if (report.outcome === 'same') return `${what} is already imported: nothing to do\n${digest}`
  const did = report.outcome === 'applied' ? 'imported' : 'dry run, nothing was stored; it would be'
  const by = key === null ? 'UNSIGNED' : `signed by ${key}`
  const back = report.rollback ? '; A ROLLBACK to an older state' : ''
  const lines = sources.map(describeSource)
  return [`${what}: ${did}${report.outcome === 'applied' ? '' : ' imported'}, ${by}${back}`, ...lines, digest].join('\n') // prettier-ignore
}

function describeSource({ source, before, after, asOf, records, changed }: SourceReport): string {
  const from = before === null ? 'nothing' : before.slice(0, 12)
  const rows = Object.entries(changed).map(
    ([kind, { put, removed }]) => `${kind} ${put} put, ${removed} removed`,
  )
  const told = rows.length === 0 ? '' : `: ${rows.join('; ')}`
  return `  ${source}: ${from} → ${after.slice(0, 12)}, ${records} records, as of ${asOf}${told}`
}
