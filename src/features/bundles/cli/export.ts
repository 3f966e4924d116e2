import { exportInThread } from '../tasks.ts'
import type { ExportTask, ExportTaskReport } from '../export/export.worker.ts'
import type { ArtifactTarget } from '../oci/artifacts.ts'
import { readReference, writeReference } from '../../../config/kinds/oci-reference.ts'
import type { OnProgress } from '../../../base/domain/progress.ts'
import { CARRIED } from '../format/carried.ts'
import { DOUBTS_COUNT } from '../format/doubts.ts'
import { WITHHELD_COUNT, isWithheld } from '../format/withheld.ts'
import { manifestSources } from '../import/admission.ts'
import { readSigningKeys } from '../format/keys.ts'
import { shownBytes } from '../../../base/disk-space.ts'
import { parseBytes } from '../../../config/kinds/bytes.ts'
import type { Config } from '../../../config/schema.ts'
import { MirrorError, whyUnreadable } from '../../../base/errors.ts'
import { counted } from '../../../base/text.ts'
import { readSummary } from '../export/summary.ts'
import { VERSION } from '../../../base/version.ts'
import { namedSources, refuseUnwritable } from './files.ts'
import { createBundleProgress } from '../../../cli/progress.ts'
import { type GlobalOptions, print, printJson, settings } from '../../../cli/context.ts'
import { readNamedFile } from '../../../base/files.ts'

/** Options of `patchmirror bundle export`. */
interface ExportCommandOptions extends GlobalOptions {
  since?: string
  for?: string
  sources?: string
  split?: string
  expires?: string
  force?: boolean
  thin?: boolean
  unsigned?: boolean
  json?: boolean
}

const LARGEST_NEED = 512 * 2 ** 20
const SMALLEST_PART = 64 * 1024

/** `patchmirror bundle export FILE`: 0 when the bundle is there and verified, 3 when a source in it was not whole. */
export async function exportCommand(path: string, options: ExportCommandOptions): Promise<number> {
  const files = ['catalog.trustRoot', ...(options.unsigned === true ? [] : ['bundle.signingKeys'])]
  const { config } = settings(options, false, files)
  if (options.since !== undefined && options.for !== undefined)
    throw new MirrorError('usage', 'give --since or --for, not both')
  const reference = readReference(path)
  if (options.thin === true) refuseThin(options)
  if (reference === null) refuseUnwritable(path)
  else refuseFileOptions(options)
  const keyFiles = signingKeys(config, options.unsigned === true)
  // It has network code, and files need none.
  const target =
    reference === null ? null : await (await import('../oci/artifacts.ts')).openArtifactTarget(reference, config)
  const display = createBundleProgress(options.json === true)
  const task = {
    dataDir: config.data.dir,
    path: target?.path ?? path,
    sources: options.sources === undefined ? null : namedSources(options.sources),
    since: options.since ?? null,
    need: options.for === undefined ? null : await readNeed(options.for),
    split: options.split === undefined ? null : partSize(options.split),
    force: options.force === true,
    thin: options.thin === true,
    keyFiles,
    trustRoot: config.catalog.trustRoot,
    expireDays: options.expires === undefined ? config.bundle.expireDays : days(options.expires),
    keep: config.bundle.keep,
    spared: [],
    program: `patchmirror/${VERSION}`,
  }
  const report = await exportTo(
    { target, place: reference === null ? path : writeReference(reference) },
    task,
    display.show,
  ).finally(async () => {
    display.finish()
    await target?.close()
  })
  if (options.json === true) printJson(shown(report))
  else for (const line of describeExport(report)) print(line)
  if (keyFiles.length === 0)
    process.stderr.write(
      'patchmirror: warning: the bundle is NOT SIGNED: its content can be changed unnoticed on the way. Sign it: set bundle.signingKeys\n',
    )
  return report.partial.length > 0 ? 3 : 0
}

/** What was exported; `artifact`: the digest of the artifact that the file became. */
type Exported = ExportTaskReport & { readonly artifact?: string }

/** Exports to a file, or to the artifact that a file becomes. `place`: how it is named, with its tag. */
async function exportTo(
  { target, place }: { readonly target: ArtifactTarget | null; readonly place: string },
  task: ExportTask,
  onProgress: OnProgress,
): Promise<Exported> {
  const report = await exportInThread(task, onProgress)
  if (target === null) return report
  return { ...report, files: [place], artifact: await target.publish(report.manifest, onProgress) }
}

/** Throws `usage` for options that an artifact does not have. */
function refuseFileOptions({ split, force, thin }: ExportCommandOptions): void {
  if (thin === true) throw new MirrorError('usage', '--thin makes files: an artifact is a whole bundle')
  if (split !== undefined) throw new MirrorError('usage', '--split cuts files: an artifact has one')
  if (force === true) throw new MirrorError('usage', '--force replaces files: a tag always names the newest artifact')
}

/** Files of keys, each of which can be read: that is known before anything is done. */
function signingKeys({ bundle }: Config, unsigned: boolean): readonly string[] {
  if (unsigned) return []
  if (bundle.signingKeys.length === 0)
    throw new MirrorError(
      'config',
      'there is no key to sign with: "patchmirror bundle keygen FILE" makes one, bundle.signingKeys ' +
        '(PATCHMIRROR_BUNDLE_SIGNING_KEYS) names it. --unsigned exports without a signature',
    )
  readSigningKeys(bundle.signingKeys) // before anything is written
  return bundle.signingKeys
}

/** Throws `usage` for what a thin bundle cannot be. */
function refuseThin({ since, for: need, split }: ExportCommandOptions): void {
  if (split !== undefined)
    throw new MirrorError('usage', '--split cuts large files, and --thin makes small ones: leave one out')
  if (since === undefined && need === undefined)
    throw new MirrorError(
      'usage',
      '--thin needs the state that the target mirror has: give it by --since, or by --for with the file that "patchmirror bundle need FILE" writes there',
    )
}

function partSize(text: string): number {
  const size = parseBytes(text)
  if (size !== null && size >= SMALLEST_PART) return size
  throw new MirrorError('usage', `--split takes a size from 64 KiB on, such as "4 GB", not ${text}`)
}

function days(text: string): number {
  if (/^\d{1,5}$/.test(text)) return Number(text)
  throw new MirrorError('usage', `--expires takes a whole number of days from 0 to 99999, not ${text}`)
}

async function readNeed(path: string): Promise<Buffer> {
  try {
    const need = readNamedFile(path, LARGEST_NEED)
    await readSummary([need])
    return need
  } catch (error) {
    throw new MirrorError('usage', `the need file ${path} cannot be read: ${whyUnreadable(error)}`)
  }
}

function describeExport({ manifest, files, bytes, partial, artifact }: Exported): string[] {
  const { kind, sequence, base, expiresAt, keys } = manifest
  const since = base === null ? '' : ` since ${base.sequence ?? 'the state in the need file'}`
  const [first = '', ...more] = files
  const counts = Object.entries(manifest.counts).filter(
    ([kind]) =>
      !CARRIED.some((one) => one === kind) && !kind.startsWith(DOUBTS_COUNT) && !kind.startsWith(WITHHELD_COUNT),
  )
  const rows = counts.map(([, count]) => count)
  const put = rows.reduce((sum, count) => sum + (count?.put ?? 0), 0)
  const removed = rows.reduce((sum, count) => sum + (count?.removed ?? 0), 0)
  return [
    `bundle ${sequence} (${kind}${since}): ${counted(put, 'row')} put, ${removed} removed, ${shownBytes(bytes)}, verified`,
    `  ${first}${more.length > 0 ? ` and ${counted(more.length, 'more file')}: carry all of them` : ''}`,
    ...(artifact === undefined ? [] : [`  artifact ${artifact}`]),
    `  signed by ${keys.length === 0 ? 'NOBODY' : keys.join(', ')}; ${expiresAt === null ? 'never expires' : `valid until ${expiresAt}`}`,
    ...manifestSources(manifest).flatMap(([source]) =>
      isWithheld(manifest, source)
        ? [`  a newer state of ${source} is quarantined or rejected, and not in it (patchmirror runs)`]
        : [],
    ),
    ...partial.map((source) => `  ${source} is not whole: something of it is missing or stale (patchmirror runs)`),
  ]
}

function shown({ manifest, ...rest }: Exported): object {
  return { ...manifest, ...rest }
}
