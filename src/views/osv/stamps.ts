import { once } from 'node:events'
import { createGzip } from 'node:zlib'
import { type MadeFile, createFileDraft } from '../files.ts'
import { stampOf } from '../../core/time.ts'

/** A text in both forms in which it is served. */
interface MadeText extends MadeFile {
  readonly gzip: { readonly file: string; readonly size: number }
}

const CHUNK = 1 << 18

/** Writes a text and its gzip form, some hundred kilobytes at a time. */
export async function writeText(folder: string, lines: Iterable<string>): Promise<MadeText> {
  const plain = createFileDraft(folder, '.txt')
  const packed = createFileDraft(folder, '.gz')
  const gzip = createGzip()
  gzip.on('data', (chunk: Buffer) => packed.write(chunk))
  const write = async (text: string): Promise<void> => {
    const bytes = Buffer.from(text)
    plain.write(bytes)
    if (!gzip.write(bytes)) await once(gzip, 'drain')
  }
  try {
    let text = ''
    for (const line of lines) {
      text += line
      if (text.length < CHUNK) continue
      await write(text)
      text = ''
    }
    await write(text)
    gzip.end()
    await once(gzip, 'end')
    return { ...plain.finish(), gzip: packed.finish() }
  } finally {
    plain.close()
    packed.close()
    gzip.destroy()
  }
}

/** The rows of a `modified_id.csv` (RFC 4180): when, and which record. */
export function* stampLines(stamps: Iterable<[string, string]>): Generator<string> {
  let last: string | null = null
  let stamp = ''
  for (const [instant, name] of stamps) {
    if (instant !== last) stamp = stampOf(instant) // many records have the same, and they are neighbours
    last = instant
    yield `${stamp},${quoted(name)}\n`
  }
}

/** Quotes a field where a CSV parser needs it: an id may contain any character. */
function quoted(field: string): string {
  return /[",\r\n]|^\s/.test(field) ? `"${field.replaceAll('"', '""')}"` : field
}
