import { MirrorError } from '../../base/errors.ts'
import type { SourceName } from '../../base/domain/sources.ts'
import { isSha256Hex } from '../../base/digest.ts'
import { isCount } from '../../base/json/objects.ts'

/** Name of the manifest in the archive. */
export const MANIFEST = 'manifest.json'
/** Bytes of a file in one member: what writing and reading keep in memory. */
export const PIECE_BYTES = 4 * 2 ** 20

/** Names of the files that a backup may contain; all but the databases are copied as they are. */
export const FILE_NAMES = ['webhooks.db', 'local.key', 'webhook-secrets.json', 'mirror.db'] as const
type BackupFileName = (typeof FILE_NAMES)[number]

/** A file in a backup. It is stored in members `NAME/000000`, `NAME/000001` … of `PIECE_BYTES`, the last one shorter. */
export interface BackupFile {
  readonly name: BackupFileName
  readonly bytes: number
  readonly sha256: string
  readonly pieces: number
  /** Schema of a database; null for another file. */
  readonly schema: number | null
}

/** The manifest of a backup. */
export interface BackupManifest {
  readonly kind: 'patchmirror-backup'
  readonly format: 1
  /** Program that wrote it, such as `patchmirror/1.0.0`. */
  readonly program: string
  /** ISO 8601 UTC. */
  readonly createdAt: string
  /** Whether it has only what bundles do not carry. */
  readonly private: boolean
  /** Identity of the mirror in its bundles. */
  readonly identity: string
  /** What `patchmirror status --digest` prints, hex; null for a private backup, and where nothing is stored. */
  readonly digest: string | null
  /** The same of each source. */
  readonly sources: Partial<Record<SourceName, string>>
  readonly files: readonly BackupFile[]
}

/** Returns the name of a member. */
export function pieceName(file: string, number: number): string {
  return `${file}/${String(number).padStart(6, '0')}`
}

/** Returns the error for a file that is no backup, or a damaged one. */
export function notABackup(path: string, why: string, cause?: unknown): MirrorError {
  const text = `${path} cannot be restored: ${why}. Nothing was changed`
  return new MirrorError('corrupt', text, { cause })
}

/** Parses a manifest. Throws what `fail` returns for anything that is not one of this program's format. */
export function parseBackupManifest(text: string, fail: (why: string) => MirrorError): BackupManifest {
  const value = parseJson(text)
  if (value?.kind !== 'patchmirror-backup')
    throw fail('it is not a backup of Patchmirror; a bundle is for "patchmirror bundle import FILE"')
  if (value.format !== 1) throw fail(`it has format ${String(value.format)}, and this program knows 1: use a newer one`)
  if (!isManifest(value)) throw fail('its manifest is incomplete')
  return value
}

function parseJson(text: string): Partial<BackupManifest> | null {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' ? value : null
  } catch {
    return null
  }
}

function isManifest(value: Partial<BackupManifest>): value is BackupManifest {
  const { program, createdAt, identity, digest, files, sources } = value
  return (
    [program, createdAt, identity].every((one) => typeof one === 'string') &&
    typeof value.private === 'boolean' &&
    (digest === null || isSha256Hex(digest)) &&
    typeof sources === 'object' &&
    Array.isArray(files) &&
    files.every(isFile) &&
    new Set(files.map(({ name }) => name)).size === files.length &&
    files.some(({ name }) => name === 'mirror.db')
  )
}

function isFile(file: Partial<BackupFile> | null): file is BackupFile {
  if (file === null || typeof file !== 'object') return false
  const { name, bytes, sha256, pieces, schema } = file
  return (
    FILE_NAMES.some((known) => known === name) &&
    [bytes, pieces].every(isCount) &&
    isSha256Hex(sha256) &&
    (name?.endsWith('.db') === true ? isCount(schema) : schema === null)
  )
}
