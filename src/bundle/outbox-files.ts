import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'

/** A bundle in the outbox, as its name tells. */
export interface OutboxFile {
  readonly name: string
  readonly sequence: number
  readonly kind: 'full' | 'delta'
}

/** The name of a bundle in the outbox: names sort as the bundles are to be imported. */
export function outboxName(mirror: string, sequence: number, kind: 'full' | 'delta'): string {
  const number = String(sequence).padStart(8, '0')
  return `patchmirror-${mirror.slice(0, 8)}-${number}-${kind}.bundle.zip`
}

/** What this mirror has put into the outbox, oldest first. Throws the system's error for a folder that cannot be read. */
export function listOutbox(folder: string, mirror: string): OutboxFile[] {
  const pattern = /^patchmirror-([\da-f]{8})-(\d{8,})-(full|delta)\.bundle\.zip$/
  return readdirSync(folder)
    .flatMap((name): OutboxFile[] => {
      const [, of, number, kind] = pattern.exec(name) ?? []
      if (of !== mirror.slice(0, 8)) return []
      return [{ name, sequence: Number(number), kind: kind === 'full' ? 'full' : 'delta' }]
    })
    .sort(
      (a, b) => a.sequence - b.sequence || Number(a.kind === 'delta') - Number(b.kind === 'delta'),
    )
}

/** Those that stay: the newest `keep`, and each full bundle that a delta among them builds on. */
export function keptFiles(files: readonly OutboxFile[], keep: number): OutboxFile[] {
  const newest = files.slice(-keep)
  const bases = newest
    .filter(({ kind }) => kind === 'delta')
    .map((delta) => files.findLast((one) => one.kind === 'full' && one.sequence < delta.sequence))
  return files.filter((one) => newest.includes(one) || bases.includes(one))
}

/** Removes what is not kept. */
export function pruneOutbox(folder: string, mirror: string, keep: number): void {
  const files = listOutbox(folder, mirror)
  const kept = new Set(keptFiles(files, keep))
  for (const file of files) if (!kept.has(file)) rmSync(join(folder, file.name), { force: true })
}
