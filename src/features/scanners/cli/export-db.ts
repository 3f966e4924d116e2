import { resolve } from 'node:path'
import { MirrorError } from '../../../base/errors.ts'
import { whyWithheld } from '../../../store/runs/rejected.ts'
import { type Views, openViews } from '../store/reads.ts'
import { generationDir, readCurrentViews } from '../store/generations.ts'
import { DATABASE_KINDS, type ExportDbReport, exportDb } from '../views/export-db.ts'
import { derivedVendors } from '../views/osv/ecosystems.ts'
import { isDamaged } from '../views/check.ts'
import { performWaiting } from '../views/task.ts'
import { describeOsvScope, parseScopeText } from '../../../base/domain/osv-scope.ts'
import { describeMissing, missingOf } from '../../../server/snapshot/missing.ts'
import { readOrigin } from '../../../server/http/origin.ts'
import { createStaleRule, refuseStale } from '../../../server/snapshot/stale.ts'
import type { Config } from '../../../config/schema.ts'
import { withReads } from '../../../store/reads.ts'
import { type GlobalOptions, firstStep, print, settings, warn } from '../../../cli/context.ts'
import { visible } from '../../../cli/output.ts'

/** Options of `patchmirror export-db`. */
interface ExportDbOptions extends GlobalOptions {
  ecosystem?: string[]
  json?: boolean
}

/** `patchmirror export-db osv-scanner|renovate DIR`: the databases of osv-scanner and osv-scalibr, or of osv-offline, for use without a network. */
export async function exportDbCommand(format: string, dir: string, options: ExportDbOptions): Promise<number> {
  const kind = DATABASE_KINDS.find((one) => one === format)
  if (kind === undefined)
    throw new MirrorError('usage', `unknown database ${format}; there are: ${DATABASE_KINDS.join(', ')}`)
  const { config } = settings(options, false, [])
  const target = resolve(dir)
  const vendors = derivedVendors(config.views)
  refuseOld(config)
  await makeViews(config.data.dir, vendors, false)
  let views = openSound(config.data.dir)
  if (views === null) {
    await makeViews(config.data.dir, vendors, true)
    views = openSound(config.data.dir)
  }
  if (views === null) throw new MirrorError('not_ready', `nothing is mirrored yet: ${firstStep(config)}`)
  try {
    const report = exportDb(views, target, options.ecosystem ?? [], kind)
    print(options.json === true ? JSON.stringify(report, null, 2) : describe(report, target))
    for (const doubt of doubtsOf(config, views.info.snapshot)) warn(doubt)
    return 0
  } finally {
    views.close()
  }
}

/** Throws `stale` where `server.staleAction` refuses data of this age: a scan against it must fail, too. */
function refuseOld(config: Config): void {
  withReads(config.data.dir, (reads) => {
    const origin = readOrigin(reads, 'osv')
    if (origin !== null) refuseStale(createStaleRule(config, Date.now)('osv', origin))
  })
}

/** What a scan against the databases does not know: records that are missing, out of scope, or withheld. */
function doubtsOf({ data }: Config, snapshot: string): string[] {
  const doubts = withReads(data.dir, (reads) => {
    const scope = parseScopeText(reads.snapshots.readSnapshot('osv')?.scope ?? null)
    return [
      describeMissing('osv', missingOf(reads, 'osv', snapshot)),
      scope === null ? null : `the mirror has only a part of the records: ${describeOsvScope(scope)}`,
      whyWithheld(reads, 'osv'),
    ]
  })
  return (doubts ?? []).filter((doubt) => doubt !== null)
}

/** Makes the views of the newest snapshot. Waits for another process that makes them just now, as a daemon does after a sync. */
export async function makeViews(dataDir: string, vendors: readonly string[], rebuild: boolean): Promise<void> {
  await performWaiting({ dataDir, kind: 'osv', vendors, rebuild })
}

/** Opens the views in use; null when there are none, or damaged ones. */
export function openSound(dataDir: string): Views | null {
  const current = readCurrentViews(dataDir, 'osv')
  if (current === null) return null
  const folder = generationDir(dataDir, current.name)
  try {
    return isDamaged(folder) ? null : openViews(folder)
  } catch (error) {
    if (error instanceof MirrorError && error.code === 'corrupt') return null
    throw error
  }
}

function describe({ written, kept, removed, skipped }: ExportDbReport, target: string): string {
  const lines = [
    ...written.map((path) => `written  ${path}`),
    ...removed.map((path) => `removed  ${path}`),
    ...skipped.map((name) => `left out ${JSON.stringify(name)}: its name is no folder's`),
    `${target}: ${written.length} written, ${kept} as they were, ${removed.length} removed`,
  ]
  return lines.map(visible).join('\n')
}
