import { readdirSync, renameSync, rmSync } from 'node:fs'
import { basename, join } from 'node:path'
import { sha256Hex } from '../../../base/digest.ts'
import { syncAll } from './files.ts'
import { makeFolder } from '../../../base/files.ts'
import { acquireLock } from '../../../store/database/lock.ts'
import { namingFaults } from '../../../store/database/faults.ts'
import {
  type ViewsKind,
  GENERATION,
  generationDir,
  readCurrentViews,
  replaceCurrentViews,
  viewsDir,
} from '../store/generations.ts'

/** The name of the generation that is made of these texts: equal texts, equal generation. */
export function generationName(kind: ViewsKind, madeOf: readonly string[]): string {
  const digest = sha256Hex(JSON.stringify(madeOf))
  return `${kind}-${digest.slice(0, 32)}`
}

/** What decides the Last-Modified of a generation; dates in Unix seconds. */
interface Dating {
  /** That of the newest of what it shows. */
  readonly newest: number
  /** The earliest that is served (`readDateFloor`). */
  readonly floor: number | null
  /** Reads that of the generation before from its folder; may throw, for it may be damaged. */
  readonly readChanged: (folder: string) => number | null
}

/**
 * The Last-Modified of a generation, unix seconds: that of the newest of what it shows, but behind that of the one `before` (its
 * folder) where this is another one: the same records by other settings, or fewer documents, are a change as well.
 */
export function changedAfter(before: string | null, name: string, { newest, floor, readChanged }: Dating): number {
  const first = Math.max(newest, floor ?? newest)
  try {
    const previous = before === null ? null : readChanged(before)
    if (before === null || previous === null) return first
    const last = Math.max(previous, floor ?? previous)
    return Math.max(first, basename(before) === name ? last : last + 1)
  } catch {
    return first
  }
}

/** How a generation is made. */
interface Making<T> {
  readonly dataDir: string
  readonly kind: ViewsKind
  readonly name: string
  /** The snapshot that it shows. */
  readonly snapshot: string
  /** What it was made by beside that; absent: its name says it. */
  readonly basis?: string
  /** Upstream's date of that snapshot, unix milliseconds. */
  readonly asOf: number
  /** Make it even when one of that name is there: that one is damaged. */
  readonly rebuild?: boolean
  /** Builds the folder, from the generation before if there is one. It is not read until it is complete. */
  readonly make: (folder: string, before: string | null) => Promise<T>
}

/**
 * Builds a generation and publishes it; null when it is published already. One process at a time: throws `locked`
 * while another builds one. Killed at any time, it leaves the previous generation in use and a folder that the next one
 * removes.
 */
export async function makeGeneration<T>(making: Making<T>): Promise<T | null> {
  const { dataDir, kind, name, snapshot, basis = '', asOf, rebuild = false, make } = making
  if (!rebuild && isServed(making)) return null
  const lock = acquireLock(dataDir, 'views')
  try {
    namingFaults(dataDir, () => makeFolder(viewsDir(dataDir)))
    if (!rebuild && isServed(making)) return null
    const folder = generationDir(dataDir, name)
    const current = readCurrentViews(dataDir, kind)?.name ?? null
    if (!rebuild && current === name) {
      replaceCurrentViews(dataDir, kind, { name, snapshot, basis, asOf }) // another snapshot, and nothing of this is different in it
      return null
    }
    const before = current === null ? null : generationDir(dataDir, current)
    const draft = join(viewsDir(dataDir), `making-${kind}`)
    rmSync(draft, { recursive: true, force: true })
    try {
      const made = await make(draft, before)
      await syncAll(draft)
      rmSync(folder, { recursive: true, force: true })
      renameSync(draft, folder)
      replaceCurrentViews(dataDir, kind, { name, snapshot, basis, asOf })
      sweep(dataDir, kind, [name, current])
      return made
    } catch (error) {
      rmSync(draft, { recursive: true, force: true })
      throw error
    }
  } finally {
    lock.release()
  }
}

/** Whether a generation is the one in use, and there. */
function isServed({ dataDir, kind, name, snapshot, basis = '' }: Omit<Making<unknown>, 'make'>): boolean {
  const current = readCurrentViews(dataDir, kind)
  return current?.name === name && current.snapshot === snapshot && current.basis === basis
}

/** The one in use and the one before stay: a reader may be in the middle of that. */
function sweep(dataDir: string, kind: ViewsKind, keep: readonly (string | null)[]): void {
  for (const name of readdirSync(viewsDir(dataDir)))
    if (GENERATION.test(name) && name.startsWith(`${kind}-`) && !keep.includes(name))
      rmSync(generationDir(dataDir, name), { recursive: true, force: true })
}
