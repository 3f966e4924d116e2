import { Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { MirrorError } from '../../../base/errors.ts'

/** Why the lines of a gzip stream cannot be read: one has no end within the bound, the last has none, or the stream fails. */
export type LineFault = 'endless' | 'cut' | { readonly cause: unknown }

/** Yields the lines of a gzip stream, as `eachGzipLines` does, one by one. */
export async function* eachGzipLine(...given: Parameters<typeof eachGzipLines>): AsyncGenerator<string> {
  for await (const lines of eachGzipLines(...given)) yield* lines
}

/**
 * Yields the lines of a gzip stream, as many as were inflated at once. Each has at most about `longest` characters. Throws what
 * `refuse` returns for a fault; a `MirrorError` of the stream is thrown as it is.
 */
export async function* eachGzipLines(
  chunks: Iterable<Buffer> | AsyncIterable<Buffer>,
  longest: number,
  refuse: (fault: LineFault) => MirrorError,
): AsyncGenerator<string[]> {
  const source = Readable.from(chunks)
  const gunzip = createGunzip()
  source.once('error', (error) => gunzip.destroy(error))
  let rest = ''
  try {
    for await (const chunk of source.pipe(gunzip).setEncoding('utf8')) {
      const lines = (rest + String(chunk)).split('\n')
      rest = lines.pop() ?? ''
      if (rest.length > longest) throw refuse('endless')
      if (lines.length > 0) yield lines
    }
  } catch (error) {
    throw error instanceof MirrorError ? error : refuse({ cause: error })
  }
  if (rest !== '') throw refuse('cut')
}
