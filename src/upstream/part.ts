import { readFile, rm, stat, writeFile } from 'node:fs/promises'
import type { Meta } from './answers.ts'

/** What is known of the file that an unfinished download is a part of; lies beside it. */
export interface PartialDownload {
  validator: string | null
  etag: string | null
  lastModified: string | null
}

/** A server that ignores If-Range would join two versions: what the answer says of itself counts too. */
export function isSameVersion(known: PartialDownload | null, meta: Meta): boolean {
  if (known === null) return false
  if (known.etag !== null && meta.etag !== null) return known.etag === meta.etag
  return (
    known.lastModified === null ||
    meta.lastModified === null ||
    known.lastModified === meta.lastModified
  )
}

/** The old bytes go before the new validator comes: a crash in between must not join the two. */
export async function restartDownload(part: string, meta: Meta): Promise<void> {
  await rm(part, { force: true })
  await writeFile(`${part}.json`, JSON.stringify(describe(meta)), { mode: 0o600 })
}

/** Only a strong validator may join two halves of a file (RFC 9110, If-Range). */
function describe({ etag, lastModified }: Meta): PartialDownload {
  const strong = etag !== null && !etag.startsWith('W/') ? etag : null
  return { validator: strong ?? (etag === null ? lastModified : null), etag, lastModified }
}

/** Reads what lies beside an unfinished download; null when there is nothing usable. */
export async function readPart(path: string): Promise<PartialDownload | null> {
  try {
    return JSON.parse(await readFile(path, 'utf8')) as PartialDownload
  } catch {
    return null // absent or cut short by a crash: the download begins anew
  }
}

/** A file's size in bytes; 0 when there is none. */
export async function sizeOfPart(path: string): Promise<number> {
  try {
    return (await stat(path)).size
  } catch {
    return 0
  }
}
