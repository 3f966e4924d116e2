import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { type ViewAsset, type Views, openViews } from '../../../../src/features/scanners/store/reads.ts'
import { generationDir, readCurrentViews } from '../../../../src/features/scanners/store/generations.ts'
import type { BuildReport } from '../../../../src/features/scanners/views/osv/build.ts'
import { performTask } from '../../../../src/features/scanners/views/task.ts'
import { type FilledStore, openFilledStore } from '../../../support/filled-store.ts'

/** A data folder whose records a test publishes, and the views of it. */
export interface ViewsBench {
  readonly dir: string
  readonly store: FilledStore
  readonly make: (options?: { vendors?: readonly string[]; rebuild?: boolean }) => Promise<BuildReport | null>
  /** The generation in use; closed with the bench. */
  readonly open: () => Views
  /** Folder of the generation in use. */
  readonly folder: () => string
}

const closers: (() => void)[] = []

/** Call after each test. */
export function closeBenches(): void {
  for (const close of closers.splice(0).reverse()) close()
}

export function openBench(): ViewsBench {
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-views-'))
  const store = openFilledStore(dir)
  closers.push(() => {
    store.close()
    rmSync(dir, { recursive: true, force: true })
  })
  const folder = (): string => {
    const current = readCurrentViews(dir, 'osv')
    if (current === null) throw new Error('there are no views')
    return generationDir(dir, current.name)
  }
  return {
    dir,
    store,
    async make({ vendors = ['Root'], rebuild = false } = {}) {
      const made = await performTask({ dataDir: dir, kind: 'osv', vendors, rebuild })
      return made as BuildReport | null
    },
    open() {
      const views = openViews(folder())
      closers.push(() => views.close())
      return views
    },
    folder,
  }
}

/** Everything that a generation serves as files: path and digest, and the files by what they are. */
export function assetsOf(views: Views): Record<string, string> {
  const names = views.listViews().flatMap(({ name }) => [`${name}/all.zip`, `${name}/modified_id.csv`])
  const paths = ['all.zip', 'ecosystems.txt', 'modified_id.csv', ...names]
  return Object.fromEntries(
    paths.map((path) => {
      const asset = views.readAsset(path)
      if (asset === null) return [path, 'missing']
      const bytes = bytesOf(views, asset)
      const digest = createHash('sha256').update(bytes).digest('hex')
      const gzip = asset.gzip === null ? '' : ` ${asset.gzip.file}`
      return [path, `${digest}${gzip} ${asset.crc32c} ${asset.prefixes.join()}`]
    }),
  )
}

/** The content of a text that a generation serves. */
export function textOf(views: Views, path: string): string {
  const asset = views.readAsset(path)
  return asset === null ? 'missing' : bytesOf(views, asset).toString()
}

function bytesOf({ folder }: Views, { file, gzip }: ViewAsset): Buffer {
  const stored = readFileSync(join(folder, file))
  return gzip?.file === file ? gunzipSync(stored) : stored
}

/** Files in a folder, in order. */
export function filesIn(folder: string): string[] {
  return readdirSync(folder).sort()
}

/** A record in odd spacing and order, as upstreams write them. */
export function record(id: string, modified: string, ...packages: [string, string][]): string {
  const affected = packages.map(
    ([ecosystem, name]) =>
      `{"ranges":[],"package": {"name":${JSON.stringify(name)} ,"ecosystem":${JSON.stringify(ecosystem)}} }`,
  )
  return `{ "modified":"${modified}","id":${JSON.stringify(id)}, "affected": [${affected.join(' ,')}]\n}`
}
