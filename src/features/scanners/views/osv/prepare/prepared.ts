import { crc32 } from 'node:zlib'
import { type Folders, analyse } from '../record.ts'

/** A record to prepare: upstream's bytes and their deflate stream. */
export interface RecordContent {
  readonly id: string
  readonly sha256: Buffer
  /** The index's `modified`. */
  readonly stamp: string
  readonly content: Buffer
  readonly crc32: number
  readonly deflated: Buffer
}

/** The folders that have a form of a record, each with the packages that the record names in it. */
export type PreparedFolders = readonly (readonly [folder: string, packages: readonly string[]])[]

/** Everything that views store of a record. */
export interface PreparedRecord {
  readonly id: string
  readonly sha256: Buffer
  readonly stamp: string
  /** When it was modified, in the form of `instantOf`. */
  readonly instant: string
  readonly malformed: boolean
  /** Other ids that it names, in upper case. */
  readonly aliases: readonly string[]
  /** The ecosystems that it names, with their releases. */
  readonly ecosystems: readonly string[]
  /** The vendor prefixes that were taken off in its derived form, in order. */
  readonly prefixes: readonly string[]
  /** Upstream's bytes: the content's CRC-32 and size, and its deflate stream. */
  readonly own: {
    readonly folders: PreparedFolders
    readonly crc32: number
    readonly size: number
    readonly deflated: Uint8Array
  }
  /** Without vendor prefixes: the content, and its CRC-32; null when it has no such form. */
  readonly derived: {
    readonly folders: PreparedFolders
    readonly crc32: number
    readonly content: Uint8Array
  } | null
}

/** The settings that decide what is made of a record. */
export interface PrepareRules {
  /** Vendors whose prefixes are taken off in derived views; none: there are no derived views. */
  readonly vendors: ReadonlySet<string>
  /** The folders that there may be, where a choice was made; null: all of them. */
  readonly chosen: ReadonlySet<string> | null
}

/** Analyses a record, and makes its derived form. */
export function prepareRecord(
  { id, sha256, stamp, content, crc32: sum, deflated }: RecordContent,
  { vendors, chosen }: PrepareRules,
): PreparedRecord {
  const isFolder = (name: string): boolean => chosen?.has(name) ?? true
  const found = analyse(content, stamp, vendors, isFolder)
  const { derived, instant, malformed, aliases, ecosystems } = found
  const own = { crc32: sum, size: content.length, deflated, folders: listed(found.folders) }
  return {
    id,
    sha256,
    stamp,
    instant,
    malformed,
    aliases,
    ecosystems,
    own,
    prefixes: derived?.prefixes ?? [],
    derived: derived && derivedOf(derived.content, listed(derived.folders)),
  }
}

function derivedOf(content: Uint8Array, folders: PreparedFolders): PreparedRecord['derived'] {
  return { folders, crc32: crc32(content), content }
}

function listed(folders: Folders): PreparedFolders {
  return Array.from(folders, ([name, packages]) => [name, [...packages]] as const)
}
