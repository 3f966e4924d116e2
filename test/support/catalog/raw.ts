import { type IncomingHttpHeaders, request } from 'node:http'
import { bearer } from '../keys.ts'
import type { CatalogBench } from './mirror.ts'

/** An answer as it came, not decoded. */
export interface Raw {
  status: number
  headers: IncomingHttpHeaders
  body: Buffer
}

/** Asks the mirror without decoding anything: for a path with a key, or for a URL that it gave out without one. */
export async function raw(
  made: CatalogBench,
  target: string,
  headers: Record<string, string> = {},
  method = 'GET',
): Promise<Raw> {
  const { url } = await made.ask('/-/health') // the newest snapshot is served from here on
  return new Promise((resolve, reject) => {
    const sent = request(new URL(target, url), {
      headers: { ...(target.startsWith('/') && bearer()), ...headers },
      method,
      agent: false,
    })
    sent.once('error', reject).once('response', (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk)).once('error', reject)
      response.once('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          body: Buffer.concat(chunks),
        }),
      )
    })
    sent.end()
  })
}
