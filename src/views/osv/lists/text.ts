import { once } from 'node:events'
import { createGzip } from 'node:zlib'
import { type MadeFile, createFileDraft } from '../../files.ts'

/** A text in both forms in which it is served. */
export interface MadeText extends MadeFile {
  readonly gzip: { readonly file: string; readonly size: number }
}

const CHUNK = 1 << 18

/** Writes a text and its gzip form, always in the same pieces, so that equal texts give equal bytes. */
export async function writeText(folder: string, text: Iterable<Buffer>): Promise<MadeText> {
  const plain = createFileDraft(folder, '.txt')
  const packed = createFileDraft(folder, '.gz')
  const gzip = createGzip()
  gzip.on('data', (chunk: Buffer) => packed.write(chunk))
  try {
    for (const bytes of inPieces(text)) {
      plain.write(bytes)
      if (!gzip.write(bytes)) await once(gzip, 'drain')
    }
    gzip.end()
    await once(gzip, 'end')
    return { ...plain.finish(), gzip: packed.finish() }
  } finally {
    plain.close()
    packed.close()
    gzip.destroy()
  }
}

/** Divides bytes into new buffers of `CHUNK` bytes each, and the rest. */
function* inPieces(text: Iterable<Buffer>): Generator<Buffer> {
  let piece = Buffer.allocUnsafe(CHUNK)
  let used = 0
  for (const bytes of text) {
    for (let from = 0; from < bytes.length;) {
      const copied = bytes.copy(piece, used, from)
      used += copied
      from += copied
      if (used < CHUNK) continue
      yield piece
      piece = Buffer.allocUnsafe(CHUNK)
      used = 0
    }
  }
  if (used > 0) yield piece.subarray(0, used)
}

const JOINED = 1 << 16

/** Encodes lines, many at once. */
export function* encodeLines(lines: Iterable<string>): Generator<Buffer> {
  let text = ''
  for (const line of lines) {
    text += line
    if (text.length < JOINED) continue
    yield Buffer.from(text)
    text = ''
  }
  yield Buffer.from(text)
}
