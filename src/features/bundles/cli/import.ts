import { join } from 'node:path'
import { type KeyTrust, trustOf } from '../format/keys.ts'
import type { Manifest } from '../format/manifest.ts'
import { groupFiles } from '../format/split-names.ts'
import { type Failed, orFailed } from './files.ts'
import type { ImportOutcome, ImportTask } from '../import/import.worker.ts'
import { type Bundle, openBundle } from '../import/open.ts'
import { isThin } from '../thin/format.ts'
import { judgeThin } from '../thin/whole.ts'
import { type CallAs, type NameFiles, withBundleFiles } from './artifacts.ts'
import type { ImportReport, SourceReport } from '../import/types.ts'
import { importInThread } from '../tasks.ts'
import { readReference } from '../../../config/kinds/oci-reference.ts'
import type { Config } from '../../../config/schema.ts'
import { MirrorError } from '../../../base/errors.ts'
import { makeFolder } from '../../../base/files.ts'
import type { OnProgress } from '../../../base/domain/progress.ts'
import { namingFaults } from '../../../store/database/faults.ts'
import { WITHHELD_ABOVE } from '../../../store/runs/rejected.ts'
import { type Temporary, makeTemporary } from '../../../store/temporary.ts'
import { goOffline } from '../../../base/offline.ts'
import { counted } from '../../../base/text.ts'
import type { SourceName } from '../../../base/domain/sources.ts'
import { type GlobalOptions, print, printJson, settings } from '../../../cli/context.ts'
import { createBundleProgress } from '../../../cli/progress.ts'

/** Options of `patchmirror bundle import`. */
interface ImportCommandOptions extends GlobalOptions {
  dryRun?: boolean
  allowRollback?: boolean
  allowUnsigned?: boolean
  again?: boolean
  offline?: boolean
  json?: boolean
}

/** The result of one bundle of several. `after`: a dry run did not check it, because another given bundle precedes it. */
type Outcome = { file: string } & (ImportOutcome | { after: number } | Failed)

/** Files of one bundle, and its manifest's own statements. */
interface Opened {
  files: readonly string[]
  manifest: Manifest
}

/**
 * `patchmirror bundle import FILE…`: exits with 0 when all is stored, 1 when a bundle was refused. Several bundles are imported in
 * the order of their sequence. A dry run checks each against the state stored now, and reports which it could not check.
 */
export async function importCommand(given: readonly string[], options: ImportCommandOptions): Promise<number> {
  if (options.offline === true) goOfflineFor(given)
  const { config } = settings(options, false, ['bundle.trustedKeys'])
  if (config.fleet.url !== null && options.dryRun !== true)
    throw new MirrorError(
      'usage',
      'fleet.url: this mirror gets its data from its fleet, and a bundle from elsewhere would break the order of generations. ' +
        'Import it where no fleet is set, or unset fleet.url',
    )
  return withBundleFiles(given, config, { json: options.json === true }, (files, named, callAs) =>
    importFiles(groupFiles(files), { config, options, named, callAs }),
  )
}

/** Forbids connections. Throws `usage` where a bundle is in a registry. */
function goOfflineFor(given: readonly string[]): void {
  const remote = given.find((one) => readReference(one)?.kind === 'registry')
  if (remote !== undefined)
    throw new MirrorError(
      'usage',
      `--offline forbids connections, but ${remote} is in a registry: leave --offline out, or copy it to an image layout first`,
    )
  goOffline()
}

/** What an import of several bundles needs. */
interface ImportContext {
  readonly config: Config
  readonly options: ImportCommandOptions
  readonly named: NameFiles
  readonly callAs: CallAs
}

async function importFiles(groups: readonly string[][], context: ImportContext): Promise<number> {
  const { options, named } = context
  const { opened, outcomes } = await inOrder(groups, context)
  const display = createBundleProgress(options.json === true)
  try {
    const pretended: Manifest[] = []
    for (const { files: group, manifest } of opened) {
      const outcome = await orFailed(groups.length, () => importOrRead(group, context, display.show))
      const before = isGap(outcome) ? leadingTo(manifest, pretended) : null
      const file = named(group[0] ?? '')
      outcomes.push(before === null ? { file, ...outcome } : { file, after: before.sequence })
      const isWanted = 'report' in outcome && outcome.report.outcome === 'dry run'
      if (isWanted || before !== null) pretended.push(manifest)
    }
  } finally {
    display.finish()
  }
  const shown = outcomes.map((one) => ('message' in one ? { ...one, message: named(one.message) } : one))
  if (options.json === true) printJson(shown)
  else for (const outcome of shown) printOutcome(outcome)
  return outcomes.every((outcome) => !('refused' in outcome) && !('failed' in outcome)) ? 0 : 1
}

/** A delta whose base is missing is read all the same: who brings the base is to know whether the delta is sound. */
async function importOrRead(
  group: readonly string[],
  context: ImportContext,
  show: OnProgress,
): Promise<ImportOutcome> {
  const outcome = await importOne(group, context, show)
  if (!isGap(outcome) || isThinGroup(group)) return outcome
  const { config, options } = context
  const bundle = await openBundle(
    group,
    trustOf(config, { allowUnsigned: options.allowUnsigned === true, now: Date.now }),
  )
  await bundle
    .verify((done, total) => show({ phase: 'verify', unit: 'bytes', done, total }))
    .finally(() => bundle.close())
  return outcome
}

/** A thin bundle becomes a whole one only now: those before it may bring the state that it is for. */
async function importOne(group: readonly string[], context: ImportContext, show: OnProgress): Promise<ImportOutcome> {
  const { config, options, callAs } = context
  const [file = ''] = group
  if (!isThinGroup(group)) return importInThread(taskOf(group, null, context), show)
  const temporary = stagedIn(config.data.dir)
  const whole = join(temporary.folder, 'bundle.zip')
  callAs(whole, file)
  return importInThread(taskOf(group, whole, { config, options }), show).finally(() => temporary.remove())
}

function isThinGroup(group: readonly string[]): boolean {
  const [file = ''] = group
  return group.length === 1 && isThin(file)
}

function stagedIn(dataDir: string): Temporary {
  return namingFaults(dataDir, () => {
    makeFolder(dataDir)
    return makeTemporary(dataDir)
  })
}

function isGap(outcome: ImportOutcome | Failed): boolean {
  return 'refused' in outcome && outcome.refused.kind === 'base'
}

/** The one of those that would be imported before, which a delta goes with: with that in place it would be taken. */
function leadingTo({ kind, sources }: Manifest, before: readonly Manifest[]): Manifest | null {
  if (kind === 'full') return null
  const fits = (one: Manifest): boolean =>
    Object.entries(sources).every(([name, source]) => {
      const digest = one.sources[name as SourceName]?.digest
      return digest !== undefined && (digest === source.digest || source.bases.includes(digest))
    })
  return before.findLast(fits) ?? null
}

function taskOf(
  files: readonly string[],
  whole: string | null,
  { config: { data, bundle }, options }: Pick<ImportContext, 'config' | 'options'>,
): ImportTask {
  const { dryRun, allowRollback, allowUnsigned, offline, again } = options
  return {
    config: { data, bundle },
    files,
    whole,
    trigger: 'command',
    dryRun: dryRun === true,
    allowRollback: allowRollback === true,
    allowUnsigned: allowUnsigned === true,
    offline: offline === true,
    again: again === true,
  }
}

/**
 * Opens all of them before the first is applied, so that they are imported in the order of their sequence. One that is damaged
 * or refused takes nothing from the others: it is among the outcomes already.
 */
async function inOrder(
  groups: readonly string[][],
  { config, options: { allowUnsigned = false }, named }: ImportContext,
): Promise<{ opened: Opened[]; outcomes: Outcome[] }> {
  const trust = trustOf(config, { allowUnsigned, now: Date.now })
  const opened: Opened[] = []
  const outcomes: Outcome[] = []
  for (const group of groups) {
    const bundle = await orFailed(groups.length, () => judged(group, trust))
    if ('failed' in bundle) {
      outcomes.push({ file: named(group[0] ?? ''), ...bundle })
      continue
    }
    const { manifest, key } = bundle
    opened.push({ files: group, manifest })
    if (key === null)
      process.stderr.write(
        `patchmirror: WARNING: ${group.map(named).join(', ')} is UNSIGNED: its origin and content cannot be verified\n`,
      )
  }
  opened.sort((one, other) => one.manifest.sequence - other.manifest.sequence)
  return { opened, outcomes }
}

async function judged(group: readonly string[], trust: KeyTrust): Promise<Pick<Bundle, 'manifest' | 'key'>> {
  const [file = ''] = group
  if (isThinGroup(group)) return judgeThin(file, trust)
  const bundle = await openBundle(group, trust)
  await bundle.close()
  return bundle
}

function printOutcome(outcome: Outcome): void {
  if ('report' in outcome) print(describeReport(outcome.report))
  else if ('after' in outcome)
    print(
      `${outcome.file} was not checked in the dry run: it requires bundle ${outcome.after}, which is not imported yet`,
    )
  else if ('failed' in outcome) process.stderr.write(`patchmirror: not imported: ${outcome.message}\n`)
  else process.stderr.write(`patchmirror: ${outcome.file} is refused: ${outcome.message}\n`)
}

function describeReport(report: ImportReport): string {
  const { sequence, kind, mirror, held, key, sources, withheld } = report
  const what = `bundle ${sequence} (${kind}) of mirror ${mirror}`
  const digestLine = `digest of all that ${report.dryRun && report.outcome !== 'same' ? 'would be' : 'is'} stored: ${held}`
  const lacks = withheld.map((source) => `  ${source}: ${WITHHELD_ABOVE}`)
  if (report.outcome === 'same') {
    const done = report.dryRun ? 'a dry run, nothing was stored' : describeSame(report)
    return [`${what} is already imported: ${done}`, ...lacks, digestLine].join('\n')
  }
  const dry = 'a dry run, nothing was stored; it would be imported'
  const did = report.outcome === 'applied' ? 'imported' : dry
  const by = key === null ? 'UNSIGNED' : `signed by ${key}`
  const back = report.rollback ? '; A ROLLBACK to an older state' : ''
  const lines = sources.map(describeSource)
  return [`${what}: ${did}, ${by}${back}`, ...lines, ...lacks, digestLine].join('\n')
}

/** Says what was taken over of a bundle whose content is stored already. */
function describeSame({ rollback, renewed, kind }: ImportReport): string {
  if (rollback) return 'A ROLLBACK: numbers count from it again'
  if (renewed) return 'its date and number are taken over'
  const again = kind === 'full' ? '; "--again" reads and imports it' : ''
  return `nothing to do. Its content was not read${again}`
}

function describeSource({ source, before, after, asOf, records, changed }: SourceReport): string {
  const from = before === null ? 'nothing' : before.slice(0, 12)
  const rows = Object.entries(changed).map(([kind, { put, removed }]) => `${kind} ${put} put, ${removed} removed`)
  const counts = rows.length === 0 ? '' : `: ${rows.join('; ')}`
  return `  ${source}: ${from} → ${after.slice(0, 12)}, ${counted(records, 'record')}, as of ${asOf}${counts}`
}
