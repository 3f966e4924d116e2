import { once } from 'node:events'
import { type Gunzip, createGunzip, gunzipSync } from 'node:zlib'
import { MirrorError, systemCode } from '../../../base/errors.ts'
import type { DocumentKind } from '../../../base/domain/resources.ts'
import { type DocumentContent, GZIP_TYPE } from './document-type.ts'
import { createKindCheck } from './kind-check.ts'

/** Incremental check of a file: a document, or a gzip file with one in it. */
export interface FileCheck {
  /** Takes bytes, which must not change until it has resolved. */
  write(bytes: Buffer): Promise<void> | void
  end(): Promise<Checked>
}

/** The detected content, or the reason why it is not of the expected kind. */
export type Checked = DocumentContent | { refused: string }

/** What the check of a gzip file needs to know of its content. */
interface Inflating {
  /** Cap on the content, bytes. */
  readonly maxBytes: number
  /** Takes each piece of the content; throws when it must not be stored. */
  readonly search: (piece: Buffer) => void
  /** What the file is, for messages. */
  readonly place: string
}

const DAMAGED = { refused: 'the gzip file is damaged' }

/** Returns whether bytes begin a gzip file. */
export function isGzip(bytes: Buffer): boolean {
  return bytes[0] === 0x1f && bytes[1] === 0x8b
}

/** Returns the content of a gzip file; null when it is damaged or larger than `maxBytes`. */
export function gunzipped(bytes: Buffer, maxBytes: number): Buffer | null {
  try {
    return gunzipSync(bytes, { maxOutputLength: maxBytes })
  } catch {
    return null
  }
}

/** Returns what is known of a gzip file whose content was checked. */
export function ofGzip(content: Checked): Checked {
  if ('refused' in content) return content
  return { ...content, type: GZIP_TYPE, form: 'binary', styled: false }
}

/** Creates a check of a file of the expected kind, in constant memory: of a gzip file it looks at the content. */
export function createFileCheck(kind: DocumentKind, inflating: Inflating): FileCheck {
  let check: FileCheck | null = null
  const begin = (bytes: Buffer): FileCheck => (isGzip(bytes) ? createGzipCheck(kind, inflating) : plain(kind))
  return {
    write: (bytes) => (check ??= begin(bytes)).write(bytes),
    end: () => (check ?? plain(kind)).end(),
  }
}

function plain(kind: DocumentKind): FileCheck {
  const check = createKindCheck(kind)
  return { write: (bytes) => check.write(bytes), end: () => Promise.resolve(check.end()) }
}

function createGzipCheck(kind: DocumentKind, inflating: Inflating): FileCheck {
  const gunzip = createGunzip()
  const check = createKindCheck(kind)
  const take = createTaker(gunzip, inflating, (piece) => check.write(piece))
  let fault: Error | null = null
  gunzip.on('data', take)
  gunzip.on('error', (error) => (fault ??= error))
  const failure = (): Checked | null => {
    if (fault === null) return null
    if (systemCode(fault)?.startsWith('Z_') === true) return DAMAGED
    throw fault
  }
  return {
    write: (bytes) =>
      new Promise((resolve) => {
        if (gunzip.destroyed) resolve()
        else gunzip.write(bytes, () => resolve())
      }),
    async end() {
      if (!gunzip.destroyed) {
        gunzip.end()
        await once(gunzip, 'close').catch(() => undefined) // what went wrong is in `fault`
      }
      return failure() ?? ofGzip(check.end())
    },
  }
}

/** Returns what takes the pieces of a content, and ends it where it is too large or must not be stored. */
function createTaker(
  gunzip: Gunzip,
  { maxBytes, search, place }: Inflating,
  write: (piece: Buffer) => void,
): (piece: Buffer) => void {
  let size = 0
  return (piece) => {
    size += piece.length
    try {
      if (size > maxBytes)
        throw new MirrorError(
          'upstream_too_large',
          `${place}: inflates to more than ${maxBytes} bytes, the most that is mirrored; fetch it from the service itself`,
        )
      search(piece)
    } catch (error) {
      gunzip.destroy(error as Error)
      return
    }
    write(piece)
  }
}

/** Checks a file that is in memory; `search` takes the content of a gzip file, and throws when it must not be stored. */
export function contentOfFile(
  kind: DocumentKind,
  bytes: Buffer,
  maxBytes: number,
  search: (content: Buffer) => void,
): Checked {
  const check = createKindCheck(kind)
  if (!isGzip(bytes)) {
    check.write(bytes)
    return check.end()
  }
  const content = gunzipped(bytes, maxBytes)
  if (content === null) return DAMAGED
  search(content)
  check.write(content)
  return ofGzip(check.end())
}
