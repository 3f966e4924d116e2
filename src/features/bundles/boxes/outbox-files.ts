import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'

/** A bundle in the outbox, as described by its name. */
export interface OutboxFile {
  readonly name: string
  readonly sequence: number
  readonly kind: 'full' | 'delta'
  /** When it was created, if it repeats an exported state with a later date; empty: a new state. */
  readonly dated: string
}

/**
 * Returns the name of a bundle in the outbox. A bundle that only has a later date than another of its sequence gets a
 * different name, since transfer tools skip names that they know.
 */
export function outboxName(mirror: string, { sequence, kind, dated }: Omit<OutboxFile, 'name'>): string {
  const number = String(sequence).padStart(8, '0')
  const date = dated === '' ? '' : `.dated-${dated}`
  return `patchmirror-${mirror.slice(0, 8)}-${number}-${kind}${date}.bundle.zip`
}

/** Formats a time for names, to the second. */
export function dateInName(time: number): string {
  return `${new Date(time).toISOString().slice(0, 19).replace(/[-:]/g, '')}Z`
}

const NAME = /^patchmirror-([\da-f]{8})-(\d{8,})-(full|delta)(?:\.dated-(\d{8}T\d{6}Z))?\.bundle\.zip$/

/** Returns this mirror's bundles in the outbox, oldest first. Throws the system's error for an unreadable folder. */
export function listOutbox(folder: string, mirror: string): OutboxFile[] {
  return readdirSync(folder)
    .flatMap((name): OutboxFile[] => {
      const [, of, number, kind, dated = ''] = NAME.exec(name) ?? []
      if (of !== mirror.slice(0, 8)) return []
      return [{ name, sequence: Number(number), kind: kind === 'full' ? 'full' : 'delta', dated }]
    })
    .sort(
      (a, b) =>
        a.sequence - b.sequence ||
        Number(a.kind === 'delta') - Number(b.kind === 'delta') ||
        (a.dated < b.dated ? -1 : 1),
    )
}

/**
 * Returns the files to keep: the newest `keep`, and each full bundle on which a delta among them builds. Bundles that
 * differ only in their dates count as one, so that a quiet upstream does not displace others.
 */
export function keptFiles(files: readonly OutboxFile[], keep: number): OutboxFile[] {
  const latest = files.filter(
    (file) => files.findLast((one) => one.sequence === file.sequence && one.kind === file.kind) === file,
  )
  const newest = latest.slice(-keep)
  const full = latest.filter(({ kind }) => kind === 'full')
  const bases = newest
    .filter(({ kind }) => kind === 'delta')
    .flatMap(({ sequence }) => [
      full.findLast((one) => one.sequence < sequence),
      full.find((one) => one.sequence === sequence), // a delta that has only a later date
    ])
  return files.filter((one) => newest.includes(one) || bases.includes(one))
}

/** Removes the files that are not kept. */
export function pruneOutbox(folder: string, mirror: string, keep: number): void {
  const files = listOutbox(folder, mirror)
  const kept = new Set(keptFiles(files, keep))
  for (const file of files) if (!kept.has(file)) rmSync(join(folder, file.name), { force: true })
}
